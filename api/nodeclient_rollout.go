package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

// headerMargin carries by how much the share of 5xx answers may rise while a candidate is on trial, in hundredths of a
// percentage point.
const headerMargin = "x-guardyn-rollout-margin"

// maxMargin is 100 percentage points.
const maxMargin = 100 * 100

// Self asks the control plane who this node is.
func (n *NodeClient) Self(ctx context.Context) (nodeproto.Self, error) {
	ctx, cancel := context.WithTimeout(ctx, answerSlack)
	defer cancel()
	self, err := get[nodeproto.Self](ctx, n.c, "/v1/node/self", nil)
	if err != nil {
		return nodeproto.Self{}, err
	}
	return *self, nil
}

// Candidate fetches what the open rollout carries under digest. Nothing of it is verified. The error is a
// barrier.ErrNoArtefact when the control plane has none for this node, and a *seal.Refusal when an answer came whose envelope is
// malformed or whose payload is over [seal.MaxPayload].
func (n *NodeClient) Candidate(ctx context.Context, digest string) (nodeproto.Candidate, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	first := time.AfterFunc(answerSlack, func() {
		cancel(fmt.Errorf("no answer from the control plane at %s within %s", n.c.base, answerSlack))
	})
	resp, err := n.c.send(ctx, request{
		method: http.MethodGet, path: "/v1/node/candidate", query: url.Values{"digest": {digest}},
		header: http.Header{"Accept-Encoding": {"identity"}},
	})
	if !first.Stop() && err == nil {
		resp.Body.Close()
	}
	if cause := context.Cause(ctx); cause != nil && err == nil {
		return nodeproto.Candidate{}, cause
	}
	var e *Error
	if errors.As(err, &e) && e.Status == http.StatusNotFound {
		return nodeproto.Candidate{}, fmt.Errorf("%w: the control plane at %s has no open rollout for this node that carries %s", barrier.ErrNoArtefact, n.c.base, clip(digest))
	}
	if err != nil {
		return nodeproto.Candidate{}, causeOf(ctx, err)
	}
	defer resp.Body.Close()
	c, err := candidateHeader(resp)
	if err != nil {
		return nodeproto.Candidate{}, fmt.Errorf("candidate from the control plane at %s: %w", n.c.base, err)
	}
	c.Payload, err = n.payload(ctx, cancel, resp)
	return c, err
}

// candidateHeader reads the envelope of a candidate, which has no activation.
func candidateHeader(resp *http.Response) (nodeproto.Candidate, error) {
	if ct := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || ct != "application/octet-stream" {
		return nodeproto.Candidate{}, fmt.Errorf("answer %s with content of type %q", resp.Status, inert(ct))
	}
	if _, there := resp.Header[http.CanonicalHeaderKey(seal.HeaderActivation)]; there {
		return nodeproto.Candidate{}, &seal.Refusal{Code: seal.CodeEnvelopeMismatch, Message: "it carries an activation: what is activated is no candidate"}
	}
	h := resp.Header.Clone()
	h.Set(seal.HeaderActivation, "none")
	a, err := seal.ReadHeader(h)
	if err != nil {
		return nodeproto.Candidate{}, err
	}
	text, err := oneHeader(h, headerMargin)
	if err != nil {
		return nodeproto.Candidate{}, err
	}
	margin, err := parseDecimal(text)
	if err != nil || margin > maxMargin {
		return nodeproto.Candidate{}, fmt.Errorf("%s: %q is not a number from 0 to %d", headerMargin, clip(text), maxMargin)
	}
	return nodeproto.Candidate{Sealed: a.Sealed, Margin: int(margin)}, nil
}
