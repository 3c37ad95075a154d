package store

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/zeebo/blake3"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/failpoint"
	"github.com/guardyn-edge/guardyn/zone"
)

const recordColumns = `id, name, type, content, coalesce(ttl, 0), proxied`

func scanRecord(scan func(...any) error) (control.RecordRow, error) {
	var (
		r    control.RecordRow
		name string
	)
	if err := scan(&r.ID, &name, &r.Type, &r.Content, &r.TTL, &r.Proxied); err != nil {
		return r, err
	}
	var err error
	if r.Name, err = zone.ParseName(name); err != nil {
		return r, fmt.Errorf("stored record %s: %w", r.ID, err)
	}
	return r, nil
}

// contentKey stands for a content where it must be unique: the first 128 bits of its BLAKE3, in hex. A
// content may be 64 KiB long, more than an index of Postgres takes.
func contentKey(content string) string {
	sum := blake3.Sum256([]byte(content))
	return hex.EncodeToString(sum[:16])
}

// ListRecords implements control.EditStore. A page key that is not a record of the zone (any more) is
// ErrNotFound.
func (db *DB) ListRecords(ctx context.Context, ws string, id zone.ID, f control.RecordFilter, p control.Page) ([]control.RecordRow, error) {
	if err := checkPage(p); err != nil {
		return nil, fmt.Errorf("list records: %w", err)
	}
	var records []control.RecordRow
	err := db.read(ctx, func(q querier) error {
		if _, err := q.zoneRevision(ctx, ws, id); err != nil {
			return err
		}
		var w where
		w.and(`zone_id = ?`, string(id))
		if p.After != "" {
			if err := q.hasRow(ctx, `edge.record`, w, p.After); err != nil {
				return err
			}
			w.and(`(name, type, content, id) > (SELECT name, type, content, id FROM edge.record WHERE zone_id = ? AND id = ?)`,
				string(id), p.After)
		}
		if !f.Name.IsZero() {
			w.and(`name = ?`, f.Name.String())
		}
		if f.Type != 0 {
			w.and(`type = ?`, int64(f.Type))
		}
		return q.each(ctx, func(rows *sql.Rows) error {
			r, err := scanRecord(rows.Scan)
			records = append(records, r)
			return err
		}, `SELECT `+recordColumns+` FROM edge.record`+w.String()+` ORDER BY name, type, content, id LIMIT `+w.arg(p.Limit), w.args...)
	})
	if err != nil {
		return nil, fmt.Errorf("records of zone %s: %w", id, err)
	}
	return records, nil
}

// ReadRecords implements control.EditStore, in the order of ListRecords.
func (db *DB) ReadRecords(ctx context.Context, ws string, id zone.ID) ([]control.RecordRow, int64, error) {
	var (
		records  []control.RecordRow
		revision int64
	)
	err := db.read(ctx, func(q querier) (err error) {
		if revision, err = q.zoneRevision(ctx, ws, id); err != nil {
			return err
		}
		return q.each(ctx, func(rows *sql.Rows) error {
			r, err := scanRecord(rows.Scan)
			records = append(records, r)
			return err
		}, `SELECT `+recordColumns+` FROM edge.record WHERE zone_id = $1 ORDER BY name, type, content, id`, string(id))
	})
	if err != nil {
		return nil, 0, fmt.Errorf("records of zone %s: %w", id, err)
	}
	return records, revision, nil
}

