package dynamo

import (
	"context"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// Propose opens a rollout. Its epoch is written in the same transaction. Afterwards it deletes a bounded number of items that
// nothing names any more; see the package comment.
func (s *Store) Propose(ctx context.Context, p barrier.Proposal) (barrier.Rollout, error) {
	var roster barrier.Roster
	load := func(ctx context.Context, _ storedHead) (err error) {
		roster, err = s.roster(ctx)
		return err
	}
	h, err := s.changeHead(ctx, "propose", load, func(h barrier.Head, now time.Time, _ string) (barrier.Head, []action, error) {
		next, err := h.Propose(roster, p, now)
		if err != nil || next.Revision == h.Revision {
			return next, nil, err
		}
		return next, []action{put(s.epochItem(next.Rollout.Ref, roster.Members), absent)}, nil
	})
	if err != nil {
		return barrier.Rollout{}, err
	}
	s.sweep(ctx, h)
	return *h.Rollout, nil
}

// SetRoster makes members the cohort.
func (s *Store) SetRoster(ctx context.Context, revision uint64, members []barrier.MemberID) (barrier.Roster, error) {
	var was, result barrier.Roster
	load := func(ctx context.Context, _ storedHead) (err error) {
		was, err = s.roster(ctx)
		result = was
		return err
	}
	_, err := s.changeHead(ctx, "set roster", load, func(h barrier.Head, now time.Time, nonce string) (barrier.Head, []action, error) {
		next, roster, err := h.ChangeRoster(was, revision, members, now)
		if err != nil || next.Revision == h.Revision {
			return next, nil, err
		}
		result = roster
		when := absent
		if was.Revision > 0 {
			when = ifEqual(attrRevision, number(was.Revision))
		}
		return next, []action{put(s.rosterItem(roster, nonce), when)}, nil
	})
	if err != nil {
		return barrier.Roster{}, err
	}
	return result, nil
}

// AdoptBaseline makes p the committed pointer if there is none.
func (s *Store) AdoptBaseline(ctx context.Context, p barrier.Pointer) (barrier.BaselineOutcome, error) {
	outcome := barrier.BaselineFailed
	_, err := s.changeHead(ctx, "adopt baseline", nil, func(h barrier.Head, _ time.Time, _ string) (next barrier.Head, _ []action, err error) {
		next, outcome, err = h.AdoptBaseline(p)
		return next, nil, err
	})
	if err != nil {
		return barrier.BaselineFailed, err
	}
	return outcome, nil
}
