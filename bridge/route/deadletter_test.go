package route_test

import (
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
// is room the letter is written as a line of its own, whatever was left there of another.
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
	if err := os.WriteFile(torn, []byte("{\"time\":\"2026-"), 0o600); err != nil {
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
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
	if len(lines) != 3 {
		t.Fatalf("the file has %q", lines)
	}
	for i, want := range []string{"one", "two"} {
		var l struct {
			Text string `json:"text"`
		}
		if err := json.Unmarshal([]byte(lines[i+1]), &l); err != nil || l.Text != want {
			t.Errorf("line %d is %q: %v", i+2, lines[i+1], err)
		}
	}
}
