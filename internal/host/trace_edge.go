package host

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/internal/telemetry"
)

// tracedVoter is the cohort as the node's member uses it. It watches what the member reads and says, and sends a span for each part that
// the node takes in a rollout: build, vote, swap, converge, revert.
type tracedVoter struct {
	barrier.Voter
	rollouts *telemetry.Rollouts
	tracer   *telemetry.Tracer
	now      func() time.Time

	mu   sync.Mutex
	node barrier.MemberID
	part part
}

// part is the node's in the newest rollout of whose epoch it is. The times are those at which this process learnt or did so; zero: not yet.
type part struct {
	barrier.Rollout
	asked, voted, committed, swapped, judged, revert, reverted time.Time
}

func (v *tracedVoter) Look(ctx context.Context, m barrier.MemberID) (barrier.View, error) {
	view, err := v.Voter.Look(ctx, m)
	if err == nil && view.Rollout != nil {
		v.rollouts.Note(string(view.Rollout.ID), view.Rollout.Generation)
		if view.InEpoch {
			v.saw(m, *view.Rollout)
		}
	}
	return view, err
}

func (v *tracedVoter) saw(m barrier.MemberID, ro barrier.Rollout) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.node = m
	if v.part.ID != ro.ID {
		v.part = part{}
	}
	p, now := &v.part, v.now()
	p.Rollout = ro
	first := func(t *time.Time, is bool) {
		if is && t.IsZero() {
			*t = now
		}
	}
	first(&p.asked, ro.Voting())
	first(&p.committed, ro.State == barrier.Committed || ro.State == barrier.Confirmed)
	first(&p.revert, ro.State == barrier.Reverted)
}

func (v *tracedVoter) Ack(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, buildDigest string) error {
	v.build(r, "")
	start := v.now()
	err := v.Voter.Ack(ctx, r, m, boot, buildDigest)
	v.send(r, "vote", start, text(err), slog.String("vote", string(barrier.Acked)))
	return err
}

func (v *tracedVoter) Nack(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, reason string) error {
	v.build(r, reason)
	start := v.now()
	err := v.Voter.Nack(ctx, r, m, boot, reason)
	v.send(r, "vote", start, text(err), slog.String("vote", string(barrier.Nacked)))
	return err
}

// build is from the first sight of the proposal to the first vote.
func (v *tracedVoter) build(r barrier.Ref, failed string) {
	v.mu.Lock()
	p := &v.part
	done := p.Ref != r || p.asked.IsZero() || !p.voted.IsZero()
	start := p.asked
	if !done {
		p.voted = v.now()
	}
	v.mu.Unlock()
	if !done {
		v.send(r, "build", start, failed)
	}
}

func (v *tracedVoter) Converge(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, detail string) error {
	err := v.Voter.Converge(ctx, r, m, boot, detail)
	if err == nil {
		v.judged(r, "", detail)
	}
	return err
}

func (v *tracedVoter) Withdraw(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, reason string) error {
	err := v.Voter.Withdraw(ctx, r, m, boot, reason)
	if err == nil {
		v.judged(r, reason, "")
	}
	return err
}

// judged is from the swap, or the decision when there was none, to the first evidence, and again to its withdrawal.
func (v *tracedVoter) judged(r barrier.Ref, failed, detail string) {
	v.mu.Lock()
	p := &v.part
	start := p.swapped
	if start.IsZero() {
		start = p.committed
	}
	done := p.Ref != r || start.IsZero() || failed == "" && !p.judged.IsZero()
	if !done {
		p.judged = v.now()
	}
	v.mu.Unlock()
	if !done {
		v.send(r, "converge", start, failed, slog.String("detail", detail))
	}
}

func (v *tracedVoter) Revert(ctx context.Context, r barrier.Ref, by barrier.Authority, reason string) error {
	v.mu.Lock()
	if p := &v.part; p.Ref == r && p.revert.IsZero() {
		p.revert = v.now()
	}
	v.mu.Unlock()
	return v.Voter.Revert(ctx, r, by, reason)
}

// swapped is told of every swap.
func (v *tracedVoter) swapped(generation uint64) {
	v.mu.Lock()
	p, now := &v.part, v.now()
	name, start := "", time.Time{}
	switch {
	case p.Generation == 0:
	case generation == p.Generation && p.swapped.IsZero() && !p.committed.IsZero():
		name, start, p.swapped = "swap", p.committed, now
	case generation != p.Generation && !p.swapped.IsZero() && p.reverted.IsZero() && (p.OnTrial() || !p.revert.IsZero()):
		// By guess, or by a poll that came before the member's look, it goes back before it learns that it is to.
		name, start, p.reverted = "revert", p.revert, now
		if start.IsZero() {
			start = now
		}
	}
	ref := p.Ref
	v.mu.Unlock()
	if name != "" {
		v.send(ref, name, start, "")
	}
}

func (v *tracedVoter) send(r barrier.Ref, name string, start time.Time, failed string, more ...slog.Attr) {
	v.mu.Lock()
	node, version := v.node, v.part.Version
	if v.part.Ref != r {
		version = 0
	}
	v.mu.Unlock()
	v.tracer.Part(string(r.ID), telemetry.Span{Name: name, Start: start, End: v.now(), Failed: failed, Attributes: append([]slog.Attr{
		slog.Uint64("generation", r.Generation), slog.Uint64("version", version), slog.String("node", string(node)),
	}, more...)})
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
