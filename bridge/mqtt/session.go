package mqtt

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/guardyn-edge/guardyn/bridge"
	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/session"
)

// Session is one session with a broker. It implements session.Session.
type Session struct {
	cfg         session.Config
	clientID    string
	codec       codec
	dialer      dialer
	credentials session.Credentials

	// delivering is held while a sink is called, so that Unsubscribe can wait for it. It is taken before mu.
	delivering sync.Mutex

	mu       sync.Mutex // of all that follows, and of the link's buffer
	link     *link      // nil: not connected
	state    bridge.SessionState
	since    time.Time
	err      string
	connects uint64
	closed   bool
	out      outbox
	in       inbox
	subs     subscriptions
}

var _ session.Session = (*Session)(nil)

// New reads the session's credentials and certificates; it opens no connection.
func New(cfg session.Config) (*Session, error) {
	d := cfg.Session
	u, err := url.Parse(d.URL)
	if err != nil {
		return nil, fmt.Errorf("session %s: its URL cannot be read", d.ID)
	}
	credentials, err := cfg.Secrets.Credentials(d)
	config, tlsErr := cfg.Secrets.TLS(d)
	if err = errors.Join(err, tlsErr); err != nil {
		return nil, fmt.Errorf("session %s: %w", d.ID, err)
	}
	s := &Session{
		cfg: cfg, clientID: strings.ReplaceAll(d.ClientID, document.Member, cfg.Member), codec: codec5{}, dialer: dialer{u, config},
		credentials: credentials, state: bridge.Connecting, since: cfg.Now(), out: newOutbox(), in: newInbox(), subs: newSubscriptions(),
	}
	if d.Protocol == document.MQTT311 {
		s.codec = codec311{}
	}
	return s, nil
}

// Run implements session.Session.
func (s *Session) Run(ctx context.Context) {
	s.cfg.Keep(ctx, s.connection, s.note)
}

// note sets the state; err is kept until the next one.
func (s *Session) note(state bridge.SessionState, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != state {
		s.state, s.since = state, s.cfg.Now()
	}
	if err != nil {
		s.err = err.Error()
	}
}

// connection connects once, and serves until the connection is lost or ctx ends. It tells how long that was.
func (s *Session) connection(ctx context.Context) (held time.Duration, err error) {
	l, ack, err := s.handshake(ctx)
	if err != nil {
		return 0, err
	}
	began := s.cfg.Now()
	s.resume(l, ack)
	s.cfg.Log.Info("session is connected", "session", s.cfg.Session.ID, "client_id", s.clientID, "session_present", ack.present)
	var work sync.WaitGroup
	work.Go(func() { s.write(l) })
	work.Go(func() { s.ping(l) })
	leave := context.AfterFunc(ctx, func() { s.leave(l) })
	err = s.read(l)
	s.lose(l, err)
	leave()
	work.Wait()
	_ = l.nc.Close() // it is lost, or was closed already
	return s.cfg.Now().Sub(began), err
}

// handshake dials, says CONNECT and hears CONNACK.
func (s *Session) handshake(ctx context.Context) (*link, packet, error) {
	limited, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	nc, err := s.dialer.dial(limited)
	if err != nil {
		return nil, packet{}, fmt.Errorf("connect: %w", err)
	}
	d := s.cfg.Session
	window := min(max(s.cfg.Window(), 1), math.MaxUint16)
	l := newLink(nc, window, d.KeepAlive)
	l.old = d.Protocol == document.MQTT311
	stop := context.AfterFunc(limited, func() { _ = nc.Close() })
	defer stop()
	s.codec.connect(&l.buf, connect{
		clientID: s.clientID, clean: d.CleanStart, expiry: uint32(d.SessionExpiry / time.Second), keepAlive: uint16(d.KeepAlive / time.Second),
		receiveMaximum: uint16(window), credentials: s.credentials,
	})
	ack, err := s.introduce(l)
	if err != nil || !stop() {
		_ = nc.Close()
		if err == nil {
			err = context.Cause(limited)
		}
		return nil, ack, fmt.Errorf("connect: %w", err)
	}
	if ack.keepAlive != nil {
		l.keepAlive = time.Duration(*ack.keepAlive) * time.Second
	}
	return l, ack, nil
}

