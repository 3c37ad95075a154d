package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/control"
)

// maxAttempts bounds how often a transaction that lost against another one is run.
const maxAttempts = 5

// maxPage is the largest page of a listing.
const maxPage = 1000

// chunkRows is how many rows one INSERT or DELETE of a bulk edit carries: with 8 columns well under the
// 32,766 parameters of SQLite and the 65,535 of Postgres.
const chunkRows = 500

// querier runs statements inside a transaction, or each by itself.
type querier struct {
	dialect dialect
	touched *bool           // set when Revisions change; nil outside of a writing transaction
	cohort  func() CohortTx // the cohort's part in the transaction; nil: it has none
	conn    interface {
		ExecContext(context.Context, string, ...any) (sql.Result, error)
		QueryContext(context.Context, string, ...any) (*sql.Rows, error)
		QueryRowContext(context.Context, string, ...any) *sql.Row
	}
}

// exec returns how many rows changed.
func (q querier) exec(ctx context.Context, statement string, args ...any) (int64, error) {
	if err := checkText(args); err != nil {
		return 0, err
	}
	res, err := q.conn.ExecContext(ctx, q.dialect.rewrite(statement), args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// oneRow is an answer of one row, or why there is none.
type oneRow struct {
	*sql.Row
	err error
}

func (r oneRow) Scan(to ...any) error {
	if r.err != nil {
		return r.err
	}
	return r.Row.Scan(to...)
}

func (q querier) row(ctx context.Context, statement string, args ...any) oneRow {
	if err := checkText(args); err != nil {
		return oneRow{err: err}
	}
	return oneRow{Row: q.conn.QueryRowContext(ctx, q.dialect.rewrite(statement), args...)}
}

// each calls f with every row of the answer.
func (q querier) each(ctx context.Context, f func(*sql.Rows) error, statement string, args ...any) (err error) {
	if err := checkText(args); err != nil {
		return err
	}
	rows, err := q.conn.QueryContext(ctx, q.dialect.rewrite(statement), args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// missing tells whether err says that a row is not there, in the words of the port.
func missing(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return control.ErrNotFound
	}
	return err
}

// single is a querier whose statements each are their own read.
func (db *DB) single() querier { return querier{dialect: db.dialect, conn: db.reader} }

// read runs f in a transaction whose statements all see the same rows.
func (db *DB) read(ctx context.Context, f func(querier) error) error {
	tx, err := db.reader.BeginTx(ctx, db.dialect.snapshotRead())
	if err != nil {
		return err
	}
	err = f(querier{dialect: db.dialect, conn: tx})
	// Nothing was written: rolling back ends the read like a commit does, and has nothing to lose.
	if rollback := tx.Rollback(); err == nil && rollback != nil {
		return rollback
	}
	return err
}

// write runs f in a transaction and commits it with the audit entries in it. A transaction that lost
// against another is run again, so f keeps nothing from an earlier run; after maxAttempts it is
// ErrConflict. An error of f rolls everything back.
func (db *DB) write(ctx context.Context, f func(querier) error, entries ...control.AuditEntry) error {
	for attempt := 1; ; attempt++ {
		err := db.writeOnce(ctx, f, entries)
		if err == nil || db.dialect.fault(err) != faultTransient {
			return err
		}
		if attempt == maxAttempts {
			return fmt.Errorf("%w: the transaction lost %d times against others: %w", control.ErrConflict, maxAttempts, err)
		}
		wait := time.NewTimer(time.Millisecond << attempt)
		select {
		case <-ctx.Done():
			wait.Stop()
			return errors.Join(ctx.Err(), err)
		case <-wait.C:
		}
	}
}

func (db *DB) writeOnce(ctx context.Context, f func(querier) error, entries []control.AuditEntry) error {
	tx, err := db.writer.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	q := querier{dialect: db.dialect, touched: new(bool), conn: tx}
	if db.cohort != nil {
		q.cohort = func() CohortTx { return db.cohort(tx) }
	}
	err = f(q)
	for i := 0; err == nil && i < len(entries); i++ {
		err = q.appendAudit(ctx, entries[i])
	}
	if err != nil {
		_ = tx.Rollback() // err says more than a connection that broke meanwhile
		return err
	}
	err = tx.Commit()
	if *q.touched {
		db.hints.tell() // whatever the answer to the commit says
	}
	return err
}

// touch notes that the transaction changes Revisions.
func (q querier) touch() {
	if q.touched != nil {
		*q.touched = true
	}
}

// touchDirectory counts a change to tokens, nodes, memberships, users or workspaces.
func (q querier) touchDirectory(ctx context.Context) error {
	q.touch()
	_, err := q.exec(ctx, `UPDATE edge.platform SET directory = directory + 1`)
	return err
}

// identity names err in the words of the port when it is a broken uniqueness or reference.
func (q querier) identity(err error) error {
	if err == nil {
		return nil
	}
	switch q.dialect.fault(err) {
	case faultUnique:
		return control.ErrExists
	case faultReference:
		return control.ErrNotFound
	}
	return err
}

func checkPage(p control.Page) error {
	if p.Limit < 1 || p.Limit > maxPage {
		return fmt.Errorf("a page holds 1 to %d rows, not %d", maxPage, p.Limit)
	}
	return nil
}

// where collects conditions with their arguments.
type where struct {
	conditions []string
	args       []any
}

// and adds a condition; each "?" in it is the next argument's place.
func (w *where) and(condition string, args ...any) {
	for _, a := range args {
		condition = strings.Replace(condition, "?", w.arg(a), 1)
	}
	w.conditions = append(w.conditions, condition)
}

// arg adds an argument and returns its place.
func (w *where) arg(a any) string {
	w.args = append(w.args, a)
	return "$" + strconv.Itoa(len(w.args))
}

func (w *where) String() string {
	if len(w.conditions) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(w.conditions, " AND ")
}

// places returns "$from, … " for n arguments.
func places(n, from int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(from + i))
	}
	return b.String()
}

// tuples returns "($1,$2),($3,$4)" for rows of columns arguments.
func tuples(rows, columns int) string {
	var b strings.Builder
	for i := range rows {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('(')
		b.WriteString(places(columns, i*columns+1))
		b.WriteByte(')')
	}
	return b.String()
}
