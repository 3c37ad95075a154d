package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// decide loads m's seat and what w says, applies a transition of the head, and writes what it changed.
func (t *Tx) decide(ctx context.Context, m barrier.MemberID, w want, transition func(*state) (barrier.Head, error)) error {
	if err := t.begin(ctx, lockAlone); err != nil {
		return err
	}
	st, err := t.s.load(ctx, t.tx, m, w)
	if err != nil {
		return err
	}
	next, err := transition(&st)
	if err != nil {
		return err
	}
	return t.saveHead(ctx, &st, next)
}

// by notes until when the decision that was just made may take effect.
func (t *Tx) by(deadline, seen time.Time) { t.until, t.seen = deadline, seen }

// checkNumber refuses what the databases cannot hold.
func checkNumber[T ~uint64](what string, n T) error {
	if n > maxNumber {
		return fmt.Errorf("%w: %s is %d, more than %d", barrier.ErrInvalid, what, n, uint64(maxNumber))
	}
	return nil
}

// Current is Store's, as the transaction sees it. It takes no lock.
func (t *Tx) Current(ctx context.Context) (barrier.Row, error) {
	st, err := t.s.load(ctx, t.tx, "", wantRoster|wantSeats)
	if err != nil {
		return barrier.Row{}, fmt.Errorf("read cohort %s: %w", t.s.cohort, err)
	}
	return st.row(), nil
}

// Claim is as barrier.Decider has it.
func (t *Tx) Claim(ctx context.Context, token barrier.Token) error {
	if err := checkNumber("token", token); err != nil {
		return err
	}
	return t.decide(ctx, "", 0, func(st *state) (barrier.Head, error) { return st.WithClaim(token) })
}

// Commit is as barrier.Decider has it.
func (t *Tx) Commit(ctx context.Context, r barrier.Ref, token barrier.Token) error {
	return t.decide(ctx, "", wantSeats, func(st *state) (barrier.Head, error) {
		next, err := st.Commit(r, token, st.seats, st.roster.Revision, st.now, 0)
		if err == nil && next.Revision != st.Revision {
			t.by(next.Rollout.Deadline, st.now)
		}
		return next, err
	})
}

// Abort is as barrier.Decider has it.
func (t *Tx) Abort(ctx context.Context, r barrier.Ref, by barrier.Authority, reason string) error {
	return t.decide(ctx, "", 0, func(st *state) (barrier.Head, error) { return st.Abort(r, by, reason, st.now) })
}

// Confirm is as barrier.Decider has it.
func (t *Tx) Confirm(ctx context.Context, r barrier.Ref, token barrier.Token) error {
	return t.decide(ctx, "", wantSeats, func(st *state) (barrier.Head, error) {
		next, err := st.Confirm(r, token, st.seats, st.now, 0)
		if err == nil && next.Revision != st.Revision {
			t.by(next.Rollout.ConfirmDeadline, st.now)
		}
		return next, err
	})
}

// Revert is as barrier.Decider has it.
func (t *Tx) Revert(ctx context.Context, r barrier.Ref, by barrier.Authority, reason string) error {
	return t.decide(ctx, by.Member, 0, func(st *state) (barrier.Head, error) {
		return st.Revert(r, by, st.seat(), reason, st.now)
	})
}

// Propose is as barrier.Proposing has it. The id of an earlier rollout is ErrInvalid, however long ago that was: a delayed
// repetition of its proposal must not put it to the cohort again.
func (t *Tx) Propose(ctx context.Context, p barrier.Proposal) (barrier.Rollout, error) {
	var rollout barrier.Rollout
	if err := checkNumber("version", p.Version); err != nil {
		return rollout, err
	}
	err := t.decide(ctx, "", wantRoster, func(st *state) (barrier.Head, error) {
		next, err := st.Propose(st.roster, p, st.now)
		if err != nil || next.Revision == st.Revision {
			if err == nil {
				rollout = *next.Rollout
			}
			return next, err
		}
		rollout = *next.Rollout
		var earlier uint64
		switch err := t.tx.QueryRowContext(ctx, t.s.dialect.rewrite(`SELECT generation FROM barrier.rollout WHERE cohort = $1 AND id = $2`),
			t.s.cohort, string(p.ID)).Scan(column[uint64]{&earlier}); {
		case err == nil:
			return next, fmt.Errorf("%w: id %s was proposed before, as generation %d", barrier.ErrInvalid, p.ID, earlier)
		case !errors.Is(err, sql.ErrNoRows):
			return next, err
		}
		return next, nil
	})
	if err != nil {
		return barrier.Rollout{}, err
	}
	return rollout, nil
}

