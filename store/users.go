package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/guardyn-edge/guardyn/control"
)

const userColumns = `id, email, operator, created_at`

func scanUser(scan func(...any) error) (u control.User, err error) {
	err = scan(&u.ID, &u.Email, &u.Operator, timeColumn{&u.CreatedAt})
	return u, err
}

// CreateUser implements control.DirectoryStore: ErrExists when the address is taken, compared as given.
func (db *DB) CreateUser(ctx context.Context, u control.User, a control.AuditEntry) error {
	err := db.write(ctx, func(q querier) error {
		_, err := q.exec(ctx, `INSERT INTO edge.app_user (id, email, operator, created_at) VALUES ($1, $2, $3, $4)`,
			u.ID, u.Email, u.Operator, timeArg(u.CreatedAt))
		if err != nil {
			return q.identity(err)
		}
		return q.touchDirectory(ctx)
	}, a)
	if err != nil {
		return fmt.Errorf("create user %q: %w", u.Email, err)
	}
	return nil
}

// ListUsers implements control.DirectoryStore; the page key is the address.
func (db *DB) ListUsers(ctx context.Context, p control.Page) ([]control.User, error) {
	if err := checkPage(p); err != nil {
		return nil, fmt.Errorf("list users: %w", err)
	}
	var users []control.User
	err := db.single().each(ctx, func(rows *sql.Rows) error {
		u, err := scanUser(rows.Scan)
		users = append(users, u)
		return err
	}, `SELECT `+userColumns+` FROM edge.app_user WHERE email > $1 ORDER BY email LIMIT $2`, p.After, p.Limit)
	if err != nil {
		return nil, fmt.Errorf("list users: %w", err)
	}
	return users, nil
}

// UserByEmail implements control.DirectoryStore.
func (db *DB) UserByEmail(ctx context.Context, email string) (control.User, error) {
	u, err := scanUser(db.single().row(ctx, `SELECT `+userColumns+` FROM edge.app_user WHERE email = $1`, email).Scan)
	if err != nil {
		return u, fmt.Errorf("user %q: %w", email, missing(err))
	}
	return u, nil
}

// SetMembership implements control.DirectoryStore: ErrNotFound when the user or the workspace does not
// exist. Taking away a role that the user does not have is no error.
func (db *DB) SetMembership(ctx context.Context, m control.Membership, a control.AuditEntry) error {
	err := db.write(ctx, func(q querier) error {
		if m.Role == "" {
			return q.deleteMembership(ctx, m)
		}
		_, err := q.exec(ctx, `
			INSERT INTO edge.membership (user_id, workspace_id, role) VALUES ($1, $2, $3)
			ON CONFLICT (user_id, workspace_id) DO UPDATE SET role = excluded.role`, m.UserID, m.Workspace, string(m.Role))
		if err != nil {
			return q.identity(err)
		}
		return q.touchDirectory(ctx)
	}, a)
	if err != nil {
		return fmt.Errorf("membership of user %s in workspace %s: %w", m.UserID, m.Workspace, err)
	}
	return nil
}

func (q querier) deleteMembership(ctx context.Context, m control.Membership) error {
	n, err := q.exec(ctx, `DELETE FROM edge.membership WHERE user_id = $1 AND workspace_id = $2`, m.UserID, m.Workspace)
	if err != nil {
		return err
	}
	if n > 0 {
		return q.touchDirectory(ctx)
	}
	var one int
	return missing(q.row(ctx, `SELECT 1 FROM edge.app_user, edge.workspace WHERE app_user.id = $1 AND workspace.id = $2`,
		m.UserID, m.Workspace).Scan(&one))
}

// ListMemberships implements control.DirectoryStore, ordered by workspace.
func (db *DB) ListMemberships(ctx context.Context, userID string) ([]control.Membership, error) {
	var memberships []control.Membership
	err := db.single().each(ctx, func(rows *sql.Rows) error {
		var m control.Membership
		err := rows.Scan(&m.UserID, &m.Workspace, &m.Role)
		memberships = append(memberships, m)
		return err
	}, `SELECT user_id, workspace_id, role FROM edge.membership WHERE user_id = $1 ORDER BY workspace_id`, userID)
	if err != nil {
		return nil, fmt.Errorf("memberships of user %s: %w", userID, err)
	}
	return memberships, nil
}
