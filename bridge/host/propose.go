package host

import (
	"context"
	"errors"
	"fmt"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/source"
)

// judgement is what a coordinated member does about what its source holds.
type judgement string

// The judgements.
const (
	inStep   judgement = "in step"  // it is what runs
	waiting  judgement = "waits"    // for something that passes
	underway judgement = "underway" // the cohort votes on it, or tries it
	behind   judgement = "behind"   // the source is older than what is committed
	rejected judgement = "refused"  // it will not be proposed as it is
	due      judgement = "to be proposed"
)

// nothingCommitted is of a store in which no cohort of that name has begun.
const nothingCommitted = "the rollout store has nothing committed for this cohort"

// considered is all that the judgement depends on.
type considered struct {
	want    *document.Document // the source's
	shared  bool               // all members read this source: what it holds is never older than what they run
	running *document.Document // nil: nothing
	pointer barrier.Pointer    // of what runs
	head    barrier.Head
}

// consider judges it; the reason is for people.
func consider(c considered) (judgement, string) {
	want, ro, committed := c.want, c.head.Rollout, c.head.Committed
	digest := barrier.Digest(want.Digest())
	switch {
	case c.running != nil && document.Same(c.running, want):
		return inStep, ""
	case ro != nil && ro.Open() && ro.Digest == digest:
		return underway, fmt.Sprintf("%v is %s", ro.Ref, ro.State)
	case !c.shared && ro != nil && ro.Open() && want.Version < ro.Version:
		return behind, fmt.Sprintf("it is version %d, and the cohort is asked about version %d", want.Version, ro.Version)
	case ro != nil && ro.Open():
		return waiting, fmt.Sprintf("another rollout is open: %v, of version %d, is %s", ro.Ref, ro.Version, ro.State)
	case committed.IsZero():
		return waiting, nothingCommitted
	case c.running == nil || c.pointer != committed:
		return waiting, "this member does not run yet what is committed"
	}
	if ended := ending(c.head, digest, want.Version); ended != nil {
		return rejected, fmt.Sprintf("the cohort has %s version %d (generation %d): %s: save it again, which gives it a new version, to try again",
			ended.State, ended.Version, ended.Generation, ended.Reason)
	}
	if !c.shared {
		switch {
		case want.Version == committed.Version:
			return rejected, fmt.Sprintf("version %d was committed with other content: give the document a higher version", want.Version)
		case want.Version < committed.Version:
			return behind, fmt.Sprintf("it is version %d, and version %d is committed", want.Version, committed.Version)
		}
	}
	if class := classify(c.running, want); class.Refused {
		return rejected, class.Name + ": " + class.Reason
	}
	return due, ""
}

// ending is the rollout of that document that the cohort has ended badly, as far as the row remembers; nil when there is none.
func ending(h barrier.Head, digest barrier.Digest, version uint64) *barrier.Outcome {
	var known []barrier.Outcome
	if ro := h.Rollout; ro != nil {
		known = append(known, barrier.Outcome{Ref: ro.Ref, Digest: ro.Digest, Version: ro.Version, State: ro.State, Reason: ro.Reason})
	}
	if h.Previous != nil {
		known = append(known, *h.Previous)
	}
	for _, o := range known {
		if o.Digest == digest && o.Version == version && (o.State == barrier.Aborted || o.State == barrier.Reverted) {
			return &o
		}
	}
	return nil
}

// reconsider looks what is to be done about what the source holds, and proposes it when that is due.
func (h *Host) reconsider(ctx context.Context) {
	h.mu.Lock()
	want, c, running, before := h.want, h.cohort, h.running, h.seen
	h.mu.Unlock()
	if c == nil || want == nil {
		return
	}
	j, reason := inStep, ""
	var rollout *barrier.Ref
	if running == nil || !document.Same(running, want) {
		j, reason, rollout = h.deliberate(ctx, c, want)
	} else {
		h.setVersion(running, max(running.Version, want.Version))
	}
	h.mu.Lock()
	h.seen.verb, h.seen.reason = verb(j), reason
	h.mu.Unlock()
	if before.verb != verb(j) || before.reason != reason {
		h.cfg.Logger.Info("bridge", "source", h.cfg.Source.String(), "version", want.Version, "verb", j, "reason", reason)
	}
	h.outcomes.tell(Outcome{Version: want.Version, Verb: string(j), Reason: reason, Rollout: rollout})
}

