package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/failpoint"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/zone"
)

const purgeColumns = `sequence, id, workspace_id, zone, kind, value_list, at, by`

func scanPurge(scan func(...any) error) (control.PurgeRow, error) {
	var (
		r      control.PurgeRow
		of     string
		values []byte
	)
	err := scan(&r.Sequence, &r.ID, &r.Workspace, &of, &r.Kind, &values, timeColumn{&r.At}, &r.By)
	if err == nil {
		r.Zone, err = zone.ParseName(of)
	}
	if err != nil {
		return control.PurgeRow{}, err
	}
	if err := json.Unmarshal(values, &r.Values); err != nil {
		return control.PurgeRow{}, fmt.Errorf("stored values of purge %d: %w", r.Sequence, err)
	}
	return r, nil
}

// AddPurge implements control.PurgeStore.
func (db *DB) AddPurge(ctx context.Context, n control.NewPurge) (uint64, error) {
	r := n.Row
	values, err := json.Marshal(r.Values, json.FormatNilSliceAsNull(true))
	if err != nil {
		return 0, fmt.Errorf("purge: %w", err)
	}
	err = db.write(ctx, func(q querier) error {
		// First the lock that every purge waits for: from here to the commit there is no other.
		var head, floor int64
		err := q.row(ctx, `UPDATE edge.purge_log SET head = head + 1, head_id = $1 RETURNING head, floor`, r.ID).Scan(&head, &floor)
		if err != nil {
			return err
		}
		q.touch()
		r.Sequence = uint64(head)
		if err := failpoint.Hit(failpoint.PurgeNumbered); err != nil {
			return err
		}
		if err := q.purgeRate(ctx, n); err != nil {
			return err
		}
		_, err = q.exec(ctx, `INSERT INTO edge.purge (`+purgeColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
			head, r.ID, r.Workspace, r.Zone.String(), string(r.Kind), string(values), timeArg(r.At), r.By)
		if err != nil {
			return err
		}
		if err := failpoint.Hit(failpoint.PurgeInserted); err != nil {
			return err
		}
		if err := q.dropPurges(ctx, n, head, floor); err != nil {
			return err
		}
		return failpoint.Hit(failpoint.PurgeDropped)
	}, n.Audit)
	if err == nil {
		err = failpoint.Hit(failpoint.PurgeCommitted)
	}
	if err != nil {
		return 0, fmt.Errorf("purge of zone %s: %w", r.Zone, err)
	}
	return r.Sequence, nil
}

// purgeRate refuses one purge too many.
func (q querier) purgeRate(ctx context.Context, n control.NewPurge) error {
	since := timeArg(n.Row.At.Add(-n.Window))
	var inZone, inWorkspace int
	err := q.row(ctx, `SELECT count(*), count(CASE WHEN zone = $1 THEN 1 END) FROM edge.purge WHERE workspace_id = $2 AND at > $3`,
		n.Row.Zone.String(), n.Row.Workspace, since).Scan(&inWorkspace, &inZone)
	switch {
	case err != nil:
		return err
	case inZone >= n.ZoneMost:
		return &control.PurgeRateError{Of: "zone", Most: n.ZoneMost, Window: n.Window}
	case inWorkspace >= n.WorkspaceMost:
		return &control.PurgeRateError{Of: "workspace", Most: n.WorkspaceMost, Window: n.Window}
	}
	return nil
}

// maxDropped is how many purges one that is added drops at most. It is more than one, so that a log which is too long becomes
// shorter, and bounded, so that no purge waits for it.
const maxDropped = 1000

// dropPurges moves the floor over what is too old or too much, and drops what is under it.
func (q querier) dropPurges(ctx context.Context, n control.NewPurge, head, floor int64) error {
	to := max(floor, min(head-int64(n.KeepRows), floor+maxDropped))
	oldest := n.Row.At.Add(-n.KeepAge)
	var first time.Time
	// As long as the first one is to be kept, so are the others.
	err := q.row(ctx, `SELECT at FROM edge.purge WHERE sequence = $1`, floor+1).Scan(timeColumn{&first})
	if err == nil && first.Before(oldest) {
		var last int64
		err = q.row(ctx, `SELECT max(sequence) FROM edge.purge WHERE sequence > $1 AND sequence <= $2 AND at < $3`,
			floor, floor+maxDropped, timeArg(oldest)).Scan(&last)
		to = max(to, last)
	}
	if err != nil || to == floor {
		return err
	}
	if _, err := q.exec(ctx, `UPDATE edge.purge_log SET floor = $1, floor_id = (SELECT id FROM edge.purge WHERE sequence = $2)`, to, to); err != nil {
		return err
	}
	_, err = q.exec(ctx, `DELETE FROM edge.purge WHERE sequence > $1 AND sequence <= $2`, floor, to)
	return err
}