// ChangeRecords implements control.EditStore. What counts is how the zone stands afterwards: updates that
// exchange contents among themselves are one change.
func (db *DB) ChangeRecords(ctx context.Context, ws string, id zone.ID, ch control.RecordChange, ifRevision int64, a control.AuditEntry) error {
	err := db.write(ctx, func(q querier) error {
		revision, err := q.editZone(ctx, ws, id, ifRevision)
		if err == nil {
			err = failpoint.Hit(failpoint.RecordsRevised)
		}
		if err != nil {
			return err
		}
		var was []control.RecordRow
		keep := &was
		if ch.Tell == nil {
			keep = nil
		}
		if err := q.deleteRecords(ctx, id, ch.Delete, keep); err != nil {
			return err
		}
		updated := make([]string, len(ch.Update))
		for i, r := range ch.Update {
			updated[i] = r.ID
		}
		// An update takes the row out and puts it back under the same id.
		if err := q.deleteRecords(ctx, id, updated, keep); err != nil {
			return err
		}
		if err := failpoint.Hit(failpoint.RecordsDeleted); err != nil {
			return err
		}
		if err := q.insertRecords(ctx, id, ch.Update); err != nil {
			return err
		}
		if err := q.insertRecords(ctx, id, ch.Insert); err != nil {
			return err
		}
		if err := failpoint.Hit(failpoint.RecordsInserted); err != nil {
			return err
		}
		if n := len(ch.Insert) - len(ch.Delete); n != 0 {
			if _, err := q.exec(ctx, `UPDATE edge.zone SET records = records + $2 WHERE id = $1`, string(id), n); err != nil {
				return err
			}
		}
		if ch.Settings != nil {
			settings := control.ObjectRow{Kind: control.KindSettings, Name: "zone", Body: ch.Settings}
			if err := q.upsertObject(ctx, id, settings, revision); err != nil {
				return err
			}
		}
		a := a
		if ch.Tell != nil {
			ch.Tell(&a, was)
		}
		if err := q.appendAudit(ctx, a); err != nil {
			return err
		}
		return failpoint.Hit(failpoint.RecordsAudited)
	})
	if err != nil {
		return fmt.Errorf("change records of zone %s: %w", id, err)
	}
	return nil
}

// deleteRecords is ErrNotFound when one of ids is not in the zone, or is named twice. What they were is added
// to was, unless that is nil.
func (q querier) deleteRecords(ctx context.Context, id zone.ID, ids []string, was *[]control.RecordRow) error {
	returning := `id`
	if was != nil {
		returning = recordColumns
	}
	for chunk := range slices.Chunk(ids, chunkRows) {
		args := make([]any, 0, len(chunk)+1)
		args = append(args, string(id))
		left := make(map[string]int, len(chunk))
		for _, record := range chunk {
			args = append(args, record)
			left[record]++
		}
		err := q.each(ctx, func(rows *sql.Rows) error {
			if was == nil {
				var record string
				err := rows.Scan(&record)
				left[record]--
				return err
			}
			r, err := scanRecord(rows.Scan)
			left[r.ID]--
			*was = append(*was, r)
			return err
		}, `DELETE FROM edge.record WHERE zone_id = $1 AND id IN (`+places(len(chunk), 2)+`) RETURNING `+returning, args...)
		if err != nil {
			return err
		}
		for _, record := range chunk {
			if left[record] > 0 {
				return fmt.Errorf("record %s: %w", record, control.ErrNotFound)
			}
		}
	}
	return nil
}

// insertRecords is ErrExists when a record's identity, or its id, stands already or is given twice.
func (q querier) insertRecords(ctx context.Context, id zone.ID, records []control.RecordRow) error {
	const columns = 8
	for chunk := range slices.Chunk(records, chunkRows) {
		args := make([]any, 0, len(chunk)*columns)
		for _, r := range chunk {
			var ttl any
			if r.TTL != 0 {
				ttl = int64(r.TTL)
			}
			args = append(args, string(id), r.ID, r.Name.String(), int64(r.Type), r.Content, contentKey(r.Content), ttl, r.Proxied)
		}
		inserted := make(map[string]int, len(chunk))
		// Doing nothing rather than failing leaves a transaction that can still say which record it was.
		err := q.each(ctx, func(rows *sql.Rows) error {
			var record string
			err := rows.Scan(&record)
			inserted[record]++
			return err
		}, `INSERT INTO edge.record (zone_id, id, name, type, content, content_key, ttl, proxied) VALUES `+
			tuples(len(chunk), columns)+` ON CONFLICT DO NOTHING RETURNING id`, args...)
		if err != nil {
			return err
		}
		for _, r := range chunk {
			if inserted[r.ID]--; inserted[r.ID] < 0 {
				return fmt.Errorf("record %s %s: %w", r.Name, r.Type, control.ErrExists)
			}
		}
	}
	return nil
}
