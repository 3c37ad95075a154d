package barriertest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// decide writes a head.
func (b *bent) decide(transition func(h barrier.Head, now time.Time) (barrier.Head, error)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	next, err := transition(b.head, b.now())
	if err != nil {
		return err
	}
	b.pause("decisions are written without a condition")
	if next.Revision != b.head.Revision || b.is("decisions are written without a condition") {
		b.head = next
	}
	for _, w := range b.watches {
		select {
		case w.hints <- struct{}{}:
		case <-w.ctx.Done():
		}
	}
	if b.is("a decision again has an effect") {
		b.head.Revision++
	}
	return nil
}

// with returns h with its rollout changed, and a function that takes the change back from what a transition returned.
func with(h barrier.Head, change func(*barrier.Rollout)) (barrier.Head, func(barrier.Head) barrier.Head) {
	if h.Rollout == nil {
		return h, func(h barrier.Head) barrier.Head { return h }
	}
	was, ro := *h.Rollout, *h.Rollout
	change(&ro)
	h.Rollout = &ro
	return h, func(h barrier.Head) barrier.Head {
		next := *h.Rollout
		next.Deadline, next.ConfirmDeadline, next.Soak, next.EvidenceTTL = was.Deadline, was.ConfirmDeadline, was.Soak, was.EvidenceTTL
		if was.ConfirmDeadline.IsZero() && next.Window > 0 && !next.CommittedAt.IsZero() {
			next.ConfirmDeadline = next.CommittedAt.Add(next.Window)
		}
		h.Rollout = &next
		return h
	}
}

func (b *bent) Claim(_ context.Context, t barrier.Token) error {
	return b.decide(func(h barrier.Head, _ time.Time) (barrier.Head, error) {
		switch {
		case b.is("token 0 is a token") && t == 0:
			return h, nil
		case b.is("a claim begins anew") && h.Rollout != nil && !h.Rollout.Voting():
			h, _ = with(h, func(ro *barrier.Rollout) { ro.State = barrier.Proposed })
		case b.is("a lower claim is taken") && t != 0 && t < h.Claim:
			h.Claim = t - 1
		case b.is("a claim does not take up") && t >= h.Claim:
			h.Claim = t
			h.Revision++
			return h, nil
		case b.is("a claim takes up by a new token only") && t == h.Claim:
			return h, nil
		}
		return h.WithClaim(t)
	})
}

func (b *bent) Commit(_ context.Context, r barrier.Ref, t barrier.Token) error {
	return b.decide(func(h barrier.Head, now time.Time) (barrier.Head, error) {
		seats := b.seats()
		undo := func(h barrier.Head) barrier.Head { return h }
		switch b.rule {
		case "commit counts voided acks":
			for i := range seats {
				if seats[i].Ballot.Vote != "" {
					seats[i].Registration = barrier.Registration{Boot: seats[i].Ballot.Boot}
				}
			}
		case "commit counts nacks":
			for i := range seats {
				if seats[i].Ballot.Vote == barrier.Nacked {
					seats[i].Ballot.Vote, seats[i].Ballot.BuildDigest = barrier.Acked, "built"
				}
			}
		case "commit by most votes":
			for i := range seats {
				if seats[i].Ballot.Vote == "" && i > len(seats)/2 {
					seats[i].Ballot = barrier.Ballot{Boot: seats[i].Registration.Boot, Vote: barrier.Acked, BuildDigest: "built"}
				}
			}
		case "commit without a token":
			t = h.Claim
		case "commit after the deadline":
			h, undo = with(h, func(ro *barrier.Rollout) { ro.Deadline = now.Add(time.Hour) })
		case "a final state is overwritten":
			h = b.reopened(h, barrier.Staging)
		case "commit from proposed":
			h, _ = with(h, func(ro *barrier.Rollout) {
				if ro.State == barrier.Proposed {
					ro.State = barrier.Staging
				}
			})
		}
		next, err := h.Commit(b.ref(r), t, seats, b.roster.Revision, now, 0)
		if err == nil && b.is("commit moves the pointer in spite of a window") {
			next.Committed = next.Rollout.Pointer()
		}
		if err == nil && b.is("commit does not move the pointer") {
			next.Committed = h.Committed
		}
		if err != nil {
			return next, err
		}
		return undo(next), nil
	})
}

