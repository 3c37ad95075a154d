package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/failpoint"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
)

// Pools returns the connections for writing and for reading, which on Postgres are the same. They stay the store's.
func (db *DB) Pools() (writer, reader *sql.DB) { return db.writer, db.reader }

// Kind is "postgres" or "sqlite".
func (db *DB) Kind() string { return db.dialect.kind() }

// CohortTx is a rollout store's part in a transaction of this one.
type CohortTx interface {
	// Lock takes the cohort's lock, which comes before all of this store's.
	Lock(ctx context.Context) error
	// Current returns the cohort's row as the transaction sees it.
	Current(ctx context.Context) (barrier.Row, error)
	// Propose and SetRoster are as barrier.Proposing has them.
	Propose(ctx context.Context, p barrier.Proposal) (barrier.Rollout, error)
	SetRoster(ctx context.Context, revision uint64, members []barrier.MemberID) (barrier.Roster, error)
	// EmptyRoster is SetRoster of nobody.
	EmptyRoster(ctx context.Context, revision uint64) (barrier.Roster, error)
	// Advance makes p the committed pointer. Errors: barrier.ErrInvalid, *barrier.OpenError.
	Advance(ctx context.Context, p barrier.Pointer) error
	// Raise has every later generation be above generation. Error: *barrier.OpenError.
	Raise(ctx context.Context, generation uint64) error
}

// JoinCohort has what concerns a cohort too be one transaction with it: in returns its part in a transaction of this store's
// pool for writing. It is called once, before the DB is used.
func (db *DB) JoinCohort(in func(tx *sql.Tx) CohortTx) { db.cohort = in }

var errNoCohort = errors.New("the store was not joined to a cohort")

// withCohort runs f with the cohort locked. A named error of the cohort's is told in the words of control's ports.
func (q querier) withCohort(ctx context.Context, f func(CohortTx) error) error {
	if q.cohort == nil {
		return errNoCohort
	}
	restore, err := q.dialect.keepTimeout(ctx, q)
	if err != nil {
		return err
	}
	c := q.cohort()
	if err = c.Lock(ctx); err == nil {
		err = f(c)
	}
	if err != nil {
		return cohortError(err)
	}
	// A payload may take longer than what the cohort allows a statement.
	return restore()
}

func cohortError(err error) error {
	if open, ok := errors.AsType[*barrier.OpenError](err); ok {
		return &control.RolloutOpenError{Rollout: open.Rollout}
	}
	if errors.Is(err, barrier.ErrRoster) || errors.Is(err, barrier.ErrStale) {
		return fmt.Errorf("%w: %w", control.ErrConflict, err)
	}
	return err
}

// changeRoster puts a node into the roster or takes it out; changed tells whether it was elsewhere.
func (q querier) changeRoster(ctx context.Context, id string, member bool) (changed bool, err error) {
	err = q.withCohort(ctx, func(c CohortTx) error {
		row, err := c.Current(ctx)
		if err != nil {
			return err
		}
		node, roster := barrier.MemberID(id), row.Roster
		if changed = roster.Contains(node) != member; !changed {
			return nil
		}
		members := append(slices.Clone(roster.Members), node)
		if !member {
			members = slices.DeleteFunc(members, func(m barrier.MemberID) bool { return m == node })
		}
		if len(members) == 0 {
			_, err = c.EmptyRoster(ctx, roster.Revision)
		} else {
			_, err = c.SetRoster(ctx, roster.Revision, members)
		}
		if err != nil {
			return err
		}
		return failpoint.Hit(failpoint.RosterChanged)
	})
	if err == nil && changed {
		err = q.countRollouts(ctx)
	}
	return changed, err
}

// SetCohort implements control.RolloutStore.
func (db *DB) SetCohort(ctx context.Context, nodeID string, member bool, a control.AuditEntry) (changed bool, err error) {
	err = db.write(ctx, func(q querier) error {
		if changed, err = q.changeRoster(ctx, nodeID, member); err != nil {
			return err
		}
		var one int
		if err := q.row(ctx, `SELECT 1 FROM edge.node WHERE id = $1`, nodeID).Scan(&one); err != nil {
			return missing(err)
		}
		if !changed {
			return nil
		}
		return q.appendAudit(ctx, a)
	})
	if err != nil {
		return false, fmt.Errorf("cohort of node %s: %w", nodeID, err)
	}
	return changed, nil
}

// AdoptLive implements control.RolloutStore.
func (db *DB) AdoptLive(ctx context.Context) error {
	err := db.write(ctx, func(q querier) error { return q.withCohort(ctx, q.adopt(ctx)) })
	if err != nil {
		return fmt.Errorf("make what is live the cohort's: %w", err)
	}
	return nil
}

// adopt makes what is live the committed pointer of a cohort that has none and no rollout that could give it one.
func (q querier) adopt(ctx context.Context) func(CohortTx) error {
	return func(c CohortTx) error {
		row, err := c.Current(ctx)
		if err != nil || !row.Committed.IsZero() || row.Rollout != nil && row.Rollout.Open() {
			return err
		}
		var (
			p    barrier.Pointer
			hash string
		)
		err = missing(q.row(ctx, `SELECT p.generation, s.version, s.content_hash
			FROM edge.platform p JOIN edge.snapshot s ON s.activated_at IS NOT NULL`).Scan(&p.Generation, &p.Version, &hash))
		if errors.Is(err, control.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		// Rollouts that were aborted before anything was published here have taken generations.
		p.Generation = max(p.Generation, row.Generation+1)
		p.Digest = barrier.Digest(nodeproto.CandidateDigest(hash))
		return c.Advance(ctx, p)
	}
}

// advance makes what p activates the committed pointer of the cohort, if there is one.
func (q querier) advance(ctx context.Context, p control.Publication) error {
	if q.cohort == nil {
		return nil
	}
	err := q.withCohort(ctx, func(c CohortTx) error {
		return c.Advance(ctx, barrier.Pointer{
			Generation: p.Activation.Generation, Version: p.Activation.Version,
			Digest: barrier.Digest(nodeproto.CandidateDigest(p.Activation.ContentHash)),
		})
	})
	if errors.Is(err, barrier.ErrInvalid) {
		err = fmt.Errorf("%w: %w", control.ErrConflict, err)
	}
	if err != nil {
		return err
	}
	return failpoint.Hit(failpoint.PublishAdvanced)
}

// raise has generations of the cohort, if there is one, be above what a node showed.
func (q querier) raise(ctx context.Context, generation uint64) error {
	if q.cohort == nil {
		return nil
	}
	return q.withCohort(ctx, func(c CohortTx) error { return c.Raise(ctx, generation) })
}

// countRollouts moves the counter by which processes learn of a step of a rollout.
func (q querier) countRollouts(ctx context.Context) error {
	q.touch()
	_, err := q.exec(ctx, `UPDATE edge.platform SET rollouts = rollouts + 1`)
	return err
}
