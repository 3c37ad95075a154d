package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/guardyn-edge/guardyn/barrier"
)

// MaxPage is the largest page of Rollouts.
const MaxPage = 1000

// Rollouts returns up to limit (1 to MaxPage) rollouts of the cohort, newest first: those whose generation is lower than
// before, or the newest when before is 0. All that ever were proposed are kept for good, with their ballots:
// with 1,000 members a rollout takes about 200 KB, with 10 about 2 KB.
func (s *Store) Rollouts(ctx context.Context, limit int, before uint64) (_ []barrier.Rollout, err error) {
	if limit < 1 || limit > MaxPage {
		return nil, fmt.Errorf("%w: a page holds 1 to %d rollouts, not %d", barrier.ErrInvalid, MaxPage, limit)
	}
	if before == 0 || before > maxNumber {
		before = maxNumber
	}
	var all []barrier.Rollout
	err = s.each(ctx, func(rows *sql.Rows) error {
		var r barrier.Rollout
		err := rows.Scan(rolloutInto(&r)...)
		all = append(all, r)
		return err
	}, `SELECT `+rolloutColumns+` FROM barrier.rollout r WHERE r.cohort = $1 AND r.generation < $2 ORDER BY r.generation DESC LIMIT $3`,
		s.cohort, number(before), limit)
	if err != nil {
		return nil, fmt.Errorf("read the rollouts of cohort %s: %w", s.cohort, err)
	}
	return all, nil
}

// Rollout returns a rollout, however old, with the seats of its epoch: of each the member's ballot, and its registration as
// it is now. ErrUnknown when there never was one of that id.
func (s *Store) Rollout(ctx context.Context, id barrier.RolloutID) (barrier.Rollout, []barrier.Seat, error) {
	var (
		r     barrier.Rollout
		seats []barrier.Seat
		none  = fmt.Errorf("%w: cohort %s never had rollout %.80q", barrier.ErrUnknown, s.cohort, id)
	)
	if barrier.CheckMember(barrier.MemberID(id), "boot") != nil { // the form is the same
		return r, nil, none
	}
	err := s.each(ctx, func(rows *sql.Rows) error {
		var seat barrier.Seat
		into := append(rolloutInto(&r), column[barrier.MemberID]{&seat.Member}, column[barrier.BootID]{&seat.Registration.Boot},
			column[uint64]{&seat.Registration.Incarnation}, column[uint64]{&seat.Registration.Joined})
		err := rows.Scan(append(into, ballotInto(&seat.Ballot)...)...)
		seats = append(seats, seat)
		return err
	}, `SELECT `+rolloutColumns+`, b.member, m.boot, m.incarnation, m.joined, `+ballotColumns+`
		FROM barrier.ballot b
		`+s.dialect.lookUp("barrier.rollout", "r", "r.cohort = b.cohort AND r.generation = b.generation")+`
		`+s.dialect.lookUp("barrier.member", "m", "m.cohort = b.cohort AND m.member = b.member")+`
		WHERE b.cohort = $1 AND b.generation = (SELECT generation FROM barrier.rollout WHERE cohort = $1 AND id = $2)
		ORDER BY b.member`, s.cohort, string(id))
	switch {
	case err != nil:
		return barrier.Rollout{}, nil, fmt.Errorf("read rollout %s: %w", id, err)
	case len(seats) == 0: // an epoch has a member at least
		return barrier.Rollout{}, nil, none
	}
	return r, seats, nil
}

// each calls f with every row of the answer.
func (s *Store) each(ctx context.Context, f func(*sql.Rows) error, statement string, args ...any) (err error) {
	rows, err := s.reader.QueryContext(ctx, s.dialect.rewrite(statement), args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
