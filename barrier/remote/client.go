package remote

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/guardyn-edge/guardyn/barrier"
)

// ClientOptions are how a Client speaks. What is zero takes the value that is named.
type ClientOptions struct {
	// HTTP is used without its CheckRedirect and Timeout: no redirect is followed, and the times below count. One of the
	// Client's own, with 64 KiB of header at most.
	HTTP *http.Client

	// Authorize adds the credentials to each request, for example [Bearer]; none. An error is returned to the caller.
	Authorize func(*http.Request) error

	// Timeout is how long a call takes at most, with its answer, 10 s; TransferTimeout that of Put and Get, 60 s.
	Timeout, TransferTimeout time.Duration
}

// Bearer returns an Authorize that sends token (RFC 6750).
func Bearer(token string) func(*http.Request) error {
	return func(r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+token)
		return nil
	}
}

// Client is a cohort behind a Handler: a barrier.Store, Leases and Artefacts with the rights of its credentials.
// It is safe for concurrent use. No call is made twice, except that the transport sends a read again when a
// connection turns out to be closed. Errors are those of the ports, ErrUnauthenticated, ErrForbidden and
// ErrUnavailable, each in an *Error; with any other it is not known whether the call took effect.
//
// Row.Now and View.Now are the store's time when the row was read, some time before it arrives here. Whoever counts
// from the arrival, as barrier.Local.Observe does, is late by the way of the answer, and never early.
type Client struct {
	base      string // without a trailing slash
	http      *http.Client
	own       bool // whether http is the Client's own
	authorize func(*http.Request) error
	timeout   time.Duration
	transfer  time.Duration

	word string        // begins the word of each request
	sent atomic.Uint64 // ends it

	watches watches
}

var (
	_ barrier.Store     = (*Client)(nil)
	_ barrier.Leases    = (*Client)(nil)
	_ barrier.Artefacts = (*Client)(nil)
)

// NewClient returns a client of the Handler that is mounted at base, an http or https URL without query, for
// example https://control.example/v1/barrier/edge. Close it to end its watches.
func NewClient(base string, o ClientOptions) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("address of the barrier: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("address of the barrier %q: it is to be http:// or https://, and a host", u.Redacted())
	}
	if u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("address of the barrier %q: it may not have a query, a fragment or a user", u.Redacted())
	}
	c := &Client{
		base: strings.TrimRight(u.String(), "/"), authorize: o.Authorize,
		timeout: o.Timeout, transfer: o.TransferTimeout, word: rand.Text(),
	}
	if c.timeout <= 0 {
		c.timeout = 10 * time.Second
	}
	if c.transfer <= 0 {
		c.transfer = time.Minute
	}
	hc := o.HTTP
	if hc == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.MaxResponseHeaderBytes = 64 << 10
		t.IdleConnTimeout = 30 * time.Second
		t.MaxIdleConnsPerHost = 4
		t.DisableCompression = true
		hc, c.own = &http.Client{Transport: t}, true
	}
	own := *hc
	own.Timeout = 0
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = &own
	return c, nil
}

// Close ends all watches, closes their channels and waits until no request of theirs is under way.
func (c *Client) Close() {
	c.watches.close()
	if c.own {
		c.http.CloseIdleConnections()
	}
}

// call is one request and what its answer may be.
type call struct {
	method, path string
	query        url.Values
	contentType  string // of body
	body         []byte
	timeout      time.Duration
	want         string // the content type of a success
	limit        int    // its body's, in bytes
}

