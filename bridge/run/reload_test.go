package run_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"github.com/guardyn-edge/guardyn/bridge/run"
	"github.com/guardyn-edge/guardyn/internal/testmosquitto"
)

// TestReloadTouchesOnlyWhatChanges: a session that both documents share stays connected, keeps its subscriptions, and loses nothing of
// what comes while routes change over it.
func TestReloadTouchesOnlyWhatChanges(t *testing.T) {
	a, b := two(t)
	text := func(filter, extra string) string {
		return doc(a.URL(), b.URL(), `{id: r, from: {session: a, topic: in}, to: {session: b, topic: out}, filter: "`+filter+`"}`) + extra
	}
	m := start(t, run.Options{}, text("true", "")).converge()
	in, out := testmosquitto.Dial(t, a.Addr), testmosquitto.Dial(t, b.Addr, "#")
	markA, markB := a.Mark(), b.Mark()
	sent := make(chan int)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		n := 0
		defer func() { sent <- n }()
		for ctx.Err() == nil {
			in.Publish("in", fmt.Sprint(n))
			n++
		}
	}()
	for i := range 5 {
		out.Await("messages come", func(got []*paho.Publish) bool { return len(payloads(got, "out")) >= (i+1)*20 })
		extra := ""
		if i%2 == 0 {
			extra = `  - {id: more, from: {session: a, topic: other}, to: {session: b, topic: more}}` + "\n"
		}
		m.swap(text(fmt.Sprintf("topic != '%d'", i), extra))
		m.converge()
		if i%2 == 0 {
			in.Publish("other", "x")
		}
	}
	stop()
	n := <-sent
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%d sent; came %v; %d of the other; %+v\n%s", n, firsts(payloads(out.Got(), "out")), len(payloads(out.Got(), "more")), m.Status(), a.Tail(30))
		}
	})
	out.Await("every message", func(got []*paho.Publish) bool {
		return len(firsts(payloads(got, "out"))) == n && len(payloads(got, "more")) == 3
	})
	if got := firsts(payloads(out.Got(), "out")); got[0] != "0" || got[n-1] != fmt.Sprint(n-1) {
		t.Errorf("they came as %v", got)
	}
	for name, broker := range map[string]*testmosquitto.Broker{"a": a, "b": b} {
		mark := map[string]int{"a": markA, "b": markB}[name]
		for _, what := range []string{"Received DISCONNECT from bridge-", "Client bridge-", "New client connected"} {
			if lines := broker.Lines(mark, what, "bridge-"+name); len(lines) > 0 {
				t.Errorf("broker %s saw %q", name, lines)
			}
		}
	}
	if n := a.Count(markA, "Received SUBSCRIBE from bridge-a"); n != 3 {
		t.Errorf("%d subscriptions were asked for; the other route came three times", n)
	}
	if n := a.Count(markA, "Received UNSUBSCRIBE from bridge-a"); n != 2 {
		t.Errorf("%d subscriptions were ended; the other route went twice", n)
	}
	// A session that changes is connected anew, and nothing else is.
	markA, markB = a.Mark(), b.Mark()
	m.swap(strings.Replace(text("true", ""), "client_id: bridge-b", "client_id: bridge-c", 1))
	m.converge()
	if b.Count(markB, "Received DISCONNECT from bridge-b") != 1 || b.Count(markB, "New client connected", "bridge-c") != 1 || a.Count(markA, "Received DISCONNECT from") != 0 {
		t.Errorf("the brokers saw %q and %q", a.Lines(markA, "DISCONNECT"), b.Lines(markB, "bridge-"))
	}
}

// TestRouteIsFreedFromDeadTarget: a change takes a route off a target that does not answer; what was taken goes to the new one.
func TestRouteIsFreedFromDeadTarget(t *testing.T) {
	a, b := two(t)
	dead := testmosquitto.FreeAddr(t)
	text := func(target string) string {
		return strings.Replace(doc(a.URL(), b.URL(), `{id: r, from: {session: a, topic: in}, to: {session: `+target+`, topic: out}}`), "drain_timeout: 5s", "drain_timeout: 0s", 1)
	}
	with := strings.Replace(text("c"), "routes:", fmt.Sprintf("  - {id: c, kind: mqtt, url: \"mqtt://%s\"}\nroutes:", dead), 1)
	m := start(t, run.Options{}, with)
	testmosquitto.Until(t, "the source is connected", func() bool { return m.session("a").Converged })
	in, out := testmosquitto.Dial(t, a.Addr), testmosquitto.Dial(t, b.Addr, "#")
	for i := range 100 {
		in.Publish("in", fmt.Sprint(i))
	}
	testmosquitto.Until(t, "in_flight is full", func() bool { return m.route("r").InFlight == 64 })
	if r := m.route("r"); r.Converged || !strings.Contains(r.Detail, "session c") {
		t.Errorf("the route is %+v", r)
	}
	m.swap(text("b"))
	if got := payloads(out.AwaitCount(100), "out"); len(got) != 100 || got[0] != "0" || got[99] != "99" {
		t.Errorf("came %v", got)
	}
	m.converge()
}

// TestPrepareOpensNothing: what is wrong is told together, and no broker hears of it.
func TestPrepareOpensNothing(t *testing.T) {
	a, b := two(t)
	m := &member{run.New(run.Options{}), t}
	text := doc(a.URL(), b.URL(), `{id: r, from: {session: a, topic: in}, to: {session: b, topic: out}}`)
	p, err := m.Prepare(t.Context(), parse(t, text))
	if err != nil {
		t.Fatal(err)
	}
	p.Discard()
	wrong := strings.NewReplacer("client_id: bridge-a", "client_id: bridge-a, credentials: file:no.cred", "client_id: bridge-b", "client_id: bridge-b, credentials: file:none.cred").Replace(text)
	if _, err := m.Prepare(t.Context(), parse(t, wrong)); err == nil || !strings.Contains(err.Error(), "session a: credentials: ") || !strings.Contains(err.Error(), "session b: ") {
		t.Errorf("it says %v", err)
	}
	if n := a.Count(0, "New connection") + b.Count(0, "New connection"); n != 0 {
		t.Errorf("%d connections were made", n)
	}
	if s := m.Status(); s.Digest != "" || len(s.Sessions) != 0 {
		t.Errorf("runs %+v", s)
	}
}

// TestDrainThenSwap: after Drain nothing is taken until a Swap, sessions stay connected, and then it goes on.
func TestDrainThenSwap(t *testing.T) {
	a, b := two(t)
	text := doc(a.URL(), b.URL(), `{id: r, from: {session: a, topic: in}, to: {session: b, topic: out}}`)
	m := start(t, run.Options{}, text).converge()
	in, out := testmosquitto.Dial(t, a.Addr), testmosquitto.Dial(t, b.Addr, "#")
	in.Publish("in", "before")
	out.AwaitCount(1)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := m.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	a.Await(t, 0, "PUBACK from bridge-a") // of what came before, which the broker may log later than it was sent
	mark := a.Mark()
	in.Publish("in", "while")
	a.Await(t, mark, "Sending PUBLISH to bridge-a")
	if r := m.route("r"); r.Taken != 1 || a.Count(mark, "PUBACK from bridge-a") != 0 {
		t.Errorf("it was taken: %+v", r)
	}
	m.swap(text)
	if got := payloads(out.AwaitCount(2), "out"); got[1] != "while" {
		t.Errorf("came %v", got)
	}
	if n := a.Count(0, "New client connected", "bridge-a"); n != 1 {
		t.Errorf("session a has connected %d times", n)
	}
}
