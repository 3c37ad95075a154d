package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/go-json-experiment/json"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/zone"
)

const workspaceColumns = `id, name, plan, created_at`

func scanWorkspace(scan func(...any) error) (w control.Workspace, err error) {
	err = scan(&w.ID, &w.Name, &w.Plan, timeColumn{&w.CreatedAt})
	return w, err
}

// CreateWorkspace implements control.DirectoryStore: ErrExists when the name is taken, ErrNotFound when the
// plan does not exist.
func (db *DB) CreateWorkspace(ctx context.Context, w control.Workspace, a control.AuditEntry) error {
	err := db.write(ctx, func(q querier) error {
		_, err := q.exec(ctx, `INSERT INTO edge.workspace (id, name, plan, created_at) VALUES ($1, $2, $3, $4)`,
			w.ID, w.Name, w.Plan, timeArg(w.CreatedAt))
		if err != nil {
			return q.workspaceIdentity(err, w)
		}
		return q.touchDirectory(ctx)
	}, a)
	if err != nil {
		return fmt.Errorf("create workspace %q: %w", w.Name, err)
	}
	return nil
}

func (q querier) workspaceIdentity(err error, w control.Workspace) error {
	if q.dialect.fault(err) == faultReference {
		return fmt.Errorf("plan %q: %w", w.Plan, control.ErrNotFound)
	}
	return q.identity(err)
}

// ListWorkspaces implements control.DirectoryStore; the page key is the name.
func (db *DB) ListWorkspaces(ctx context.Context, p control.Page) ([]control.Workspace, error) {
	if err := checkPage(p); err != nil {
		return nil, fmt.Errorf("list workspaces: %w", err)
	}
	var workspaces []control.Workspace
	err := db.single().each(ctx, func(rows *sql.Rows) error {
		w, err := scanWorkspace(rows.Scan)
		workspaces = append(workspaces, w)
		return err
	}, `SELECT `+workspaceColumns+` FROM edge.workspace WHERE name > $1 ORDER BY name LIMIT $2`, p.After, p.Limit)
	if err != nil {
		return nil, fmt.Errorf("list workspaces: %w", err)
	}
	return workspaces, nil
}

// WorkspaceByID implements control.DirectoryStore.
func (db *DB) WorkspaceByID(ctx context.Context, id string) (control.Workspace, error) {
	w, err := scanWorkspace(db.single().row(ctx, `SELECT `+workspaceColumns+` FROM edge.workspace WHERE id = $1`, id).Scan)
	if err != nil {
		return w, fmt.Errorf("workspace %s: %w", id, missing(err))
	}
	return w, nil
}

// WorkspaceByName implements control.DirectoryStore.
func (db *DB) WorkspaceByName(ctx context.Context, name string) (control.Workspace, error) {
	w, err := scanWorkspace(db.single().row(ctx, `SELECT `+workspaceColumns+` FROM edge.workspace WHERE name = $1`, name).Scan)
	if err != nil {
		return w, fmt.Errorf("workspace %q: %w", name, missing(err))
	}
	return w, nil
}

// UpdateWorkspace implements control.DirectoryStore: ErrExists when the new name is taken, ErrNotFound when
// the workspace or the plan does not exist.
func (db *DB) UpdateWorkspace(ctx context.Context, w control.Workspace, a control.AuditEntry) error {
	err := db.write(ctx, func(q querier) error {
		n, err := q.exec(ctx, `UPDATE edge.workspace SET name = $2, plan = $3 WHERE id = $1`, w.ID, w.Name, w.Plan)
		if err != nil {
			return q.workspaceIdentity(err, w)
		}
		if n == 0 {
			return control.ErrNotFound
		}
		return q.touchDirectory(ctx)
	}, a)
	if err != nil {
		return fmt.Errorf("update workspace %s: %w", w.ID, err)
	}
	return nil
}

// PutPlan implements control.DirectoryStore: it inserts or replaces.
func (db *DB) PutPlan(ctx context.Context, p zone.Plan, a control.AuditEntry) error {
	ceilings, err := json.Marshal(p.Ceilings)
	if err == nil {
		err = db.write(ctx, func(q querier) error {
			_, err := q.exec(ctx, `
				INSERT INTO edge.plan (name, ceilings) VALUES ($1, $2)
				ON CONFLICT (name) DO UPDATE SET ceilings = excluded.ceilings`, p.Name, string(ceilings))
			return err
		}, a)
	}
	if err != nil {
		return fmt.Errorf("put plan %q: %w", p.Name, err)
	}
	return nil
}

// ListPlans implements control.DirectoryStore, ordered by name.
func (db *DB) ListPlans(ctx context.Context) ([]zone.Plan, error) {
	plans, err := db.single().plans(ctx)
	if err != nil {
		return nil, fmt.Errorf("list plans: %w", err)
	}
	return plans, nil
}

func (q querier) plans(ctx context.Context) ([]zone.Plan, error) {
	var plans []zone.Plan
	err := q.each(ctx, func(rows *sql.Rows) error {
		var (
			p        zone.Plan
			ceilings []byte
		)
		if err := rows.Scan(&p.Name, &ceilings); err != nil {
			return err
		}
		if err := json.Unmarshal(ceilings, &p.Ceilings, strict); err != nil {
			return fmt.Errorf("stored plan %q: %w", p.Name, err)
		}
		plans = append(plans, p)
		return nil
	}, `SELECT name, ceilings FROM edge.plan ORDER BY name`)
	return plans, err
}
