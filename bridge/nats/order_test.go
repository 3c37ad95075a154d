package nats_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/nats"
	"github.com/guardyn-edge/guardyn/bridge/session"
	"github.com/guardyn-edge/guardyn/internal/testmosquitto"
)

// firsts are the payloads of what came, each at the place where it came first.
func (b *box) firsts() []string {
	var all []string
	for _, d := range b.all() {
		if text := string(d.Payload); !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

// fill publishes messages that are numbered on.
func (w *world) fill(n int) (want []string) {
	w.t.Helper()
	for range n {
		text := fmt.Sprint(w.filled)
		w.filled++
		if _, err := w.js.Publish(w.t.Context(), "in.x", []byte(text)); err != nil {
			w.t.Fatal(err)
		}
		want = append(want, text)
	}
	return want
}

// through is a session that is connected by way of p.
func (w *world) through(p *testmosquitto.Proxy) *nats.Session {
	s := w.sessionOf(document.Session{ID: "s", Kind: document.NATS, URL: "nats://" + p.Addr}, session.Config{})
	s.SetAckWait(500 * time.Millisecond)
	return s
}

// TestOrderOverLostConnections: messages that were on their way when a connection was cut come before those behind them, though the server would
// deliver what is new first.
func TestOrderOverLostConnections(t *testing.T) {
	w := newWorld(t)
	want := w.fill(400) // more than four connections of so many bytes bring
	p := testmosquitto.NewProxy(t, strings.TrimPrefix(w.url(), "nats://"))
	p.CutAfter(6000) // what the server says of itself, and some messages
	s := w.through(p)
	var b box
	s.Subscribe("r", subscription(t, 10), func(d *session.Delivery) { b.take(d); d.Settle() })
	w.run(s)
	testmosquitto.Until(t, "three connections are cut", func() bool { return p.Served() >= 4 })
	p.CutAfter(0)
	testmosquitto.Until(t, "everything has come", func() bool { return len(b.firsts()) == len(want) })
	if got := b.firsts(); !slices.Equal(got, want) {
		t.Errorf("they came as %v", got)
	}
}

// TestOrderOverProcesses: what a process that was killed had under way comes first to the one after it.
func TestOrderOverProcesses(t *testing.T) {
	w := newWorld(t)
	want := w.fill(20)
	p := testmosquitto.NewProxy(t, strings.TrimPrefix(w.url(), "nats://"))
	first := w.through(p)
	var b box
	first.Subscribe("r", subscription(t, 4), b.take)
	stop := w.run(first)
	testmosquitto.Until(t, "in_flight is full", func() bool { return len(b.all()) == 4 })
	p.Refuse(true)
	p.Cut() // nothing more is heard of it
	stop()
	second := w.through(testmosquitto.NewProxy(t, strings.TrimPrefix(w.url(), "nats://")))
	var after box
	second.Subscribe("r", subscription(t, 8), func(d *session.Delivery) { after.take(d); d.Settle() })
	w.run(second)
	testmosquitto.Until(t, "everything has come", func() bool { return len(after.firsts()) == len(want) })
	if got := after.firsts(); !slices.Equal(got, want) {
		t.Errorf("they came as %v", got)
	}
}

// TestHandsBack: what a session that ends has under way goes to the others at once, in its order, and what is settled late does not.
func TestHandsBack(t *testing.T) {
	w := newWorld(t)
	w.fill(6)
	shared := func(member string) *nats.Session {
		return w.sessionOf(document.Session{ID: "s", Kind: document.NATS, URL: w.url()}, session.Config{Member: member, Shared: true})
	}
	one, two := shared("one"), shared("two")
	one.SetAckWait(time.Hour)
	two.SetAckWait(time.Hour) // no other way back is of use
	var b, after box
	one.Subscribe("r", subscription(t, 6), b.take)
	stop := w.run(one)
	testmosquitto.Until(t, "one has all", func() bool { return len(b.all()) == 6 })
	two.Subscribe("r", subscription(t, 6), func(d *session.Delivery) { after.take(d); d.Settle() })
	w.run(two)
	b.all()[2].Settle()
	stop()
	b.all()[4].Settle() // another has it already
	testmosquitto.Until(t, "two has the rest", func() bool { return len(after.all()) == 5 })
	if got := after.firsts(); !slices.Equal(got, []string{"0", "1", "3", "4", "5"}) {
		t.Errorf("they came as %v", got)
	}
	on, err := w.js.Consumer(t.Context(), "IN", "gdn-test-r_1")
	if err != nil {
		t.Fatal(err)
	}
	testmosquitto.Until(t, "everything is acknowledged", func() bool {
		info, err := on.Info(t.Context())
		return err == nil && info.AckFloor.Stream == 6
	})
}

// TestUnderWayOverARestart: what is under way when the server restarts is the route's still: it does not come twice, is renewed, and what is settled
// while there is no connection is acknowledged on the next.
func TestUnderWayOverARestart(t *testing.T) {
	w := newWorld(t)
	w.fill(4)
	s := w.session("one")
	s.SetAckWait(time.Second)
	var b box
	s.Subscribe("r", subscription(t, 4), b.take)
	w.run(s)
	testmosquitto.Until(t, "in_flight is full", func() bool { return len(b.all()) == 4 })
	w.s.Shutdown()
	w.s.WaitForShutdown()
	testmosquitto.Until(t, "the connection is lost", func() bool { return !s.Status().Converged })
	b.all()[0].Settle()
	w.start()
	w.fill(1)
	testmosquitto.Until(t, "there is room for another", func() bool { return len(b.all()) >= 5 })
	on, err := w.js.Consumer(t.Context(), "IN", "gdn-test-r_1")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range b.all() {
		d.Settle()
	}
	testmosquitto.Until(t, "everything is acknowledged", func() bool {
		info, err := on.Info(t.Context())
		return err == nil && info.AckFloor.Stream == 5 && info.NumAckPending == 0
	})
	if got := b.firsts(); len(b.all()) != 5 || !slices.Equal(got, []string{"0", "1", "2", "3", "4"}) {
		t.Errorf("%d came, as %v", len(b.all()), got)
	}
}

// TestEmptyWithAStatus: an empty message that says of itself what a server would say is a message.
func TestEmptyWithAStatus(t *testing.T) {
	w := newWorld(t)
	for _, status := range []string{"100", "404", "408", "409", "503"} {
		m := natsgo.NewMsg("in.x")
		m.Header.Set("Status", status)
		m.Header.Set("Description", "Consumer Deleted")
		if _, err := w.js.PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	w.fill(1)
	s := w.session("one")
	var b box
	s.Subscribe("r", subscription(t, 1), func(d *session.Delivery) { b.take(d); d.Settle() })
	w.run(s)
	testmosquitto.Until(t, "everything has come", func() bool { return len(b.all()) == 6 })
	if got := b.all()[1].Properties; !slices.Equal(got, []session.Property{{Name: "Description", Value: "Consumer Deleted"}, {Name: "Status", Value: "404"}}) {
		t.Errorf("it came with %v", got)
	}
}

// TestConsumerDeleted: a consumer that somebody deletes is made again.
func TestConsumerDeleted(t *testing.T) {
	w := newWorld(t)
	w.fill(2)
	s := w.session("one")
	var b box
	s.Subscribe("r", subscription(t, 4), func(d *session.Delivery) { b.take(d); d.Settle() })
	w.run(s)
	testmosquitto.Until(t, "both have come", func() bool { return len(b.all()) == 2 })
	if err := w.js.DeleteConsumer(t.Context(), "IN", "gdn-test-r_1"); err != nil {
		t.Fatal(err)
	}
	w.fill(1)
	testmosquitto.Until(t, "the third has come, and it has converged", func() bool { return len(b.firsts()) == 3 && s.Status().Converged })
}

// TestDeliveredAgain: a message that the server delivers again while it is under way is the route's already; its acknowledgement goes to the newest
// delivery.
func TestDeliveredAgain(t *testing.T) {
	w := newWorld(t)
	w.fill(3)
	s := w.session("one")
	s.SetAckWait(300 * time.Millisecond) // renewed every 100 ms
	var b box
	s.Subscribe("r", subscription(t, 3), b.take)
	renewals, err := w.js.Conn().SubscribeSync("$JS.ACK.IN.>")
	if err != nil {
		t.Fatal(err)
	}
	w.run(s)
	m, err := renewals.NextMsg(testmosquitto.Patience)
	if err != nil || string(m.Data) != "+WPI" {
		t.Fatalf("what is under way is not renewed: %v, %v", m, err)
	}
	if err := w.js.Conn().Publish(m.Subject, []byte("-NAK")); err != nil {
		t.Fatal(err)
	}
	on, err := w.js.Consumer(t.Context(), "IN", "gdn-test-r_1")
	if err != nil {
		t.Fatal(err)
	}
	testmosquitto.Until(t, "it is delivered again", func() bool {
		info, err := on.Info(t.Context())
		return err == nil && info.NumRedelivered == 1
	})
	for _, d := range b.all() {
		d.Settle()
	}
	testmosquitto.Until(t, "everything is acknowledged", func() bool {
		info, err := on.Info(t.Context())
		return err == nil && info.AckFloor.Stream == 3 && info.NumAckPending == 0
	})
	if got := b.all(); len(got) != 3 {
		t.Errorf("%d came", len(got))
	}
}

// TestFetchedIsTaken: what has been fetched when a route leaves, or asks for another in_flight, is its own: else it would come again only behind what is
// new, and after a while.
func TestFetchedIsTaken(t *testing.T) {
	w := newWorld(t)
	want := w.fill(200)
	s := w.session("one")
	s.SetAckWait(time.Hour)
	var b box
	began, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	take := func(d *session.Delivery) {
		once.Do(func() { close(began); <-goOn })
		b.take(d)
		d.Settle()
	}
	s.Subscribe("r", subscription(t, 20), take)
	w.run(s)
	<-began
	on, err := w.js.Consumer(t.Context(), "IN", "gdn-test-r_1")
	if err != nil {
		t.Fatal(err)
	}
	testmosquitto.Until(t, "more is fetched", func() bool {
		info, err := on.Info(t.Context())
		return err == nil && info.NumAckPending == 20
	})
	left := make(chan struct{})
	go func() {
		defer close(left)
		s.Unsubscribe(t.Context(), "r")
	}()
	testmosquitto.Until(t, "it leaves", func() bool { return len(s.Status().Subscriptions) == 0 })
	close(goOn)
	<-left
	if got := b.firsts(); !slices.Equal(got, want[:len(got)]) || len(got) < 20 {
		t.Errorf("they came as %v", got)
	}
	for n := 30; n < 34; n++ {
		s.Subscribe("r", subscription(t, n), take)
	}
	testmosquitto.Until(t, "everything has come", func() bool { return len(b.firsts()) == len(want) })
	if got := b.firsts(); !slices.Equal(got, want) || len(b.all()) != len(want) {
		t.Errorf("%d came, as %v", len(b.all()), got)
	}
}
