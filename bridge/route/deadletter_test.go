package route_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/route"
	"github.com/guardyn-edge/guardyn/bridge/session"
)

// TestDeadLettersOnAFullDisk: a message whose letter cannot be written is not acknowledged, and the route says why it stands still; when there
// is room the letters are written, and what was left there of another is not.
func TestDeadLettersOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "letters.jsonl")
	if err := os.Symlink("/dev/full", path); err != nil {
		t.Fatal(err)
	}
	d, err := document.Parse([]byte("sessions:\n  - {id: a, kind: mqtt, url: \"mqtt://a\"}\n  - {id: b, kind: mqtt, url: \"mqtt://b\"}\nroutes:\n" +
		`  - {id: r, from: {session: a, topic: "#"}, to: {session: b, topic: "{topic}"}, dead_letter: {file: "file:letters.jsonl"}}` + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	from, to, settled := &end{}, &end{ordered: true}, make(chan string, 4)
	r := route.New(route.Config{
		Document: d, Route: d.Routes[0], Source: from, Target: to, Origin: "me", Secrets: session.Secrets(dir), Now: time.Now,
		Backoff: session.Backoff{Min: time.Millisecond, Max: 10 * time.Millisecond}, Log: slog.New(slog.DiscardHandler),
	})
	r.Start(nil)
	defer r.Stop()
	for _, payload := range []string{"one", "two"} {
		from.sink(session.NewDelivery(session.Message{Topic: "x", Payload: []byte(payload), QoS: 1}, func() { settled <- payload }))
	}
	for _, o := range to.sent {
		o.Done(&session.Refusal{Reason: "not authorized"})
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(r.Status().LastError, "no space left"); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("the route says %+v", r.Status())
		}
	}
	if s := r.Status(); s.InFlight != 2 || s.Refused != 2 || len(settled) > 0 {
		t.Errorf("%d are settled; the route says %+v", len(settled), s)
	}
	torn := filepath.Join(dir, "torn")
	if err := os.WriteFile(torn, []byte(`{"time":"2026-`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(torn, path); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		select {
		case <-settled:
		case <-time.After(30 * time.Second):
			t.Fatal("there is room, and the messages are not acknowledged")
		}
	}
	if s := r.Status(); s.LastError != "refused: not authorized" {
		t.Errorf("the letters are written, and the route says %+v", s)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
	if len(lines) != 2 {
		t.Fatalf("the file has %q", lines)
	}
	for i, want := range []string{"one", "two"} {
		var l struct {
			Text string `json:"text"`
		}
		if err := json.Unmarshal([]byte(lines[i]), &l); err != nil || l.Text != want {
			t.Errorf("line %d is %q: %v", i+1, lines[i], err)
		}
	}
}

// told is a log of which a test hears each line.
type told chan string

func (c told) Info(string, ...any)          {}
func (c told) Warn(msg string, args ...any) { c <- fmt.Sprint(msg, args) }

// TestTornLetterAtStart: a route that starts cuts off what a crash has left of a letter, says so, and leaves what is whole or not its own.
func TestTornLetterAtStart(t *testing.T) {
	for name, row := range map[string]struct{ had, want, says string }{
		"torn":            {"{\"time\":\"2026\"}\n{\"time\":\"20", "{\"time\":\"2026\"}\n", `is cut off: its message was not acknowledged, and its source delivers it again[route r file letters.jsonl bytes 11 begins {"time":"20]`},
		"lacks its end":   {`{"time":"2026"}`, "{\"time\":\"2026\"}\n", "is kept as a line[route r file letters.jsonl bytes 15 begins"},
		"somebody else's": {"a \x1b[2Jnote", "a \x1b[2Jnote\n", `is kept as a line[route r file letters.jsonl bytes 10 begins a \x1b[2Jnote]`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "letters.jsonl")
			if err := os.WriteFile(path, []byte(row.had), 0o600); err != nil {
				t.Fatal(err)
			}
			d, err := document.Parse([]byte("sessions:\n  - {id: a, kind: mqtt, url: \"mqtt://a\"}\n  - {id: b, kind: mqtt, url: \"mqtt://b\"}\nroutes:\n" +
				`  - {id: r, from: {session: a, topic: "#"}, to: {session: b, topic: "{topic}"}, dead_letter: {file: "file:letters.jsonl"}}` + "\n"))
			if err != nil {
				t.Fatal(err)
			}
			log := make(told, 1)
			r := route.New(route.Config{
				Document: d, Route: d.Routes[0], Source: &end{}, Target: &end{ordered: true}, Origin: "me", Secrets: session.Secrets(dir), Now: time.Now, Log: log,
			})
			defer r.Stop()
			select {
			case said := <-log:
				if !strings.Contains(said, row.says) {
					t.Errorf("it says %q", said)
				}
			case <-time.After(30 * time.Second):
				t.Fatal("it says nothing")
			}
			if got, err := os.ReadFile(path); err != nil || string(got) != row.want {
				t.Errorf("the file has %q, %v", got, err)
			}
		})
	}
}

