package document_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/bridge/document"
)

// TestClasses changes every field that a document has, one at a time.
func TestClasses(t *testing.T) {
	const live, replace = document.LiveSafe, document.Replacement
	for _, tt := range []struct {
		name    string
		edit    []string
		fields  string // with an exclamation mark those that need a replacement
		class   document.Class
		restart string // sessions, then routes
	}{
		{"nothing", nil, "", document.NoChange, ""},
		{"version", []string{"version: 7", "version: 8"}, "", document.NoChange, ""},
		{"shutdown timeout", []string{"shutdown_timeout: 40s", "shutdown_timeout: 41s"}, "bridge.shutdown_timeout", live, ""},
		{"drain timeout", []string{"drain_timeout: 20s", "drain_timeout: 21s"}, "bridge.drain_timeout", live, ""},
		{"log level", []string{"log_level: debug", "log_level: info"}, "bridge.log_level", live, ""},
		{"roster", []string{", node-c]", ", node-d]"}, "bridge.cluster.members!", replace, ""},
		{"window", []string{"confirm_window: 90s", "confirm_window: 2m"}, "bridge.cluster.confirm_window", live, ""},
		{"soak", []string{"soak: 20s", "soak: 10s"}, "bridge.cluster.soak", live, ""},
		{"deadline", []string{"deadline: 5m", "deadline: 6m"}, "bridge.cluster.deadline", live, ""},
		{"rollout mode", []string{"rollout: coordinated", "rollout: refuse", "    confirm_window: 90s\n    soak: 20s\n    deadline: 5m\n", ""}, "bridge.cluster.confirm_window bridge.cluster.deadline bridge.cluster.rollout! bridge.cluster.soak", replace, ""},

		{"url of a durable session", []string{"mqtts://broker:8883", "mqtts://other:8883"}, "sessions.plant.url!", replace, "plant temps"},
		{"client id of a durable session", []string{"gdn-plant", "gdn-plant2"}, "sessions.plant.client_id!", replace, "plant temps"},
		{"protocol of a durable session", []string{`"5.0"`, `"3.1.1"`, "    session_expiry: 1h\n", "", `{set: {site: "{1}", kind: temp}, remove`, `{remove`}, "routes.temps.transform.properties.set sessions.plant.protocol! sessions.plant.session_expiry!", replace, "plant temps"},
		{"session expiry", []string{"session_expiry: 1h", "session_expiry: 2h"}, "sessions.plant.session_expiry!", replace, "plant temps"},
		{"no durable session any more", []string{"    clean_start: false\n    session_expiry: 1h\n", ""}, "sessions.plant.clean_start! sessions.plant.session_expiry!", replace, "plant temps"},
		{"exclusive of a durable session", []string{"exclusive: true", "exclusive: false", "gdn-plant", "gdn-{member}", "plant/+/temp, qos: 2", "plant/+/temp, qos: 2, share: g"}, "routes.temps.from.share! sessions.plant.client_id! sessions.plant.exclusive!", replace, "plant temps"},
		{"kind of a durable session", []string{"kind: mqtt\n    url: mqtts://broker:8883", "kind: nats\n    url: tls://broker:8883", "    protocol: \"5.0\"\n    clean_start: false\n    session_expiry: 1h\n    keep_alive: 20s\n", "", "topic: plant/+/temp, qos: 2", "topic: plant.*.temp"}, "routes.temps.from.qos! routes.temps.from.topic! sessions.plant.clean_start! sessions.plant.keep_alive sessions.plant.kind! sessions.plant.protocol! sessions.plant.session_expiry! sessions.plant.url!", replace, "plant temps"},
		{"keep alive", []string{"keep_alive: 20s", "keep_alive: 21s"}, "sessions.plant.keep_alive", live, "plant temps"},
		{"credentials", []string{"plant.cred", "other.cred"}, "sessions.plant.credentials", live, "plant temps"},
		{"authorities", []string{"file:ca.pem", "file:ca2.pem"}, "sessions.plant.tls.ca", live, "plant temps"},
		{"certificate", []string{"certificate: file:c.pem, key: file:k.pem, server", "certificate: file:d.pem, key: file:k.pem, server"}, "sessions.plant.tls.certificate", live, "plant temps"},
		{"key", []string{"certificate: file:c.pem, key: file:k.pem, server", "certificate: file:c.pem, key: file:l.pem, server"}, "sessions.plant.tls.key", live, "plant temps"},
		{"server name", []string{"broker.example", "broker2.example"}, "sessions.plant.tls.server_name", live, "plant temps"},
		{"url of another session", []string{"mqtt://cloud:1883", "mqtt://cloud2:1883"}, "sessions.cloud.url", live, "cloud posts shared temps"},
		{"client id of another session", []string{`"gdn-{member}"`, `"gdn2-{member}"`}, "sessions.cloud.client_id", live, "cloud posts shared temps"},
		{"exclusive of another session", []string{"exclusive: false", "exclusive: true"}, "sessions.stream.exclusive", live, "stream events shared"},
		{"made durable", []string{`client_id: "gdn-{member}"`, `client_id: "gdn-{member}", clean_start: false, session_expiry: 1h`}, "sessions.cloud.clean_start! sessions.cloud.session_expiry!", replace, "cloud posts shared temps"},
		{"address", []string{"127.0.0.1:8088", "127.0.0.1:8089"}, "sessions.door.listen", live, "door posts"},
		{"hook", []string{"in?x=1", "in?x=2"}, "sessions.hook.url", live, "hook events"},
		{"a session that comes", []string{"sessions:\n", "sessions:\n  - {id: more, kind: http, url: \"http://h\"}\n"}, "sessions.more", live, ""},
		{"a durable session that comes", []string{"sessions:\n", "sessions:\n  - {id: more, kind: mqtt, url: \"mqtt://h\", clean_start: false, session_expiry: never}\n"}, "sessions.more!", replace, ""},

		{"a durable session's subscription", []string{"plant/+/temp", "plant/+/heat"}, "routes.temps.from.topic!", replace, "temps"},
		{"its quality", []string{"qos: 2", "qos: 1"}, "routes.temps.from.qos!", replace, "temps"},
		{"a route more from it", []string{"routes:\n", "routes:\n  - {id: more, from: {session: plant, topic: x}, to: {session: hook}}\n"}, "routes.more!", replace, ""},
		{"a route more by a subscription that it has", []string{"routes:\n", "routes:\n  - {id: more, from: {session: plant, topic: plant/+/temp, qos: 2}, to: {session: hook}}\n"}, "routes.more", live, ""},
		{"a subscription of another session", []string{"in/#", "inn/#"}, "routes.shared.from.topic", live, "shared"},
		{"group", []string{"share: bridge", "share: bridge2"}, "routes.shared.from.share", live, "shared"},
		{"stream", []string{"stream: EV", "stream: EW"}, "routes.events.from.stream", live, "events"},
		{"source of a route", []string{"{session: door, topic: \"in/+\"}", "{session: cloud, topic: \"in/+\", share: g}"}, "routes.posts.from.qos routes.posts.from.session routes.posts.from.share", live, "posts"},
		{"filter", []string{"payload.c > 0.0", "payload.c > 1.0"}, "routes.temps.filter", live, "temps"},
		{"properties that are set", []string{"kind: temp}", "kind: heat}"}, "routes.temps.transform.properties.set", live, "temps"},
		{"properties that are removed", []string{"[debug, trace]", "[debug]"}, "routes.temps.transform.properties.remove", live, "temps"},
		{"payload", []string{`{"c": payload.c}`, `{"d": payload.c}`}, "routes.temps.transform.payload", live, "temps"},
		{"target", []string{`{session: cloud, topic: "t/{1}", qos: 0, retain: set}`, `{session: hook, topic: "t/{1}"}`}, "routes.temps.to.qos routes.temps.to.retain routes.temps.to.session", live, "temps"},
		{"target topic", []string{`"t/{1}"`, `"u/{1}"`}, "routes.temps.to.topic", live, "temps"},
		{"target's quality", []string{"qos: 0", "qos: 1"}, "routes.temps.to.qos", live, "temps"},
		{"retain", []string{"retain: set", "retain: clear"}, "routes.temps.to.retain", live, "temps"},
		{"in flight", []string{"in_flight: 10", "in_flight: 11"}, "routes.temps.in_flight", live, "temps"},
		{"margin", []string{"0.5%", "0.6%"}, "routes.temps.health_margin", live, "temps"},
		{"dead letter's topic", []string{"dead/{topic}", "dead2/{topic}"}, "routes.temps.dead_letter.topic", live, "temps"},
		{"dead letter's session", []string{`dead_letter: {session: cloud, topic: "dead/{topic}"}`, `dead_letter: {session: hook, topic: "dead/{topic}"}`}, "routes.temps.dead_letter.session", live, "temps"},
		{"dead letter's file", []string{"dead.jsonl", "dead2.jsonl"}, "routes.shared.dead_letter.file", live, "shared"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			old, next := parse(t, full), parse(t, edit(t, full, tt.edit...))
			for _, direction := range []struct {
				name string
				c    document.Change
			}{{"forward", document.Compare(old, next)}, {"back", document.Compare(next, old)}} {
				c := direction.c
				var fields []string
				for _, f := range c.Fields {
					path := f.Path
					if f.Class == replace {
						path += "!"
					}
					if (f.Class == replace) != (f.Why != "") {
						t.Errorf("%s: %s has the reason %q", direction.name, f.Path, f.Why)
					}
					fields = append(fields, path)
				}
				if got := strings.Join(fields, " "); got != tt.fields || c.Class != tt.class {
					t.Errorf("%s: class %s of %s, want %s of %s", direction.name, c.Class, got, tt.class, tt.fields)
				}
				if got := strings.Join(slices.Concat(c.Sessions.Restart, c.Routes.Restart), " "); got != tt.restart {
					t.Errorf("%s: restarts %s, want %s", direction.name, got, tt.restart)
				}
			}
			forward, back := document.Compare(old, next), document.Compare(next, old)
			if !slices.Equal(forward.Sessions.Start, back.Sessions.Stop) || !slices.Equal(forward.Routes.Start, back.Routes.Stop) {
				t.Errorf("starts %v and %v, and back stops %v and %v", forward.Sessions.Start, forward.Routes.Start, back.Sessions.Stop, back.Routes.Stop)
			}
		})
	}
}

