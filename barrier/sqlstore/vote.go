package sqlstore

import (
	"context"

	"github.com/guardyn-edge/guardyn/barrier"
)

// vote applies a transition of m's ballot that leaves the head alone.
func (s *Store) vote(ctx context.Context, what string, m barrier.MemberID, transition func(*state) (b barrier.Ballot, loud bool, err error)) error {
	return s.write(ctx, what, func(t *Tx) error {
		if err := t.begin(ctx, lockShared); err != nil {
			return err
		}
		st, err := s.load(ctx, t.tx, m, 0)
		if err != nil {
			return err
		}
		b, loud, err := transition(&st)
		if err != nil {
			return err
		}
		return t.saveBallot(ctx, &st, b, loud)
	})
}

// Join implements barrier.Voter.
func (s *Store) Join(ctx context.Context, m barrier.MemberID, boot barrier.BootID, incarnation uint64) (barrier.Registration, error) {
	if err := barrier.CheckMember(m, boot); err != nil {
		return barrier.Registration{}, err
	}
	var registration barrier.Registration
	err := s.write(ctx, "join", func(t *Tx) error {
		if err := t.begin(ctx, lockAlone); err != nil {
			return err
		}
		st, err := s.load(ctx, t.tx, m, 0)
		if err != nil {
			return err
		}
		next, reg, err := st.Join(st.own.Registration, st.inEpoch, boot, incarnation)
		if err != nil {
			return err
		}
		if err := t.saveRegistration(ctx, &st, reg); err != nil {
			return err
		}
		registration = reg
		return t.saveHead(ctx, &st, next)
	})
	if err != nil {
		return barrier.Registration{}, err
	}
	return registration, nil
}

// Ack implements barrier.Voter.
func (s *Store) Ack(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, buildDigest string) error {
	return s.vote(ctx, "ack", m, func(st *state) (barrier.Ballot, bool, error) {
		b, err := st.Ack(r, st.seat(), boot, buildDigest, st.now)
		return b, true, err
	})
}

// Nack implements barrier.Voter.
func (s *Store) Nack(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, reason string) error {
	return s.vote(ctx, "nack", m, func(st *state) (barrier.Ballot, bool, error) {
		b, err := st.Nack(r, st.seat(), boot, reason, st.now)
		return b, true, err
	})
}

// Converge implements barrier.Voter. Evidence that is only renewed is no news to those who Watch: a coordinator knows when it
// will have held for long enough.
func (s *Store) Converge(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, detail string) error {
	return s.vote(ctx, "converge", m, func(st *state) (barrier.Ballot, bool, error) {
		b, err := st.Converge(r, st.seat(), boot, detail, st.now)
		return b, !b.ConvergedSince.Equal(st.own.Ballot.ConvergedSince), err
	})
}

// Withdraw implements barrier.Voter.
func (s *Store) Withdraw(ctx context.Context, r barrier.Ref, m barrier.MemberID, boot barrier.BootID, reason string) error {
	return s.write(ctx, "withdraw", func(t *Tx) error {
		if err := t.begin(ctx, lockAlone); err != nil {
			return err
		}
		st, err := s.load(ctx, t.tx, m, 0)
		if err != nil {
			return err
		}
		next, b, err := st.Withdraw(r, st.seat(), boot, reason, st.now)
		if err != nil {
			return err
		}
		if err := t.saveBallot(ctx, &st, b, true); err != nil {
			return err
		}
		return t.saveHead(ctx, &st, next)
	})
}