// errEnough ends the reading of rows.
var errEnough = errors.New("that is enough")

// PurgesAfter implements control.PurgeStore.
func (db *DB) PurgesAfter(ctx context.Context, after seal.PurgeMark, most, bytes int) (control.PurgeBatch, error) {
	var b control.PurgeBatch
	err := db.read(ctx, func(q querier) error {
		b = control.PurgeBatch{}
		var floor seal.PurgeMark
		err := q.row(ctx, `SELECT head, head_id, floor, floor_id FROM edge.purge_log`).
			Scan(&b.Head.Sequence, &b.Head.ID, &floor.Sequence, &floor.ID)
		if err != nil {
			return err
		}
		switch {
		case after.Sequence < floor.Sequence || after.Sequence > b.Head.Sequence:
		case after.Sequence == floor.Sequence:
			b.Known = after == floor
		default:
			var id string
			if err := q.row(ctx, `SELECT id FROM edge.purge WHERE sequence = $1`, int64(after.Sequence)).Scan(&id); err != nil {
				return err
			}
			b.Known = id == after.ID
		}
		if !b.Known || after == b.Head {
			return nil
		}
		taken := 0
		err = q.each(ctx, func(rows *sql.Rows) error {
			r, err := scanPurge(rows.Scan)
			if err != nil {
				return err
			}
			for _, v := range r.Values {
				taken += len(v)
			}
			if taken > bytes && len(b.Rows) > 0 {
				return errEnough
			}
			b.Rows = append(b.Rows, r)
			return nil
		}, `SELECT `+purgeColumns+` FROM edge.purge WHERE sequence > $1 ORDER BY sequence LIMIT $2`, int64(after.Sequence), most)
		if errors.Is(err, errEnough) {
			return nil
		}
		return err
	})
	if err != nil {
		return control.PurgeBatch{}, fmt.Errorf("purges after %s: %w", after, err)
	}
	return b, nil
}

// Purge implements control.PurgeStore.
func (db *DB) Purge(ctx context.Context, ws string, of zone.Name, purge string) (control.PurgeRow, error) {
	r, err := scanPurge(db.single().row(ctx, `SELECT `+purgeColumns+` FROM edge.purge WHERE id = $1 AND zone = $2 AND workspace_id = $3`,
		purge, of.String(), ws).Scan)
	if err != nil {
		return control.PurgeRow{}, fmt.Errorf("purge %.80q: %w", purge, missing(err))
	}
	return r, nil
}

// ListPurges implements control.PurgeStore.
func (db *DB) ListPurges(ctx context.Context, ws string, of zone.Name, p control.Page) ([]control.PurgeRow, error) {
	if err := checkPage(p); err != nil {
		return nil, fmt.Errorf("list purges: %w", err)
	}
	var w where
	w.and(`zone = ?`, of.String())
	w.and(`workspace_id = ?`, ws)
	var all []control.PurgeRow
	err := db.read(ctx, func(q querier) error {
		if p.After != "" {
			if err := q.hasRow(ctx, `edge.purge`, w, p.After); err != nil {
				return err
			}
			w.and(`sequence < (SELECT sequence FROM edge.purge WHERE id = ?)`, p.After)
		}
		return q.each(ctx, func(rows *sql.Rows) error {
			r, err := scanPurge(rows.Scan)
			all = append(all, r)
			return err
		}, `SELECT `+purgeColumns+` FROM edge.purge`+w.String()+` ORDER BY sequence DESC LIMIT `+w.arg(p.Limit), w.args...)
	})
	if err != nil {
		return nil, fmt.Errorf("list purges: %w", err)
	}
	return all, nil
}

// PurgeIDs implements control.PurgeStore.
func (db *DB) PurgeIDs(ctx context.Context, numbers []uint64) (map[uint64]string, error) {
	ids := make(map[uint64]string, len(numbers))
	for len(numbers) > 0 {
		chunk := numbers[:min(len(numbers), chunkRows)]
		numbers = numbers[len(chunk):]
		args := make([]any, len(chunk))
		for i, n := range chunk {
			args[i] = int64(n)
		}
		err := db.single().each(ctx, func(rows *sql.Rows) error {
			var (
				n  uint64
				id string
			)
			err := rows.Scan(&n, &id)
			ids[n] = id
			return err
		}, `SELECT sequence, id FROM edge.purge WHERE sequence IN (`+places(len(chunk), 1)+`)`, args...)
		if err != nil {
			return nil, fmt.Errorf("ids of purges: %w", err)
		}
	}
	return ids, nil
}