// SetRoster is as barrier.Proposing has it.
func (t *Tx) SetRoster(ctx context.Context, revision uint64, members []barrier.MemberID) (barrier.Roster, error) {
	var roster barrier.Roster
	err := t.decide(ctx, "", wantRoster, func(st *state) (barrier.Head, error) {
		next, changed, err := st.ChangeRoster(st.roster, revision, members, st.now)
		if err != nil {
			return next, err
		}
		roster = changed
		if changed.Revision == st.roster.Revision {
			return next, nil
		}
		return next, t.saveRoster(ctx, st, changed)
	})
	if err != nil {
		return barrier.Roster{}, err
	}
	return roster, nil
}

// AdoptBaseline is as barrier.Proposing has it.
func (t *Tx) AdoptBaseline(ctx context.Context, p barrier.Pointer) (barrier.BaselineOutcome, error) {
	outcome := barrier.BaselineFailed
	if err := checkNumber("version", p.Version); err != nil {
		return outcome, err
	}
	err := t.decide(ctx, "", 0, func(st *state) (next barrier.Head, err error) {
		next, outcome, err = st.AdoptBaseline(p)
		return next, err
	})
	return outcome, err
}

// Advance makes p the committed pointer without a rollout, as barrier.Head.WithDecision says: for a host that also changes
// its configuration at once, in the transaction that moves its own pointer. Errors: ErrInvalid, *OpenError.
func (t *Tx) Advance(ctx context.Context, p barrier.Pointer) error {
	if err := errors.Join(checkNumber("version", p.Version), checkNumber("generation", p.Generation)); err != nil {
		return err
	}
	return t.decide(ctx, "", 0, func(st *state) (barrier.Head, error) { return st.WithDecision(p) })
}

// Claim implements barrier.Decider.
func (s *Store) Claim(ctx context.Context, token barrier.Token) error {
	return s.write(ctx, "claim", func(t *Tx) error { return t.Claim(ctx, token) })
}

// Commit implements barrier.Decider.
func (s *Store) Commit(ctx context.Context, r barrier.Ref, token barrier.Token) error {
	return s.write(ctx, "commit", func(t *Tx) error { return t.Commit(ctx, r, token) })
}

// Abort implements barrier.Decider.
func (s *Store) Abort(ctx context.Context, r barrier.Ref, by barrier.Authority, reason string) error {
	return s.write(ctx, "abort", func(t *Tx) error { return t.Abort(ctx, r, by, reason) })
}

// Confirm implements barrier.Decider.
func (s *Store) Confirm(ctx context.Context, r barrier.Ref, token barrier.Token) error {
	return s.write(ctx, "confirm", func(t *Tx) error { return t.Confirm(ctx, r, token) })
}

// Revert implements barrier.Voter and barrier.Decider.
func (s *Store) Revert(ctx context.Context, r barrier.Ref, by barrier.Authority, reason string) error {
	return s.write(ctx, "revert", func(t *Tx) error { return t.Revert(ctx, r, by, reason) })
}

// Propose implements barrier.Proposing; see Tx.Propose.
func (s *Store) Propose(ctx context.Context, p barrier.Proposal) (rollout barrier.Rollout, err error) {
	err = s.write(ctx, "propose", func(t *Tx) (err error) {
		rollout, err = t.Propose(ctx, p)
		return err
	})
	if err != nil {
		return barrier.Rollout{}, err
	}
	return rollout, nil
}

// SetRoster implements barrier.Proposing.
func (s *Store) SetRoster(ctx context.Context, revision uint64, members []barrier.MemberID) (roster barrier.Roster, err error) {
	err = s.write(ctx, "set the roster", func(t *Tx) (err error) {
		roster, err = t.SetRoster(ctx, revision, members)
		return err
	})
	if err != nil {
		return barrier.Roster{}, err
	}
	return roster, nil
}

// AdoptBaseline implements barrier.Proposing.
func (s *Store) AdoptBaseline(ctx context.Context, p barrier.Pointer) (outcome barrier.BaselineOutcome, err error) {
	err = s.write(ctx, "adopt the baseline", func(t *Tx) (err error) {
		outcome, err = t.AdoptBaseline(ctx, p)
		return err
	})
	if err != nil {
		return barrier.BaselineFailed, err
	}
	return outcome, nil
}
