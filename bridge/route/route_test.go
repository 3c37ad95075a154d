package route_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/bridge"
	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/route"
	"github.com/guardyn-edge/guardyn/bridge/session"
)

// end is a session of which a test says what comes and what is confirmed.
type end struct {
	ordered bool
	mu      sync.Mutex
	sink    session.Sink
	sent    []*session.Outgoing
}

func (*end) Run(context.Context)          {}
func (*end) Close()                       {}
func (*end) Status() bridge.SessionStatus { return bridge.SessionStatus{} }
func (e *end) Ordered() bool              { return e.ordered }

func (e *end) Subscribe(_ string, _ session.Subscription, sink session.Sink) { e.sink = sink }
func (e *end) Unsubscribe(context.Context, string)                           { e.sink = nil }

func (e *end) Send(o *session.Outgoing) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sent = append(e.sent, o)
}

func (e *end) payloads() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []string
	for _, o := range e.sent {
		all = append(all, string(o.Payload))
	}
	return all
}

// bench is a route between two ends, and what was settled at its source, in order.
type bench struct {
	*route.Route
	from, to *end
	settled  []string
}

func newBench(t *testing.T, ordered bool, text string) *bench {
	t.Helper()
	d, err := document.Parse([]byte("sessions:\n  - {id: a, kind: mqtt, url: \"mqtt://a\"}\n  - {id: b, kind: mqtt, url: \"mqtt://b\"}\nroutes:\n  - " + text + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{from: &end{}, to: &end{ordered: ordered}}
	b.Route = route.New(route.Config{Document: d, Route: d.Routes[0], Source: b.from, Target: b.to, Origin: "me", Log: slog.New(slog.DiscardHandler), Now: time.Now})
	b.Start(nil)
	return b
}

func (b *bench) take(qos int, topic, payload string, properties ...session.Property) {
	m := session.Message{Topic: topic, Payload: []byte(payload), QoS: qos, Properties: properties}
	b.from.sink(session.NewDelivery(m, func() { b.settled = append(b.settled, payload) }))
}

const plain = `{id: r, from: {session: a, topic: "#"}, to: {session: b, topic: "{topic}"}, in_flight: 3}`

// TestInFlight: no more than in_flight go out, each is settled when it is confirmed, and then the next goes.
func TestInFlight(t *testing.T) {
	b := newBench(t, true, plain)
	for i := range 6 {
		b.take(1, "x", fmt.Sprint(i))
	}
	if got := b.to.payloads(); !slices.Equal(got, []string{"0", "1", "2"}) || len(b.settled) > 0 {
		t.Fatalf("out went %v, settled are %v", got, b.settled)
	}
	b.to.sent[1].Done(nil)
	b.to.sent[0].Done(nil)
	if got := b.to.payloads(); !slices.Equal(got, []string{"0", "1", "2", "3", "4"}) || !slices.Equal(b.settled, []string{"1", "0"}) {
		t.Errorf("out went %v, settled are %v", got, b.settled)
	}
	b.Pause()
	b.to.sent[2].Done(nil)
	if got := b.to.payloads(); len(got) != 5 {
		t.Errorf("intake is stopped, and out went %v", got)
	}
	if err := b.Wait(canceled(t)); err == nil || !strings.Contains(err.Error(), "2 messages") {
		t.Errorf("the wait says %v", err)
	}
	var left []string
	for _, d := range b.Stop() {
		left = append(left, string(d.Payload))
	}
	if !slices.Equal(left, []string{"3", "4", "5"}) {
		t.Errorf("left are %v", left)
	}
	b.to.sent[3].Done(nil)
	if !slices.Equal(b.settled, []string{"1", "0", "2", "3"}) {
		t.Errorf("what is confirmed late is settled: %v", b.settled)
	}
}

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// TestLanes: a target that keeps no order gets the messages of a topic one by one, those of several side by side.
func TestLanes(t *testing.T) {
	b := newBench(t, false, strings.Replace(plain, "in_flight: 3", "in_flight: 10", 1))
	for _, m := range []string{"x1", "x2", "y1", "x3", "y2"} {
		b.take(1, m[:1], m)
	}
	if got := b.to.payloads(); !slices.Equal(got, []string{"x1", "y1"}) {
		t.Fatalf("out went %v", got)
	}
	b.to.sent[0].Done(nil)
	b.to.sent[1].Done(&session.Refusal{Reason: "no"})
	b.to.sent[2].Done(nil)
	if got := b.to.payloads(); !slices.Equal(got, []string{"x1", "y1", "x2", "y2", "x3"}) {
		t.Errorf("out went %v", got)
	}
	if s := b.Route.Status(); s.Refused != 1 || s.Delivered != 2 || s.InFlight != 2 || s.Converged {
		t.Errorf("the status is %+v", s)
	}
}

// TestQoS0IsBounded: what no source bounds is dropped, counted, when too much waits.
func TestQoS0IsBounded(t *testing.T) {
	b := newBench(t, true, plain)
	for i := range 1100 {
		b.take(0, "x", fmt.Sprint(i))
	}
	if s := b.Route.Status(); s.Refused != 1100-3-1024 || !strings.Contains(s.LastError, "QoS 0") {
		t.Errorf("the status is %+v", s)
	}
	for range 10 {
		b.take(1, "x", "kept")
	}
	if s := b.Route.Status(); s.Refused != 1100-3-1024 {
		t.Errorf("what its source bounds is dropped too: %+v", s)
	}
}

// TestHealth: a route is converged unless the share of what is refused rises by more than its margin since the last swap.
func TestHealth(t *testing.T) {
	b := newBench(t, true, strings.Replace(plain, "in_flight: 3", "in_flight: 1, health_margin: 10%", 1))
	n := 0
	send := func(refuse ...bool) {
		for _, r := range refuse {
			b.take(1, "x", "")
			var err error
			if r {
				err = &session.Refusal{Reason: "no"}
			}
			b.to.sent[n].Done(err)
			n++
		}
	}
	send(true, false)
	if b.Route.Status().Converged {
		t.Error("half is refused, and nothing was before")
	}
	b.Mark()
	send(false, true, false, true)
	if s := b.Route.Status(); !s.Converged {
		t.Errorf("as much is refused as before: %+v", s)
	}
	send(true, true)
	if b.Route.Status().Converged {
		t.Error("two thirds are refused, half before")
	}
	b.Mark()
	if s := b.Route.Status(); !s.Converged {
		t.Errorf("nothing came since: %+v", s)
	}
}

// TestPassed: what has passed the route, or been at its target's broker, is not taken again.
func TestPassed(t *testing.T) {
	b := newBench(t, true, plain)
	b.take(1, "x", "fresh")
	hop := b.to.sent[0].Properties[0]
	if hop.Name != document.OriginProperty || !strings.HasPrefix(hop.Value, "me/r@") {
		t.Fatalf("the hop is %v", hop)
	}
	back := newBench(t, true, `{id: back, from: {session: b, topic: "#"}, to: {session: a, topic: "{topic}"}}`)
	other := newBench(t, true, `{id: other, from: {session: b, topic: x}, to: {session: b, topic: "y"}}`)
	var many []session.Property
	for range 17 {
		many = append(many, session.Property{Name: "gdn-origin", Value: "far/r@0"})
	}
	for name, row := range map[string]struct {
		b          *bench
		properties []session.Property
		looped     bool
	}{
		"through the route again": {b, []session.Property{hop}, true}, "back to where it came from": {back, []session.Property{{Name: "Gdn-Origin", Value: hop.Value}}, true},
		"on, at its broker": {other, []session.Property{hop}, false}, "too many hops": {other, many, true}, "many hops": {other, many[:16], false},
	} {
		before := row.b.Route.Status().Looped
		row.b.take(1, "x", name, row.properties...)
		if looped := row.b.Route.Status().Looped > before; looped != row.looped {
			t.Errorf("%s: looped %v", name, looped)
		}
	}
}
