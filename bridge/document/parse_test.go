package document_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/bridge/document"
)

func problems(t testing.TB, err error) []string {
	t.Helper()
	var e *document.Error
	if err == nil {
		return nil
	}
	if !errors.As(err, &e) {
		t.Fatalf("%v is no *document.Error", err)
	}
	out := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		out[i] = p.String()
	}
	return out
}

// TestRefused edits the full document and looks for the one problem that it then has.
func TestRefused(t *testing.T) {
	for _, tt := range []struct {
		name string
		edit []string
		want string // the whole of it
	}{
		{"unknown member", []string{"log_level: debug", "loglevel: debug"}, `line 6: unknown member "bridge.loglevel"`},
		{"unknown mode", []string{"deployment_mode: clustered", "deployment_mode: cluster"}, `line 3: bridge.deployment_mode: "cluster" is not standalone or clustered`},
		{"number for a duration", []string{"shutdown_timeout: 40s", "shutdown_timeout: 40"}, "line 4: bridge.shutdown_timeout: a number does not belong here"},
		{"no unit", []string{"shutdown_timeout: 40s", `shutdown_timeout: "40"`}, `line 4: bridge.shutdown_timeout: "40" is no duration; write it with its unit, as 30s or 1h30m`},
		{"negative", []string{"confirm_window: 90s", "confirm_window: -1s"}, "line 10: bridge.cluster.confirm_window: -1s is negative"},
		{"drain longer than shutdown", []string{"drain_timeout: 20s", "drain_timeout: 50s"}, "line 5: bridge.drain_timeout: 50s is more than shutdown_timeout, 40s, of which it is a part"},
		{"cluster of a standalone", []string{"deployment_mode: clustered", "deployment_mode: standalone"}, "line 7: bridge.cluster: it is of a clustered bridge: write deployment_mode: clustered, or leave it out"},
		{"coordinated without roster", []string{"    members: [node-a, node-b, node-c]\n", ""}, "line 7: bridge.cluster.members: a coordinated rollout needs the roster: name every member's id"},
		{"member twice", []string{"node-b, node-c", "node-b, node-b"}, `line 9: bridge.cluster.members.2: "node-b" is named twice`},
		{"member's name", []string{"node-b, node-c", "node b"}, `line 9: bridge.cluster.members.1: "node b" is not 1 to 64 letters, digits, '.', '_' and '-'`},
		{"window without coordinated", []string{"rollout: coordinated", "rollout: refuse", "    soak: 20s\n", "", "    deadline: 5m\n", ""}, "line 10: bridge.cluster.confirm_window: it is of a coordinated rollout: write rollout: coordinated, or leave it out"},
		{"window too short", []string{"confirm_window: 90s", "confirm_window: 39s"}, "line 10: bridge.cluster.confirm_window: 39s is less than twice the soak, 20s: members could not prove in time that a change works"},
		{"soak without window", []string{"    confirm_window: 90s\n", ""}, "line 10: bridge.cluster.soak: it is of a confirm window, and there is none"},
		{"deadline too short", []string{"deadline: 5m", "deadline: 1ms"}, "line 12: bridge.cluster.deadline: 1ms is not between 100ms and 24h"},

		{"no id", []string{"id: plant\n    kind", "kind"}, "line 14: sessions.0.id: it is missing: 1 to 64 letters, digits, '.', '_' and '-'\nline 30: routes.temps.from.session: there is no session \"plant\""},
		{"id twice", []string{"sessions:\n", "sessions:\n  - {id: cloud, kind: http, url: \"http://h\"}\n", "id: cloud, kind: mqtt, url: \"mqtt://cloud:1883\", client_id: \"gdn-{member}\"", "id: cloud, kind: http, url: \"http://h\"", "{session: cloud, topic: \"in/#\", share: bridge}", "{session: plant, topic: \"in/#\"}", "qos: 0, retain: set", ""}, `line 26: sessions.cloud.id: "cloud" stands already on line 14`},
		{"secret in place of a file", []string{"credentials: file:plant.cred", "credentials: hunter2"}, `line 23: sessions.0.credentials: write the file's name behind "file:"; secrets do not belong into the document`},
		{"credentials in a URL", []string{"mqtts://broker:8883", "mqtts://me:secret@broker:8883"}, "line 16: sessions.plant.url: it has credentials: put them into a file, and write credentials: file:NAME"},
		{"another scheme", []string{"mqtts://broker:8883", "tcp://broker:8883"}, "line 16: sessions.plant.url: a session of kind mqtt has a URL of mqtt://, mqtts://, ws:// or wss://"},
		{"no host", []string{"mqtts://broker:8883", "mqtts://:8883"}, "line 16: sessions.plant.url: it names no host"},
		{"a path", []string{"mqtts://broker:8883", "mqtts://broker:8883/x"}, "line 16: sessions.plant.url: only scheme, host and port are used"},
		{"tls of a plain scheme", []string{"mqtts://broker:8883", "mqtt://broker:1883"}, "line 24: sessions.plant.tls: mqtt:// is without TLS; choose another scheme, or leave tls out"},
		{"certificate without key", []string{"certificate: file:c.pem, key: file:k.pem, server", "certificate: file:c.pem, server"}, "line 24: sessions.plant.tls: a certificate and its key come together"},
		{"http with both", []string{`listen: "127.0.0.1:8088", tls: {certificate: file:c.pem, key: file:k.pem}`, `listen: "127.0.0.1:8088", url: "http://h"`}, "line 27: sessions.door: an http session has either a url, which messages are POSTed to, or listen, where they are taken and given out"},
		{"listen of mqtt", []string{"url: mqtts://broker:8883", "url: mqtts://broker:8883\n    listen: \":1\""}, "line 17: sessions.plant.listen: it is of http sessions, and this one is of kind mqtt"},
		{"address", []string{"127.0.0.1:8088", "127.0.0.1"}, `line 27: sessions.door.listen: "127.0.0.1" is not an address, as 127.0.0.1:8088 or :8088`},
		{"mqtt's field on http", []string{"credentials: file:hook.cred", "clean_start: true"}, "line 26: sessions.hook.clean_start: it is of mqtt sessions, and this one is of kind http"},
		{"client id of http", []string{"credentials: file:hook.cred", "client_id: x"}, "line 26: sessions.hook.client_id: an http session has none"},
		{"expiry of 3.1.1", []string{`"5.0"`, `"3.1.1"`, `set: {site: "{1}", kind: temp}, `, ""}, "line 20: sessions.plant.session_expiry: MQTT 3.1.1 has no session expiry: clean_start: false alone keeps the session"},
		{"kept and thrown away", []string{"clean_start: false", "clean_start: true"}, "line 20: sessions.plant.session_expiry: clean_start throws away at each connection what this keeps: write clean_start: false, or leave it out"},
		{"nothing to go on with", []string{"    session_expiry: 1h\n", ""}, "line 19: sessions.plant.clean_start: the session that it would go on with ends with each connection: write session_expiry, as 1h, or leave it out"},
		{"part of a second", []string{"keep_alive: 20s", "keep_alive: 1500ms"}, "line 21: sessions.plant.keep_alive: 1.5s is not whole seconds"},
		{"one client id for all", []string{"gdn-{member}", "gdn"}, "line 25: sessions.cloud.client_id: every member would connect as gdn and throw the others off: write {member} into it, or make the session exclusive"},
		{"a durable one for each", []string{"client_id: gdn-plant", `client_id: "gdn-{member}-plant"`}, "line 17: sessions.plant.client_id: what the broker keeps for one member another would never get: a durable exclusive session has one client id, without {member}"},
		{"one client id twice", []string{"{id: hook, kind: http, url: \"https://hook.example/in?x=1\", credentials: file:hook.cred}", `{id: hook, kind: mqtt, url: "mqtt://CLOUD", client_id: "gdn-{member}"}`, "to: {session: hook}", "to: {session: hook, topic: x}"}, "line 26: sessions.hook.client_id: session cloud connects to the same broker as gdn-{member} too: they would throw each other off"},
		{"braces in a client id", []string{"client_id: gdn-plant", `client_id: "gdn-{node}"`}, `line 17: sessions.plant.client_id: "gdn-{node}": beside {member} it has no braces and no control characters`},

		{"unknown session", []string{"session: stream, topic: \"in.{1}\"", "session: steam, topic: \"in.{1}\""}, `line 40: routes.shared.to.session: there is no session "steam"`},
		{"no session", []string{"session: stream, topic: \"in.{1}\"", "topic: \"in.{1}\""}, "line 40: routes.shared.to.session: it is missing: the id of a session"},
		{"no target", []string{"    to: {session: cloud, topic: \"t/{1}\", qos: 0, retain: set}\n", ""}, "line 30: routes.temps.to: it is missing: the session and topic that messages go to"},
		{"no topic", []string{"session: cloud, topic: \"t/{1}\", qos: 0", "session: cloud, qos: 0"}, "line 36: routes.temps.to.topic: it is missing: the topic that messages go to"},
		{"bad filter", []string{"plant/+/temp", "plant/x+/temp"}, `line 31: routes.temps.from.topic: "plant/x+/temp": level "x+": a wildcard stands for a whole level`},
		{"rest not last", []string{"plant/+/temp", "plant/#/temp"}, `line 31: routes.temps.from.topic: "plant/#/temp": "#" stands for all that follows, so it must be the last level`},
		{"share in the filter", []string{"in/#", "$share/g/in/#"}, `line 40: routes.shared.from.topic: "$share/g/in/#": name the group of a shared subscription in "share", and only the filter here`},
		{"not shared", []string{", share: bridge", ""}, "line 40: routes.shared.from.share: every member would take every message: name a group in share, or make session cloud exclusive"},
		{"capture that is not there", []string{`topic: "t/{1}"`, `topic: "t/{2}"`}, `line 36: routes.temps.to.topic: "t/{2}": {2}: the filter that messages come by has 1 wildcards`},
		{"capture of nothing", []string{"plant/+/temp", "plant/a/temp", `site: "{1}"`, "site: x"}, `line 36: routes.temps.to.topic: "t/{1}": {1}: the filter that messages come by has no wildcard`},
		{"wildcard in a target", []string{`topic: "t/{1}"`, `topic: "t/+"`}, `line 36: routes.temps.to.topic: "t/+": level "+": a topic that is sent to has no wildcards`},
		{"bad expression", []string{"payload.c > 0.0", "payload.c >"}, `line 32: routes.temps.filter: line 1, column 12: Syntax error`},
		{"expression of another type", []string{"payload.c > 0.0", "topic + text"}, "line 32: routes.temps.filter: the expression is of type string, it must be bool"},
		{"unknown variable", []string{"payload.c > 0.0", "body.c > 0.0"}, "line 32: routes.temps.filter: line 1, column 1: undeclared reference to 'body'"},
		{"quality", []string{"qos: 2", "qos: 3"}, "line 31: routes.temps.from.qos: 3 is not 0, 1 or 2"},
		{"quality of http", []string{"to: {session: hook}", "to: {session: hook, qos: 1}"}, "line 41: routes.events.to.qos: it is of mqtt sessions, and hook is of kind http"},
		{"from where nothing comes", []string{"{session: door, topic: \"in/+\"}", "{session: hook, topic: \"in/+\"}"}, "line 42: routes.posts.from.session: hook sends to a url; messages come from an http session that listens"},
		{"in flight", []string{"in_flight: 10", "in_flight: 0"}, "line 37: routes.temps.in_flight: 0 is not between 1 and 65535"},
		{"margin", []string{"0.5%", "101%"}, `line 38: routes.0.health_margin: "101%" is no share; write 0% to 100%, with up to two decimals`},
		{"id of a route", []string{"routes:\n  - id: temps", "routes:\n  - id: te mps"}, `line 30: routes.te mps.id: "te mps" is not 1 to 64 letters, digits, '.', '_' and '-'`},
		{"dead letters to two places", []string{`dead_letter: {session: cloud, topic: "dead/{topic}"}`, `dead_letter: {session: cloud, topic: d, file: file:x}`}, "line 39: routes.temps.dead_letter: name either a session with a topic, or a file"},
		{"origin property", []string{"kind: temp}, remove", "gdn-origin: x}, remove"}, "line 34: routes.temps.transform.properties.set.gdn-origin: gdn-origin tells bridges what has come through them; it is not for routes"},
		{"header", []string{"to: {session: hook}", `to: {session: hook}, transform: {properties: {set: {"a b": x}}}`}, `line 41: routes.events.transform.properties.set.a b: "a b" cannot be the name of a header, which session hook makes of it (RFC 9110 §5.6.2)`},
		{"feeds itself", []string{"session: cloud, topic: \"t/{1}\"", "session: plant, topic: \"plant/{1}/temp\""}, "line 36: routes.temps.to.topic: what it sends to plant/{1}/temp comes by its own filter plant/+/temp again: the route would feed itself"},
		{"feeds itself by another session", []string{"url: \"mqtt://cloud:1883\"", "url: \"mqtts://BROKER\"", "session: cloud, topic: \"t/{1}\"", "session: cloud, topic: \"{topic}\""}, "line 36: routes.temps.to.topic: what it sends to {topic} comes by its own filter plant/+/temp again: the route would feed itself"},
		{"dead letters feed it", []string{`dead_letter: {session: cloud, topic: "dead/{topic}"}`, `dead_letter: {session: plant, topic: "{topic}"}`}, "line 39: routes.temps.dead_letter.topic: what is refused comes by the route's own filter plant/+/temp again: it would go round for ever"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := document.Parse([]byte(edit(t, full, tt.edit...)))
			got := problems(t, err)
			all := strings.Join(got, "\n")
			if tt.name == "bad expression" && len(got) == 1 { // the rest are the parser's words
				all = all[:min(len(tt.want), len(all))]
			}
			if all != tt.want {
				t.Errorf("problems are\n%s\nwant\n%s", all, tt.want)
			}
		})
	}
}

