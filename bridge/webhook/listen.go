package webhook

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/guardyn-edge/guardyn/bridge"
	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/session"
)

// listener takes what is POSTed, and serves events.
type listener struct {
	cfg         session.Config
	credentials session.Credentials
	tls         *tls.Config
	slots       chan struct{}
	events      *events

	mu     sync.Mutex
	state  bridge.SessionState
	since  time.Time
	err    string
	binds  uint64
	addr   net.Addr
	routes map[string]*taker
	closed bool
}

// taker is a route that takes from the session.
type taker struct {
	sub        session.Subscription
	delivering sync.Mutex
	sink       session.Sink // nil: it has gone
}

func newListener(cfg session.Config, c session.Credentials, t *tls.Config) *listener {
	l := &listener{
		cfg: cfg, credentials: c, slots: make(chan struct{}, maxRequests), events: newEvents(), state: bridge.Connecting, since: cfg.Now(),
		routes: map[string]*taker{},
	}
	if cfg.Session.TLS != (document.TLS{}) {
		t.NextProtos = []string{"h2", "http/1.1"}
		l.tls = t
	}
	return l
}

// Run implements session.Session.
func (l *listener) Run(ctx context.Context) {
	for attempt := 1; ctx.Err() == nil; attempt++ {
		err := l.serve(ctx)
		if ctx.Err() != nil {
			break
		}
		l.note(bridge.Connecting, err)
		l.cfg.Log.Warn("session does not listen; it tries again", "session", l.cfg.Session.ID, "error", err)
		l.cfg.Backoff.Wait(ctx, attempt)
	}
	l.note(bridge.Stopping, nil)
}

func (l *listener) note(state bridge.SessionState, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != state {
		l.state, l.since = state, l.cfg.Now()
	}
	if l.err = ""; err != nil {
		l.err = err.Error()
	}
}

// serve listens until ctx ends; requests that are under way are told to come again.
func (l *listener) serve(ctx context.Context) error {
	var config net.ListenConfig
	on, err := config.Listen(ctx, "tcp", l.cfg.Session.Listen)
	if err != nil {
		return err
	}
	if l.tls != nil {
		on = tls.NewListener(on, l.tls)
	}
	l.mu.Lock()
	l.addr = on.Addr()
	l.binds++
	l.mu.Unlock()
	l.note(bridge.Connected, nil)
	l.cfg.Log.Info("session listens", "session", l.cfg.Session.ID, "address", on.Addr().String())
	requests, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{
		Handler: l, ReadHeaderTimeout: headerTimeout, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return requests },
	}
	stopped := make(chan struct{})
	leave := context.AfterFunc(ctx, func() {
		defer close(stopped)
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if server.Shutdown(limited) != nil {
			_ = server.Close()
		}
	})
	err = server.Serve(on)
	if !leave() {
		<-stopped
	}
	return err
}

// ServeHTTP answers a POST or a GET.
func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !l.allowed(r) {
		w.Header().Set("WWW-Authenticate", map[bool]string{true: "Bearer", false: `Basic realm="bridge"`}[l.credentials.Token != ""])
		http.Error(w, "this session asks for credentials", http.StatusUnauthorized)
		return
	}
	switch r.Method {
	case http.MethodPost:
		l.post(w, r)
	case http.MethodGet:
		l.events.serve(w, r)
	default:
		w.Header().Set("Allow", "GET, POST")
		http.Error(w, "POST a message to its topic's path, or GET /?topic=FILTER to watch", http.StatusMethodNotAllowed)
	}
}

// allowed compares in a time that tells nothing.
func (l *listener) allowed(r *http.Request) bool {
	same := func(a, b string) bool {
		x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
		return subtle.ConstantTimeCompare(x[:], y[:]) == 1
	}
	switch c := l.credentials; {
	case c.IsZero():
		return true
	case c.Token != "":
		token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		return ok && same(token, c.Token)
	default:
		user, password, ok := r.BasicAuth()
		return same(user, c.Username) && same(password, c.Password) && ok
	}
}

