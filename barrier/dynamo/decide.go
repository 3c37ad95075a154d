package dynamo

import (
	"context"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// Claim makes t the token whose decisions count.
func (s *Store) Claim(ctx context.Context, t barrier.Token) error {
	_, err := s.changeHead(ctx, "claim", nil, func(h barrier.Head, _ time.Time, _ string) (barrier.Head, []action, error) {
		next, err := h.WithClaim(t)
		return next, nil, err
	})
	return err
}

// Commit decides for the rollout.
//
// The votes are read before the write and are no condition of it, only the head's Revision is. That is enough: what could make
// the decision wrong between the read and the write either moves the Revision in its own transaction,
//
//   - another decision, claim or proposal: they are the head;
//   - a change of the roster: it is written together with the head, always;
//   - the Join of a member of the epoch, which voids its vote: with the head while a rollout is open;
//   - a Withdraw, which takes evidence back;
//
// or cannot make it wrong:
//
//   - an Ack or Converge that comes meanwhile only makes it more true, and a member that has acknowledged cannot refuse;
//   - time: the deadline passes and evidence expires by this process's clock, others' stamps are off by ClockSkew at
//     most, and the request ends RequestTimeout after the look at the clock. The margin is their sum.
func (s *Store) Commit(ctx context.Context, r barrier.Ref, t barrier.Token) error {
	var (
		seats  []barrier.Seat
		roster barrier.Roster
	)
	load := func(ctx context.Context, h storedHead) error {
		return together(
			func() (err error) { roster, err = s.roster(ctx); return err },
			func() (err error) { seats, err = s.seats(ctx, h.Rollout); return err },
		)
	}
	_, err := s.changeHead(ctx, "commit", load, func(h barrier.Head, now time.Time, _ string) (barrier.Head, []action, error) {
		next, err := h.Commit(r, t, seats, roster.Revision, now, s.margin())
		return next, nil, err
	})
	return err
}

// Abort decides against the rollout.
func (s *Store) Abort(ctx context.Context, r barrier.Ref, by barrier.Authority, reason string) error {
	_, err := s.changeHead(ctx, "abort", nil, func(h barrier.Head, now time.Time, _ string) (barrier.Head, []action, error) {
		next, err := h.Abort(r, by, reason, now)
		return next, nil, err
	})
	return err
}

// Confirm ends a confirm window well; Commit says why its condition is enough.
func (s *Store) Confirm(ctx context.Context, r barrier.Ref, t barrier.Token) error {
	var seats []barrier.Seat
	load := func(ctx context.Context, h storedHead) (err error) {
		seats, err = s.seats(ctx, h.Rollout)
		return err
	}
	_, err := s.changeHead(ctx, "confirm", load, func(h barrier.Head, now time.Time, _ string) (barrier.Head, []action, error) {
		next, err := h.Confirm(r, t, seats, now, s.margin())
		return next, nil, err
	})
	return err
}

// Revert ends a confirm window badly.
func (s *Store) Revert(ctx context.Context, r barrier.Ref, by barrier.Authority, reason string) error {
	var seat *barrier.Seat
	load := func(ctx context.Context, h storedHead) error {
		seat = nil
		if by.Member == "" || barrier.CheckMember(by.Member, "any") != nil {
			return nil
		}
		stored, seated, err := s.seat(ctx, h, by.Member)
		if seated {
			seat = &stored.Seat
		}
		return err
	}
	_, err := s.changeHead(ctx, "revert", load, func(h barrier.Head, now time.Time, _ string) (barrier.Head, []action, error) {
		next, err := h.Revert(r, by, seat, reason, now)
		return next, nil, err
	})
	return err
}
