package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

// Bounds of a node's exchange with the control plane.
const (
	// answerSlack is how long after the end of a long poll the first byte of the answer may come.
	answerSlack = 30 * time.Second
	// A payload that brings fewer than transferFloor bytes in a transferWindow (1 KiB/s) is aborted, so that
	// a source that trickles cannot hold the node on an old version for ever.
	transferWindow = 30 * time.Second
	transferFloor  = 30 << 10
	// maxNodeProblem bounds in bytes what is read of an answer that is an error.
	maxNodeProblem = 64 << 10
)

// headerTrustedKeys carries the ids of the keys that a node trusts, separated by commas, with each poll.
const headerTrustedKeys = "x-guardyn-config-trusted-keys"

// ErrTooSlow is why a transfer was aborted that fell under 1 KiB/s over 30 s.
var ErrTooSlow = errors.New("transfer slower than 1 KiB/s over 30 s")

// NodeClient is a node's side of the node protocol over HTTP. It is safe for concurrent use.
type NodeClient struct {
	c *Client
	// maxPayload is seal.MaxPayload but in tests.
	maxPayload int64
}

// NewNodeClient returns a client that speaks for the node whose token it is. hc is as in [NewClient].
func NewNodeClient(baseURL, token string, hc *http.Client) (*NodeClient, error) {
	if hc == nil {
		// Without a limit for the first byte, which would cut a long poll short: Poll sets its own.
		hc = &http.Client{Transport: http.DefaultTransport.(*http.Transport).Clone()}
	}
	c, err := NewClient(baseURL, token, hc)
	if err != nil {
		return nil, err
	}
	c.problem = maxNodeProblem
	return &NodeClient{c: c, maxPayload: seal.MaxPayload}, nil
}

// Poll asks for what is newer than p says. A *[seal.Refusal] means that an answer came whose envelope is
// malformed or whose payload is over [seal.MaxPayload]; an *[Error] that the control plane answered something
// else than 204 and 200 (409: this node is ahead of it). Not more than MaxPayload + 1 bytes are read.
func (n *NodeClient) Poll(ctx context.Context, p nodeproto.Poll) (nodeproto.Answer, error) {
	// What remains allocated for the transfer ends with Poll; the cause says which limit cut it off.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	q := url.Values{
		"have":       {strconv.FormatUint(p.Have, 10)},
		"generation": {strconv.FormatUint(p.Generation, 10)},
		"epoch":      {strconv.FormatUint(p.Epoch, 10)},
	}
	if p.Nonce != "" {
		q.Set("nonce", p.Nonce)
	}
	if p.Wait > 0 {
		q.Set("wait", strconv.FormatInt(int64(p.Wait/time.Second), 10))
	}
	// A control plane from before rollouts refuses parameters that it does not know; it has nobody say them.
	if p.Held != "" {
		q.Set("held", p.Held)
	}
	if p.Trial != "" {
		q.Set("trial", p.Trial)
	}
	// Payloads are compressed and signed as they travel: nothing on the way may recode them. Headers, since a control plane
	// that does not know of dictionaries refuses a parameter.
	h := http.Header{"Accept-Encoding": {"identity"}}
	if p.Dictionary != (seal.DictionaryID{}) {
		h = dictionaryHeaders(p.Dictionary)
	}
	if len(p.TrustedKeys) > 0 {
		ids := make([]string, len(p.TrustedKeys))
		for i, id := range p.TrustedKeys {
			ids[i] = string(id)
		}
		h.Set(headerTrustedKeys, strings.Join(ids, ","))
	}

	if p.Purged != "" {
		h.Set(headerPurges, p.Purged)
	}

	limit := p.Wait + answerSlack
	first := time.AfterFunc(limit, func() {
		cancel(fmt.Errorf("no answer from the control plane at %s within %s", n.c.base, limit))
	})
	resp, err := n.c.send(ctx, request{method: http.MethodGet, path: "/v1/node/config", query: q, header: h})
	if !first.Stop() && err == nil {
		resp.Body.Close()
	}
	if cause := context.Cause(ctx); cause != nil && err == nil {
		return nodeproto.Answer{}, cause
	}
	if err != nil {
		return nodeproto.Answer{}, n.refused(causeOf(ctx, err))
	}
	defer resp.Body.Close()
	return n.read(ctx, cancel, resp, p)
}

