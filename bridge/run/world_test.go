package run_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"github.com/guardyn-edge/guardyn/bridge"
	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/run"
	"github.com/guardyn-edge/guardyn/bridge/session"
	"github.com/guardyn-edge/guardyn/internal/testmosquitto"
)

// quick is how long the bridge of a test waits between attempts.
var quick = session.Backoff{Min: 5 * time.Millisecond, Max: 50 * time.Millisecond}

// member is one process's runner.
type member struct {
	*run.Runner
	t testing.TB
}

func start(t testing.TB, o run.Options, text string) *member {
	t.Helper()
	if o.Backoff == (session.Backoff{}) {
		o.Backoff = quick
	}
	m := &member{run.New(o), t}
	t.Cleanup(func() { m.stop() })
	m.swap(text)
	return m
}

func (m *member) stop() {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testmosquitto.Patience)
	defer cancel()
	if err := m.Stop(ctx); err != nil {
		m.t.Error(err)
	}
}

func parse(t testing.TB, text string) *document.Document {
	t.Helper()
	d, err := document.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (m *member) swap(text string) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testmosquitto.Patience)
	defer cancel()
	p, err := m.Prepare(ctx, parse(m.t, text))
	if err != nil {
		m.t.Fatal(err)
	}
	if err := p.Swap(ctx); err != nil {
		m.t.Fatal(err)
	}
}

// converge waits until everything is as it should be.
func (m *member) converge() *member {
	m.t.Helper()
	var last bridge.Status
	testmosquitto.Until(m.t, fmt.Sprintf("everything converges: %+v", &last), func() bool {
		last = m.Status()
		for _, s := range last.Sessions {
			if !s.Converged {
				return false
			}
		}
		for _, r := range last.Routes {
			if !r.Converged {
				return false
			}
		}
		return true
	})
	return m
}

func (m *member) route(id string) bridge.RouteStatus {
	for _, r := range m.Status().Routes {
		if r.ID == id {
			return r
		}
	}
	m.t.Fatalf("no route %s", id)
	return bridge.RouteStatus{}
}

func (m *member) session(id string) bridge.SessionStatus {
	for _, s := range m.Status().Sessions {
		if s.ID == id {
			return s
		}
	}
	m.t.Fatalf("no session %s", id)
	return bridge.SessionStatus{}
}

// two are brokers with a bridge's sessions a and b on them.
func two(t testing.TB, config ...string) (a, b *testmosquitto.Broker) {
	t.Helper()
	return testmosquitto.Start(t, config...), testmosquitto.Start(t, config...)
}

// doc is a document with durable sessions a and b, and routes.
func doc(a, b string, routes ...string) string {
	return fmt.Sprintf(`bridge: {drain_timeout: 5s}
sessions:
  - {id: a, kind: mqtt, url: %q, client_id: bridge-a, clean_start: false, session_expiry: 1h}
  - {id: b, kind: mqtt, url: %q, client_id: bridge-b}
routes:
%s`, a, b, list(routes))
}

func list(items []string) string {
	var s strings.Builder
	for _, i := range items {
		s.WriteString("  - " + i + "\n")
	}
	return s.String()
}

// payloads are those of what came, in order, of one topic.
func payloads(got []*paho.Publish, topic string) []string {
	var all []string
	for _, p := range got {
		if p.Topic == topic {
			all = append(all, string(p.Payload))
		}
	}
	return all
}

// firsts are values in the order in which each came first.
func firsts(all []string) []string {
	seen := map[string]bool{}
	var out []string
	for _, v := range all {
		if !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	return out
}
