package nats_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/nats"
	"github.com/guardyn-edge/guardyn/bridge/session"
	"github.com/guardyn-edge/guardyn/bridge/topic"
	"github.com/guardyn-edge/guardyn/internal/testmosquitto"
)

// world is a JetStream server with one stream, IN, of in.>, and one, OUT, of out.>.
type world struct {
	t    *testing.T
	dir  string
	port int
	s    *server.Server
	js   jetstream.JetStream
	with func(*server.Options) // what else the server is started with; nil: nothing

	filled int // messages of fill
}

func newWorld(t *testing.T) *world { return newWorldWith(t, nil) }

// newWorldWith starts the server with more than every other; the test's own client speaks to it with options.
func newWorldWith(t *testing.T, with func(*server.Options), options ...natsgo.Option) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), port: -1, with: with}
	w.start()
	t.Cleanup(func() { w.s.Shutdown(); w.s.WaitForShutdown() })
	nc, err := natsgo.Connect(w.url(), append(options, natsgo.MaxReconnects(-1), natsgo.ReconnectWait(10*time.Millisecond), natsgo.IgnoreAuthErrorAbort(),
		natsgo.ErrorHandler(func(*natsgo.Conn, *natsgo.Subscription, error) {}))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	if w.js, err = jetstream.New(nc); err != nil {
		t.Fatal(err)
	}
	for name, subjects := range map[string]string{"IN": "in.>", "OUT": "out.>"} {
		if _, err := w.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{subjects}, MaxMsgSize: 1000}); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w *world) start() {
	w.t.Helper()
	o := &server.Options{Host: "127.0.0.1", Port: w.port, JetStream: true, StoreDir: w.dir, NoLog: true, NoSigs: true}
	if w.with != nil {
		w.with(o)
	}
	s, err := server.NewServer(o)
	if err != nil {
		w.t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(testmosquitto.Patience) {
		w.t.Fatal("the server is not ready")
	}
	w.s = s
	if w.port < 0 {
		if _, err := fmt.Sscanf(s.Addr().String()[strings.LastIndex(s.Addr().String(), ":"):], ":%d", &w.port); err != nil {
			w.t.Fatal(err)
		}
	}
}

// restart ends the server and starts it again on its files.
func (w *world) restart() {
	w.t.Helper()
	w.s.Shutdown()
	w.s.WaitForShutdown()
	w.start()
}

func (w *world) url() string { return fmt.Sprintf("nats://127.0.0.1:%d", w.port) }

func (w *world) session(member string) *nats.Session {
	w.t.Helper()
	return w.sessionOf(document.Session{ID: "s", Kind: document.NATS, URL: w.url(), ClientID: "gdn-s"}, session.Config{Member: member})
}

// sessionOf is a session of that document; cfg is completed.
func (w *world) sessionOf(d document.Session, cfg session.Config) *nats.Session {
	w.t.Helper()
	cfg.Session, cfg.Backoff, cfg.Log, cfg.Now = d, session.Backoff{Min: 5 * time.Millisecond, Max: 50 * time.Millisecond}, slog.New(slog.DiscardHandler), time.Now
	cfg.Window, cfg.IsTarget = func() int { return 10 }, func() bool { return false }
	s, err := nats.New(cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// run runs s until the function that it returns is called.
func (w *world) run(s *nats.Session) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); <-done }) }
	w.t.Cleanup(stop)
	testmosquitto.Until(w.t, "the session converges", func() bool { return s.Status().Converged })
	return stop
}

func subscription(t *testing.T, inFlight int) session.Subscription {
	t.Helper()
	f, err := topic.ParseFilter(topic.NATS, "in.>")
	if err != nil {
		t.Fatal(err)
	}
	return session.Subscription{Filter: f, Name: "gdn-test-r.1", InFlight: inFlight}
}

// box collects deliveries.
type box struct {
	mu  sync.Mutex
	got []*session.Delivery
}

func (b *box) take(d *session.Delivery) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.got = append(b.got, d)
}

func (b *box) all() []*session.Delivery {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.got)
}

