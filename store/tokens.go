package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/failpoint"
)

const tokenColumns = `t.id, t.name, t.hash, t.user_id, t.node_id, t.workspace_id, t.created_at, t.expires_at, t.revoked_at`

// tokenTargets is where the columns of tokenColumns are scanned to.
func tokenTargets(t *control.Token, hash *[]byte) []any {
	return []any{
		&t.ID, &t.Name, hash,
		textColumn{&t.UserID},
		textColumn{&t.NodeID},
		textColumn{&t.Workspace},
		timeColumn{&t.CreatedAt},
		timeColumn{&t.ExpiresAt},
		timeColumn{&t.RevokedAt},
	}
}

// CreateToken implements control.DirectoryStore: ErrExists when the id or the hash stands already,
// ErrNotFound when whom it speaks for, or the workspace, does not exist.
func (db *DB) CreateToken(ctx context.Context, t control.Token, a control.AuditEntry) error {
	err := db.write(ctx, func(q querier) error {
		if err := q.insertToken(ctx, t); err != nil {
			return err
		}
		return q.touchDirectory(ctx)
	}, a)
	if err != nil {
		return fmt.Errorf("create token %s: %w", t.ID, err)
	}
	return nil
}

func (q querier) insertToken(ctx context.Context, t control.Token) error {
	if err := failpoint.Hit(failpoint.TokenInsert); err != nil {
		return err
	}
	_, err := q.exec(ctx, `
		INSERT INTO edge.token (id, name, hash, user_id, node_id, workspace_id, created_at, expires_at, revoked_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		t.ID, t.Name, t.Hash[:], textArg(t.UserID), textArg(t.NodeID), textArg(t.Workspace),
		timeArg(t.CreatedAt), timeArg(t.ExpiresAt), timeArg(t.RevokedAt))
	return q.identity(err)
}

// ListTokens implements control.DirectoryStore. Revoked ones are listed too. A page key that the listing
// does not hold is ErrNotFound.
func (db *DB) ListTokens(ctx context.Context, ws string, p control.Page) ([]control.Token, error) {
	if err := checkPage(p); err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	var w where
	if ws != "" {
		w.and(`workspace_id = ?`, ws)
	}
	var tokens []control.Token
	err := db.read(ctx, func(q querier) error {
		if p.After != "" {
			if err := q.hasRow(ctx, `edge.token`, w, p.After); err != nil {
				return err
			}
			w.and(`(created_at, id) < (SELECT created_at, id FROM edge.token WHERE id = ?)`, p.After)
		}
		return q.each(ctx, func(rows *sql.Rows) error {
			var (
				t    control.Token
				hash []byte
			)
			if err := rows.Scan(tokenTargets(&t, &hash)...); err != nil {
				return err
			}
			copy(t.Hash[:], hash)
			tokens = append(tokens, t)
			return nil
		}, `SELECT `+tokenColumns+` FROM edge.token t`+w.String()+` ORDER BY created_at DESC, id DESC LIMIT `+w.arg(p.Limit), w.args...)
	})
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	return tokens, nil
}

// RevokeToken implements control.DirectoryStore. An empty ws means any, a node's tokens included; a token
// of another workspace is ErrNotFound. One that is revoked already keeps the time of the first revocation.
func (db *DB) RevokeToken(ctx context.Context, ws, id string, at time.Time, a control.AuditEntry) error {
	if at.IsZero() {
		return errors.New("revoke token: no time given")
	}
	err := db.write(ctx, func(q querier) error {
		var w where
		set := w.arg(timeArg(at))
		w.and(`id = ?`, id)
		if ws != "" {
			w.and(`workspace_id = ?`, ws)
		}
		a := a
		err := q.row(ctx, `UPDATE edge.token SET revoked_at = coalesce(revoked_at, `+set+`)`+w.String()+
			` RETURNING coalesce(workspace_id, '')`, w.args...).Scan(&a.Workspace)
		if err != nil {
			return missing(err)
		}
		if err := q.touchDirectory(ctx); err != nil {
			return err
		}
		return q.appendAudit(ctx, a)
	})
	if err != nil {
		return fmt.Errorf("revoke token %s: %w", id, err)
	}
	return nil
}

// TokenByHash implements control.DirectoryStore. A user who is no member of the token's workspace (any
// more) comes back without a role.
func (db *DB) TokenByHash(ctx context.Context, hash [32]byte) (control.Token, control.Principal, error) {
	var (
		t    control.Token
		p    control.Principal
		sum  []byte
		role string
		oper sql.NullBool
	)
	targets := append(tokenTargets(&t, &sum),
		textColumn{&p.Email}, &oper, textColumn{&p.WorkspaceName}, textColumn{&role}, textColumn{&p.NodeName})
	err := db.single().row(ctx, `
		SELECT `+tokenColumns+`, u.email, u.operator, w.name, m.role, n.name
		FROM edge.token t
		LEFT JOIN edge.app_user u ON u.id = t.user_id
		LEFT JOIN edge.workspace w ON w.id = t.workspace_id
		LEFT JOIN edge.membership m ON m.user_id = t.user_id AND m.workspace_id = t.workspace_id
		LEFT JOIN edge.node n ON n.id = t.node_id
		WHERE t.hash = $1 AND t.revoked_at IS NULL`, hash[:]).Scan(targets...)
	if err != nil {
		return control.Token{}, control.Principal{}, fmt.Errorf("token: %w", missing(err))
	}
	copy(t.Hash[:], sum)
	p.TokenID, p.UserID, p.NodeID, p.Workspace = t.ID, t.UserID, t.NodeID, t.Workspace
	p.Operator, p.Role = oper.Bool, control.Role(role)
	return t, p, nil
}