// TestLettersOfAnyBytes: a letter is written whatever is in the message, and one that goes to a topic has nothing left that a broker could end
// the connection over.
func TestLettersOfAnyBytes(t *testing.T) {
	bad := session.Message{
		Topic: "x/\xff", Payload: []byte("p"), QoS: 1, ContentType: "t/\xff", ResponseTopic: "a/#", Text: true,
		Properties: []session.Property{{Name: "k\x00", Value: "a\tb"}, {Name: "plain", Value: `a\b`}},
	}
	for name, dead := range map[string]string{"file": `file: "file:letters.jsonl"`, "topic": "session: b, topic: dead"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			d, err := document.Parse([]byte("sessions:\n  - {id: a, kind: mqtt, url: \"mqtt://a\"}\n  - {id: b, kind: mqtt, url: \"mqtt://b\"}\nroutes:\n" +
				`  - {id: r, from: {session: a, topic: "#"}, to: {session: b, topic: "out"}, dead_letter: {` + dead + "}}\n"))
			if err != nil {
				t.Fatal(err)
			}
			from, to, settled := &end{}, &end{ordered: true}, make(chan string, 4)
			cfg := route.Config{
				Document: d, Route: d.Routes[0], Source: from, Target: to, Origin: "me", Secrets: session.Secrets(dir), Now: time.Now, Log: slog.New(slog.DiscardHandler),
			}
			if name == "topic" {
				cfg.Dead = to
			}
			r := route.New(cfg)
			r.Start(nil)
			defer r.Stop()
			from.sink(session.NewDelivery(bad, func() { settled <- "it" }))
			to.sent[0].Done(&session.Refusal{Reason: "no \xff"})
			if name == "topic" {
				m := to.sent[1].Message
				got := fmt.Sprintf("%q %q %q", m.ContentType, m.ResponseTopic, m.Properties[:5])
				want := fmt.Sprintf("%q %q %q", `t/\xff`, "", []session.Property{
					{Name: `k\x00`, Value: `a\x09b`}, {Name: "plain", Value: `a\b`}, {Name: "gdn-reason", Value: `refused: no \xff`}, {Name: "gdn-route", Value: "r"}, {Name: "gdn-topic", Value: `x/\xff`},
				})
				if got != want {
					t.Errorf("the letter is %s, want %s", got, want)
				}
				return
			}
			select {
			case <-settled:
			case <-time.After(30 * time.Second):
				t.Fatalf("the letter is not written: %+v", r.Status())
			}
			raw, err := os.ReadFile(filepath.Join(dir, "letters.jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			var l struct {
				Topic      string      `json:"topic"`
				Content    string      `json:"content_type"`
				Properties [][2]string `json:"properties"`
				Escaped    bool        `json:"escaped"`
			}
			if err := json.Unmarshal(raw, &l); err != nil || !l.Escaped || l.Topic != `x/\xff` || l.Content != `t/\xff` || l.Properties[0] != [2]string{`k\x00`, `a\x09b`} {
				t.Errorf("the letter is %s: %v", raw, err)
			}
		})
	}
}

// TestFilterFails: a message of which the filter cannot tell is counted on its own, and goes where dead letters go; without a place it is dropped, and
// who sent it may hear why.
func TestFilterFails(t *testing.T) {
	for name, dead := range map[string]string{"a place": `, dead_letter: {session: b, topic: dead}`, "none": ""} {
		t.Run(name, func(t *testing.T) {
			d, err := document.Parse([]byte("sessions:\n  - {id: a, kind: mqtt, url: \"mqtt://a\"}\n  - {id: b, kind: mqtt, url: \"mqtt://b\"}\nroutes:\n" +
				`  - {id: r, from: {session: a, topic: "#"}, filter: "payload.c > 1.0", to: {session: b, topic: "out"}` + dead + "}\n"))
			if err != nil {
				t.Fatal(err)
			}
			from, to, letters := &end{}, &end{ordered: true}, &end{ordered: true}
			cfg := route.Config{Document: d, Route: d.Routes[0], Source: from, Target: to, Origin: "me", Now: time.Now, Log: slog.New(slog.DiscardHandler)}
			if dead != "" {
				cfg.Dead = letters
			}
			r := route.New(cfg)
			r.Start(nil)
			defer r.Stop()
			var dropped []string
			for _, payload := range []string{"no JSON", `{"d": 1}`, `{"c": 0.5}`, `{"c": 2.0}`} {
				var d *session.Delivery
				d = session.NewDelivery(session.Message{Topic: "x", Payload: []byte(payload), QoS: 1}, func() { dropped = append(dropped, d.Dropped()) })
				from.sink(d)
			}
			if s := r.Status(); s.Failed != 2 || s.Filtered != 1 || s.Refused != 0 || !s.Converged || len(to.sent) != 1 || !strings.Contains(s.LastError, "filter: ") {
				t.Errorf("%d went out; the route says %+v", len(to.sent), s)
			}
			if dead != "" && (len(letters.sent) != 2 || len(dropped) != 1) {
				t.Errorf("%d letters; settled are %q", len(letters.sent), dropped)
			}
			if dead == "" && (len(dropped) != 3 || !strings.Contains(dropped[0], "filter: ") || !strings.Contains(dropped[1], "filter: ") || dropped[2] != "") {
				t.Errorf("dropped are %q", dropped)
			}
		})
	}
}