func (s *Session) introduce(l *link) (packet, error) {
	if _, err := l.nc.Write(l.buf.Bytes()); err != nil {
		return packet{}, err
	}
	l.buf.Reset()
	ack, err := s.codec.read(l.r, s.cfg.Now)
	switch {
	case err != nil:
		return ack, fmt.Errorf("the broker did not answer: %w", err)
	case ack.kind != connack:
		return ack, fmt.Errorf("%w: the first of them is not CONNACK", errMalformed)
	case ack.reason != 0:
		return ack, fmt.Errorf("the broker refused: %s", s.codec.why(ack.kind, ack.reason, ack.text))
	}
	return ack, nil
}

// resume takes the session up on a new connection: what is unconfirmed is sent again, what was subscribed is asked for.
func (s *Session) resume(l *link, ack packet) {
	var done after
	defer done.run()
	s.mu.Lock()
	defer s.mu.Unlock()
	present := ack.present && !s.cfg.Session.CleanStart
	s.link, s.state, s.since, s.err = l, bridge.Connected, s.cfg.Now(), ""
	s.connects++
	l.receiveMaximum, l.maximumQoS, l.noRetain, l.maximumPacket = int(ack.receiveMaximum), int(ack.maximumQoS), ack.noRetain, ack.maximumPacket
	s.in.resume(present)
	s.out.resume(present)
	for _, sub := range s.subs.all {
		// A broker that has no retain handling would send its retained messages at each connection anew.
		if present && sub.granted >= 0 && s.cfg.Session.Protocol == document.MQTT311 {
			continue
		}
		s.ask(sub)
	}
	s.pump(&done)
	l.signal()
}

// lose forgets the connection. What was sent and not confirmed goes out again on the next one.
func (s *Session) lose(l *link, err error) {
	var done after
	defer done.run()
	s.mu.Lock()
	defer s.mu.Unlock()
	l.close()
	if s.link != l {
		return
	}
	s.link = nil
	if !l.leaving && !errors.Is(err, os.ErrDeadlineExceeded) {
		if o := s.out.ended(); o != nil {
			reason := fmt.Sprintf("the connection ended %d times in a row when it was sent alone: %v", o.ends, err)
			done.add(func() { o.Done(&session.Refusal{Reason: reason}) })
		}
	}
	s.out.lost()
	s.subs.lost()
	if s.state == bridge.Connected {
		s.state, s.since = bridge.Connecting, s.cfg.Now()
	}
	if err != nil {
		s.err = err.Error()
	}
}

// leave says goodbye; the connection is closed behind it.
func (s *Session) leave(l *link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.codec.disconnect(&l.buf)
	l.leaving = true
	_ = l.nc.SetWriteDeadline(time.Now().Add(disconnectTimeout))
	l.signal()
}

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

// Ordered implements session.Session.
func (*Session) Ordered() bool { return true }

// Status implements session.Session.
func (s *Session) Status() bridge.SessionStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := bridge.SessionStatus{
		ID: s.cfg.Session.ID, Kind: document.MQTT, State: s.state, Since: s.since, LastError: s.err, Connects: s.connects,
		Subscriptions: s.subs.status(),
	}
	st.Converged = s.state == bridge.Connected
	if !st.Converged {
		st.Detail = "it is not connected"
		if s.err != "" {
			st.Detail += ": " + s.err
		}
	}
	for _, sub := range st.Subscriptions {
		if st.Converged && sub.Granted != sub.Asked {
			st.Converged, st.Detail = false, fmt.Sprintf("the subscription %s is not granted yet", sub.Filter)
			if sub.Error != "" {
				st.Detail = fmt.Sprintf("the subscription %s is not granted: %s", sub.Filter, sub.Error)
			}
		}
	}
	return st
}

// after are calls that are made when no lock is held.
type after []func()

func (a *after) add(f func()) { *a = append(*a, f) }

func (a *after) run() {
	for _, f := range *a {
		f()
	}
}
