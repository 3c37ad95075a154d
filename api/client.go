package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"
)

// maxAnswer bounds in bytes what a client reads of one JSON answer; maxProblem of one that is an error.
const (
	maxAnswer  = 256 << 20
	maxProblem = 64 << 20
)

// Client speaks to a control plane. It is safe for concurrent use. Methods return *[Error] for every answer
// that is not a success.
type Client struct {
	base    string // without a trailing slash
	token   string
	http    *http.Client
	problem int64 // maxProblem, but for nodes
}

// NewClient returns a client of the control plane at baseURL (http or https, no query) that authenticates
// with token. hc may be nil: a client without a proxy for loopback addresses and with a time limit for
// connecting and for the first byte of an answer.
func NewClient(baseURL, token string, hc *http.Client) (*Client, error) {
	u, err := url.Parse(baseURL)
	if err != nil {
		return nil, fmt.Errorf("address of the control plane: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("address of the control plane %q: want http://host:port or https://host:port", baseURL)
	}
	if u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("address of the control plane %q: it may not have a query, a fragment or a user", u.Redacted())
	}
	for _, r := range token {
		if r <= ' ' || r >= 0x7f {
			return nil, errors.New("token: it holds a character that no token has; copy it again, without spaces and line ends")
		}
	}
	if hc == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.ResponseHeaderTimeout = 2 * time.Minute
		hc = &http.Client{Transport: t}
	}
	// A redirect would carry a write or the token to somewhere else; this API sends none.
	own := *hc
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{base: strings.TrimRight(u.String(), "/"), token: token, http: &own, problem: maxProblem}, nil
}

// path joins segments, each escaped whole.
func path(segments ...string) string {
	var b strings.Builder
	for _, s := range segments {
		b.WriteByte('/')
		b.WriteString(url.PathEscape(s))
	}
	return b.String()
}

// request is one exchange: body is nil, an io.Reader sent as contentType, or a value sent as JSON.
type request struct {
	method, path string
	query        url.Values
	header       http.Header
	contentType  string
	body         any
}

// send performs r and returns the answer when it is a success; the caller closes its body.
func (c *Client) send(ctx context.Context, r request) (*http.Response, error) {
	var body io.Reader
	switch b := r.body.(type) {
	case nil:
	case io.Reader:
		body = b
	default:
		buf, err := json.Marshal(b)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
		}
		body, r.contentType = bytes.NewReader(buf), "application/json"
	}
	target := c.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return nil, err
	}
	for k, v := range r.header {
		req.Header[k] = v
	}
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	req.Header.Set("Accept", "application/json, application/problem+json")
	req.Header.Set("User-Agent", "gdn")
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("control plane at %s: %w", c.base, err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		defer resp.Body.Close()
		return nil, c.readProblem(resp)
	}
	return resp, nil
}

// readProblem turns an answer that is not a success into its *Error.
func (c *Client) readProblem(resp *http.Response) error {
	raw, err := io.ReadAll(io.LimitReader(resp.Body, c.problem))
	e := &Error{}
	if ct, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";"); err == nil && ct == "application/problem+json" {
		if json.Unmarshal(raw, e) == nil && e.Code != "" {
			e.Status = resp.StatusCode
			return e
		}
	}
	return &Error{
		Type: "about:blank", Title: http.StatusText(resp.StatusCode), Status: resp.StatusCode, Code: "unexpected_answer",
		Detail: fmt.Sprintf("the control plane answered %s without saying why; check that the address is a control plane's", resp.Status),
	}
}

// do performs r and reads its JSON answer into out, unless out is nil. It returns the revision that the
// answer's ETag names, 0 when there is none.
func (c *Client) do(ctx context.Context, r request, out any) (revision int64, err error) {
	resp, err := c.send(ctx, r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	revision, _ = parseETag(resp.Header.Get("ETag"))
	if out == nil {
		_, err := io.Copy(io.Discard, io.LimitReader(resp.Body, c.problem))
		return revision, err
	}
	if ct, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";"); ct != "application/json" {
		return 0, fmt.Errorf("%s %s: answer of type %q where JSON was expected; check that %s is a control plane", r.method, r.path, inert(ct), c.base)
	}
	// Members that a later control plane adds are passed over.
	if err := json.UnmarshalRead(io.LimitReader(resp.Body, maxAnswer), out); err != nil {
		return 0, fmt.Errorf("%s %s: answer of the control plane: %w", r.method, r.path, err)
	}
	return revision, nil
}

// get reads path into a new T.
func get[T any](ctx context.Context, c *Client, path string, q url.Values) (*T, error) {
	out := new(T)
	if _, err := c.do(ctx, request{method: http.MethodGet, path: path, query: q}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// exchange sends body and reads the answer into a new T.
func exchange[T any](ctx context.Context, c *Client, method, path string, body any) (*T, error) {
	out := new(T)
	if _, err := c.do(ctx, request{method: method, path: path, body: body}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// values are the query parameters of o, added to q (which may be nil).
func (o PageOptions) values(q url.Values) url.Values {
	if q == nil {
		q = url.Values{}
	}
	if o.Limit != 0 {
		q.Set("limit", strconv.Itoa(o.Limit))
	}
	if o.Cursor != "" {
		q.Set("cursor", o.Cursor)
	}
	return q
}

func (o WriteOptions) header() http.Header {
	h := http.Header{}
	if o.IfRevision != 0 {
		h.Set("If-Match", formatETag(o.IfRevision))
	}
	if o.IfAbsent {
		h.Set("If-None-Match", "*")
	}
	return h
}

// formatETag and parseETag are the entity tag (RFC 9110 §8.8.3) of a revision: its decimal, quoted.
func formatETag(revision int64) string { return `"` + strconv.FormatInt(revision, 10) + `"` }

func parseETag(s string) (int64, bool) {
	if len(s) < 3 || s[0] != '"' || s[len(s)-1] != '"' {
		return 0, false
	}
	n, err := strconv.ParseInt(s[1:len(s)-1], 10, 64)
	return n, err == nil && n > 0 && formatETag(n) == s
}

// All iterates over a listing, asking for the next page when one is used up. It stops after the first error.
//
//	for z, err := range api.All(ctx, client.Zones) {
func All[T any](ctx context.Context, list func(context.Context, PageOptions) (*Page[T], error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		o := PageOptions{Limit: 1000}
		for {
			p, err := list(ctx, o)
			if err != nil {
				var zero T
				yield(zero, err)
				return
			}
			for _, v := range p.Items {
				if !yield(v, nil) {
					return
				}
			}
			if p.Next == "" || p.Next == o.Cursor {
				return
			}
			o.Cursor = p.Next
		}
	}
}

// newIdempotencyKey names one request, so that sending it again after a lost answer does not do it twice.
func newIdempotencyKey() string { return uuid.NewString() }
