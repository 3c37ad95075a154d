package store

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/pressly/goose/v3"

	"github.com/guardyn-edge/guardyn/internal/sqlconn"
)

// fault is what an error of the database means to the store.
type fault int

const (
	faultOther     fault = iota
	faultUnique          // a row with this identity stands already
	faultReference       // a row that this one names is not there
	faultTransient       // the transaction lost against another and may be run again
)

// A dialect is all that differs between the databases.
type dialect interface {
	// rewrite turns a statement written for Postgres ($1, edge.zone) into this database's.
	rewrite(statement string) string
	fault(err error) fault
	// snapshotRead begins a transaction whose statements all see the same rows.
	snapshotRead() *sql.TxOptions
	// nextVersion is the statement that takes the next snapshot version.
	nextVersion() string
	// advanceVersion is the statement that keeps versions up to $1 from being given out.
	advanceVersion() string
	// migrations names the directory, goose's name and the version table of this database.
	migrations() (dir string, d goose.Dialect, table string)
	// hasVersionTable is the statement that says whether the version table exists.
	hasVersionTable() string
	schemaWanted() int64
	// kind is what the database is called in URLs.
	kind() string
	// clock is the expression of the database's own time, NULL when that is the time of the machine that asks.
	clock() string
	// keepTimeout returns what undoes, in the transaction, what others do to the time that a statement may take.
	keepTimeout(ctx context.Context, q querier) (restore func() error, err error)
}

type postgresDialect struct{}

func (postgresDialect) rewrite(statement string) string { return statement }

// fault reads SQLSTATE (PostgreSQL, appendix A).
func (postgresDialect) fault(err error) fault {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		return faultOther
	}
	switch pg.Code {
	case "23505":
		return faultUnique
	case "23503":
		return faultReference
	case "40001", "40P01":
		return faultTransient
	}
	return faultOther
}

func (postgresDialect) snapshotRead() *sql.TxOptions {
	return &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
}

func (postgresDialect) nextVersion() string { return `SELECT nextval('edge.config_version_seq')` }

// At the same number it still counts as given out.
func (postgresDialect) advanceVersion() string {
	return `SELECT setval('edge.config_version_seq', $1) FROM edge.config_version_seq WHERE $1 > 0 AND last_value <= $1`
}

func (postgresDialect) migrations() (string, goose.Dialect, string) {
	return "migrations/postgres", goose.DialectPostgres, "edge.schema_version"
}

func (postgresDialect) hasVersionTable() string {
	return `SELECT to_regclass('edge.schema_version') IS NOT NULL`
}

func (postgresDialect) schemaWanted() int64 {
	return sqlconn.LatestMigration(migrationFiles, "migrations/postgres")
}

func (postgresDialect) kind() string { return "postgres" }

func (postgresDialect) clock() string { return "clock_timestamp()" }

func (postgresDialect) keepTimeout(ctx context.Context, q querier) (func() error, error) {
	var was string
	err := q.row(ctx, `SELECT current_setting('statement_timeout')`).Scan(&was)
	return func() error {
		_, err := q.exec(ctx, `SELECT set_config('statement_timeout', $1, true)`, was)
		return err
	}, err
}

type sqliteDialect struct{}

// SQLite has no schemas to put tables in, and marks its parameters by a question mark. No statement of
// the store holds "edge." or "$" in another sense.
func (sqliteDialect) rewrite(statement string) string {
	statement = strings.ReplaceAll(statement, "edge.", "")
	if inOrder, ok := unnumbered(statement); ok {
		return inOrder
	}
	return strings.ReplaceAll(statement, "$", "?")
}

// unnumbered takes the numbers off parameters that stand in order, each once. What has a number has a name to the
// driver, which it looks for among all others: the thousands of a bulk edit would cost their square.
func unnumbered(statement string) (string, bool) {
	var b strings.Builder
	b.Grow(len(statement))
	for next := 1; ; next++ {
		text, rest, more := strings.Cut(statement, "$")
		b.WriteString(text)
		if !more {
			return b.String(), true
		}
		digits := 0
		for digits < len(rest) && '0' <= rest[digits] && rest[digits] <= '9' {
			digits++
		}
		if rest[:digits] != strconv.Itoa(next) {
			return "", false
		}
		b.WriteByte('?')
		statement = rest[digits:]
	}
}

// fault reads the extended result code (https://sqlite.org/rescode.html).
func (sqliteDialect) fault(err error) fault {
	lite, ok := errors.AsType[*sqlite.Error](err)
	if !ok {
		return faultOther
	}
	switch lite.Code() {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
		return faultUnique
	case sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
		return faultReference
	case sqlite3.SQLITE_BUSY_SNAPSHOT:
		return faultTransient
	}
	return faultOther
}

// snapshotRead: a SQLite transaction sees the database as of its first read.
func (sqliteDialect) snapshotRead() *sql.TxOptions { return nil }

func (sqliteDialect) nextVersion() string {
	return `UPDATE config_version_seq SET last = last + 1 RETURNING last`
}

func (sqliteDialect) advanceVersion() string {
	return `UPDATE config_version_seq SET last = $1 WHERE last < $1`
}

func (sqliteDialect) migrations() (string, goose.Dialect, string) {
	return "migrations/sqlite", goose.DialectSQLite3, "schema_version"
}

func (sqliteDialect) hasVersionTable() string {
	return `SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'schema_version')`
}

func (sqliteDialect) schemaWanted() int64 {
	return sqlconn.LatestMigration(migrationFiles, "migrations/sqlite")
}

func (sqliteDialect) kind() string { return "sqlite" }

func (sqliteDialect) clock() string { return "NULL" }

func (sqliteDialect) keepTimeout(context.Context, querier) (func() error, error) {
	return func() error { return nil }, nil
}

// timeArg is t as an argument; the zero time is NULL.
func timeArg(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Truncate(time.Microsecond)
}

// timeColumn scans what timeArg wrote: a time from Postgres, microseconds since 1970 from SQLite, the zero
// time from NULL.
type timeColumn struct{ to *time.Time }

func (c timeColumn) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*c.to = time.Time{}
	case time.Time:
		*c.to = v.UTC()
	case int64:
		*c.to = time.UnixMicro(v).UTC()
	default:
		return errors.New("not a time")
	}
	return nil
}

// textArg is s as an argument; the empty text is NULL.
func textArg(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// textColumn scans what textArg wrote.
type textColumn struct{ to *string }

func (c textColumn) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*c.to = ""
	case string:
		*c.to = v
	case []byte:
		*c.to = string(v)
	default:
		return errors.New("not a text")
	}
	return nil
}
