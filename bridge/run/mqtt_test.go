package run_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"github.com/guardyn-edge/guardyn/bridge/run"
	"github.com/guardyn-edge/guardyn/bridge/session"
	"github.com/guardyn-edge/guardyn/internal/testmosquitto"
)

// TestMoves: filter, captures, properties, payload, QoS and retain, on both versions.
func TestMoves(t *testing.T) {
	a, b := two(t)
	in, out := testmosquitto.Dial(t, a.Addr), testmosquitto.Dial(t, b.Addr, "#")
	text := doc(a.URL(), b.URL(),
		`{id: temps, from: {session: a, topic: plant/+/temp/#}, filter: "payload.c > 0.0", to: {session: b, topic: "t/{1}/{2}"}, transform: {properties: {set: {site: "{1}"}, remove: [debug]}, payload: '{"celsius": payload.c}'}}`,
		`{id: zero, from: {session: a, topic: zero/+, qos: 0}, to: {session: b, topic: "{topic}", qos: 0}}`,
		`{id: twice, from: {session: a, topic: two/+, qos: 2}, to: {session: b, topic: "{topic}", qos: 2}}`,
		`{id: kept, from: {session: a, topic: kept/+}, to: {session: b, topic: "{topic}", retain: keep}}`,
		`{id: set, from: {session: a, topic: set/+}, to: {session: b, topic: "{topic}", retain: set}}`,
		`{id: cleared, from: {session: a, topic: cleared/+}, to: {session: b, topic: "{topic}", retain: clear}}`,
	)
	for _, version := range []string{"5.0", "3.1.1"} {
		t.Run(version, func(t *testing.T) {
			text := text
			if version == "3.1.1" {
				text = strings.NewReplacer(", session_expiry: 1h", `, protocol: "3.1.1"`, "client_id: bridge-b", `client_id: bridge-b, protocol: "3.1.1"`,
					"set: {site: \"{1}\"}, ", "", "bridge-a", "old-a").Replace(text)
			}
			m := start(t, run.Options{}, text).converge()
			before := len(out.Got())
			in.Publish("plant/x/temp/hall/1", `{"c": 21.5}`, "debug", "y", "keep", "z")
			in.Publish("plant/x/temp", `{"c": -1}`)
			for i, topic := range []string{"zero/1", "two/1", "kept/1", "set/1", "cleared/1"} {
				in.Send(&paho.Publish{Topic: topic, Payload: []byte("x"), QoS: byte(min(i, 2)), Retain: topic == "kept/1" || topic == "cleared/1"})
			}
			got := map[string]*paho.Publish{}
			for _, p := range out.AwaitCount(before + 6)[before:] {
				got[p.Topic] = p
			}
			temp := got["t/x/hall/1"]
			if temp == nil || string(temp.Payload) != `{"celsius":21.5}` {
				t.Fatalf("the reading is %v", temp)
			}
			if version == "5.0" {
				if u := temp.Properties.User; u.Get("site") != "x" || u.Get("debug") != "" || u.Get("keep") != "z" || u.Get("gdn-origin") == "" {
					t.Errorf("its properties are %v", u)
				}
			}
			for topic, want := range map[string]struct {
				qos    byte
				retain bool
			}{"zero/1": {0, false}, "two/1": {2, false}, "kept/1": {1, version == "5.0"}, "set/1": {1, true}, "cleared/1": {1, false}} {
				if p := got[topic]; p == nil || p.QoS != want.qos || p.Retain != want.retain {
					t.Errorf("%s came as %v; want %+v", topic, p, want)
				}
			}
			testmosquitto.Until(t, "the counters tell of it", func() bool {
				r := m.route("temps")
				return r.Taken == 2 && r.Filtered == 1 && r.Delivered == 1 && r.InFlight == 0 && m.route("twice").Delivered == 1
			})
		})
		for _, topic := range []string{"kept/1", "cleared/1"} { // or the next session would be sent them
			in.Send(&paho.Publish{Topic: topic, QoS: 1, Retain: true})
		}
	}
}

