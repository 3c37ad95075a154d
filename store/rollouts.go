package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/failpoint"
)

// ProposeRollout implements control.RolloutStore.
func (db *DB) ProposeRollout(ctx context.Context, n control.NewRollout) (barrier.Rollout, error) {
	var ro barrier.Rollout
	if err := checkCandidate(n); err != nil {
		return ro, fmt.Errorf("propose: %w", err)
	}
	err := db.write(ctx, func(q querier) error {
		err := q.withCohort(ctx, func(c CohortTx) error {
			if err := q.proposable(ctx, n); err != nil {
				return err
			}
			before, err := c.Current(ctx)
			if err != nil {
				return err
			}
			p := n.Proposal
			if p.Seen == before.Generation {
				// What was adopted just now is what the proposer saw live.
				after, err := c.Current(ctx)
				if err != nil {
					return err
				}
				p.Seen = after.Generation
			}
			ro, err = c.Propose(ctx, p)
			return err
		})
		if err == nil {
			err = failpoint.Hit(failpoint.RolloutProposed)
		}
		if err != nil {
			return err
		}
		return q.keepCandidate(ctx, n, ro)
	})
	if err == nil {
		err = failpoint.Hit(failpoint.RolloutCommitted)
	}
	if err != nil {
		return barrier.Rollout{}, fmt.Errorf("propose version %d as rollout %s: %w", n.Row.Version, n.Row.ID, err)
	}
	return ro, nil
}

// proposable holds n against what is live. The cohort's lock is held, so that it stays so.
func (q querier) proposable(ctx context.Context, n control.NewRollout) error {
	var epoch, generation uint64
	if err := q.row(ctx, `SELECT epoch, generation FROM edge.platform`).Scan(&epoch, &generation); err != nil {
		return err
	}
	if epoch != n.Row.Epoch || generation != n.SeenGeneration {
		return fmt.Errorf("%w: epoch %d, generation %d is live, not epoch %d, generation %d", control.ErrConflict, epoch, generation, n.Row.Epoch, n.SeenGeneration)
	}
	return q.nobodyAhead(ctx)
}

