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

// MemberBallot is what one member of an epoch said.
type MemberBallot struct {
	Member barrier.MemberID `json:"member"`
	Ballot barrier.Ballot   `json:"ballot"`
}

// Ballots returns the ballots of a rollout's whole epoch, sorted by member: zero ones of members that said nothing.
// ErrUnknown when there never was such a rollout.
func (s *Store) Ballots(ctx context.Context, id barrier.RolloutID) ([]MemberBallot, error) {
	unknown := fmt.Errorf("%w: cohort %s never had rollout %.80q", barrier.ErrUnknown, s.cohort, id)
	if barrier.CheckMember(barrier.MemberID(id), "boot") != nil { // the form is the same
		return nil, unknown
	}
	var all []MemberBallot
	err := s.each(ctx, func(rows *sql.Rows) error {
		var b MemberBallot
		err := rows.Scan(append([]any{column[barrier.MemberID]{&b.Member}}, ballotInto(&b.Ballot)...)...)
		all = append(all, b)
		return err
	}, `SELECT b.member, `+ballotColumns+` FROM barrier.ballot b
		WHERE b.cohort = $1 AND b.generation = (SELECT generation FROM barrier.rollout WHERE cohort = $1 AND id = $2) ORDER BY b.member`, s.cohort, string(id))
	if err != nil {
		return nil, fmt.Errorf("read the ballots of rollout %s: %w", id, err)
	}
	if len(all) == 0 { // an epoch has a member at least
		return nil, unknown
	}
	return all, nil
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
