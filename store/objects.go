package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/failpoint"
	"github.com/guardyn-edge/guardyn/zone"
)

// Object implements control.EditStore.
func (db *DB) Object(ctx context.Context, ws string, id zone.ID, kind control.ObjectKind, name string) (control.ObjectRow, error) {
	o := control.ObjectRow{Kind: kind, Name: name}
	err := db.single().row(ctx, `
		SELECT o.body, o.revision FROM edge.object o JOIN edge.zone z ON z.id = o.zone_id
		WHERE z.id = $1 AND z.workspace_id = $2 AND o.kind = $3 AND o.name = $4`,
		string(id), ws, string(kind), name).Scan(&o.Body, &o.Revision)
	if err != nil {
		return control.ObjectRow{}, fmt.Errorf("%s %s of zone %s: %w", kind, name, id, missing(err))
	}
	return o, nil
}

// ListObjects implements control.EditStore.
func (db *DB) ListObjects(ctx context.Context, ws string, id zone.ID, kind control.ObjectKind) ([]control.ObjectRow, error) {
	var objects []control.ObjectRow
	err := db.read(ctx, func(q querier) error {
		if _, err := q.zoneRevision(ctx, ws, id); err != nil {
			return err
		}
		return q.each(ctx, func(rows *sql.Rows) error {
			o := control.ObjectRow{Kind: kind}
			err := rows.Scan(&o.Name, &o.Body, &o.Revision)
			objects = append(objects, o)
			return err
		}, `SELECT name, body, revision FROM edge.object WHERE zone_id = $1 AND kind = $2 ORDER BY name`, string(id), string(kind))
	})
	if err != nil {
		return nil, fmt.Errorf("%s objects of zone %s: %w", kind, id, err)
	}
	return objects, nil
}

// PutObject implements control.EditStore. An object's revision is its zone's at the time of the edit, so
// one that was deleted and made anew never has a revision again.
func (db *DB) PutObject(ctx context.Context, ws string, id zone.ID, o control.ObjectRow, ifRevision int64, a control.AuditEntry) (int64, error) {
	var revision int64
	err := db.write(ctx, func(q querier) (err error) {
		// The zone's row is locked from here on: nobody else writes its objects.
		if revision, err = q.editZone(ctx, ws, id, 0); err != nil {
			return err
		}
		if err := failpoint.Hit(failpoint.ObjectRevised); err != nil {
			return err
		}
		if ifRevision != 0 {
			if err := q.checkObject(ctx, id, o.Kind, o.Name, ifRevision); err != nil {
				return err
			}
		}
		return q.upsertObject(ctx, id, o, revision)
	}, a)
	if err != nil {
		return 0, fmt.Errorf("put %s %s of zone %s: %w", o.Kind, o.Name, id, err)
	}
	return revision, nil
}

// DeleteObject implements control.EditStore. An object that is not there is ErrNotFound whatever
// ifRevision says.
func (db *DB) DeleteObject(ctx context.Context, ws string, id zone.ID, kind control.ObjectKind, name string, ifRevision int64, a control.AuditEntry) error {
	err := db.write(ctx, func(q querier) error {
		if _, err := q.editZone(ctx, ws, id, 0); err != nil {
			return err
		}
		var revision int64
		err := q.row(ctx, `DELETE FROM edge.object WHERE zone_id = $1 AND kind = $2 AND name = $3 RETURNING revision`,
			string(id), string(kind), name).Scan(&revision)
		if err != nil {
			return missing(err)
		}
		if ifRevision != 0 && ifRevision != revision {
			return fmt.Errorf("%w: it is at revision %d, not %d", control.ErrConflict, revision, ifRevision)
		}
		return nil
	}, a)
	if err != nil {
		return fmt.Errorf("delete %s %s of zone %s: %w", kind, name, id, err)
	}
	return nil
}

// checkObject holds an object against ifRevision, which is not 0.
func (q querier) checkObject(ctx context.Context, id zone.ID, kind control.ObjectKind, name string, ifRevision int64) error {
	var revision int64
	err := missing(q.row(ctx, `SELECT revision FROM edge.object WHERE zone_id = $1 AND kind = $2 AND name = $3`,
		string(id), string(kind), name).Scan(&revision))
	gone := err == control.ErrNotFound
	switch {
	case err != nil && !gone:
		return err
	case ifRevision == -1 && gone:
		return nil
	case ifRevision == -1:
		return control.ErrExists
	case gone:
		return fmt.Errorf("%w: it was deleted", control.ErrConflict)
	case ifRevision != revision:
		return fmt.Errorf("%w: it is at revision %d, not %d", control.ErrConflict, revision, ifRevision)
	}
	return nil
}

func (q querier) upsertObject(ctx context.Context, id zone.ID, o control.ObjectRow, revision int64) error {
	_, err := q.exec(ctx, `
		INSERT INTO edge.object (zone_id, kind, name, body, revision) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (zone_id, kind, name) DO UPDATE SET body = excluded.body, revision = excluded.revision`,
		string(id), string(o.Kind), o.Name, string(o.Body), revision)
	return err
}