func (b *bent) Abort(_ context.Context, r barrier.Ref, by barrier.Authority, reason string) error {
	return b.decide(func(h barrier.Head, now time.Time) (barrier.Head, error) {
		switch {
		case b.is("anybody decides"):
			by = barrier.ByOperator("anybody")
		case b.is("abort is for staging only") && h.Rollout != nil && h.Rollout.State == barrier.Proposed:
			return h, barrier.ErrFenced
		}
		if b.is("abort without a token") && by.Token != 0 && by.Operator == "" {
			by.Token = h.Claim
		}
		if b.is("a final state is overwritten") {
			h = b.reopened(h, barrier.Staging)
		}
		return b.uncut(reason)(h.Abort(b.ref(r), by, reason, now))
	})
}

// reopened returns h with a rollout that is decided in state s.
func (b *bent) reopened(h barrier.Head, s barrier.State) barrier.Head {
	h, _ = with(h, func(ro *barrier.Rollout) {
		if !ro.Open() {
			ro.State = s
		}
	})
	return h
}

func (b *bent) Confirm(_ context.Context, r barrier.Ref, t barrier.Token) error {
	return b.decide(func(h barrier.Head, now time.Time) (barrier.Head, error) {
		seats := b.seats()
		undo := func(h barrier.Head) barrier.Head { return h }
		switch b.rule {
		case "confirm after D":
			h, undo = with(h, func(ro *barrier.Rollout) { ro.ConfirmDeadline = now.Add(time.Hour) })
		case "confirm before soak":
			h, undo = with(h, func(ro *barrier.Rollout) { ro.Soak = 0 })
		case "confirm with expired evidence":
			h, undo = with(h, func(ro *barrier.Rollout) { ro.EvidenceTTL = 1000 * time.Hour })
		case "confirm counts restarted members":
			for i := range seats {
				if seats[i].Ballot.Boot != "" {
					seats[i].Registration.Boot = seats[i].Ballot.Boot
				}
			}
		case "confirm without a token":
			t = h.Claim
		case "a final state is overwritten":
			h = b.reopened(h, barrier.Committed)
		case "windows are always open":
			h = b.opened(h)
		case "confirm by most evidence":
			for i := range seats {
				if i > 0 && seats[i].Ballot.RenewedAt.IsZero() {
					seats[i].Ballot.ConvergedSince, seats[i].Ballot.RenewedAt = seats[0].Ballot.ConvergedSince, seats[0].Ballot.RenewedAt
				}
			}
		}
		next, err := h.Confirm(b.ref(r), t, seats, now, 0)
		if err == nil && b.is("confirm does not move the pointer") {
			next.Committed = h.Committed
		}
		if err != nil {
			return next, err
		}
		return undo(next), nil
	})
}

func (b *bent) Revert(_ context.Context, r barrier.Ref, by barrier.Authority, reason string) error {
	return b.decide(func(h barrier.Head, now time.Time) (barrier.Head, error) {
		seat := b.seat(by.Member)
		switch {
		case b.is("anybody decides"):
			by = barrier.ByOperator("anybody")
		case b.is("deadmen never revert") && by.Member != "":
			return h, barrier.ErrEarly
		case b.is("processes are not compared") && by.Member != "":
			by.Boot = b.regs[by.Member].Boot
		case b.is("windows are always open"):
			h = b.opened(h)
		case b.is("a deadman reverts early") && by.Member != "":
			return h.Revert(r, by, seat, reason, now.Add(24*time.Hour))
		case b.is("a deadman knows no grace") && by.Member != "" && h.Rollout != nil:
			now = now.Add(h.Rollout.Grace)
		case b.is("strangers revert") && by.Member != "" && seat == nil:
			seat = &barrier.Seat{Member: by.Member, Registration: barrier.Registration{Boot: by.Boot}}
		case b.is("revert without a token") && by.Token != 0 && by.Operator == "" && by.Member == "":
			by.Token = h.Claim
		case b.is("revert takes a confirmed rollout back"):
			h, _ = with(h, func(ro *barrier.Rollout) {
				if ro.State == barrier.Confirmed {
					ro.State = barrier.Committed
				}
			})
		}
		return b.uncut(reason)(h.Revert(b.ref(r), by, seat, reason, now))
	})
}

// uncut is what becomes of the reason of a decision.
func (b *bent) uncut(reason string) func(barrier.Head, error) (barrier.Head, error) {
	return func(h barrier.Head, err error) (barrier.Head, error) {
		if err == nil && b.is("reasons of decisions are not cut") {
			h, _ = with(h, func(ro *barrier.Rollout) { ro.Reason = reason })
		}
		return h, err
	}
}