func (h *Host) deliberate(ctx context.Context, c *cohort, want *document.Document) (judgement, string, *barrier.Ref) {
	r := h.cfg.Rollouts
	call, cancel := context.WithTimeout(ctx, r.callTimeout())
	defer cancel()
	view, err := r.Store.Look(call, barrier.MemberID(h.cfg.Process.MemberID))
	if err != nil {
		return waiting, fmt.Sprintf("the rollout store does not answer: %v", err), nil
	}
	j, reason, ref := h.judge(c, want, view.Head)
	if j != due {
		return j, reason, ref
	}
	return h.propose(ctx, c, want)
}

// judge is consider, with the rollout that is under way. What runs is asked for after head was read, and the pointer before the document:
// who runs by its pointer what head has committed then has the document that goes with it, or a newer one, and a newer one makes the
// proposal stale.
func (h *Host) judge(c *cohort, want *document.Document, head barrier.Head) (judgement, string, *barrier.Ref) {
	pointer := c.member.Status().Running
	j, reason := consider(considered{want, h.cfg.Source.Shared(), h.Running(), pointer, head})
	if j != underway {
		return j, reason, nil
	}
	return j, reason, &head.Rollout.Ref
}

// sighted is what the source was last seen to hold.
func (h *Host) sighted() source.Stored {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen.Stored
}

// propose puts d to the cohort, on the terms of what runs, if that is due by the row that it is proposed on: members that share a source
// see a change at one time, and what one of them has proposed may have been decided since the other looked.
func (h *Host) propose(ctx context.Context, c *cohort, d *document.Document) (judgement, string, *barrier.Ref) {
	r := h.cfg.Rollouts
	call, cancel := context.WithTimeout(ctx, 5*r.callTimeout())
	defer cancel()
	row, err := r.Store.Current(call)
	if err != nil {
		return waiting, fmt.Sprintf("the rollout store does not answer: %v", err), nil
	}
	if j, reason, ref := h.judge(c, d, row.Head); j != due {
		return j, reason, ref
	}
	// What was seen up to a poll ago may be older than what others have seen, proposed and committed since: only what the source holds after
	// the row was read is news to it.
	if now, err := h.cfg.Source.Read(call); err != nil || !now.Equal(h.sighted()) {
		h.observer.Nudge()
		return waiting, "the source is looked at again", nil
	}
	terms := h.Running().Bridge.Cluster // something runs: else it would not be due
	p := barrier.Proposal{Proposer: h.cfg.Process.MemberID, Version: d.Version, Deadline: terms.Deadline}
	if terms.ConfirmWindow > 0 {
		p.Window, p.Soak, p.Grace, p.EvidenceTTL = terms.ConfirmWindow, terms.Soak, r.Grace, r.EvidenceTTL
	}
	ro, err := barrier.Proposer{Store: r.Store, Artefacts: r.Artefacts, Host: c}.ProposeOn(call, row, d.Canonical(), p)
	open, isOpen := errors.AsType[*barrier.OpenError](err)
	refused, isRefused := errors.AsType[*barrier.RefusedError](err)
	switch {
	case err == nil:
		return underway, fmt.Sprintf("%v is %s", ro.Ref, ro.State), &ro.Ref
	case isOpen && open.Rollout.Digest == barrier.Digest(d.Digest()):
		return underway, fmt.Sprintf("%v is %s, proposed by %s", open.Rollout.Ref, open.Rollout.State, open.Rollout.Proposer), &open.Rollout.Ref
	case isRefused:
		return rejected, refused.Class.Name + ": " + refused.Class.Reason, nil
	case errors.Is(err, barrier.ErrInvalid):
		return rejected, err.Error(), nil
	}
	return waiting, fmt.Sprintf("it could not be proposed: %v", err), nil
}
