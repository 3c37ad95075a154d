// Package nats is the session with NATS JetStream: it takes messages by a durable consumer, which keeps its place, and sends them to
// streams, which confirm them.
//
// A consumer is named after the bridge and the route, the same on all members, which share its messages among them; it begins with what the
// stream holds. It stays when its route is removed, so that a route that is taken back goes on where it was. Without JetStream, or for
// subjects that no stream has, there is nothing that could confirm a message, and it is refused.
//
// Each connection is made here, and again when it is lost: the client library's own way back gives up for good after two refusals, and does
// not end while it dials.
//
// # Order
//
// The server delivers again what was not acknowledged only after a while (ackWait), and meanwhile what is new. Where a session takes alone, it
// therefore waits, when a connection begins, until what the one before had under way is due, so that this comes first; see consume.
//
// Bounds: of each consumer in_flight messages are taken and not acknowledged (its MaxAckPending); what is sent and not confirmed is bounded
// by the routes that send. Goroutines: three, and one for each route from the session, beside those of nats.go.
package nats

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"regexp"
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
	connectTimeout = 10 * time.Second // to dial, and to be told yes or no
	callTimeout    = 5 * time.Second  // of a question to the server
	ackWait        = 15 * time.Second // after which the server delivers again what was not acknowledged; renewed while it is under way
	publishTimeout = 10 * time.Second // for a stream to confirm
	pingInterval   = 15 * time.Second // of which two unanswered ones end the connection
	writeTimeout   = 30 * time.Second // for the server to take what is written
	lastWords      = time.Second      // to hand back what is under way, when the session ends
)

// Session is one session with a NATS server. It implements session.Session.
type Session struct {
	cfg     session.Config
	name    string
	options []nats.Option
	ackWait time.Duration

	mu       sync.Mutex
	state    bridge.SessionState
	since    time.Time
	err      string
	connects uint64
	closed   bool
	conn     *connection // nil: not connected
	subs     map[string]*consumer
	former   map[*consumer]bool // whose routes are gone, with messages that are not settled
	acks     []ack              // that are not sent yet
	ackWake  chan struct{}
	out      outbox
}

// connection is one with the server.
type connection struct {
	nc   *nats.Conn
	js   jetstream.JetStream
	ctx  context.Context // ends with it
	work sync.WaitGroup  // what it has begun
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
		cfg: cfg, name: strings.ReplaceAll(d.ClientID, document.Member, cfg.Member), ackWait: ackWait, state: bridge.Connecting, since: cfg.Now(),
		subs: map[string]*consumer{}, former: map[*consumer]bool{}, ackWake: make(chan struct{}, 1), out: newOutbox(),
	}
	s.options = []nats.Option{
		nats.Name(s.name), nats.NoReconnect(), nats.Timeout(connectTimeout), nats.SkipHostLookup(), nats.PingInterval(pingInterval), nats.MaxPingsOutstanding(2),
		nats.FlusherTimeout(writeTimeout),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { s.heard(err) }),
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
	s.cfg.Keep(ctx, s.connection, s.becomes)
}

// dialer opens the connections of one nats.Connect, and ends the last one with ctx until stop is called.
type dialer struct {
	ctx  context.Context
	conn net.Conn
	stop func() bool
}

// Dial implements nats.CustomDialer.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	limited, cancel := context.WithTimeout(d.ctx, connectTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(limited, network, address)
	if err != nil {
		return nil, err
	}
	d.conn, d.stop = conn, context.AfterFunc(d.ctx, func() { _ = conn.Close() })
	return conn, nil
}

// connection connects once, and takes and sends until the connection is lost or ctx ends. It tells how long that was.
func (s *Session) connection(ctx context.Context) (held time.Duration, err error) {
	lost, d := make(chan struct{}), &dialer{ctx: ctx}
	nc, err := nats.Connect(s.cfg.Session.URL, append(s.options, nats.SetCustomDialer(d), nats.ClosedHandler(func(*nats.Conn) { close(lost) }))...)
	if err != nil {
		return 0, err
	}
	defer nc.Close()
	if !d.stop() {
		return 0, ctx.Err() // and so is the connection
	}
	// What routes may send and not have confirmed is their bound; one that is met here would block.
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncTimeout(publishTimeout), jetstream.WithDefaultTimeout(callTimeout), jetstream.WithPublishAsyncMaxPending(math.MaxInt32))
	if err != nil {
		return 0, err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	c := &connection{nc: nc, js: js, ctx: running}
	began := s.cfg.Now()
	s.begins(c)
	c.work.Go(func() { s.publish(running, js) })
	c.work.Go(func() { s.acknowledge(running, nc) })
	c.work.Go(func() { s.renew(running, nc) })
	select {
	case <-lost:
	case <-ctx.Done():
	}
	// A server that takes nothing any more does not keep the session from ending.
	force := time.AfterFunc(lastWords, func() { _ = d.conn.Close() })
	defer force.Stop()
	s.mu.Lock()
	s.conn = nil // nothing begins any more
	s.mu.Unlock()
	stop()
	c.work.Wait()
	if ctx.Err() != nil {
		s.handBack(ctx, nc)
	}
	if err = nc.LastError(); err == nil {
		err = errors.New("the server ended the connection")
	}
	return s.cfg.Now().Sub(began), err
}

// begins takes the session up on a new connection.
func (s *Session) begins(c *connection) {
	s.cfg.Log.Info("session is connected", "session", s.cfg.Session.ID, "name", s.name)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn, s.state, s.since, s.err = c, bridge.Connected, s.cfg.Now(), ""
	s.connects++
	for _, sub := range s.subs {
		s.begin(sub)
	}
}

// becomes sets the state; err is kept until the next one.
func (s *Session) becomes(state bridge.SessionState, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != state {
		s.state, s.since = state, s.cfg.Now()
	}
	if err != nil {
		s.err = err.Error()
	}
}

// denied is how a server says that a subject may not be published to.
var denied = regexp.MustCompile(`(?i)permissions violation for publish to "([^"]+)"`)

// heard takes what the server says outside of answers. It answers a message that may not be published by this alone.
func (s *Session) heard(err error) {
	if err == nil {
		return
	}
	s.note(err)
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	if m := denied.FindStringSubmatch(err.Error()); m != nil {
		s.mu.Lock()
		for _, o := range s.out.sent {
			if o != nil && o.Topic == m[1] {
				o.denied = true
			}
		}
		s.mu.Unlock()
		s.out.signal()
	}
}

func (s *Session) note(err error) {
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