// do makes the call once and returns the answer's status, 200 or 204, and its whole body.
func (c *Client) do(ctx context.Context, q call) (int, []byte, error) {
	fail := func(err error) (int, []byte, error) {
		return 0, nil, fmt.Errorf("barrier at %s: %w", c.base, err)
	}
	ctx, cancel := context.WithTimeout(ctx, q.timeout)
	defer cancel()
	target := c.base + q.path
	if len(q.query) > 0 {
		target += "?" + q.query.Encode()
	}
	var body io.Reader
	if q.body != nil {
		body = bytes.NewReader(q.body)
	}
	req, err := http.NewRequestWithContext(ctx, q.method, target, body)
	if err != nil {
		return fail(err)
	}
	req.GetBody = nil // so that the transport cannot send a write again
	if q.contentType != "" {
		req.Header.Set("Content-Type", q.contentType)
	}
	req.Header.Set("Accept", q.want+", application/problem+json")
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("Cache-Control", "no-store")
	word := c.word + "-" + strconv.FormatUint(c.sent.Add(1), 36)
	req.Header.Set(headerRequest, word)
	if c.authorize != nil {
		if err := c.authorize(req); err != nil {
			return fail(fmt.Errorf("credentials: %w", err))
		}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fail(err)
	}
	defer resp.Body.Close()
	mine := resp.Header.Get(headerAnswer) == word
	switch {
	case mine && resp.StatusCode == http.StatusOK:
	case mine && resp.StatusCode == http.StatusNoContent:
		return resp.StatusCode, nil, nil
	default:
		return fail(c.problem(resp, mine))
	}
	if ct, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); ct != q.want {
		return fail(fmt.Errorf("answer of type %.40q, not %s", ct, q.want))
	}
	// A body that ends when its connection does could have been cut.
	if resp.ContentLength < 0 {
		return fail(errors.New("answer of unknown length"))
	}
	if resp.ContentLength > int64(q.limit) {
		return fail(fmt.Errorf("answer of %d bytes, more than %d", resp.ContentLength, q.limit))
	}
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return fail(fmt.Errorf("answer: %w", err))
	}
	return resp.StatusCode, raw, nil
}

// problem turns an answer that is no success into an *Error. mine tells whether the handler made it.
func (c *Client) problem(resp *http.Response, mine bool) error {
	e := &Error{Status: resp.StatusCode}
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		e.Code, e.err = codeUnauthenticated, ErrUnauthenticated
		return e
	case !mine:
		e.Detail = fmt.Sprintf("answer of status %d that is not the handler's", resp.StatusCode)
		return e
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	var p problem
	if ct, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); err != nil || len(raw) > maxAnswer ||
		ct != "application/problem+json" || json.Unmarshal(raw, &p, lenient) != nil || p.Status != resp.StatusCode {
		e.Detail = fmt.Sprintf("answer of status %d that cannot be read", resp.StatusCode)
		return e
	}
	e.Code, e.Detail, e.err = p.Code, p.Detail, p.rebuild()
	if n, err := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 16); err == nil {
		e.RetryAfter = time.Duration(n) * time.Second
	}
	if e.err == nil && e.Code != "" {
		e.Detail = fmt.Sprintf("%s (%s)", e.Detail, e.Code)
	}
	return e
}

// ask makes a call that answers JSON, and reads it into out.
func (c *Client) ask(ctx context.Context, q call, out any) error {
	q.want = "application/json"
	if q.limit == 0 {
		q.limit = maxAnswer
	}
	if q.timeout == 0 {
		q.timeout = c.timeout
	}
	status, raw, err := c.do(ctx, q)
	if err != nil {
		return err
	}
	if status != http.StatusOK {
		return fmt.Errorf("barrier at %s: %s %s: answer of status %d where there is something to say", c.base, q.method, q.path, status)
	}
	if err := json.Unmarshal(raw, out, lenient); err != nil {
		return fmt.Errorf("barrier at %s: %s %s: answer: %w", c.base, q.method, q.path, err)
	}
	return nil
}

// post sends b, of at most limit bytes as JSON, and reads the answer, which may be as long, into out.
func (c *Client) post(ctx context.Context, path string, b any, limit int, out any) error {
	raw, err := encode(b)
	if err != nil {
		return err
	}
	if len(raw) > limit {
		return invalid("the call has %d bytes, more than %d", len(raw), limit)
	}
	q := call{method: http.MethodPost, path: path, contentType: "application/json", body: raw, limit: max(limit, maxAnswer)}
	return c.ask(ctx, q, out)
}

// write is a post whose answer says no more than that it was done.
func (c *Client) write(ctx context.Context, path string, b any) error {
	return c.post(ctx, path, b, maxRequest, &doneAnswer{})
}

// suspect is for an answer that came from the handler and does not answer the call.
func (c *Client) suspect(path string) error {
	return fmt.Errorf("barrier at %s: %s: %w", c.base, path, errors.New("the answer is about something else"))
}