// TestAllProblemsTogether: those of form and those of meaning, each once.
func TestAllProblemsTogether(t *testing.T) {
	_, err := document.Parse([]byte(`version: seven
bridge: {deployment_mode: clustered, cluster: {rollout: coordinated}}
sessions:
  - {id: a, kind: mqtt, url: 5}
  - {id: a, kind: smtp}
  - {kind: nats, url: "nats://h"}
routes:
  - {id: r, from: {session: a, topic: "x"}, to: {session: b, topic: y}, filtr: x}
  - {id: r, from: {session: zz}}
`))
	want := []string{
		`line 1: version: "seven" is none: write a whole number from 0 to 9007199254740991, in digits alone, or leave it out`,
		"line 2: bridge.cluster.members: a coordinated rollout needs the roster: name every member's id",
		"line 4: sessions.0.url: a number does not belong here",
		`line 5: sessions.a.id: "a" stands already on line 4`,
		`line 5: sessions.a.kind: "smtp" is not mqtt, http or nats`,
		"line 6: sessions.2.id: it is missing: 1 to 64 letters, digits, '.', '_' and '-'",
		`line 8: unknown member "routes.0.filtr"`,
		"line 8: routes.r.from.share: every member would take every message: name a group in share, or make session a exclusive",
		`line 8: routes.r.to.session: there is no session "b"`,
		"line 9: routes.r.from.session: there is no session \"zz\"",
		"line 9: routes.r.from.topic: it is missing: the filter that messages come by",
		`line 9: routes.r.id: "r" stands already on line 8`,
		"line 9: routes.r.to: it is missing: the session and topic that messages go to",
	}
	got := problems(t, err)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("problems are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestSpecimen: the document of the specification is one.
func TestSpecimen(t *testing.T) {
	d := parse(t, full)
	if d.Version != 7 || d.Bridge.Cluster.Soak.String() != "20s" || len(d.Sessions) != 5 || len(d.Routes) != 4 {
		t.Errorf("read as %+v", d)
	}
	plant, _ := d.Session("plant")
	cloud, _ := d.Session("cloud")
	if !plant.Durable() || !plant.Exclusive || cloud.Durable() || cloud.ClientID != "gdn-{member}" {
		t.Errorf("sessions are %+v and %+v", plant, cloud)
	}
}

func TestProcess(t *testing.T) {
	everything := document.Process{MemberID: "node-a", RolloutStore: true, LeaseStore: true}
	for _, tt := range []struct {
		name   string
		change func(*document.Process)
		want   string
	}{
		{"fits", func(*document.Process) {}, ""},
		{"no member id", func(p *document.Process) { p.MemberID = "" }, "line 3: bridge.deployment_mode: a clustered bridge needs to know who it is: start it with --member-id"},
		{"not in the roster", func(p *document.Process) { p.MemberID = "node-d" }, "line 9: bridge.cluster.members: this member, node-d, is not in the roster (node-a, node-b, node-c): correct --member-id, or name it there"},
		{"no rollout store", func(p *document.Process) { p.RolloutStore = false }, "line 8: bridge.cluster.rollout: a coordinated rollout needs a store: start every member with the same --rollout-store"},
		{"no lease store", func(p *document.Process) { p.LeaseStore = false }, "line 13: sessions.plant: an exclusive session of a clustered bridge needs a store of leases: start every member with the same --lease-store"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := everything
			tt.change(&p)
			_, err := document.ParseFor([]byte(full), p)
			if got := strings.Join(problems(t, err), "\n"); got != tt.want {
				t.Errorf("problems are %q, want %q", got, tt.want)
			}
		})
	}
	if _, err := document.ParseFor([]byte("version: 1\n"), document.Process{}); err != nil {
		t.Errorf("a standalone bridge needs nothing: %v", err)
	}
}

// TestConsumerNames: routes from NATS that JetStream would take for one are refused; others may be called so.
func TestConsumerNames(t *testing.T) {
	text := `sessions:
  - {id: n, kind: nats, url: "nats://h"}
  - {id: m, kind: mqtt, url: "mqtt://h"}
routes:
  - {id: a.b, from: {session: n, topic: "x"}, to: {session: m, topic: y}}
  - {id: a_b, from: {session: KIND, topic: "z"}, to: {session: m, topic: y}}
`
	_, err := document.Parse([]byte(strings.Replace(text, "KIND", "n", 1)))
	if got := problems(t, err); len(got) != 1 || got[0] != `line 6: routes.a_b.id: NATS would keep the places of "a.b" and "a_b" as one: let them differ in more than '.' and '_'` {
		t.Errorf("it says %q", got)
	}
	if _, err := document.Parse([]byte(strings.Replace(text, "KIND", "m", 1))); err != nil {
		t.Error(err)
	}
}

// TestVersions: a version that is none is told with its place, what there is and what to write, once, beside all else that is wrong; both who parses
// and who asks for the version alone say the same of it.
func TestVersions(t *testing.T) {
	for _, tt := range []struct{ name, text, says string }{
		{"negative", "-1", `"-1" is none`},
		{"minus nothing", "-0", `"-0" is none`},
		{"signed", "+7", `"+7" is none`},
		{"huge", "99999999999999999999", `"99999999999999999999" is none`},
		{"beyond what JSON readers hold", "9007199254740992", `"9007199254740992" is none`},
		{"fraction", "1.5", `"1.5" is none`},
		{"exponent", "1e3", `"1e3" is none`},
		{"octal to some", "010", `"010" is none`},
		{"hexadecimal", "0x7", `"0x7" is none`},
		{"grouped", "1_000", `"1_000" is none`},
		{"not a number", ".nan", `".nan" is none`},
		{"empty", "", "there is no value here"},
		{"null", "null", `"null" is none`},
		{"word", "seven", `"seven" is none`},
		{"quoted", `"7"`, "it is not a plain number"},
		{"truth", "true", `"true" is none`},
		{"list", "[7]", "it is not a plain number"},
		{"tagged", "!!int 7", "it is not a plain number"},
		{"zero", "0", ""},
		{"most", "9007199254740991", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			want := "line 2: version: " + tt.says + ": write a whole number from 0 to 9007199254740991, in digits alone, or leave it out"
			text := "bridge: {}\nversion: " + tt.text + "\nsessions: [{}]\n"
			_, err := document.Parse([]byte(text))
			got := problems(t, err)
			if len(got) < 2 || (got[0] == want) != (tt.says != "") || !strings.HasPrefix(got[len(got)-1], "line 3: sessions.0.kind") {
				t.Errorf("Parse says %q", got)
			}
			version, err := document.VersionOf([]byte(text))
			if tt.says == "" {
				if err != nil || fmt.Sprint(version) != tt.text {
					t.Errorf("VersionOf says %d, %v", version, err)
				}
			} else if got := problems(t, err); len(got) != 1 || got[0] != want {
				t.Errorf("VersionOf says %q", got)
			}
			if _, err := document.WithVersion([]byte(text), 8); (err == nil) != (tt.says == "") {
				t.Errorf("WithVersion says %v", err)
			}
		})
	}
	for text, want := range map[string]string{
		"{\"version\": -1}": "line 1: version: \"-1\" is none", "version: -1\nversion: 1\n": "line 2: \"version\" stands already on line 1",
	} {
		if _, err := document.Parse([]byte(text)); err == nil || !strings.Contains(fmt.Sprint(problems(t, err)), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestBounds(t *testing.T) {
	var many strings.Builder
	many.WriteString("sessions:\n")
	for i := range document.MaxSessions + 1 {
		fmt.Fprintf(&many, "  - {id: s%d, kind: http, url: \"http://h\"}\n", i)
	}
	for name, row := range map[string]struct{ text, want string }{
		"bytes":    {strings.Repeat("#", document.MaxBytes+1), "the document has 358401 bytes, more than 358400"},
		"sessions": {many.String(), "line 1: sessions: 201 sessions are more than 200"},
		"version":  {"version: 9007199254740992\n", `line 1: version: "9007199254740992" is none: write a whole number from 0 to 9007199254740991, in digits alone, or leave it out`},
		"empty":    {"", "the file is empty"},
		"JSON":     {"{\n\"version\": 1,,}", "line 2: "},
		"twice":    {"{\"version\": 1,\n\"version\": 2}", `line 2: "version" stands already on line 1`},
	} {
		_, err := document.Parse([]byte(row.text))
		if got := problems(t, err); len(got) != 1 || !strings.HasPrefix(got[0], row.want) {
			t.Errorf("%s: problems are %q, want %q", name, got, row.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte(`{"version": 1}`))
	f.Add([]byte("sessions:\n  - {id: s, kind: mqtt, url: \"mqtt://h\", client_id: \"{member}\"}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := document.Parse(data)
		if err != nil {
			if len(problems(t, err)) == 0 {
				t.Error("refused without a problem")
			}
			return
		}
		again, err := document.Parse(d.Canonical())
		if err != nil {
			t.Fatalf("the normal form of %q is refused: %v\n%s", data, err, d.Canonical())
		}
		if string(again.Canonical()) != string(d.Canonical()) {
			t.Errorf("%s\nreads back as\n%s", d.Canonical(), again.Canonical())
		}
		if c := document.Compare(d, again); c.Class != document.NoChange {
			t.Errorf("reads back with changes %+v", c)
		}
		if v, err := document.WithVersion(data, 3); err == nil {
			if b, err := document.Parse(v); err != nil || b.Version != 3 || !document.Same(b, d) {
				t.Errorf("with another version: %v, %+v", err, b)
			}
		}
	})
}
