package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

// roundTrip answers every request of a client.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func nodeClientOf(t *testing.T, f roundTrip) *NodeClient {
	t.Helper()
	c, err := NewNodeClient("http://control.example", "gdn_x", &http.Client{Transport: f})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// body gives n bytes every so often, and ends with ctx as a connection's body does.
type body struct {
	ctx   context.Context
	every time.Duration
	n     int
	total int
}

func (b *body) Read(p []byte) (int, error) {
	if b.total == 0 {
		return 0, io.EOF
	}
	if b.every > 0 {
		select {
		case <-time.After(b.every):
		case <-b.ctx.Done():
			return 0, b.ctx.Err()
		}
	}
	n := min(len(p), b.n, b.total)
	b.total -= n
	return n, nil
}

func (b *body) Close() error { return nil }

func artefactHeader() http.Header {
	h := http.Header{}
	seal.WriteHeader(h, seal.Artefact{
		Sealed: seal.Sealed{
			Version: 3, ContentHash: strings.Repeat("a", 64), Signature: strings.Repeat("b", 128), KeyID: "0123456789abcdef",
		},
		Activation: seal.SignedActivation("e30." + strings.Repeat("c", 128)),
	})
	h.Set("Content-Type", "application/octet-stream")
	return h
}

func TestNodeClientTransfer(t *testing.T) {
	for _, row := range []struct {
		name    string
		body    body
		length  int64
		max     int64
		err     error
		code    string
		want    int
		noMore  time.Duration // how long it may take
		skipped bool
	}{
		{name: "whole", body: body{n: 1000, total: 5000}, length: 5000, max: 1 << 20, want: 5000},
		{name: "slow but above the floor", body: body{every: time.Second, n: 2048, total: 200 << 10}, length: -1, max: 1 << 20, want: 200 << 10, noMore: 3 * time.Minute},
		{name: "trickle", body: body{every: time.Second, n: 1, total: 1 << 20}, length: -1, max: 1 << 20, err: ErrTooSlow, noMore: time.Minute},
		{name: "stalls after a burst", body: body{every: time.Hour, n: 1 << 20, total: 2 << 20}, length: -1, max: 4 << 20, err: ErrTooSlow, noMore: time.Minute},
		{name: "one byte too many", body: body{n: 1 << 10, total: 1<<20 + 1}, length: -1, max: 1 << 20, code: "too_large"},
		{name: "said to be too large", body: body{n: 1, total: 1}, length: 1<<20 + 1, max: 1 << 20, code: "too_large"},
		{name: "just fits", body: body{n: 1 << 10, total: 1 << 20}, length: -1, max: 1 << 20, want: 1 << 20},
		{name: "refused before", body: body{every: time.Hour, n: 1, total: 1}, length: -1, max: 1 << 20, skipped: true, noMore: time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				read := row.body
				c := nodeClientOf(t, func(r *http.Request) (*http.Response, error) {
					if r.Header.Get("Accept-Encoding") != "identity" || r.Header.Get("Authorization") != "Bearer gdn_x" {
						t.Errorf("request headers %v", r.Header)
					}
					read.ctx = r.Context()
					return &http.Response{
						StatusCode: 200, Status: "200 OK", Header: artefactHeader(), Body: &read, ContentLength: row.length, Request: r,
					}, nil
				})
				c.maxPayload = row.max
				q := nodeproto.Poll{}
				if row.skipped {
					a, err := seal.ReadHeader(artefactHeader())
					if err != nil {
						t.Fatal(err)
					}
					q.Rejected = nodeproto.Fingerprint(&a)
				}
				start := time.Now()
				a, err := c.Poll(t.Context(), q)
				if took := time.Since(start); row.noMore > 0 && took > row.noMore {
					t.Errorf("took %s", took)
				}
				var refusal *seal.Refusal
				switch {
				case row.err != nil:
					if !errors.Is(err, row.err) {
						t.Errorf("error %v, want %v", err, row.err)
					}
				case row.code != "":
					if !errors.As(err, &refusal) || refusal.Code != row.code {
						t.Errorf("error %v, want a refusal %s", err, row.code)
					}
					if got := row.body.total - read.total; int64(got) > row.max+1 {
						t.Errorf("%d bytes were read, at most %d may be", got, row.max+1)
					}
				case err != nil:
					t.Error(err)
				case row.skipped:
					if !a.Skipped || a.Artefact != nil || read.total != row.body.total {
						t.Errorf("answer %+v", a)
					}
				case a.Artefact == nil || len(a.Artefact.Payload) != row.want || a.Version != 3:
					t.Errorf("answer %+v", a)
				}
			})
		})
	}
}

