package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/failpoint"
)

// Append implements control.AuditStore.
func (db *DB) Append(ctx context.Context, a control.AuditEntry) error {
	return db.write(ctx, func(querier) error { return nil }, a)
}

func (q querier) appendAudit(ctx context.Context, a control.AuditEntry) error {
	_, err := q.exec(ctx, `
		INSERT INTO edge.audit (id, at, workspace, actor, origin, action, target, outcome, detail)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		a.ID, timeArg(a.At), a.Workspace, a.Actor, a.From, a.Action, a.Target, a.Outcome, a.Detail)
	if err != nil {
		return fmt.Errorf("write audit entry %s: %w", a.Action, err)
	}
	return failpoint.Hit(failpoint.AuditAppended)
}

// ListAudit implements control.AuditStore: in the order of writing, which no clock takes part in.
func (db *DB) ListAudit(ctx context.Context, ws string, p control.Page) ([]control.AuditEntry, error) {
	if err := checkPage(p); err != nil {
		return nil, fmt.Errorf("list audit: %w", err)
	}
	var w where
	if ws != "" {
		w.and(`workspace = ?`, ws)
	}
	var entries []control.AuditEntry
	err := db.read(ctx, func(q querier) error {
		if p.After != "" {
			if err := q.hasRow(ctx, `edge.audit`, w, p.After); err != nil {
				return err
			}
			w.and(`position < (SELECT position FROM edge.audit WHERE id = ?)`, p.After)
		}
		return q.each(ctx, func(rows *sql.Rows) error {
			var a control.AuditEntry
			err := rows.Scan(&a.ID, timeColumn{&a.At}, &a.Workspace, &a.Actor, &a.From, &a.Action, &a.Target, &a.Outcome, &a.Detail)
			entries = append(entries, a)
			return err
		}, `SELECT id, at, workspace, actor, origin, action, target, outcome, detail FROM edge.audit`+w.String()+
			` ORDER BY position DESC LIMIT `+w.arg(p.Limit), w.args...)
	})
	if err != nil {
		return nil, fmt.Errorf("list audit: %w", err)
	}
	return entries, nil
}

// hasRow is ErrNotFound when no row of the table that w selects has this id: a page key that is unknown
// must not look like the end of a listing.
func (q querier) hasRow(ctx context.Context, table string, w where, id string) error {
	w = where{append([]string(nil), w.conditions...), append([]any(nil), w.args...)}
	w.and(`id = ?`, id)
	var one int
	if err := q.row(ctx, `SELECT 1 FROM `+table+w.String(), w.args...).Scan(&one); err != nil {
		return fmt.Errorf("page after %s: %w", id, missing(err))
	}
	return nil
}