// TestEveryFieldHasItsRow: a field that is added needs a row in TestClasses, and a thought about its class.
func TestEveryFieldHasItsRow(t *testing.T) {
	want := []string{
		"bridge.cluster.confirm_window", "bridge.cluster.deadline", "bridge.cluster.members", "bridge.cluster.rollout", "bridge.cluster.soak",
		"bridge.deployment_mode", "bridge.drain_timeout", "bridge.log_level", "bridge.shutdown_timeout",
		"routes.dead_letter.file", "routes.dead_letter.session", "routes.dead_letter.topic", "routes.filter",
		"routes.from.qos", "routes.from.session", "routes.from.share", "routes.from.stream", "routes.from.topic",
		"routes.health_margin", "routes.id", "routes.in_flight", "routes.to.qos", "routes.to.retain", "routes.to.session", "routes.to.topic",
		"routes.transform.payload", "routes.transform.properties.remove", "routes.transform.properties.set",
		"sessions.clean_start", "sessions.client_id", "sessions.credentials", "sessions.exclusive", "sessions.id", "sessions.keep_alive",
		"sessions.kind", "sessions.listen", "sessions.protocol", "sessions.session_expiry", "sessions.tls.ca", "sessions.tls.certificate",
		"sessions.tls.key", "sessions.tls.server_name", "sessions.url",
	}
	if got := slices.Sorted(maps.Keys(document.FieldsOfEverything())); !slices.Equal(got, want) {
		t.Errorf("a document has the fields\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestModeChanges: neither way while it runs, and from nothing everything starts.
func TestModeChanges(t *testing.T) {
	alone := parse(t, "sessions:\n  - {id: s, kind: nats, url: \"nats://h\"}\n")
	cluster := parse(t, "bridge: {deployment_mode: clustered}\nsessions:\n  - {id: s, kind: nats, url: \"nats://h\"}\n")
	for name, c := range map[string]document.Change{"into": document.Compare(alone, cluster), "out of": document.Compare(cluster, alone)} {
		if c.Class != document.Replacement || len(c.Of(document.Replacement)) == 0 || !strings.HasPrefix(c.Of(document.Replacement)[0].Path, "bridge.") {
			t.Errorf("%s a cluster: %+v", name, c)
		}
	}
	c := document.Compare(nil, parse(t, full))
	if c.Class != document.LiveSafe || len(c.Sessions.Start) != 5 || len(c.Routes.Start) != 4 || len(c.Fields) != 0 {
		t.Errorf("from nothing: %+v", c)
	}
}