// TestAtLeastOnceInOrder: connections to both brokers are cut again and again; nothing is lost, and the order of each topic is kept.
func TestAtLeastOnceInOrder(t *testing.T) {
	for _, version := range []string{"5.0", "3.1.1"} {
		for _, qos := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s QoS %d", version, qos), func(t *testing.T) {
				a, b := two(t)
				pa, pb := testmosquitto.NewProxy(t, a.Addr), testmosquitto.NewProxy(t, b.Addr)
				text := doc(pa.URL(), pb.URL(), fmt.Sprintf(`{id: r, from: {session: a, topic: in/+, qos: %d}, to: {session: b, topic: "out/{1}", qos: %d}}`, qos, qos))
				if version == "3.1.1" {
					text = strings.NewReplacer("session_expiry: 1h", `protocol: "3.1.1"`, "bridge-b", `bridge-b, protocol: "3.1.1"`).Replace(text)
				}
				m := start(t, run.Options{}, text).converge()
				in, out := testmosquitto.Dial(t, a.Addr), testmosquitto.Dial(t, b.Addr, "out/+")
				const each = 150
				for i := range each {
					for _, topic := range []string{"x", "y"} {
						in.Publish("in/"+topic, fmt.Sprint(i))
					}
					switch i % 20 {
					case 7:
						pa.Cut()
					case 14:
						pb.Cut()
					case 17:
						pa.Cut()
						pb.Cut()
					}
				}
				var want []string
				for i := range each {
					want = append(want, fmt.Sprint(i))
				}
				t.Cleanup(func() {
					if t.Failed() {
						t.Logf("source's broker:\n%s\ntarget's broker:\n%s\n%+v", a.Tail(60), b.Tail(40), m.Status())
					}
				})
				out.Await("every message", func(got []*paho.Publish) bool {
					return len(firsts(payloads(got, "out/x"))) == each && len(firsts(payloads(got, "out/y"))) == each
				})
				for _, topic := range []string{"out/x", "out/y"} {
					if got := firsts(payloads(out.Got(), topic)); !slices.Equal(got, want) {
						t.Errorf("%s came as %v", topic, got)
					}
				}
				if pa.Served() < 5 || pb.Served() < 5 {
					t.Errorf("there were %d and %d connections: nothing was cut", pa.Served(), pb.Served())
				}
			})
		}
	}
}

// TestBackPressure: while the target is away, the source's broker is told to wait when in_flight messages are unconfirmed, and has the rest.
func TestBackPressure(t *testing.T) {
	a, b := two(t)
	pb := testmosquitto.NewProxy(t, b.Addr)
	m := start(t, run.Options{}, doc(a.URL(), pb.URL(), `{id: r, from: {session: a, topic: in}, to: {session: b, topic: out}, in_flight: 5}`)).converge()
	pb.Refuse(true)
	pb.Cut()
	in, out := testmosquitto.Dial(t, a.Addr), testmosquitto.Dial(t, b.Addr, "out")
	mark := a.Mark()
	for i := range 50 {
		in.Publish("in", fmt.Sprint(i))
	}
	testmosquitto.Until(t, "in_flight is full", func() bool { return m.route("r").InFlight == 5 })
	in.Publish("other", "") // what the broker sent before is in its log
	a.Await(t, mark, "Received PUBLISH", "'other'")
	if n := a.Count(mark, "Sending PUBLISH to bridge-a"); n != 5 {
		t.Errorf("the source's broker has sent %d messages, and 5 may be under way", n)
	}
	if n := a.Count(mark, "Received PUBACK from bridge-a"); n != 0 {
		t.Errorf("%d are acknowledged, and the target has none", n)
	}
	if s := m.session("b"); s.Converged || s.LastError == "" {
		t.Errorf("session b is %+v", s)
	}
	pb.Refuse(false)
	got := firsts(payloads(out.AwaitCount(50), "out"))
	if len(got) != 50 || got[49] != "49" {
		t.Errorf("came %v", got)
	}
}