// read takes a 204 or 200 apart.
func (n *NodeClient) read(ctx context.Context, cancel context.CancelCauseFunc, resp *http.Response, p nodeproto.Poll) (nodeproto.Answer, error) {
	freshness, err := oneHeader(resp.Header, seal.HeaderFreshness)
	if err != nil {
		return nodeproto.Answer{}, err
	}
	ans := nodeproto.Answer{Freshness: freshness, Purges: resp.Header.Get(headerPurges)}
	switch resp.StatusCode {
	case http.StatusNoContent:
		v, err := oneHeader(resp.Header, seal.HeaderVersion)
		if err != nil || v == "" {
			return ans, err
		}
		if ans.Version, err = parseDecimal(v); err != nil {
			return ans, fmt.Errorf("%s: %w", seal.HeaderVersion, err)
		}
		return ans, nil
	case http.StatusOK:
	default:
		return ans, fmt.Errorf("control plane at %s answered a poll with %s", n.c.base, resp.Status)
	}
	if ct := resp.Header.Get("Content-Type"); ct != "application/octet-stream" {
		return ans, fmt.Errorf("control plane at %s answered a poll with content of type %q", n.c.base, inert(ct))
	}
	a, err := seal.ReadHeader(resp.Header)
	if err != nil {
		return ans, err
	}
	ans.Version = a.Version
	if p.Rejected != "" && nodeproto.Fingerprint(&a) == p.Rejected {
		ans.Skipped = true
		return ans, nil // closing the body unread gives the connection up
	}
	ans.Artefact = &a
	// No artefact is empty, so this says that the node has it. Whether that is so the activation tells.
	if ans.Held = p.Held != "" && resp.ContentLength == 0; ans.Held {
		return ans, nil
	}
	coded, err := isCoded(resp.Header, p.Dictionary)
	if err != nil {
		return nodeproto.Answer{}, fmt.Errorf("control plane at %s: %w", n.c.base, err)
	}
	body, err := n.payload(ctx, cancel, resp)
	switch {
	case err != nil:
		ans.Artefact = nil
		return ans, err
	case coded:
		// Whatever the signature is: Decode judges it, and the node asks for the whole payload then.
		ans.Coding = &seal.Coding{Body: body, Signature: resp.Header.Get(seal.HeaderCoding)}
	default:
		a.Payload = body
	}
	return ans, nil
}

// payload reads the body of resp, which must keep up a pace.
func (n *NodeClient) payload(ctx context.Context, cancel context.CancelCauseFunc, resp *http.Response) ([]byte, error) {
	if resp.ContentLength > n.maxPayload {
		return nil, n.tooLarge()
	}
	body := paced{r: resp.Body}
	stop := body.watch(func() { cancel(ErrTooSlow) })
	defer stop()
	payload, err := io.ReadAll(io.LimitReader(&body, n.maxPayload+1))
	if err != nil {
		return nil, fmt.Errorf("payload from the control plane at %s: %w", n.c.base, causeOf(ctx, err))
	}
	if int64(len(payload)) > n.maxPayload {
		return nil, n.tooLarge()
	}
	return payload, nil
}

func (n *NodeClient) tooLarge() error {
	return &seal.Refusal{Code: "too_large", Message: fmt.Sprintf("the payload is larger than %d bytes", n.maxPayload)}
}

// Ack reports what this node serves.
func (n *NodeClient) Ack(ctx context.Context, a nodeproto.Ack) error {
	ctx, cancel := context.WithTimeout(ctx, answerSlack)
	defer cancel()
	_, err := n.c.do(ctx, request{method: http.MethodPost, path: "/v1/node/ack", body: a}, nil)
	return n.refused(err)
}

// refused marks the answer that says that this node is ahead of the control plane, and says what to look at when its token does not
// count: there is none such (401), or it is a person's, for whom there is nothing at a node's paths (404).
func (n *NodeClient) refused(err error) error {
	var e *Error
	switch {
	case !errors.As(err, &e):
	case e.Status == http.StatusConflict && e.Code == "node_ahead":
		return fmt.Errorf("%w: %w", nodeproto.ErrAhead, err)
	case e.Code == "unauthenticated" || e.Code == "not_found":
		return fmt.Errorf("control plane at %s: no node has this token; GUARDYN_NODE_TOKEN is what gdn node add printed: %w", n.c.base, err)
	}
	return err
}

// paced counts what is read of a body.
type paced struct {
	r io.Reader
	n atomic.Int64
}

func (p *paced) Read(b []byte) (int, error) {
	n, err := p.r.Read(b)
	p.n.Add(int64(n))
	return n, err
}

// watch calls slow once when a window passes that brought too little. The returned function ends the watch
// and waits for nothing: slow may be called at most once after it, when both happen at once.
func (p *paced) watch(slow func()) (stop func() bool) {
	var seen int64
	var t *time.Timer
	ready := make(chan struct{})
	t = time.AfterFunc(transferWindow, func() {
		<-ready
		now := p.n.Load()
		if now-seen < transferFloor {
			slow()
			return
		}
		seen = now
		t.Reset(transferWindow)
	})
	close(ready)
	return t.Stop
}

// causeOf prefers the cause of ctx's end over what it made of an exchange.
func causeOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil && !errors.Is(err, cause) {
		return cause
	}
	return err
}

// oneHeader returns the value of a header that may appear once, or "".
func oneHeader(h http.Header, name string) (string, error) {
	switch v := h.Values(name); len(v) {
	case 0:
		return "", nil
	case 1:
		return v[0], nil
	default:
		return "", &seal.Refusal{Code: "envelope_mismatch", Message: "the header " + name + " appears more than once"}
	}
}

// parseDecimal reads digits without a sign or leading zeros.
func parseDecimal(s string) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || s[0] == '+' || len(s) > 1 && s[0] == '0' {
		return 0, fmt.Errorf("%q is not a whole number from 0 to 18446744073709551615, in digits alone", clip(s))
	}
	return n, nil
}

// clip shortens what a message quotes.
func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}
