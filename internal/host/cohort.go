package host

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/sqlstore"
	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/store"
)

// cohortName is what the one cohort of a platform is called in its database.
const cohortName = "nodes"

// decider says what the control plane's rows take over of a step of a rollout: control.Service.Decided.
type decider func(context.Context, control.DecisionFacts) (control.Decision, error)

// openCohort opens the rollout store on db's connections and joins the two, so that what concerns both is one transaction. decided
// and then trace are called within the cohort's steps, the first of which its caller takes; they need not be ready before.
func openCohort(ctx context.Context, db *store.DB, decided decider, trace func(*barrier.Rollout)) (*sqlstore.Store, error) {
	writer, reader := db.Pools()
	cohort, err := sqlstore.New(ctx, writer, sqlstore.Dialect(db.Kind()), cohortName, sqlstore.ReadFrom(reader),
		sqlstore.OnChange(func(ctx context.Context, tx *sql.Tx, before, after barrier.Head) error {
			if err := db.DecideIn(ctx, tx, before, after, decided); err != nil {
				return err
			}
			trace(after.Rollout)
			return nil
		}))
	if schema := (*sqlstore.SchemaError)(nil); errors.As(err, &schema) && schema.Have < schema.Want {
		return nil, fmt.Errorf("%w: run gdn migrate", err)
	}
	if err != nil {
		return nil, err
	}
	db.JoinCohort(func(tx *sql.Tx) store.CohortTx { return cohort.In(tx) })
	return cohort, nil
}

// newCoordinator returns what decides rollouts while this process, of all control planes, holds the lease.
func (c *Control) newCoordinator() *barrier.Coordinator {
	const most = barrier.MaxNameBytes / 2 // something random is added
	holder := instance(c.Addr())
	return barrier.NewCoordinator(barrier.CoordinatorOptions{
		Store: noting{c.cohort, &c.rollouts}, Leases: c.cohort, Holder: holder[:min(len(holder), most)], Lease: c.cfg.Lease, Logger: c.cfg.Logger,
	})
}

// instance names this process for people: its machine, and where it listens there.
func instance(listens string) string {
	name, err := os.Hostname()
	if err != nil {
		name = "gdn"
	}
	return name + " " + listens
}
