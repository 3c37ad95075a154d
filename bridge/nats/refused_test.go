package nats_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
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

// answers are what became of messages, by their payloads.
type answers struct {
	mu  sync.Mutex
	got map[string]error
}

func (a *answers) send(s *nats.Session, subject, payload string, properties ...session.Property) {
	s.Send(&session.Outgoing{Message: session.Message{Topic: subject, Payload: []byte(payload), Properties: properties}, Done: func(err error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.got == nil {
			a.got = map[string]error{}
		}
		a.got[payload] = err
	}})
}

func (a *answers) await(t *testing.T, n int) map[string]error {
	t.Helper()
	testmosquitto.Until(t, "everything is answered", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		return len(a.got) == n
	})
	return a.got
}

// TestPropertiesCommandNothing: properties of a message are not taken for what JetStream does by headers of its own.
func TestPropertiesCommandNothing(t *testing.T) {
	w := newWorld(t)
	if _, err := w.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "ROLL", Subjects: []string{"roll"}, AllowRollup: true}); err != nil {
		t.Fatal(err)
	}
	s := w.session("one")
	w.run(s)
	var a answers
	a.send(s, "roll", "before")
	for i, p := range []session.Property{
		{Name: "Nats-Rollup", Value: "all"},
		{Name: "nats-rollup", Value: "all"},
		{Name: "Nats-Expected-Last-Sequence", Value: "77"},
		{Name: "Nats-Expected-Stream", Value: "OUT"},
		{Name: "Nats-Msg-Id", Value: "the same"},
		{Name: "Nats-TTL", Value: "1s"},
	} {
		a.send(s, "roll", fmt.Sprint(i), p, session.Property{Name: "site", Value: "north"})
	}
	a.send(s, "roll", "", session.Property{Name: "Status", Value: "404"}, session.Property{Name: "site", Value: "north"})
	for what, err := range a.await(t, 8) {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	stream, err := w.js.Stream(t.Context(), "ROLL")
	if err != nil {
		t.Fatal(err)
	}
	if n := stream.CachedInfo().State.Msgs; n != 8 {
		t.Errorf("the stream has %d messages", n)
	}
	for i := range 7 {
		m, err := stream.GetMsg(t.Context(), uint64(i+2))
		if err != nil || m.Header.Get("site") != "north" || len(m.Header) != 2 { // and Nats-Msg-Id
			t.Errorf("message %d has %v, %v", i, m, err)
		}
	}
}

// TestRefusedForGood: what a server will never take is refused, with its reason, and what comes behind it goes on.
func TestRefusedForGood(t *testing.T) {
	w := newWorldWith(t, func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "all", Password: "x"},
			{Username: "some", Password: "x", Permissions: &server.Permissions{Publish: &server.SubjectPermission{Allow: []string{">"}, Deny: []string{"out.secret.>"}}}},
		}
	}, natsgo.UserInfo("all", "x"))
	if err := os.WriteFile(filepath.Join(w.dir, "some.cred"), []byte("username: some\npassword: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := w.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "LARGE", Subjects: []string{"large"}}); err != nil {
		t.Fatal(err)
	}
	s := w.sessionOf(document.Session{ID: "s", Kind: document.NATS, URL: w.url(), Credentials: "some.cred"}, session.Config{Secrets: session.Secrets(w.dir)})
	w.run(s)
	var a answers
	a.send(s, "out.a", "first")
	a.send(s, "out.secret.a", "not allowed")
	a.send(s, "out.a", "second")
	a.send(s, "out.secret.b", "not allowed either")
	a.send(s, "large", "large headers", session.Property{Name: "a", Value: strings.Repeat("x", 70<<10)})
	a.send(s, "$JS.API.STREAM.DELETE.LARGE", "") // which this user may
	a.send(s, "out.a", "third")
	for what, err := range a.await(t, 7) {
		want := map[string]string{"": "the server's own", "not allowed": "not allowed", "not allowed either": "not allowed", "large headers": "header size"}[what]
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := w.js.Stream(t.Context(), "LARGE"); err != nil {
		t.Errorf("a message has deleted a stream: %v", err)
	}
	stream, err := w.js.Stream(t.Context(), "OUT")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"first", "second", "third"} {
		if m, err := stream.GetMsg(t.Context(), uint64(i+1)); err != nil || string(m.Data) != want {
			t.Errorf("message %d is %v, %v", i, m, err)
		}
	}
}

