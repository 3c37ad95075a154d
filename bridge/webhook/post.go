package webhook

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"

	"github.com/guardyn-edge/guardyn/bridge"
	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/session"
)

// New reads the session's credentials and certificates; it opens no connection and binds no address.
func New(cfg session.Config) (session.Session, error) {
	credentials, err := cfg.Secrets.Credentials(cfg.Session)
	config, tlsErr := cfg.Secrets.TLS(cfg.Session)
	if err = errors.Join(err, tlsErr); err != nil {
		return nil, fmt.Errorf("session %s: %w", cfg.Session.ID, err)
	}
	if cfg.Session.Listen != "" {
		return newListener(cfg, credentials, config), nil
	}
	u, err := url.Parse(cfg.Session.URL)
	if err != nil {
		return nil, fmt.Errorf("session %s: its URL cannot be read", cfg.Session.ID)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig, transport.MaxIdleConnsPerHost, transport.MaxConnsPerHost = config, maxRequests, maxRequests
	return &poster{
		cfg: cfg, url: u, credentials: credentials, since: cfg.Now(), wake: make(chan struct{}, 1), transport: transport,
		client: &http.Client{Transport: transport, Timeout: requestTimeout, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		}},
	}, nil
}

// poster sends messages to a URL.
type poster struct {
	cfg         session.Config
	url         *url.URL
	credentials session.Credentials
	transport   *http.Transport
	client      *http.Client

	mu      sync.Mutex
	queue   []*posting // what is under way is not in it
	wake    chan struct{}
	running bool
	closed  bool
	since   time.Time
	err     string // of the last attempt; "": it was answered
}

// posting is one message, with the key by which a server knows it again.
type posting struct {
	*session.Outgoing
	key string
}

// Run implements session.Session.
func (p *poster) Run(ctx context.Context) {
	var work sync.WaitGroup
	slots := make(chan struct{}, maxRequests)
	p.set(true)
	for ctx.Err() == nil {
		p.mu.Lock()
		var next *posting
		if len(p.queue) > 0 {
			next = p.queue[0]
			p.queue = p.queue[1:]
		}
		p.mu.Unlock()
		if next == nil {
			select {
			case <-p.wake:
			case <-ctx.Done():
			}
			continue
		}
		select {
		case slots <- struct{}{}:
			work.Go(func() {
				defer func() { <-slots }()
				p.deliver(ctx, next)
			})
		case <-ctx.Done():
			p.back(next)
		}
	}
	work.Wait()
	p.transport.CloseIdleConnections()
	p.set(false)
}

func (p *poster) set(running bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running, p.since = running, p.cfg.Now()
}

// back keeps a message for the next Run.
func (p *poster) back(o *posting) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = append([]*posting{o}, p.queue...)
}

// Send implements session.Session.
func (p *poster) Send(o *session.Outgoing) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		o.Done(session.ErrStopped)
		return
	}
	p.queue = append(p.queue, &posting{o, rand.Text()})
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// deliver POSTs one message until there is a last word on it.
func (p *poster) deliver(ctx context.Context, o *posting) {
	for attempt := 1; ; attempt++ {
		wait, err := p.post(ctx, o)
		p.mu.Lock()
		p.err = ""
		var refusal *session.Refusal
		if err != nil && !errors.As(err, &refusal) {
			p.err = err.Error()
		}
		p.mu.Unlock()
		if err == nil || refusal != nil {
			o.Done(err)
			return
		}
		o.Retried()
		if !pause(ctx, max(wait, p.cfg.Backoff.Delay(attempt))) {
			p.back(o)
			return
		}
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// post makes one attempt. The error is a *session.Refusal when another would be no use; wait is what the server asks for.
func (p *poster) post(ctx context.Context, o *posting) (wait time.Duration, err error) {
	if fault := unspeakable(&o.Message); fault != "" {
		return 0, &session.Refusal{Reason: fault}
	}
	u := *p.url
	u.Path = strings.TrimSuffix(u.Path, "/") + "/" + o.Topic
	u.RawPath = ""
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(o.Payload))
	if err != nil {
		return 0, &session.Refusal{Reason: "it makes no request: " + err.Error()}
	}
	for _, property := range o.Properties {
		if name := property.Name; carried(name) {
			request.Header.Add(name, property.Value)
		}
	}
	request.Header.Set("Content-Type", contentType(&o.Message))
	request.Header.Set("Idempotency-Key", o.key)
	switch {
	case p.credentials.Token != "":
		request.Header.Set("Authorization", "Bearer "+p.credentials.Token)
	case p.credentials.Username != "":
		request.SetBasicAuth(p.credentials.Username, p.credentials.Password)
	}
	response, err := p.client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 4<<10)) // so that the connection is of use again
	switch code := response.StatusCode; {
	case code >= 200 && code < 300:
		return 0, nil
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests, code >= 500:
		if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
			wait = min(time.Duration(seconds)*time.Second, maxRetryAfter)
		}
		return wait, fmt.Errorf("the server answered %s", response.Status)
	}
	reason := "the server answered " + response.Status
	if line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n"); line != "" && utf8.ValidString(line) {
		reason += ": " + line[:min(len(line), 200)]
	}
	return 0, &session.Refusal{Reason: strings.ToValidUTF8(reason, "")}
}

