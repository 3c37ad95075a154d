package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/zone"
)

const zoneColumns = `id, workspace_id, name, revision, records, created_at`

func scanZone(scan func(...any) error) (control.ZoneRow, error) {
	var (
		z    control.ZoneRow
		name string
	)
	if err := scan(&z.ID, &z.Workspace, &name, &z.Revision, &z.Records, timeColumn{&z.CreatedAt}); err != nil {
		return control.ZoneRow{}, err
	}
	var err error
	if z.Name, err = zone.ParseName(name); err != nil {
		return control.ZoneRow{}, fmt.Errorf("stored zone %s: %w", z.ID, err)
	}
	return z, nil
}

// CreateZone implements control.EditStore. The zone starts without records at revision 1, whatever z says
// of them. A workspace that does not exist is ErrNotFound.
func (db *DB) CreateZone(ctx context.Context, ws string, z control.ZoneRow, a control.AuditEntry) error {
	err := db.write(ctx, func(q querier) error {
		if err := q.freeName(ctx, ws, z.Name); err != nil {
			return err
		}
		_, err := q.exec(ctx, `
			INSERT INTO edge.zone (id, workspace_id, name, backwards, revision, records, created_at) VALUES ($1, $2, $3, $4, 1, 0, $5)`,
			string(z.ID), ws, z.Name.String(), backwards(z.Name), timeArg(z.CreatedAt))
		return q.identity(err)
	}, a)
	if err != nil {
		return fmt.Errorf("create zone %s: %w", z.Name, err)
	}
	return nil
}

// DeleteZone implements control.EditStore. Everything in the zone goes with it.
func (db *DB) DeleteZone(ctx context.Context, ws string, id zone.ID, a control.AuditEntry) error {
	err := db.write(ctx, func(q querier) error {
		n, err := q.exec(ctx, `DELETE FROM edge.zone WHERE id = $1 AND workspace_id = $2`, string(id), ws)
		if err == nil && n == 0 {
			err = control.ErrNotFound
		}
		return err
	}, a)
	if err != nil {
		return fmt.Errorf("delete zone %s: %w", id, err)
	}
	return nil
}

// ZoneByName implements control.EditStore.
func (db *DB) ZoneByName(ctx context.Context, ws string, name zone.Name) (control.ZoneRow, error) {
	z, err := scanZone(db.single().row(ctx,
		`SELECT `+zoneColumns+` FROM edge.zone WHERE workspace_id = $1 AND name = $2`, ws, name.String()).Scan)
	if err != nil {
		return z, fmt.Errorf("zone %s: %w", name, missing(err))
	}
	return z, nil
}

// ZoneByID implements control.EditStore.
func (db *DB) ZoneByID(ctx context.Context, ws string, id zone.ID) (control.ZoneRow, error) {
	z, err := scanZone(db.single().row(ctx,
		`SELECT `+zoneColumns+` FROM edge.zone WHERE id = $1 AND workspace_id = $2`, string(id), ws).Scan)
	if err != nil {
		return z, fmt.Errorf("zone %s: %w", id, missing(err))
	}
	return z, nil
}

// ListZones implements control.EditStore.
func (db *DB) ListZones(ctx context.Context, ws string, p control.Page) ([]control.ZoneRow, error) {
	if err := checkPage(p); err != nil {
		return nil, fmt.Errorf("list zones: %w", err)
	}
	var zones []control.ZoneRow
	err := db.single().each(ctx, func(rows *sql.Rows) error {
		z, err := scanZone(rows.Scan)
		zones = append(zones, z)
		return err
	}, `SELECT `+zoneColumns+` FROM edge.zone WHERE workspace_id = $1 AND name > $2 ORDER BY name LIMIT $3`,
		ws, p.After, p.Limit)
	if err != nil {
		return nil, fmt.Errorf("list zones: %w", err)
	}
	return zones, nil
}

// editZone locks the zone against other edits, raises its revision and returns the new one. A zone of
// another workspace is ErrNotFound; ifRevision other than 0 that is not the one before is ErrConflict.
func (q querier) editZone(ctx context.Context, ws string, id zone.ID, ifRevision int64) (int64, error) {
	var revision int64
	err := q.row(ctx, `UPDATE edge.zone SET revision = revision + 1 WHERE id = $1 AND workspace_id = $2 RETURNING revision`,
		string(id), ws).Scan(&revision)
	if err != nil {
		return 0, missing(err)
	}
	if ifRevision != 0 && ifRevision != revision-1 {
		return 0, fmt.Errorf("%w: it is at revision %d, not %d", control.ErrConflict, revision-1, ifRevision)
	}
	return revision, nil
}

// zoneRevision returns the revision of a zone of ws, ErrNotFound for any other.
func (q querier) zoneRevision(ctx context.Context, ws string, id zone.ID) (int64, error) {
	var revision int64
	err := q.row(ctx, `SELECT revision FROM edge.zone WHERE id = $1 AND workspace_id = $2`, string(id), ws).Scan(&revision)
	return revision, missing(err)
}