func TestNodeClientAnswers(t *testing.T) {
	doubled := artefactHeader()
	doubled.Add(seal.HeaderKeyID, "0123456789abcdef")
	missing := artefactHeader()
	missing.Del(seal.HeaderActivation)
	html := artefactHeader()
	html.Set("Content-Type", "text/html")
	for _, row := range []struct {
		name    string
		status  int
		header  http.Header
		body    string
		version uint64
		refusal bool
		problem int
		fails   bool
	}{
		{name: "current", status: 204, header: http.Header{http.CanonicalHeaderKey(seal.HeaderVersion): {"7"}}, version: 7},
		{name: "nothing published", status: 204},
		{name: "version twice", status: 204, header: http.Header{http.CanonicalHeaderKey(seal.HeaderVersion): {"7", "8"}}, refusal: true},
		{name: "version not a number", status: 204, header: http.Header{http.CanonicalHeaderKey(seal.HeaderVersion): {"1e2"}}, fails: true},
		{name: "key id twice", status: 200, header: doubled, refusal: true},
		{name: "no activation", status: 200, header: missing, refusal: true},
		{name: "not a payload", status: 200, header: html, fails: true},
		{name: "ahead", status: 409, header: http.Header{"Content-Type": {"application/problem+json"}}, body: `{"code":"node_ahead","title":"Conflict"}`, problem: 409},
		{name: "a proxy's page", status: 502, header: http.Header{"Content-Type": {"text/html"}}, body: "<html>", problem: 502},
		{name: "a redirect", status: 302, header: http.Header{"Location": {"http://elsewhere.example/"}}, problem: 302},
		{name: "another success", status: 206, header: artefactHeader(), fails: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			asked := 0
			c := nodeClientOf(t, func(r *http.Request) (*http.Response, error) {
				asked++
				if row.header == nil {
					row.header = http.Header{}
				}
				return &http.Response{StatusCode: row.status, Status: http.StatusText(row.status), Header: row.header, Body: io.NopCloser(strings.NewReader(row.body)), Request: r}, nil
			})
			a, err := c.Poll(t.Context(), nodeproto.Poll{})
			if asked != 1 {
				t.Errorf("asked %d times", asked)
			}
			var (
				refusal *seal.Refusal
				e       *Error
			)
			switch {
			case row.refusal:
				if !errors.As(err, &refusal) {
					t.Errorf("%+v, %v: want a refusal", a, err)
				}
			case row.problem != 0:
				if !errors.As(err, &e) || e.Status != row.problem || e.Code == "" {
					t.Errorf("%+v, %v: want a problem %d", a, err, row.problem)
				}
			case row.fails:
				if err == nil {
					t.Errorf("%+v was taken", a)
				}
			case err != nil || a.Version != row.version || a.Artefact != nil:
				t.Errorf("%+v, %v", a, err)
			}
		})
	}
}

// A control plane that says nothing does not hold a node for longer than the poll may take.
func TestNodeClientSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := nodeClientOf(t, func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		})
		start := time.Now()
		_, err := c.Poll(t.Context(), nodeproto.Poll{Wait: 55 * time.Second})
		if took := time.Since(start); err == nil || took != 55*time.Second+answerSlack || !strings.Contains(err.Error(), "no answer") {
			t.Errorf("gave up after %s: %v", took, err)
		}
	})
}

// TestNodeClientToken: a token that is no node's is told as such, whatever the answer's own words are for.
func TestNodeClientToken(t *testing.T) {
	for _, row := range []struct {
		name, problem string
		status        int
		says, not     string
	}{
		{"none such", `{"code":"unauthenticated","detail":"A valid token is needed."}`, http.StatusUnauthorized, "no node has this token; GUARDYN_NODE_TOKEN", ""},
		{"a person's", `{"code":"not_found","detail":"There is nothing at this path."}`, http.StatusNotFound, "no node has this token; GUARDYN_NODE_TOKEN", ""},
		{"another fault", `{"code":"busy","detail":"try again"}`, http.StatusServiceUnavailable, "try again", "GUARDYN_NODE_TOKEN"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := nodeClientOf(t, func(*http.Request) (*http.Response, error) {
				return &http.Response{
					StatusCode: row.status, Header: http.Header{"Content-Type": {"application/problem+json"}},
					Body: io.NopCloser(strings.NewReader(row.problem)),
				}, nil
			})
			_, polled := c.Poll(t.Context(), nodeproto.Poll{})
			for what, err := range map[string]error{"poll": polled, "ack": c.Ack(t.Context(), nodeproto.Ack{})} {
				if err == nil || !strings.Contains(err.Error(), row.says) || row.not != "" && strings.Contains(err.Error(), row.not) {
					t.Errorf("%s: %v, want one that says %q", what, err, row.says)
				}
			}
		})
	}
}

func TestNewClientRefuses(t *testing.T) {
	for name, row := range map[string]struct{ url, token string }{
		"no scheme":      {"127.0.0.1:8080", "gdn_x"},
		"another scheme": {"ftp://host", "gdn_x"},
		"no host":        {"http://", "gdn_x"},
		"query":          {"http://host/?a=1", "gdn_x"},
		"user":           {"http://a:b@host/", "gdn_x"},
		"line end":       {"http://host", "gdn_x\n"},
		"space":          {"http://host", "gdn x"},
	} {
		if _, err := NewClient(row.url, row.token, nil); err == nil {
			t.Errorf("%s: accepted", name)
		} else if strings.Contains(err.Error(), "a:b") {
			t.Errorf("%s: the error tells a password: %v", name, err)
		}
	}
}

func TestErrorPrintsInert(t *testing.T) {
	e := &Error{Status: 422, Code: "problems", Detail: "bad\x1b[31m", Errors: []Problem{
		{Zone: "a\r\nb.example", Object: "record \u202e", Message: "line\u2028end\u009b", Line: 3, Code: "x"},
	}}
	got := e.Error()
	want := `bad\u001b[31m` + "\n" + `  a\u000d\u000ab.example: record \u202e: line 3: line\u2028end\u009b`
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
