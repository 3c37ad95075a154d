package dynamo

import (
	"context"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// Join makes boot the member's current process. The write is a transaction with the head, even when the head does not change:
// a Propose between the read and the write would otherwise freeze an epoch in which the process that joins
// here has no vote and could vote all the same.
func (s *Store) Join(ctx context.Context, m barrier.MemberID, boot barrier.BootID, incarnation uint64) (barrier.Registration, error) {
	if err := barrier.CheckMember(m, boot); err != nil {
		return barrier.Registration{}, err
	}
	var joined barrier.Registration
	err := s.repeat(ctx, "join", func(ctx context.Context, nonce string) error {
		h, err := s.head(ctx)
		if err != nil {
			return err
		}
		seat, seated, err := s.seat(ctx, h, m)
		if err != nil {
			return s.ifStill(ctx, h, err)
		}
		joined = seat.Registration
		if seat.registrationNonce == nonce {
			return nil
		}
		next, registration, err := h.Join(seat.Registration, seated, boot, incarnation)
		if err != nil || registration == seat.Registration {
			return err
		}
		joined = registration
		actions := []action{put(s.registrationItem(m, registration, nonce), unchanged(seat.registrationNonce))}
		if next.Revision == h.Revision {
			actions = append(actions, checkThat(s.key(sortHead), h.unchanged()))
		} else {
			it, err := s.headItem(next, nonce)
			if err != nil {
				return err
			}
			actions = append(actions, put(it, h.unchanged()))
		}
		limited, cancel := context.WithTimeout(ctx, s.o.RequestTimeout)
		defer cancel()
		return s.write(limited, actions...)
	})
	if err != nil {
		return barrier.Registration{}, err
	}
	return joined, nil
}

// Ack votes for the rollout; see changeBallot for what it may race.
func (s *Store) Ack(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, buildDigest string) error {
	return s.changeBallot(ctx, "ack", m, boot, func(h barrier.Head, seat *barrier.Seat, now time.Time) (barrier.Ballot, error) {
		return h.Ack(r, seat, boot, buildDigest, now)
	})
}

// Nack votes against the rollout; see changeBallot for what it may race.
func (s *Store) Nack(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, reason string) error {
	return s.changeBallot(ctx, "nack", m, boot, func(h barrier.Head, seat *barrier.Seat, now time.Time) (barrier.Ballot, error) {
		return h.Nack(r, seat, boot, reason, now)
	})
}

// Converge writes or renews evidence; see changeBallot for what it may race.
func (s *Store) Converge(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, detail string) error {
	return s.changeBallot(ctx, "converge", m, boot, func(h barrier.Head, seat *barrier.Seat, now time.Time) (barrier.Ballot, error) {
		return h.Converge(r, seat, boot, detail, now)
	})
}

// changeBallot writes what decide makes of m's ballot, on the condition that neither the ballot nor the process registered for m
// has changed. The head is no part of the write: a thousand members would stand in line for it. So a vote may
// land after the head has moved on, and that is harmless: it lies under its own rollout, every decision on which is made from
// votes that were read while the head still stood, and a vote never turns into another. A reader then sees it beside a
// decision that it came too late for, as if it had been cast just before.
func (s *Store) changeBallot(ctx context.Context, what string, m barrier.MemberID, boot barrier.BootID,
	decide func(barrier.Head, *barrier.Seat, time.Time) (barrier.Ballot, error),
) error {
	if err := barrier.CheckMember(m, boot); err != nil {
		return err
	}
	return s.repeat(ctx, what, func(ctx context.Context, nonce string) error {
		h, err := s.head(ctx)
		if err != nil {
			return err
		}
		stored, seated, err := s.seat(ctx, h, m)
		if err != nil {
			return s.ifStill(ctx, h, err)
		}
		if stored.ballotNonce == nonce {
			return nil
		}
		seat := &stored.Seat
		if !seated {
			seat = nil
		}
		now := s.now()
		limited, cancel := context.WithTimeout(ctx, s.o.RequestTimeout)
		defer cancel()
		ballot, err := decide(h.Head, seat, now)
		if err != nil {
			return s.ifStill(ctx, h, err)
		}
		if ballot == stored.Ballot {
			return nil
		}
		it, err := s.ballotItem(h.Rollout.Ref, m, ballot, nonce)
		if err != nil {
			return err
		}
		return s.write(limited, put(it, unchanged(stored.ballotNonce)), s.registered(m, boot))
	})
}

// registered is the condition that boot still is m's current process.
func (s *Store) registered(m barrier.MemberID, boot barrier.BootID) action {
	return checkThat(s.key(registrationSort(m)), ifEqual(attrBoot, text(string(boot))))
}

// Withdraw takes m's evidence back. It moves the head in the same transaction, so that a Confirm that was about to be written
// fails.
func (s *Store) Withdraw(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, reason string) error {
	if err := barrier.CheckMember(m, boot); err != nil {
		return err
	}
	var (
		stored storedSeat
		seated bool
	)
	load := func(ctx context.Context, h storedHead) (err error) {
		stored, seated, err = s.seat(ctx, h, m)
		return err
	}
	_, err := s.changeHead(ctx, "withdraw", load, func(h barrier.Head, now time.Time, nonce string) (barrier.Head, []action, error) {
		seat := &stored.Seat
		if !seated {
			seat = nil
		}
		next, ballot, err := h.Withdraw(r, seat, boot, reason, now)
		if err != nil || next.Revision == h.Revision {
			return next, nil, err
		}
		it, err := s.ballotItem(r, m, ballot, nonce)
		if err != nil {
			return h, nil, err
		}
		return next, []action{put(it, unchanged(stored.ballotNonce)), s.registered(m, boot)}, nil
	})
	return err
}
