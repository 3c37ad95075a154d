package run_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/guardyn-edge/guardyn/barrier/memory"
	"github.com/guardyn-edge/guardyn/bridge/run"
	"github.com/guardyn-edge/guardyn/internal/testmosquitto"
)

// stream runs a JetStream server with one stream, IN, of in.>, and returns its URL and a way to publish to it.
func stream(t *testing.T) (url string, js jetstream.JetStream) {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(testmosquitto.Patience) {
		t.Fatal("the server is not ready")
	}
	nc, err := natsgo.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	if js, err = jetstream.New(nc); err != nil {
		t.Fatal(err)
	}
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "IN", Subjects: []string{"in.>"}}); err != nil {
		t.Fatal(err)
	}
	return s.ClientURL(), js
}

// TestStreamToExclusiveTarget: members share a stream's messages, and those that may not send by the target hold none of them; one that loses the lease
// gives back what it has under way.
func TestStreamToExclusiveTarget(t *testing.T) {
	url, js := stream(t)
	b := testmosquitto.Start(t)
	pb := testmosquitto.NewProxy(t, b.Addr)
	text := fmt.Sprintf(`bridge: {deployment_mode: clustered, cluster: {members: [m1, m2]}}
sessions:
  - {id: n, kind: nats, url: %q}
  - {id: b, kind: mqtt, url: %q, client_id: one, exclusive: true}
routes:
  - {id: r, from: {session: n, topic: in.*}, to: {session: b, topic: out}, in_flight: 8}
`, url, pb.URL())
	store := memory.New(memory.Options{})
	members, ways := map[string]*member{}, map[string]*leases{}
	for _, id := range []string{"m1", "m2"} {
		ways[id] = &leases{store: store}
		members[id] = start(t, run.Options{Member: id, Leases: ways[id], Lease: 1200 * time.Millisecond}, text)
	}
	for _, m := range members {
		m.converge()
	}
	held, other := "m1", "m2"
	if members["m2"].session("b").Holder == "" {
		held, other = other, held
	}
	n := 0
	publish := func(count int) {
		t.Helper()
		for range count {
			if _, err := js.Publish(t.Context(), "in.x", []byte(fmt.Sprint(n))); err != nil {
				t.Fatal(err)
			}
			n++
		}
	}
	out := testmosquitto.Dial(t, b.Addr, "#")
	publish(40)
	out.AwaitCount(40)

	// What is under way at the one that loses the lease comes by the other.
	pb.Refuse(true)
	pb.Cut()
	publish(20)
	testmosquitto.Until(t, "messages are under way", func() bool { return members[held].route("r").InFlight == 8 })
	ways[held].Cut(true)
	testmosquitto.Until(t, "the other has the lease", func() bool {
		return members[held].session("b").State == "standby" && members[other].session("b").State == "connecting"
	})
	pb.Refuse(false)
	testmosquitto.Until(t, "everything has come", func() bool { return len(firsts(payloads(out.Got(), "out"))) == n })
}