// TestRefusedForGood: what the target's broker does not allow goes where dead letters go, with the reason, and is acknowledged.
func TestRefusedForGood(t *testing.T) {
	acl := filepath.Join(t.TempDir(), "acl")
	if err := os.WriteFile(acl, []byte("topic read #\ntopic write in/#\ntopic write dead/#\ntopic write out/ok\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	a := testmosquitto.Start(t)
	b := testmosquitto.Start(t, "acl_file "+acl)
	dir := t.TempDir()
	m := start(t, run.Options{Secrets: session.Secrets(dir)}, doc(a.URL(), b.URL(),
		`{id: topic, from: {session: a, topic: one/+}, to: {session: b, topic: "out/{1}"}, dead_letter: {session: b, topic: "dead/{1}"}}`,
		`{id: file, from: {session: a, topic: two/+}, to: {session: b, topic: "out/{1}"}, dead_letter: {file: "file:letters.jsonl"}}`,
		`{id: none, from: {session: a, topic: three/+}, to: {session: b, topic: "out/{1}"}}`,
		`{id: form, from: {session: a, topic: four}, transform: {payload: "payload.x"}, to: {session: b, topic: out/ok}, dead_letter: {file: "file:letters.jsonl"}}`,
	)).converge()
	in, out := testmosquitto.Dial(t, a.Addr), testmosquitto.Dial(t, b.Addr, "#")
	for _, topic := range []string{"one/no", "one/ok", "two/no", "three/no", "four"} {
		in.Publish(topic, "not JSON")
	}
	got := map[string]*paho.Publish{}
	for _, p := range out.AwaitCount(2) {
		got[p.Topic] = p
	}
	dead := got["dead/no"]
	if dead == nil || got["out/ok"] == nil {
		t.Fatalf("came %v", got)
	}
	if u := dead.Properties.User; !strings.Contains(u.Get("gdn-reason"), "ot authorized") || u.Get("gdn-route") != "topic" || u.Get("gdn-topic") != "one/no" {
		t.Errorf("the letter says %v", u)
	}
	var letters string
	testmosquitto.Until(t, "everything is settled", func() bool {
		raw, _ := os.ReadFile(filepath.Join(dir, "letters.jsonl"))
		letters = string(raw)
		return strings.Count(letters, "\n") == 2 && m.route("none").Refused == 1 && m.route("none").InFlight == 0 && m.route("topic").InFlight == 0
	})
	for _, want := range []string{`"route":"file"`, `"topic":"two/no"`, "authorized", `"text":"not JSON"`, `"route":"form"`, "payload: "} {
		if !strings.Contains(letters, want) {
			t.Errorf("the letters lack %q:\n%s", want, letters)
		}
	}
	if r := m.route("topic"); r.Refused != 1 || r.Delivered != 1 || r.Converged {
		t.Errorf("the route is %+v: half of what came is refused", r)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := m.Drain(ctx); err != nil {
		t.Error(err)
	}
}

// TestLoops: two bridges, or two routes, that lead in both directions do not give back what came from the other side; a chain over three brokers goes on.
func TestLoops(t *testing.T) {
	a, b := two(t)
	onA, onB := testmosquitto.Dial(t, a.Addr, "#"), testmosquitto.Dial(t, b.Addr, "#")
	there := doc(a.URL(), b.URL(), `{id: there, from: {session: a, topic: x/#}, to: {session: b, topic: "{topic}"}}`)
	back := strings.NewReplacer("bridge-a", "back-a", "bridge-b", "back-b").Replace(
		doc(a.URL(), b.URL(), `{id: back, from: {session: b, topic: x/#}, to: {session: a, topic: "{topic}"}}`))
	one, other := start(t, run.Options{Origin: "one"}, there).converge(), start(t, run.Options{Origin: "other"}, back).converge()
	onA.Publish("x/1", "from a")
	onB.Publish("x/2", "from b")
	testmosquitto.Until(t, "both were told from those that came back", func() bool {
		return one.route("there").Looped == 1 && other.route("back").Looped == 1
	})
	for name, got := range map[string][]*paho.Publish{"a": onA.AwaitCount(2), "b": onB.AwaitCount(2)} {
		if len(got) != 2 {
			t.Errorf("broker %s has %d messages: %v", name, len(got), got)
		}
	}
	other.swap(back + `  - {id: next, from: {session: b, topic: y}, to: {session: a, topic: z}}` + "\n")
	other.converge()
	one.swap(doc(a.URL(), b.URL(), `{id: w, from: {session: b, topic: v}, to: {session: b, topic: y}}`))
	one.converge()
	onB.Publish("v", "goes on")
	onA.Await("what another route passed", func(got []*paho.Publish) bool { return len(payloads(got, "z")) == 1 })
}

// TestSharedSubscription: members share the messages of a group; each comes once.
func TestSharedSubscription(t *testing.T) {
	a, b := two(t)
	text := fmt.Sprintf(`bridge: {deployment_mode: clustered, cluster: {members: [m1, m2]}}
sessions:
  - {id: a, kind: mqtt, url: %q}
  - {id: b, kind: mqtt, url: %q}
routes:
  - {id: r, from: {session: a, topic: in/#, share: g}, to: {session: b, topic: "out/{1}"}}
`, a.URL(), b.URL())
	one, other := start(t, run.Options{Member: "m1"}, text).converge(), start(t, run.Options{Member: "m2"}, text).converge()
	in, out := testmosquitto.Dial(t, a.Addr), testmosquitto.Dial(t, b.Addr, "#")
	for i := range 40 {
		in.Publish("in/x", fmt.Sprint(i))
	}
	out.AwaitCount(40)
	testmosquitto.Until(t, "the rest is confirmed", func() bool { return one.route("r").Delivered+other.route("r").Delivered == 40 })
	if n := len(out.Got()); n != 40 || one.route("r").Delivered == 0 || other.route("r").Delivered == 0 {
		t.Errorf("%d messages came, %d and %d by the members", n, one.route("r").Delivered, other.route("r").Delivered)
	}
	if a.Count(0, "gdn-a-m1") == 0 || a.Count(0, "gdn-a-m2") == 0 {
		t.Error("the members have not connected by their names")
	}
}

// TestDurableAcrossProcesses: what is not confirmed when a process ends, drained or not, its source delivers to the next.
func TestDurableAcrossProcesses(t *testing.T) {
	a, b := two(t)
	pb := testmosquitto.NewProxy(t, b.Addr)
	text := doc(a.URL(), pb.URL(), `{id: r, from: {session: a, topic: in}, to: {session: b, topic: out}}`)
	m := start(t, run.Options{}, text).converge()
	pb.Refuse(true)
	pb.Cut()
	in, out := testmosquitto.Dial(t, a.Addr), testmosquitto.Dial(t, b.Addr, "out")
	for i := range 10 {
		in.Publish("in", fmt.Sprint(i))
	}
	testmosquitto.Until(t, "it is all under way", func() bool { return m.route("r").InFlight == 10 })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := m.Drain(ctx); err == nil || !strings.Contains(err.Error(), "10 messages") {
		t.Errorf("drain says %v", err)
	}
	mark := a.Mark()
	m.stop()
	a.Await(t, mark, "Received DISCONNECT from bridge-a")
	for i := range 5 {
		in.Publish("in", fmt.Sprint(10+i)) // nobody is there
	}
	pb.Refuse(false)
	m.swap(text)
	if got := firsts(payloads(out.AwaitCount(15), "out")); len(got) != 15 || got[0] != "0" || got[14] != "14" {
		t.Errorf("came %v", got)
	}
}
