package store

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"github.com/guardyn-edge/guardyn/control"
)

const snapshotColumns = `version, parent_version, content_hash, created_by, message, created_at, zones, bytes, key_id, activated_at`

// Live implements control.PublishStore.
func (db *DB) Live(ctx context.Context) (control.SnapshotRow, error) {
	rows, err := db.snapshots(ctx, ` WHERE activated_at IS NOT NULL`)
	if err != nil {
		return control.SnapshotRow{}, fmt.Errorf("live snapshot: %w", err)
	}
	if len(rows) == 0 {
		return control.SnapshotRow{}, fmt.Errorf("live snapshot: %w", control.ErrNotFound)
	}
	return rows[0], nil
}

// SnapshotByVersion implements control.PublishStore.
func (db *DB) SnapshotByVersion(ctx context.Context, version uint64) (control.SnapshotRow, error) {
	rows, err := db.snapshots(ctx, ` WHERE version = $1`, int64(version))
	if err != nil {
		return control.SnapshotRow{}, fmt.Errorf("snapshot version %d: %w", version, err)
	}
	if len(rows) == 0 {
		return control.SnapshotRow{}, fmt.Errorf("snapshot version %d: %w", version, control.ErrNotFound)
	}
	return rows[0], nil
}

// Activated implements control.PublishStore.
func (db *DB) Activated(ctx context.Context, epoch, generation uint64) (version uint64, contentHash string, err error) {
	err = db.single().row(ctx, `
		SELECT s.version, s.content_hash FROM edge.activation a JOIN edge.snapshot s ON s.version = a.version
		WHERE a.epoch = $1 AND a.generation = $2
		UNION
		SELECT version, content_hash FROM edge.rollout WHERE epoch = $1 AND generation = $2 AND provisional IS NOT NULL`,
		int64(epoch), int64(generation)).Scan(&version, &contentHash)
	if err != nil {
		return 0, "", fmt.Errorf("activation %d of epoch %d: %w", generation, epoch, missing(err))
	}
	return version, contentHash, nil
}

// History implements control.PublishStore.
func (db *DB) History(ctx context.Context, p control.Page) ([]control.SnapshotRow, error) {
	if err := checkPage(p); err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	var w where
	if p.After != "" {
		version, err := strconv.ParseInt(p.After, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("history: page after %q: %w", p.After, control.ErrNotFound)
		}
		w.and(`version < ?`, version)
	}
	rows, err := db.snapshots(ctx, w.String()+` ORDER BY version DESC LIMIT `+w.arg(p.Limit), w.args...)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	return rows, nil
}

// snapshots reads the rows that tail selects, with the activations of each, from one read.
func (db *DB) snapshots(ctx context.Context, tail string, args ...any) ([]control.SnapshotRow, error) {
	var rows []control.SnapshotRow
	err := db.read(ctx, func(q querier) error {
		err := q.each(ctx, func(r *sql.Rows) error {
			var s control.SnapshotRow
			err := r.Scan(&s.Version, &s.ParentVersion, &s.ContentHash, &s.CreatedBy, &s.Message, timeColumn{&s.CreatedAt},
				&s.Zones, &s.Bytes, &s.KeyID, timeColumn{&s.ActivatedAt})
			rows = append(rows, s)
			return err
		}, `SELECT `+snapshotColumns+` FROM edge.snapshot`+tail, args...)
		if err != nil || len(rows) == 0 {
			return err
		}
		return q.addActivations(ctx, rows)
	})
	return rows, err
}

// addActivations fills in what rows say of their activations.
func (q querier) addActivations(ctx context.Context, rows []control.SnapshotRow) error {
	byVersion := make(map[uint64]*control.SnapshotRow, len(rows))
	versions := make([]any, len(rows))
	for i := range rows {
		byVersion[rows[i].Version] = &rows[i]
		versions[i] = int64(rows[i].Version)
	}
	return q.each(ctx, func(r *sql.Rows) error {
		var (
			version    uint64
			generation uint64
			last       control.SnapshotRow
		)
		if err := r.Scan(&version, &last.Epoch, &generation, &last.Kind, &last.Activation); err != nil {
			return err
		}
		s := byVersion[version]
		s.Epoch, s.Kind, s.Activation = last.Epoch, last.Kind, last.Activation
		s.Generations = append(s.Generations, generation)
		return nil
	}, `SELECT version, epoch, generation, kind, signed FROM edge.activation WHERE version IN (`+places(len(rows), 1)+`)
		ORDER BY epoch, generation`, versions...)
}