// keepCandidate writes what ro carries.
func (q querier) keepCandidate(ctx context.Context, n control.NewRollout, ro barrier.Rollout) error {
	if n.Insert != nil {
		if err := q.insertSnapshot(ctx, n.Insert); err != nil {
			return err
		}
	}
	if n.Reseal != nil {
		if err := q.reseal(ctx, n.Reseal); err != nil {
			return err
		}
	}
	if err := failpoint.Hit(failpoint.RolloutInserted); err != nil {
		return err
	}
	r := n.Row
	_, err := q.exec(ctx, `
		INSERT INTO edge.rollout (id, epoch, generation, kind, version, content_hash, message, by, margin, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		string(r.ID), int64(r.Epoch), int64(ro.Generation), string(r.Kind), int64(r.Version), r.ContentHash, r.Message, r.By, r.Margin, timeArg(r.CreatedAt))
	if err != nil {
		return q.identity(err)
	}
	if err := failpoint.Hit(failpoint.RolloutKept); err != nil {
		return err
	}
	entry, replay, err := n.Complete(ro)
	if err == nil && replay != nil {
		err = q.insertReplay(ctx, *replay)
	}
	if err == nil {
		err = q.appendAudit(ctx, entry)
	}
	if err == nil {
		err = q.countRollouts(ctx)
	}
	if err != nil {
		return err
	}
	return failpoint.Hit(failpoint.RolloutAudited)
}

// checkCandidate refuses what no run of the transaction could make right.
func checkCandidate(n control.NewRollout) error {
	r := n.Row
	switch {
	case r.ID != n.Proposal.ID || r.Version != n.Proposal.Version:
		return fmt.Errorf("rollout %s of version %d is to be proposed as %s of version %d", r.ID, r.Version, n.Proposal.ID, n.Proposal.Version)
	case n.Proposal.After < n.SeenGeneration:
		return fmt.Errorf("it is to come after generation %d, and %d is live", n.Proposal.After, n.SeenGeneration)
	case n.Insert != nil && n.Reseal != nil:
		return errors.New("a version is to be inserted and sealed anew")
	case n.Reseal != nil && n.Reseal.Version != r.Version:
		return fmt.Errorf("version %d is to be sealed anew while version %d is proposed", n.Reseal.Version, r.Version)
	case n.Insert != nil && (n.Insert.Row.Version != r.Version || n.Insert.Sealed.Version != r.Version):
		return fmt.Errorf("version %d is to be inserted, sealed as %d and proposed as %d", n.Insert.Row.Version, n.Insert.Sealed.Version, r.Version)
	case n.Insert != nil && (n.Insert.Row.ContentHash != r.ContentHash || n.Insert.Sealed.ContentHash != r.ContentHash):
		return fmt.Errorf("version %d has content hash %s, is sealed as %s and proposed as %s",
			r.Version, n.Insert.Row.ContentHash, n.Insert.Sealed.ContentHash, r.ContentHash)
	}
	return nil
}

const rolloutColumns = `id, epoch, generation, kind, version, content_hash, message, by, margin, created_at, provisional`

func rolloutInto(r *control.RolloutRow) []any {
	return []any{
		&r.ID, &r.Epoch, &r.Generation, &r.Kind, &r.Version, &r.ContentHash, &r.Message, &r.By, &r.Margin,
		timeColumn{&r.CreatedAt},
		textColumn{(*string)(&r.Provisional)},
	}
}

// RolloutRows implements control.RolloutStore.
func (db *DB) RolloutRows(ctx context.Context, ids []barrier.RolloutID) ([]control.RolloutRow, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	if len(ids) > maxPage {
		return nil, fmt.Errorf("at most %d rollouts are read at once, not %d", maxPage, len(ids))
	}
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = string(id)
	}
	var all []control.RolloutRow
	err := db.single().each(ctx, func(rows *sql.Rows) error {
		var r control.RolloutRow
		err := rows.Scan(rolloutInto(&r)...)
		all = append(all, r)
		return err
	}, `SELECT `+rolloutColumns+` FROM edge.rollout WHERE id IN (`+places(len(ids), 1)+`)`, args...)
	if err != nil {
		return nil, fmt.Errorf("read rollouts: %w", err)
	}
	return all, nil
}

// DecideIn writes what decide says of a step of a rollout in the step's own transaction tx, of which the cohort's lock is
// held. The rollout store calls it, by way of the host, whenever the cohort's head changes.
func (db *DB) DecideIn(ctx context.Context, tx *sql.Tx, before, after barrier.Head,
	decide func(context.Context, control.DecisionFacts) (control.Decision, error),
) error {
	old, ro := before.Rollout, after.Rollout
	// What is proposed is written by ProposeRollout, and what changes no rollout by who changes it.
	if ro == nil || old == nil || old.ID != ro.ID || old.State == ro.State {
		return nil
	}
	q := querier{dialect: db.dialect, conn: tx}
	err := failpoint.Hit(failpoint.DecideBegin)
	if err == nil {
		err = q.decide(ctx, before, after, decide)
	}
	if err != nil {
		return fmt.Errorf("rollout %s becomes %s: %w", ro.ID, ro.State, err)
	}
	return nil
}

func (q querier) decide(ctx context.Context, before, after barrier.Head,
	decide func(context.Context, control.DecisionFacts) (control.Decision, error),
) error {
	// The lock of the platform's row comes before what is read of it.
	if err := q.countRollouts(ctx); err != nil {
		return err
	}
	facts, err := q.decisionFacts(ctx, before, after)
	if err != nil {
		return err
	}
	d, err := decide(ctx, facts)
	if err != nil {
		return err
	}
	if d.Provisional != "" {
		n, err := q.exec(ctx, `UPDATE edge.rollout SET provisional = $1 WHERE id = $2`, string(d.Provisional), string(d.Rollout))
		if err == nil && n == 0 {
			err = fmt.Errorf("rollout %s: %w", d.Rollout, control.ErrNotFound)
		}
		if err != nil {
			return err
		}
		if err := failpoint.Hit(failpoint.DecideProvisional); err != nil {
			return err
		}
	}
	if d.Publish != nil {
		if err := q.publish(ctx, *d.Publish); err != nil {
			return err
		}
		if err := failpoint.Hit(failpoint.DecidePublished); err != nil {
			return err
		}
	}
	for _, a := range d.Audit {
		if err := q.appendAudit(ctx, a); err != nil {
			return err
		}
	}
	return failpoint.Hit(failpoint.DecideAudited)
}

// decisionFacts reads what a step is judged by.
func (q querier) decisionFacts(ctx context.Context, before, after barrier.Head) (control.DecisionFacts, error) {
	f := control.DecisionFacts{Before: before, After: after}
	var ahead sql.Null[int64]
	err := q.row(ctx, `SELECT p.id, p.epoch, p.generation, a.generation FROM edge.platform p LEFT JOIN edge.ahead a ON a.one = p.one`).
		Scan(&f.Platform.ID, &f.Platform.Epoch, &f.Platform.Generation, &ahead)
	if err != nil {
		return f, fmt.Errorf("read platform: %w", err)
	}
	if ahead.Valid {
		f.Platform.Ahead = &control.AheadNode{Generation: uint64(ahead.V)}
	}
	id := after.Rollout.ID
	err = missing(q.row(ctx, `SELECT `+rolloutColumns+` FROM edge.rollout WHERE id = $1`, string(id)).Scan(rolloutInto(&f.Row)...))
	if err != nil {
		return f, fmt.Errorf("what rollout %s carries: %w", id, err)
	}
	seals := func(condition string, args ...any) (s control.StoredSeal, err error) {
		err = missing(q.row(ctx, `SELECT version, content_hash, key_id, payload_blake3, bytes FROM edge.snapshot WHERE `+condition, args...).
			Scan(&s.Version, &s.ContentHash, &s.KeyID, &s.PayloadBLAKE3, &s.Bytes))
		return s, err
	}
	if f.Candidate, err = seals(`version = $1`, int64(f.Row.Version)); err != nil {
		return f, fmt.Errorf("version %d of rollout %s: %w", f.Row.Version, id, err)
	}
	switch live, err := seals(`activated_at IS NOT NULL`); {
	case err == nil:
		f.Live = &live
	case !errors.Is(err, control.ErrNotFound):
		return f, fmt.Errorf("live snapshot: %w", err)
	}
	if member, ok := strings.CutPrefix(after.Rollout.DecidedBy, "deadman of "); ok {
		switch err := missing(q.row(ctx, `SELECT name FROM edge.node WHERE id = $1`, member).Scan(&f.Node)); {
		case errors.Is(err, control.ErrNotFound):
			f.Node = member // it was deleted meanwhile
		case err != nil:
			return f, fmt.Errorf("node %s: %w", member, err)
		}
	}
	return f, nil
}

// ClusterSettings implements control.RolloutStore.
func (db *DB) ClusterSettings(ctx context.Context) (control.ClusterSettings, error) {
	var (
		c                      control.ClusterSettings
		window, deadline, soak int64
	)
	err := db.single().row(ctx, `
		SELECT rollout_mode, confirm_window_ms, deadline_ms, soak_ms, margin, settings_revision FROM edge.platform`).
		Scan(&c.Rollout, &window, &deadline, &soak, &c.Margin, &c.Revision)
	if err != nil {
		return c, fmt.Errorf("read cluster settings: %w", err)
	}
	c.ConfirmWindow, c.Deadline, c.Soak = milliseconds(window), milliseconds(deadline), milliseconds(soak)
	return c, nil
}

func milliseconds(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// PutClusterSettings implements control.RolloutStore.
func (db *DB) PutClusterSettings(ctx context.Context, c control.ClusterSettings, a control.AuditEntry) (revision int64, err error) {
	err = db.write(ctx, func(q querier) error {
		err := q.row(ctx, `
			UPDATE edge.platform SET rollout_mode = $1, confirm_window_ms = $2, deadline_ms = $3, soak_ms = $4, margin = $5,
				settings_revision = settings_revision + 1 WHERE settings_revision = $6 RETURNING settings_revision`,
			string(c.Rollout), c.ConfirmWindow.Milliseconds(), c.Deadline.Milliseconds(), c.Soak.Milliseconds(), c.Margin, c.Revision).Scan(&revision)
		if errors.Is(err, sql.ErrNoRows) {
			return fmt.Errorf("%w: the revision is not %d", control.ErrConflict, c.Revision)
		}
		return err
	}, a)
	if err != nil {
		return 0, fmt.Errorf("put cluster settings: %w", err)
	}
	return revision, nil
}