// post takes one message and waits until it is settled.
func (l *listener) post(w http.ResponseWriter, r *http.Request) {
	again := func(why string) {
		w.Header().Set("Retry-After", retryAfter)
		http.Error(w, why, http.StatusServiceUnavailable)
	}
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	default:
		again(fmt.Sprintf("%d messages are under way already", maxRequests))
		return
	}
	topic := strings.TrimPrefix(r.URL.Path, "/")
	properties, fault := properties(topic, r.Header)
	if fault != "" {
		http.Error(w, fault, http.StatusBadRequest)
		return
	}
	takers := l.takers(topic)
	if len(takers) == 0 {
		http.Error(w, "no route takes this topic", http.StatusNotFound)
		return
	}
	_ = http.NewResponseController(w).SetReadDeadline(l.cfg.Now().Add(requestTimeout))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, session.MaxMessageBytes))
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		http.Error(w, fmt.Sprintf("a message has at most %d bytes", large.Limit), http.StatusRequestEntityTooLarge)
		return
	} else if err != nil {
		http.Error(w, "the body did not come", http.StatusBadRequest)
		return
	}
	m := session.Message{Topic: topic, Payload: body, QoS: 1, ContentType: r.Header.Get("Content-Type"), Properties: properties}
	done := make(chan struct{})
	var once sync.Mutex
	left := len(takers)
	var dropped []string
	for _, t := range takers {
		var d *session.Delivery
		d = session.NewDelivery(m, func() {
			once.Lock()
			defer once.Unlock()
			if why := d.Dropped(); why != "" {
				dropped = append(dropped, why)
			}
			if left--; left == 0 {
				close(done)
			}
		})
		t.deliver(d)
	}
	limited, cancel := context.WithTimeout(r.Context(), answerTimeout)
	defer cancel()
	select {
	case <-done:
		if len(dropped) > 0 {
			http.Error(w, strings.Join(dropped, "\n"), http.StatusUnprocessableEntity)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	case <-limited.Done():
		again("the message is not confirmed yet: send it again")
	}
}

// properties are those that a request's headers become. The fault is of a topic or header that brokers end connections over: whoever may
// POST a message must not have a say in that.
func properties(topic string, header http.Header) (all []session.Property, fault string) {
	if fault := session.StrictTextFault(topic); fault != "" {
		return nil, "the topic, which is the path, cannot be taken: " + fault
	}
	if fault := session.StrictTextFault(header.Get("Content-Type")); fault != "" {
		return nil, "the header Content-Type cannot be taken: " + fault
	}
	for _, name := range slices.Sorted(maps.Keys(header)) {
		if !forwarded(name) {
			continue
		}
		for _, value := range header[name] {
			if fault := session.StrictTextFault(value); fault != "" {
				return nil, fmt.Sprintf("the header %s cannot be taken: %s", name, fault)
			}
			all = append(all, session.Property{Name: strings.ToLower(name), Value: value})
		}
	}
	return all, ""
}

// forwarded tells whether a header becomes a property: those that are of the request or its connection do not.
func forwarded(name string) bool {
	switch name {
	case "Accept", "Accept-Encoding", "Accept-Language", "User-Agent", "Origin", "Referer", "Via", "Forwarded", "Idempotency-Key":
		return false
	}
	return carried(name) && !strings.HasPrefix(name, "Sec-") && !strings.HasPrefix(name, "X-Forwarded-")
}

func (l *listener) takers(topic string) []*taker {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []*taker
	for _, id := range slices.Sorted(maps.Keys(l.routes)) {
		if _, ok := l.routes[id].sub.Filter.Match(topic); ok {
			all = append(all, l.routes[id])
		}
	}
	return all
}

func (t *taker) deliver(d *session.Delivery) {
	t.delivering.Lock()
	defer t.delivering.Unlock()
	if t.sink != nil { // else who sends is told to come again
		t.sink(d)
	}
}

// Subscribe implements session.Session.
func (l *listener) Subscribe(route string, sub session.Subscription, sink session.Sink) {
	l.mu.Lock()
	have := l.routes[route]
	if have == nil || have.sub.Filter.String() != sub.Filter.String() {
		l.routes[route] = &taker{sub: sub, sink: sink}
		l.mu.Unlock()
		return
	}
	l.mu.Unlock()
	have.delivering.Lock()
	defer have.delivering.Unlock()
	have.sink = sink
}

// Unsubscribe implements session.Session.
func (l *listener) Unsubscribe(_ context.Context, route string) {
	l.mu.Lock()
	have := l.routes[route]
	delete(l.routes, route)
	l.mu.Unlock()
	if have == nil {
		return
	}
	have.delivering.Lock()
	defer have.delivering.Unlock()
	have.sink = nil
}

// Send implements session.Session.
func (l *listener) Send(o *session.Outgoing) {
	l.mu.Lock()
	closed := l.closed
	l.mu.Unlock()
	if closed {
		o.Done(session.ErrStopped)
		return
	}
	l.events.add(&o.Message)
	o.Done(nil)
}

// Close implements session.Session.
func (l *listener) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

// Ordered implements session.Session.
func (*listener) Ordered() bool { return true }

// Status implements session.Session.
func (l *listener) Status() bridge.SessionStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := bridge.SessionStatus{
		ID: l.cfg.Session.ID, Kind: document.HTTP, State: l.state, Since: l.since, LastError: l.err, Connects: l.binds,
		Converged: l.state == bridge.Connected, Subscriptions: []bridge.SubscriptionStatus{},
	}
	for _, id := range slices.Sorted(maps.Keys(l.routes)) {
		s.Subscriptions = append(s.Subscriptions, bridge.SubscriptionStatus{Filter: l.routes[id].sub.Filter.String(), Asked: 1, Granted: 1})
	}
	if !s.Converged {
		s.Detail = "it does not listen"
		if l.err != "" {
			s.Detail += ": " + l.err
		}
	}
	return s
}