func (b *bent) Propose(_ context.Context, p barrier.Proposal) (barrier.Rollout, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h, roster, now := b.head, b.roster, b.now()
	switch b.rule {
	case "proposals are not checked":
		if p.Check() != nil {
			p = barrier.Proposal{ID: "mended", Proposer: "mended", Digest: "test:mended", RosterRevision: p.RosterRevision}
		}
	case "a window needs no baseline":
		if h.Committed.IsZero() {
			h.Committed = barrier.Pointer{Digest: "test:none"}
			defer func() { b.head.Committed = barrier.Pointer{} }()
		}
	case "nobody may agree":
		if len(roster.Members) == 0 {
			roster.Members = []barrier.MemberID{"nobody"}
		}
	case "the defaults are others":
		if p.Deadline == 0 {
			p.Deadline = time.Hour
		}
	case "digests are cut":
		p.Digest = p.Digest[:min(len(p.Digest), 100)]
	case "a window that is over is not open":
		if ro := h.Rollout; ro != nil && ro.OnTrial() && now.After(ro.RevertDue()) {
			h, _ = with(h, func(ro *barrier.Rollout) { ro.State = barrier.Reverted })
		}
	case "propose while one is open":
		h, _ = with(h, func(ro *barrier.Rollout) { ro.State = barrier.Aborted })
	case "propose to any roster":
		p.RosterRevision = b.roster.Revision
	case "propose unseen":
		p.Seen = h.Generation
	case "propose again opens another":
		h, _ = with(h, func(ro *barrier.Rollout) { ro.ID = "forgotten" })
	case "propose keeps no outcome":
		defer func() { b.head.Previous = nil }()
	}
	next, err := h.Propose(roster, p, now)
	if err != nil {
		if b.is("errors are bare") && barrier.Code(err) == "open" {
			err = barrier.ErrOpen
		}
		if b.is("errors have no names") {
			err = fmt.Errorf("cannot: %v", err)
		}
		return barrier.Rollout{}, err
	}
	b.pause("proposals are written without a condition")
	if next.Revision != b.head.Revision || b.is("proposals are written without a condition") {
		if b.is("aborted generations come again") && b.head.Rollout != nil && b.head.Rollout.State == barrier.Aborted {
			next.Generation--
			next.Rollout.Generation--
		}
		if b.is("the proposer is forgotten") {
			next.Rollout.Proposer = ""
		}
		b.head, b.epoch = next, roster.Members
		if !b.is("ballots outlive their rollout") {
			clear(b.ballots)
		}
	}
	return *next.Rollout, nil
}

func (b *bent) SetRoster(_ context.Context, revision uint64, members []barrier.MemberID) (barrier.Roster, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.head
	switch {
	case b.is("a roster of any revision"):
		revision = b.roster.Revision
	case b.is("the roster changes in a window"):
		h, _ = with(h, func(ro *barrier.Rollout) { ro.Window = 0 })
	}
	next, roster, err := h.ChangeRoster(b.roster, revision, members, b.now())
	switch {
	case b.is("any roster") && barrier.Code(err) == "invalid":
		roster = barrier.Roster{Revision: revision + 1, Members: members}
		next, err = h, nil
	case b.is("a roster keeps its order") && err == nil:
		roster.Members = slices.Clone(members)
	case b.is("the same roster is another") && err == nil && roster.Revision == b.roster.Revision:
		roster.Revision++
	}
	if err != nil {
		return barrier.Roster{}, err
	}
	b.pause("a roster is written without a condition")
	switch b.rule {
	case "a roster change aborts nothing", "the roster changes in a window":
		b.head.Revision = next.Revision
	case "a roster of 999 at most":
		if len(members) > 999 {
			return barrier.Roster{}, barrier.ErrInvalid
		}
		fallthrough
	default:
		b.head = next
	}
	if b.is("a roster change aborts everything") {
		b.head, _ = with(b.head, func(ro *barrier.Rollout) { ro.State = barrier.Aborted })
	}
	b.roster = roster
	if !b.is("reads share the store's memory") {
		roster.Members = slices.Clone(roster.Members)
	}
	return roster, nil
}

func (b *bent) AdoptBaseline(_ context.Context, p barrier.Pointer) (barrier.BaselineOutcome, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.head
	if b.is("a baseline rewinds") {
		h.Committed = barrier.Pointer{}
	}
	next, outcome, err := h.AdoptBaseline(p)
	if b.is("any baseline") && err != nil && h.Committed.IsZero() {
		next.Committed, outcome, err = p, barrier.BaselineAdopted, nil
	}
	if err == nil && !b.is("a baseline is not written") {
		b.head = next
	}
	return outcome, err
}
