package document_test

import (
	"os"
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/bridge/document"
)

func TestIdentity(t *testing.T) {
	want := parse(t, full).Digest()
	small := "sessions:\n  - {id: s, kind: mqtt, url: \"mqtt://h\"}\nroutes:\n  - {id: r, from: {session: s, topic: a/+}, to: {session: s, topic: \"b/{1}\"}}\n"
	smallWant := parse(t, small).Digest()
	for _, tt := range []struct {
		name, text string
		same       bool
		of         document.Digest
	}{
		{"another version", edit(t, full, "version: 7", "version: 8"), true, want},
		{"no version", edit(t, full, "version: 7\n", ""), true, want},
		{"a comment", "# saved again\n" + full, true, want},
		{"milliseconds for seconds", edit(t, full, "shutdown_timeout: 40s", "shutdown_timeout: 40000ms"), true, want},
		{"90s as 1m30s", edit(t, full, "confirm_window: 90s", "confirm_window: 1m30s"), true, want},
		{"1h as 60m", edit(t, full, "session_expiry: 1h", "session_expiry: 60m"), true, want},
		{"the roster in another order", edit(t, full, "[node-a, node-b, node-c]", "[node-c, node-a, node-b]"), true, want},
		{"properties in another order", edit(t, full, `{site: "{1}", kind: temp}, remove: [debug, trace]`, `{kind: temp, site: "{1}"}, remove: [trace, debug, trace]`), true, want},
		{"spaces in an expression", edit(t, full, "payload.c > 0.0", "payload.c  >  0.0 // warm"), true, want},
		{"port written out", edit(t, full, `"nats://nats"`, `"NATS://NATS:4222"`), true, want},
		{"share with zeros", edit(t, full, "0.5%", "0.50%"), true, want},
		{"another host", edit(t, full, "nats://nats", "nats://other"), false, want},
		{"another duration", edit(t, full, "shutdown_timeout: 40s", "shutdown_timeout: 41s"), false, want},
		{"another id", edit(t, full, "id: posts", "id: post"), false, want},
		{"one member less", edit(t, full, ", node-c]", "]"), false, want},

		{"sessions and routes moved", "routes:\n  - {to: {topic: \"b/{1}\", session: s}, from: {topic: a/+, session: s}, id: r}\nsessions:\n  - {url: \"mqtt://h\", kind: mqtt, id: s}\n", true, smallWant},
		{
			"defaults written out",
			"bridge: {deployment_mode: standalone, shutdown_timeout: 30s, drain_timeout: 30s, log_level: info}\n" +
				"sessions:\n  - {id: s, kind: mqtt, url: \"mqtt://h:1883\", client_id: gdn-s, protocol: \"5.0\", clean_start: true, session_expiry: 0s, keep_alive: 30s, exclusive: false}\n" +
				"routes:\n  - {id: r, from: {session: s, topic: a/+, qos: 1}, to: {session: s, topic: \"b/{1}\", qos: 1, retain: keep}, in_flight: 64, health_margin: 1%}\n",
			true, smallWant,
		},
		{
			"as JSON", `{"routes":[{"id":"r","from":{"session":"s","topic":"a/+"},"to":{"session":"s","topic":"b/{1}"}}],` +
				"\n\t" + `"sessions":[{"id":"s","kind":"mqtt","url":"mqtt://h"}]}`, true, smallWant,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := parse(t, tt.text).Digest(); (got == tt.of) != tt.same {
				t.Errorf("digest is %s, before %s; same content: %v", got, tt.of, tt.same)
			}
		})
	}
}

// TestCanonicalIsADocument: what members put into the rollout store reads back to itself on every one of them.
func TestCanonicalIsADocument(t *testing.T) {
	for name, text := range map[string]string{"everything": full, "nothing": "version: 1\n", "3.1.1": edit(t, full, `"5.0"`, `"3.1.1"`, "    session_expiry: 1h\n", "", `set: {site: "{1}", kind: temp}, `, "")} {
		d := parse(t, text)
		again := parse(t, string(d.Canonical()))
		if got, want := string(again.Canonical()), string(d.Canonical()); got != want {
			t.Errorf("%s:\n%s\nreads back as\n%s", name, want, got)
		}
		if !document.Same(d, again) || d.Digest() != document.DigestOf(again.Canonical()) {
			t.Errorf("%s: not the same content", name)
		}
	}
}

// TestCanonicalVector holds the bytes that members of several builds must agree on.
func TestCanonicalVector(t *testing.T) {
	want, err := os.ReadFile("testdata/full.canonical.json")
	if err != nil {
		t.Fatal(err)
	}
	d := parse(t, full)
	if got := string(d.Canonical()); got != strings.TrimSuffix(string(want), "\n") {
		t.Errorf("the normal form is\n%s\nwant\n%s\nA change of it makes every running cohort refuse changes until all members have this build.", got, want)
	}
}

func TestWithVersion(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"in its place", "# mine\nversion: 7 # counter\nbridge: {}\n", "# mine\nversion: 12 # counter\nbridge: {}\n"},
		{"last", "bridge: {}\nversion: 7", "bridge: {}\nversion: 12"},
		{"none", "# mine\nbridge: {}\n", "# mine\nversion: 12\nbridge: {}\n"},
		{"none, behind a marker", "---\nbridge: {}\n", "---\nversion: 12\nbridge: {}\n"},
		{"none, moved in", "  bridge: {}\n", "  version: 12\n  bridge: {}\n"},
		{"JSON", "{\n \"bridge\": {},\n \"version\":7}", "{\n \"bridge\": {},\n \"version\":12}"},
		{"JSON without", `{"bridge": {}}`, `{"version": 12, "bridge": {}}`},
		{"empty JSON", " { }\n", " {\"version\": 12 }\n"},
		{"behind other letters", `{"é": 1, "version": 7}`, `{"é": 1, "version": 12}`},
		{"Windows", "bridge: {}\r\nversion: 7\r\n", "bridge: {}\r\nversion: 12\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := document.WithVersion([]byte(tt.text), 12)
			if err != nil || string(got) != tt.want {
				t.Fatalf("got %q, %v, want %q", got, err, tt.want)
			}
			if v, err := document.VersionOf(got); v != 12 || err != nil {
				t.Errorf("its version is %d, %v", v, err)
			}
		})
	}
	for name, text := range map[string]string{"a list": "- a", "nothing": "", "text": "x", "quoted": "version: \"7\"\n", "negative": "version: -1\n", "broken": "{", "twice": "version: 1\nversion: 2\n"} {
		if got, err := document.WithVersion([]byte(text), 12); err == nil {
			t.Errorf("%s: taken as %q", name, got)
		}
	}
}
