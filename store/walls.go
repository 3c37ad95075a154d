package store

import (
	"context"
	"database/sql"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/control"
)

// Pools returns the connections for writing and for reading, which on Postgres are the same. They stay the store's.
func (db *DB) Pools() (writer, reader *sql.DB) { return db.writer, db.reader }

// Kind is "postgres" or "sqlite".
func (db *DB) Kind() string { panic("unbuilt") }

// CohortTx is a rollout store's part in a transaction of this one.
type CohortTx interface {
	// Current returns the cohort's row as the transaction sees it, and takes no lock.
	Current(ctx context.Context) (barrier.Row, error)
	// Lock takes the cohort's lock.
	Lock(ctx context.Context) error
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

// JoinCohort has what changes a cohort too be one transaction with it. It is called once, before the DB is used.
func (db *DB) JoinCohort(in func(tx *sql.Tx) CohortTx) { panic("unbuilt") }

// DecideIn writes what decide says of a step of a rollout in the step's own transaction. The rollout store calls it, by way
// of the host, whenever its head changes.
func (db *DB) DecideIn(ctx context.Context, tx *sql.Tx, before, after barrier.Head,
	decide func(context.Context, control.DecisionFacts) (control.Decision, error),
) error {
	panic("unbuilt")
}

// ClusterSettings implements control.RolloutStore.
func (db *DB) ClusterSettings(ctx context.Context) (control.ClusterSettings, error) { panic("unbuilt") }

// PutClusterSettings implements control.RolloutStore.
func (db *DB) PutClusterSettings(ctx context.Context, c control.ClusterSettings, a control.AuditEntry) (int64, error) {
	panic("unbuilt")
}

// ProposeRollout implements control.RolloutStore.
func (db *DB) ProposeRollout(ctx context.Context, n control.NewRollout) (barrier.Rollout, error) {
	panic("unbuilt")
}

// RolloutRows implements control.RolloutStore.
func (db *DB) RolloutRows(ctx context.Context, ids []barrier.RolloutID) ([]control.RolloutRow, error) {
	panic("unbuilt")
}

// SetCohort implements control.RolloutStore.
func (db *DB) SetCohort(ctx context.Context, nodeID string, member bool, a control.AuditEntry) (bool, error) {
	panic("unbuilt")
}

// AdoptLive implements control.RolloutStore.
func (db *DB) AdoptLive(ctx context.Context) error { panic("unbuilt") }
