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
		if b.is("abort without a token") && by.Token != 0 && by.Operator == "" {
			by.Token = h.Claim
		}
		if b.is("a final state is overwritten") {
			h, _ = with(h, func(ro *barrier.Rollout) {
				if !ro.Open() {
					ro.State = barrier.Staging
				}
			})
		}
		return h.Abort(r, by, reason, now)
	})
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
		}
		next, err := h.Confirm(r, t, seats, now, 0)
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
		case b.is("a deadman reverts early"):
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
		return h.Revert(r, by, seat, reason, now)
	})
}

func (b *bent) Propose(_ context.Context, p barrier.Proposal) (barrier.Rollout, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	h, now := b.head, b.now()
	switch b.rule {
	case "propose while one is open":
		h, _ = with(h, func(ro *barrier.Rollout) { ro.State = barrier.Aborted })
	case "propose to any roster":
		p.RosterRevision = b.roster.Revision
	case "propose again opens another":
		h, _ = with(h, func(ro *barrier.Rollout) { ro.ID = "forgotten" })
	case "propose keeps no outcome":
		defer func() { b.head.Previous = nil }()
	}
	next, err := h.Propose(b.roster, p, now)
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
		b.head, b.epoch = next, b.roster.Members
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
	if err == nil {
		b.head = next
	}
	return outcome, err
}

func (b *bent) Acquire(_ context.Context, holder string, ttl time.Duration) (barrier.Lease, error) {
	if err := barrier.CheckLease(holder, ttl); err != nil {
		return barrier.Lease{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	free := b.holder == "" || !now.Before(b.until) || b.is("a held lease is given away")
	switch {
	case free || b.is("a lease is renewed with a new token"):
		b.pause("a lease is written without a condition")
		if b.holder = holder; !b.is("tokens stay the same") {
			b.token++
		}
	case b.holder != holder:
		return barrier.Lease{}, &barrier.HeldError{Holder: b.holder}
	}
	b.until = now.Add(ttl)
	return barrier.Lease{Holder: holder, Token: b.token, TTL: ttl}, nil
}

func (b *bent) Renew(_ context.Context, l barrier.Lease) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if (l.Token != b.token || b.holder == "") && !b.is("a lost lease is renewed") {
		return barrier.ErrLost
	}
	if !b.is("renewing does nothing") {
		b.until = b.now().Add(l.TTL)
	}
	return nil
}

func (b *bent) Release(_ context.Context, l barrier.Lease) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if (l.Token != b.token || b.holder == "") && !b.is("anybody releases") {
		return barrier.ErrLost
	}
	if b.holder = ""; b.is("a released lease is deleted") {
		b.token = 0
	}
	return nil
}

func (b *bent) Put(_ context.Context, d barrier.Digest, artefact []byte) error {
	if b.is("artefacts of any size") && len(artefact) > barrier.MaxArtefactBytes {
		artefact = artefact[:barrier.MaxArtefactBytes]
	}
	if err := barrier.CheckArtefact(d, artefact); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, ok := b.artefacts[d]; ok && !b.is("artefacts are overwritten") {
		return nil
	}
	if !b.is("artefacts are shared") {
		artefact = slices.Clone(artefact)
	}
	b.artefacts[d] = artefact
	return nil
}

func (b *bent) Get(_ context.Context, d barrier.Digest) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a, ok := b.artefacts[d]
	if !ok && !b.is("a missing artefact is empty") {
		return nil, barrier.ErrNoArtefact
	}
	return slices.Clone(a), nil
}
