package remote

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// Current implements barrier.Reader, for coordinators and operators.
func (c *Client) Current(ctx context.Context) (barrier.Row, error) {
	var row barrier.Row
	if err := c.ask(ctx, call{method: http.MethodGet, path: "/row", limit: maxRow}, &row); err != nil {
		return barrier.Row{}, err
	}
	if row.Now.IsZero() {
		return barrier.Row{}, c.suspect("/row")
	}
	return row, nil
}

// Look implements barrier.Reader; a member's credentials look for that member only.
func (c *Client) Look(ctx context.Context, m barrier.MemberID) (barrier.View, error) {
	var v barrier.View
	q := call{method: http.MethodGet, path: "/view", query: url.Values{"member": {string(m)}}}
	if err := c.ask(ctx, q, &v); err != nil {
		return barrier.View{}, err
	}
	if v.Now.IsZero() {
		return barrier.View{}, c.suspect("/view")
	}
	return v, nil
}

// Join implements barrier.Voter, for m's own credentials.
func (c *Client) Join(ctx context.Context, m barrier.MemberID, boot barrier.BootID, incarnation uint64) (barrier.Registration, error) {
	if err := barrier.CheckMember(m, boot); err != nil {
		return barrier.Registration{}, err
	}
	var reg barrier.Registration
	if err := c.post(ctx, "/join", joinBody{m, boot, incarnation}, maxRequest, &reg); err != nil {
		return barrier.Registration{}, err
	}
	if reg.Boot != boot {
		return barrier.Registration{}, c.suspect("/join")
	}
	return reg, nil
}

// Ack implements barrier.Voter, for m's own credentials.
func (c *Client) Ack(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, buildDigest string) error {
	return c.write(ctx, "/ack", voteBody{refBody{r}, m, boot, buildDigest})
}

// Nack implements barrier.Voter, for m's own credentials.
func (c *Client) Nack(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, reason string) error {
	return c.write(ctx, "/nack", reasonBody{refBody{r}, m, boot, clip(reason, barrier.MaxReasonBytes)})
}

// Converge implements barrier.Voter, for m's own credentials.
func (c *Client) Converge(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, detail string) error {
	return c.write(ctx, "/converge", convergeBody{refBody{r}, m, boot, clip(detail, barrier.MaxReasonBytes)})
}

// Withdraw implements barrier.Voter, for m's own credentials.
func (c *Client) Withdraw(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, reason string) error {
	return c.write(ctx, "/withdraw", reasonBody{refBody{r}, m, boot, clip(reason, barrier.MaxReasonBytes)})
}

// Claim implements barrier.Decider, for coordinators.
func (c *Client) Claim(ctx context.Context, t barrier.Token) error {
	return c.write(ctx, "/claim", claimBody{t})
}

// Commit implements barrier.Decider, for coordinators.
func (c *Client) Commit(ctx context.Context, r barrier.Ref, t barrier.Token) error {
	return c.write(ctx, "/commit", decideBody{refBody{r}, t})
}

// Confirm implements barrier.Decider, for coordinators.
func (c *Client) Confirm(ctx context.Context, r barrier.Ref, t barrier.Token) error {
	return c.write(ctx, "/confirm", decideBody{refBody{r}, t})
}

// Abort implements barrier.Decider: by claim for coordinators, by an operator for himself.
func (c *Client) Abort(ctx context.Context, r barrier.Ref, by barrier.Authority, reason string) error {
	return c.write(ctx, "/abort", endBody{refBody{r}, by, clip(reason, barrier.MaxReasonBytes)})
}

// Revert implements barrier.Decider and barrier.Voter: by claim for coordinators, by an operator for himself, by a
// deadman for its member.
func (c *Client) Revert(ctx context.Context, r barrier.Ref, by barrier.Authority, reason string) error {
	return c.write(ctx, "/revert", endBody{refBody{r}, by, clip(reason, barrier.MaxReasonBytes)})
}

