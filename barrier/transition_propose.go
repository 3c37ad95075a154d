package barrier

import (
	"fmt"
	"slices"
	"time"
)

// Propose opens a rollout with the next generation (I1); its epoch is the roster.
func (h Head) Propose(roster Roster, p Proposal, now time.Time) (Head, error) {
	if err := p.Check(); err != nil {
		return h, err
	}
	p = p.WithDefaults()
	if h.Rollout != nil && h.Rollout.ID == p.ID {
		if h.Rollout.Digest != p.Digest {
			return h, fmt.Errorf("%w: id %s was proposed with another digest", ErrInvalid, p.ID)
		}
		return h, nil
	}
	if open := h.open(); open != nil {
		return h, &OpenError{Rollout: *open}
	}
	switch {
	case p.Seen != h.Generation:
		// A copy of an earlier proposal that was delayed, or one made by who did not see the last.
		return h, fmt.Errorf("%w: generation %d, and the proposal saw %d", ErrStale, h.Generation, p.Seen)
	case p.RosterRevision != roster.Revision:
		return h, fmt.Errorf("%w: %d, and the proposal is for %d", ErrRoster, roster.Revision, p.RosterRevision)
	case len(roster.Members) == 0:
		return h, fmt.Errorf("%w: the roster is empty: who is to agree?", ErrInvalid)
	case p.Window > 0 && h.Committed.IsZero():
		return h, fmt.Errorf("%w: a confirm window needs a committed artefact: adopt a baseline, or roll out once without a window", ErrNoBaseline)
	}
	if last := h.Rollout; last != nil {
		h.Previous = &Outcome{Ref: last.Ref, Digest: last.Digest, Version: last.Version, State: last.State, Reason: last.Reason}
	}
	h.Generation = max(h.Generation, p.After) + 1
	h.Rollout = &Rollout{
		Ref:    Ref{ID: p.ID, Generation: h.Generation},
		Digest: p.Digest, Version: p.Version, Proposer: p.Proposer,
		RosterRevision: roster.Revision, EpochSize: len(roster.Members),
		Window: p.Window, Soak: p.Soak, Grace: p.Grace, EvidenceTTL: p.EvidenceTTL,
		ProposedAt: now, Deadline: now.Add(p.Deadline), State: Proposed,
	}
	return h.touch(), nil
}

// ChangeRoster makes members the roster if revision is its own. A rollout that is voted on is aborted; one on
// trial is in the way.
func (h Head) ChangeRoster(roster Roster, revision uint64, members []MemberID, now time.Time) (Head, Roster, error) {
	members, err := normalRoster(members)
	if err != nil {
		return h, roster, err
	}
	same := slices.Equal(members, roster.Members)
	if revision != roster.Revision {
		// The answer to the same call may have been lost.
		if same && revision+1 == roster.Revision {
			return h, roster, nil
		}
		return h, roster, fmt.Errorf("%w: %d, not %d", ErrRoster, roster.Revision, revision)
	}
	if same {
		return h, roster, nil
	}
	next := Roster{Revision: roster.Revision + 1, Members: members}
	switch open := h.open(); {
	case open == nil:
		return h.touch(), next, nil
	case open.OnTrial():
		return h, roster, &OpenError{Rollout: *open}
	default:
		reason := fmt.Sprintf("the roster changed from revision %d to %d", roster.Revision, next.Revision)
		ro := *open
		ro.State, ro.DecidedAt, ro.DecidedBy, ro.Reason = Aborted, now, "roster change", reason
		h.Rollout = &ro
		return h.touch(), next, nil
	}
}

// WithDecision makes p the committed pointer: something that was decided without a rollout, by whoever else may. Its
// generation must be higher than every one before. Not while a rollout is open: *OpenError.
func (h Head) WithDecision(p Pointer) (Head, error) {
	if err := CheckDigest(p.Digest); err != nil {
		return h, err
	}
	if h.Committed == p {
		return h, nil
	}
	if open := h.open(); open != nil {
		return h, &OpenError{Rollout: *open}
	}
	if p.Generation <= h.Generation {
		return h, fmt.Errorf("%w: generation %d is not above %d", ErrInvalid, p.Generation, h.Generation)
	}
	h.Committed, h.Generation = p, p.Generation
	return h.touch(), nil
}

// AdoptBaseline makes p the committed pointer at generation 0, if there is none.
func (h Head) AdoptBaseline(p Pointer) (Head, BaselineOutcome, error) {
	if err := CheckDigest(p.Digest); err != nil {
		return h, BaselineFailed, err
	}
	if p.Generation != 0 {
		return h, BaselineFailed, fmt.Errorf("%w: a baseline has generation 0, not %d", ErrInvalid, p.Generation)
	}
	if p.Version > MaxNumber {
		return h, BaselineFailed, fmt.Errorf("%w: version is %d, more than %d", ErrInvalid, p.Version, uint64(MaxNumber))
	}
	switch {
	case h.Committed.IsZero():
		h.Committed = p
		return h.touch(), BaselineAdopted, nil
	case h.Committed.Generation > 0:
		return h, BaselineSuperseded, nil
	case h.Committed.Digest == p.Digest:
		return h, BaselineVerified, nil
	default:
		return h, BaselineFailed, fmt.Errorf("%w: the baseline is %s already, not %s", ErrInvalid, h.Committed.Digest, p.Digest)
	}
}