// carried tells whether a property may be a header: by its name, and because it is not one that HTTP or the session uses itself.
func carried(name string) bool {
	if !httpguts.ValidHeaderFieldName(name) {
		return false
	}
	switch http.CanonicalHeaderKey(name) {
	case "Host", "Content-Length", "Content-Type", "Transfer-Encoding", "Connection", "Keep-Alive", "Upgrade", "Te", "Trailer", "Expect",
		"Authorization", "Proxy-Authorization", "Cookie", "Idempotency-Key":
		return false
	}
	return true
}

// unspeakable says what of the message no request can say: a header of several lines or with control characters, or a path that leads out of the URL.
func unspeakable(m *session.Message) string {
	for level := range strings.SplitSeq(m.Topic, "/") {
		if level == "." || level == ".." {
			return fmt.Sprintf("the topic cannot be a path: the level %q would lead elsewhere", level)
		}
	}
	if fault := session.TextFault(m.Topic); fault != "" {
		return "the topic cannot be a path: " + fault
	}
	if !httpguts.ValidHeaderFieldValue(m.ContentType) {
		return "the content type cannot be a header: it has control characters"
	}
	for _, p := range m.Properties {
		if carried(p.Name) && !httpguts.ValidHeaderFieldValue(p.Value) {
			return fmt.Sprintf("the property %s cannot be a header: its value has control characters", p.Name)
		}
	}
	return ""
}

func contentType(m *session.Message) string {
	switch {
	case m.ContentType != "":
		return m.ContentType
	case m.Text:
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}

// Close implements session.Session.
func (p *poster) Close() {
	p.mu.Lock()
	p.closed = true
	left := p.queue
	p.queue = nil
	p.mu.Unlock()
	for _, o := range left {
		o.Done(session.ErrStopped)
	}
}

// Ordered implements session.Session.
func (*poster) Ordered() bool { return false }

// Subscribe implements session.Session. A document has no route from such a session.
func (*poster) Subscribe(string, session.Subscription, session.Sink) {}

// Unsubscribe implements session.Session.
func (*poster) Unsubscribe(context.Context, string) {}

// Status implements session.Session. There is no connection to wait for: it counts as connected unless the last attempt failed.
func (p *poster) Status() bridge.SessionStatus {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := bridge.SessionStatus{
		ID: p.cfg.Session.ID, Kind: document.HTTP, State: bridge.Connected, Since: p.since, LastError: p.err, Converged: true,
		Subscriptions: []bridge.SubscriptionStatus{},
	}
	switch {
	case !p.running:
		s.State, s.Converged, s.Detail = bridge.Connecting, false, "it does not run"
	case p.err != "":
		s.State, s.Converged, s.Detail = bridge.Connecting, false, p.err
	}
	return s
}