// Propose implements barrier.Proposing, for coordinators, and for operators in their own name.
func (c *Client) Propose(ctx context.Context, p barrier.Proposal) (barrier.Rollout, error) {
	var ro barrier.Rollout
	if err := c.post(ctx, "/propose", p, maxRequest, &ro); err != nil {
		return barrier.Rollout{}, err
	}
	if ro.ID != p.ID || ro.Generation == 0 {
		return barrier.Rollout{}, c.suspect("/propose")
	}
	return ro, nil
}

// SetRoster implements barrier.Proposing, for coordinators and operators.
func (c *Client) SetRoster(ctx context.Context, revision uint64, members []barrier.MemberID) (barrier.Roster, error) {
	var r barrier.Roster
	if err := c.post(ctx, "/roster", rosterBody{revision, members}, maxRoster, &r); err != nil {
		return barrier.Roster{}, err
	}
	if r.Revision == 0 || len(r.Members) != len(members) {
		return barrier.Roster{}, c.suspect("/roster")
	}
	return r, nil
}

// AdoptBaseline implements barrier.Proposing, for coordinators and operators.
func (c *Client) AdoptBaseline(ctx context.Context, p barrier.Pointer) (barrier.BaselineOutcome, error) {
	var a baselineAnswer
	if err := c.post(ctx, "/baseline", p, maxRequest, &a); err != nil {
		return barrier.BaselineFailed, err
	}
	switch a.Outcome {
	case barrier.BaselineAdopted, barrier.BaselineVerified, barrier.BaselineSuperseded:
		return a.Outcome, nil
	default:
		return barrier.BaselineFailed, c.suspect("/baseline")
	}
}

// Acquire implements barrier.Leases, for coordinators. A ttl with a part of a millisecond becomes longer.
func (c *Client) Acquire(ctx context.Context, holder string, ttl time.Duration) (barrier.Lease, error) {
	if err := barrier.CheckLease(holder, ttl); err != nil {
		return barrier.Lease{}, err
	}
	var l barrier.Lease
	if err := c.post(ctx, "/lease/acquire", acquireBody{holder, wholeMilliseconds(ttl)}, maxRequest, &l); err != nil {
		return barrier.Lease{}, err
	}
	if l.Token == 0 || l.Holder != holder {
		return barrier.Lease{}, c.suspect("/lease/acquire")
	}
	return l, nil
}

// Renew implements barrier.Leases, for coordinators.
func (c *Client) Renew(ctx context.Context, l barrier.Lease) error {
	if err := barrier.CheckLease(l.Holder, l.TTL); err != nil {
		return err
	}
	l.TTL = wholeMilliseconds(l.TTL)
	return c.write(ctx, "/lease/renew", l)
}

// Release implements barrier.Leases, for coordinators.
func (c *Client) Release(ctx context.Context, l barrier.Lease) error {
	l.TTL = wholeMilliseconds(l.TTL)
	return c.write(ctx, "/lease/release", l)
}

// Put implements barrier.Artefacts, for coordinators and operators.
func (c *Client) Put(ctx context.Context, d barrier.Digest, artefact []byte) error {
	if len(artefact) > barrier.MaxArtefactBytes {
		return invalid("the artefact has %d bytes, more than %d", len(artefact), barrier.MaxArtefactBytes)
	}
	if artefact == nil {
		artefact = []byte{}
	}
	return c.ask(ctx, call{
		method: http.MethodPut, path: "/artefact", query: url.Values{"digest": {string(d)}},
		contentType: "application/octet-stream", body: artefact, timeout: c.transfer,
	}, &doneAnswer{})
}

// Get implements barrier.Artefacts, for coordinators, and for members of what the row names.
func (c *Client) Get(ctx context.Context, d barrier.Digest) ([]byte, error) {
	status, raw, err := c.do(ctx, call{
		method: http.MethodGet, path: "/artefact", query: url.Values{"digest": {string(d)}},
		timeout: c.transfer, want: "application/octet-stream", limit: barrier.MaxArtefactBytes,
	})
	if err != nil {
		return nil, err
	}
	if status != http.StatusOK {
		return nil, c.suspect("/artefact")
	}
	return raw, nil
}
