// Package nats is the session with NATS JetStream: it takes messages by a durable consumer, which keeps its place, and sends them to
// streams, which confirm them.
//
// A consumer is named after the bridge and the route, the same on all members, which share its messages among them; it begins with what the
// stream holds. It stays when its route is removed, so that a route that is taken back goes on where it was. Without JetStream, or for
// subjects that no stream has, there is nothing that could confirm a message, and it is refused.
//
// Bounds: of each consumer in_flight messages are taken and not acknowledged (its MaxAckPending); what is sent and not confirmed is bounded
// by the routes that send. Goroutines: two, and two for each route from the session, beside those of nats.go.
package nats

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/guardyn-edge/guardyn/bridge"
	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/session"
)

// Times that a session keeps to.
const (
	connectTimeout = 10 * time.Second
	callTimeout    = 5 * time.Second  // of a question to the server
	ackWait        = 30 * time.Second // after which the server delivers again what was not acknowledged; renewed while it is under way
	publishTimeout = 10 * time.Second // for a stream to confirm
)

// Session is one session with a NATS server. It implements session.Session.
type Session struct {
	cfg     session.Config
	name    string
	options []nats.Option

	mu       sync.Mutex
	state    bridge.SessionState
	since    time.Time
	err      string
	connects uint64
	held     time.Duration // how long the last connection was
	attempts int           // to connect, since one has held
	closed   bool
	js       jetstream.JetStream // nil: Run has no connection yet, or has ended
	running  context.Context     // of js
	work     sync.WaitGroup      // what Run has begun
	subs     map[string]*consumer
	out      outbox
}

var _ session.Session = (*Session)(nil)

// New reads the session's credentials and certificates; it opens no connection.
func New(cfg session.Config) (*Session, error) {
	d := cfg.Session
	credentials, err := cfg.Secrets.Credentials(d)
	config, tlsErr := cfg.Secrets.TLS(d)
	if err = errors.Join(err, tlsErr); err != nil {
		return nil, fmt.Errorf("session %s: %w", d.ID, err)
	}
	s := &Session{
		cfg: cfg, name: strings.ReplaceAll(d.ClientID, document.Member, cfg.Member), state: bridge.Connecting, since: cfg.Now(),
		subs: map[string]*consumer{}, out: newOutbox(),
	}
	s.options = []nats.Option{
		nats.Name(s.name), nats.MaxReconnects(-1), nats.Timeout(connectTimeout), nats.ReconnectBufSize(-1),
		nats.CustomReconnectDelay(func(int) time.Duration { return s.wait() }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { s.disconnected(err) }),
		nats.ReconnectHandler(func(*nats.Conn) { s.connected() }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { s.note(err) }),
	}
	if strings.HasPrefix(d.URL, "tls:") || strings.HasPrefix(d.URL, "wss:") || d.TLS != (document.TLS{}) {
		s.options = append(s.options, nats.Secure(config))
	}
	switch {
	case credentials.File != "":
		s.options = append(s.options, nats.UserCredentials(credentials.File))
	case credentials.Token != "":
		s.options = append(s.options, nats.Token(credentials.Token))
	case credentials.Username != "":
		s.options = append(s.options, nats.UserInfo(credentials.Username, credentials.Password))
	}
	return s, nil
}

// Run implements session.Session.
func (s *Session) Run(ctx context.Context) {
	for attempt := 1; ctx.Err() == nil; attempt++ {
		nc, err := nats.Connect(s.cfg.Session.URL, s.options...)
		if err == nil {
			err = s.serve(ctx, nc)
		}
		if err != nil && ctx.Err() == nil {
			s.disconnected(err)
			s.cfg.Log.Warn("session is not connected; it tries again", "session", s.cfg.Session.ID, "error", err)
			s.cfg.Backoff.Wait(ctx, attempt)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.since = bridge.Stopping, s.cfg.Now()
}

// serve takes and sends until ctx ends.
func (s *Session) serve(ctx context.Context, nc *nats.Conn) error {
	defer nc.Close()
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncTimeout(publishTimeout), jetstream.WithDefaultTimeout(callTimeout))
	if err != nil {
		return err
	}
	s.connected()
	s.cfg.Log.Info("session is connected", "session", s.cfg.Session.ID, "name", s.name)
	running, stop := context.WithCancel(ctx)
	s.mu.Lock()
	s.js, s.running = js, running
	for _, c := range s.subs {
		s.begin(c)
	}
	s.mu.Unlock()
	s.work.Go(func() { s.publish(running, js) })
	<-ctx.Done()
	s.mu.Lock()
	s.js = nil // nothing begins any more
	s.mu.Unlock()
	stop()
	flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = nc.FlushWithContext(flush) // acknowledgements; without them it is delivered again
	s.work.Wait()
	return nil
}

func (s *Session) connected() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.since, s.err = bridge.Connected, s.cfg.Now(), ""
	s.connects++
}

// wait is how long to wait before the next attempt: longer each time until a connection has held. The client's own count begins anew with each
// connection, however short.
func (s *Session) wait() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cfg.Backoff.Held(s.held) {
		s.attempts = 0
	}
	s.held = 0
	s.attempts++
	return s.cfg.Backoff.Delay(s.attempts)
}

func (s *Session) disconnected(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != bridge.Connecting {
		if s.state == bridge.Connected {
			s.held = s.cfg.Now().Sub(s.since)
		}
		s.state, s.since = bridge.Connecting, s.cfg.Now()
	}
	if err != nil {
		s.err = err.Error()
	}
}

func (s *Session) note(err error) {
	if err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err.Error()
}

// Ordered implements session.Session.
func (*Session) Ordered() bool { return true }

// Close implements session.Session.
func (s *Session) Close() {
	s.mu.Lock()
	s.closed = true
	left := s.out.drop()
	s.mu.Unlock()
	for _, o := range left {
		o.Done(session.ErrStopped)
	}
}

// Status implements session.Session.
func (s *Session) Status() bridge.SessionStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := bridge.SessionStatus{
		ID: s.cfg.Session.ID, Kind: document.NATS, State: s.state, Since: s.since, LastError: s.err, Connects: s.connects,
		Subscriptions: []bridge.SubscriptionStatus{},
	}
	st.Converged = s.state == bridge.Connected
	if !st.Converged {
		st.Detail = "it is not connected"
		if s.err != "" {
			st.Detail += ": " + s.err
		}
	}
	for _, c := range s.sorted() {
		sub := bridge.SubscriptionStatus{Filter: c.sub.Filter.String(), Asked: 1, Granted: 1, Error: c.err}
		if !c.ready {
			sub.Granted = -1
			if st.Converged {
				st.Converged, st.Detail = false, fmt.Sprintf("the consumer of %s is not there yet", sub.Filter)
				if c.err != "" {
					st.Detail += ": " + c.err
				}
			}
		}
		st.Subscriptions = append(st.Subscriptions, sub)
	}
	return st
}
