package sqlstore

import (
	"database/sql"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/guardyn-edge/guardyn/barrier"
)

// Dialect is a kind of database.
type Dialect string

// The dialects: what drivers are expected to be behind a *sql.DB.
const (
	Postgres Dialect = "postgres" // github.com/jackc/pgx/v5/stdlib
	SQLite   Dialect = "sqlite"   // modernc.org/sqlite
)

// rewrite turns a statement written for Postgres ($1, barrier.head) into this database's. No statement holds
// "barrier." or "$" in another sense.
func (d Dialect) rewrite(statement string) string {
	if d == Postgres {
		return statement
	}
	return strings.ReplaceAll(strings.ReplaceAll(statement, "barrier.", "barrier_"), "$", "?")
}

// Transient tells whether err says that a transaction lost against another, left nothing behind, and may be run again
// from its beginning: a serialization failure or deadlock of Postgres, a busy SQLite file, or a row that another
// transaction changed between this one's look and its write.
func Transient(err error) bool {
	if errors.Is(err, errLost) {
		return true
	}
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code == "40001" || pg.Code == "40P01"
	}
	if lite, ok := errors.AsType[*sqlite.Error](err); ok {
		primary := lite.Code() & 0xff
		return primary == sqlite3.SQLITE_BUSY || primary == sqlite3.SQLITE_LOCKED
	}
	return false
}

// The SQLSTATEs of the trigger that runs at COMMIT; see the migrations.
const (
	stateLate = "ZB001" // the deadline has passed
	stateSlow = "ZB002" // maxDecision has passed
)

// refused tells whether err is the database's own word that nothing took effect.
func refused(err error) bool {
	_, pg := errors.AsType[*pgconn.PgError](err)
	_, lite := errors.AsType[*sqlite.Error](err)
	return pg || lite
}

// instant is t as an argument; the zero time is NULL.
func (d Dialect) instant(t time.Time) any {
	switch {
	case t.IsZero():
		return nil
	case d == SQLite:
		return t.UnixMicro()
	default:
		return t.UTC()
	}
}

// micros is the expression of a column of instants as microseconds since 1970.
func (d Dialect) micros(column string) string {
	if d == SQLite {
		return column
	}
	return "(extract(epoch FROM " + column + ") * 1000000)::bigint"
}

// clock is the expression of the database's own time, read when the expression is computed; NULL where it has none.
func (d Dialect) clock() string {
	if d == SQLite {
		return "NULL"
	}
	return "clock_timestamp()"
}

// jsonObjects is the expression of an array of objects out of name, expression, name, expression …
func (d Dialect) jsonObjects(pairs ...string) string {
	if d == SQLite {
		return "json_group_array(json_object(" + strings.Join(pairs, ", ") + "))"
	}
	return "coalesce(json_agg(json_build_object(" + strings.Join(pairs, ", ") + ")), '[]')::text"
}

// lookUp joins the one row of a table that has a whole primary key, or NULLs. Postgres is kept from joining in another
// order or way: of a cohort's tables that it has no statistics of, it would read all rows instead.
func (d Dialect) lookUp(table, as, key string) string {
	if d == SQLite {
		return "LEFT JOIN " + table + " " + as + " ON " + key
	}
	return "LEFT JOIN LATERAL (SELECT * FROM " + table + " " + as + " WHERE " + key + " LIMIT 1) " + as + " ON true"
}

// instantColumn scans what instant wrote: a time from Postgres, microseconds from SQLite, the zero time from NULL.
type instantColumn struct{ to *time.Time }

func (c instantColumn) Scan(v any) error {
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

// column scans a value, and the zero value from NULL.
type column[T any] struct{ to *T }

func (c column[T]) Scan(v any) error {
	var n sql.Null[T]
	err := n.Scan(v)
	*c.to = n.V
	return err
}

// milliseconds scans a duration.
type milliseconds struct{ to *time.Duration }

func (c milliseconds) Scan(v any) error {
	var n sql.NullInt64
	err := n.Scan(v)
	*c.to = time.Duration(n.Int64) * time.Millisecond
	return err
}

// number is n as an argument. Callers have checked that it fits; see checkNumber.
func number[T ~uint64](n T) int64 { return int64(n) }

// maxNumber is the largest number that both databases hold.
const maxNumber = 1<<63 - 1

// clean is m, or the empty name, which no row has, when m is not well formed: then it need not reach the database.
func clean(m barrier.MemberID) string {
	if barrier.CheckMember(m, "boot") != nil {
		return ""
	}
	return string(m)
}