// TestTakes: what is settled is acknowledged and comes no more, no more than in_flight is under way, and the next process goes on where
// this one was.
func TestTakes(t *testing.T) {
	w := newWorld(t)
	for i := range 10 {
		m := natsgo.NewMsg(fmt.Sprintf("in.%d", i))
		m.Data = []byte(fmt.Sprint(i))
		m.Header.Set("site", "north")
		m.Header.Set("Content-Type", "text/plain")
		if _, err := w.js.PublishMsg(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	one := w.session("one")
	var first box
	one.Subscribe("r", subscription(t, 4), first.take)
	stop := w.run(one)
	testmosquitto.Until(t, "in_flight is full", func() bool { return len(first.all()) == 4 })
	d := first.all()[0]
	if d.Topic != "in.0" || string(d.Payload) != "0" || d.ContentType != "text/plain" || !slices.Equal(d.Properties, []session.Property{{Name: "site", Value: "north"}}) {
		t.Errorf("the first is %+v", d.Message)
	}
	for _, d := range first.all()[:3] {
		d.Settle()
	}
	testmosquitto.Until(t, "three more come", func() bool { return len(first.all()) == 7 })
	if n := len(first.all()); n != 7 {
		t.Errorf("%d are under way", n)
	}
	stop()
	on, err := w.js.Consumer(t.Context(), "IN", "gdn-test-r_1")
	if err != nil {
		t.Fatal(err)
	}
	testmosquitto.Until(t, "the server has the acknowledgements", func() bool {
		info, err := on.Info(t.Context())
		return err == nil && info.AckFloor.Consumer == 3
	})
	if s := one.Status(); s.Converged {
		t.Errorf("it does not run: %+v", s)
	}
}

// TestSends: in order, each stream's word heard, over restarts of the server; what no stream takes is refused.
func TestSends(t *testing.T) {
	w := newWorld(t)
	s := w.session("one")
	w.run(s)
	var mu sync.Mutex
	answers := map[string]error{}
	send := func(subject, payload string, values ...string) {
		value := strings.Join(append([]string{"1"}, values...), " ")
		s.Send(&session.Outgoing{
			Message: session.Message{Topic: subject, Payload: []byte(payload), Properties: []session.Property{{Name: "a", Value: value}, {Name: "not a header", Value: "x"}}},
			Done: func(err error) {
				mu.Lock()
				defer mu.Unlock()
				answers[subject+" "+payload] = err
			},
		})
	}
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(answers)
	}
	const n = 60
	for i := range n {
		send("out.x", fmt.Sprint(i))
		if i == n/2 {
			w.restart()
		}
	}
	testmosquitto.Until(t, "everything is answered", func() bool { return count() == n })
	send("nobody.has.this", "")
	send("out.x", strings.Repeat("x", 2000))
	send("out.x", strings.Repeat("x", 3<<20))
	send("out.two lines", "")
	send("out.*", "")
	send("out.header", "", "\r\nb: 2")
	send("out.last", "")
	testmosquitto.Until(t, "everything is answered", func() bool { return count() == n+7 })
	mu.Lock()
	defer mu.Unlock()
	for what, want := range map[string]string{
		"nobody.has.this ": "no stream has the subject", "out.x " + strings.Repeat("x", 2000): "maximum",
		"out.x " + strings.Repeat("x", 3<<20): "more than the server takes", "out.two lines ": "the subject cannot be sent", "out.* ": "the subject cannot be sent",
		"out.header ": "several lines", "out.last ": "",
	} {
		if err := answers[what]; (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.20s: %v, want %q", what, err, want)
		}
	}
	stream, err := w.js.Stream(t.Context(), "OUT")
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		m, err := stream.GetMsg(t.Context(), uint64(i+1))
		if err != nil || string(m.Data) != fmt.Sprint(i) {
			t.Fatalf("message %d is %v, %v: each goes once, in order", i, m, err)
		}
		if i == 0 && (m.Header.Get("a") != "1" || len(m.Header) != 2) {
			t.Errorf("its headers are %v", m.Header)
		}
	}
}

// TestNoStream: a subscription that no stream has does not converge, and says why.
func TestNoStream(t *testing.T) {
	w := newWorld(t)
	s := w.session("one")
	sub := subscription(t, 1)
	sub.Filter, _ = topic.ParseFilter(topic.NATS, "elsewhere.*")
	s.Subscribe("r", sub, new(box).take)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	testmosquitto.Until(t, "it says why", func() bool { return strings.Contains(s.Status().Detail, "no stream has elsewhere.*") })
	s.Unsubscribe(t.Context(), "r")
	testmosquitto.Until(t, "the session converges", func() bool { return s.Status().Converged })
	cancel()
	<-done
	s.Close()
	var answer error
	s.Send(&session.Outgoing{Done: func(err error) { answer = err }})
	if answer != session.ErrStopped {
		t.Errorf("a closed session says %v", answer)
	}
}
