package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/failpoint"
)

// RecordAhead implements control.PublishStore.
func (db *DB) RecordAhead(ctx context.Context, n control.AheadNode, a control.AuditEntry) (recorded bool, err error) {
	err = db.write(ctx, func(q querier) error {
		recorded = false
		// The lock that publishers and recoveries wait for; it changes nothing.
		var epoch, generation uint64
		err := q.row(ctx, `UPDATE edge.platform SET directory = directory RETURNING epoch, generation`).Scan(&epoch, &generation)
		if err != nil {
			return err
		}
		if cmp.Or(cmp.Compare(n.Epoch, epoch), cmp.Compare(n.Generation, generation)) <= 0 {
			return nil
		}
		changed, err := q.exec(ctx, `
			INSERT INTO edge.ahead (one, epoch, generation, version, node, signed, seen_at) VALUES (1, $1, $2, $3, $4, $5, $6)
			ON CONFLICT (one) DO UPDATE SET epoch = excluded.epoch, generation = excluded.generation,
				version = excluded.version, node = excluded.node, signed = excluded.signed, seen_at = excluded.seen_at
			WHERE (ahead.epoch, ahead.generation) < (excluded.epoch, excluded.generation)`,
			int64(n.Epoch), int64(n.Generation), int64(n.Version), n.Node, string(n.Activation), timeArg(n.SeenAt))
		if err != nil || changed == 0 {
			return err
		}
		recorded = true
		q.touch()
		if err := q.appendAudit(ctx, a); err != nil {
			return err
		}
		return failpoint.Hit(failpoint.AheadRecorded)
	})
	if err == nil && recorded {
		err = failpoint.Hit(failpoint.AheadCommitted)
	}
	if err != nil {
		return false, fmt.Errorf("record that node %q is ahead: %w", n.Node, err)
	}
	return recorded, nil
}

// nobodyAhead is ErrNodeAhead while something is recorded that this database does not know.
func (q querier) nobodyAhead(ctx context.Context) error {
	var epoch, generation uint64
	switch err := missing(q.row(ctx, `SELECT epoch, generation FROM edge.ahead`).Scan(&epoch, &generation)); {
	case errors.Is(err, control.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("%w: it has epoch %d, generation %d", control.ErrNodeAhead, epoch, generation)
}

// BumpEpoch implements control.PublishStore.
func (db *DB) BumpEpoch(ctx context.Context, b control.EpochBump) error {
	if b.Epoch <= b.SeenEpoch {
		return fmt.Errorf("bump epoch: %d does not follow %d", b.Epoch, b.SeenEpoch)
	}
	err := db.write(ctx, func(q querier) error {
		if err := q.raise(ctx, b.Generation); err != nil {
			return err
		}
		n, err := q.exec(ctx, `UPDATE edge.platform SET epoch = $1 WHERE epoch = $2`, int64(b.Epoch), int64(b.SeenEpoch))
		if err == nil && n == 0 {
			err = fmt.Errorf("%w: the epoch is not %d", control.ErrConflict, b.SeenEpoch)
		}
		if err != nil {
			return err
		}
		q.touch()
		if err := failpoint.Hit(failpoint.RecoverEpoch); err != nil {
			return err
		}
		if _, err := q.exec(ctx, `DELETE FROM edge.ahead WHERE epoch < $1`, int64(b.Epoch)); err != nil {
			return err
		}
		if err := failpoint.Hit(failpoint.RecoverLifted); err != nil {
			return err
		}
		if _, err := q.exec(ctx, q.dialect.advanceVersion(), int64(b.Version)); err != nil {
			return err
		}
		if err := failpoint.Hit(failpoint.RecoverVersion); err != nil {
			return err
		}
		if err := q.appendAudit(ctx, b.Audit); err != nil {
			return err
		}
		return failpoint.Hit(failpoint.RecoverAudited)
	})
	if err == nil {
		err = failpoint.Hit(failpoint.RecoverCommitted)
	}
	if err != nil {
		return fmt.Errorf("bump epoch to %d: %w", b.Epoch, err)
	}
	return nil
}