// TestNoTLS: a session that is to speak TLS does not speak without to a server that has none.
func TestNoTLS(t *testing.T) {
	w := newWorld(t)
	s := w.sessionOf(document.Session{ID: "s", Kind: document.NATS, URL: strings.Replace(w.url(), "nats:", "tls:", 1)}, session.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	testmosquitto.Until(t, "it says why", func() bool { return strings.Contains(s.Status().Detail, "secure connection not available") })
	cancel()
	<-done
}

// TestSeveralStreams: of subjects that several streams have, not all would be taken by one of them; it is told, and one can be named.
func TestSeveralStreams(t *testing.T) {
	w := newWorld(t)
	for name, subject := range map[string]string{"A": "parts.a", "B": "parts.b"} {
		if _, err := w.js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: []string{subject}}); err != nil {
			t.Fatal(err)
		}
	}
	s := w.session("one")
	sub := subscription(t, 4)
	sub.Filter, _ = topic.ParseFilter(topic.NATS, "parts.*")
	s.Subscribe("r", sub, new(box).take)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	defer func() { cancel(); <-done }()
	testmosquitto.Until(t, "it says why", func() bool {
		return strings.Contains(s.Status().Detail, "several streams have parts.*: A, B: name one of them in from.stream")
	})
	sub.Stream = "B"
	s.Subscribe("r", sub, new(box).take)
	testmosquitto.Until(t, "the session converges", func() bool { return s.Status().Converged })
}

// TestAuthorizationComesBack: a server that refuses the credentials for a while, as one whose accounts are being changed, is asked again.
func TestAuthorizationComesBack(t *testing.T) {
	var mu sync.Mutex
	password := "right"
	set := func(p string) {
		mu.Lock()
		defer mu.Unlock()
		password = p
	}
	w := newWorldWith(t, func(o *server.Options) {
		mu.Lock()
		defer mu.Unlock()
		o.Username, o.Password = "bridge", password
	}, natsgo.UserInfo("bridge", "right"))
	if err := os.WriteFile(filepath.Join(w.dir, "right.cred"), []byte("username: bridge\npassword: right\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := w.sessionOf(document.Session{ID: "s", Kind: document.NATS, URL: w.url(), Credentials: "right.cred"}, session.Config{Secrets: session.Secrets(w.dir)})
	w.run(s)
	set("another")
	w.restart()
	testmosquitto.Until(t, "it says why", func() bool {
		st := s.Status()
		return !st.Converged && strings.Contains(strings.ToLower(st.Detail), "authorization violation")
	})
	// Refused more than once: after two refusals of a server the client gives up by itself.
	connections := func() uint64 {
		v, err := w.s.Varz(nil)
		if err != nil {
			t.Fatal(err)
		}
		return v.TotalConnections
	}
	before := connections()
	testmosquitto.Until(t, "it is refused again", func() bool { return connections() >= before+6 })
	set("right")
	w.restart()
	testmosquitto.Until(t, "the session converges", func() bool { return s.Status().Converged })
}

// TestStopsAtOnce: a server that takes connections and says nothing does not keep the session from ending, nor a member from giving its lease
// up in time.
func TestStopsAtOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := make(chan net.Conn, 8)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			taken <- c
		}
	}()
	w := &world{t: t}
	s := w.sessionOf(document.Session{ID: "s", Kind: document.NATS, URL: "nats://" + l.Addr().String()}, session.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	c := <-taken
	defer c.Close()
	cancel()
	select {
	case <-done:
	case <-time.After(nats.ConnectTimeout / 2): // what would end it by itself takes the whole
		t.Error("the session does not end")
		<-done
	}
}
