// Package sqlconn opens the databases of this module's stores, Postgres and SQLite, and holds the lock under which one of
// several processes migrates.
package sqlconn

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite" // registers the driver "sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	// maxIdleTime closes Postgres connections that were not needed for that long.
	maxIdleTime = 5 * time.Minute
	// busyTimeout is how long SQLite waits for another process that writes.
	busyTimeout = 10 * time.Second
	// busyEvery is how often it is tried where SQLite does not wait by itself.
	busyEvery = 20 * time.Millisecond
)

// ErrURL means that a Postgres URL does not parse. What is wrong with it is not told: the URL may hold a password.
var ErrURL = errors.New("the postgres URL does not parse: write postgres://USER:PASSWORD@HOST:PORT/DATABASE")

// ConnectError is a Postgres server that does not take a connection, and why, on one line.
type ConnectError struct {
	Host string
	err  error
}

func (e *ConnectError) Error() string {
	return e.Host + ": " + strings.Join(strings.Fields(e.err.Error()), " ")
}

func (e *ConnectError) Unwrap() error { return e.err }

// SQLite opens the file at path, which exists: one connection for writing, whose transactions begin IMMEDIATE, and up to max(4,
// GOMAXPROCS) for reading. The file is in WAL mode, each commit is an fsync, foreign keys are enforced. more are
// further settings of the driver, for both. The caller closes the reader first: the writer is the one that may fold the
// log into the file.
func SQLite(ctx context.Context, path string, more url.Values) (writer, reader *sql.DB, err error) {
	if writer, err = sql.Open("sqlite", sqliteName(path, "immediate", more)); err != nil {
		return nil, nil, err
	}
	writer.SetMaxOpenConns(1)
	if reader, err = sql.Open("sqlite", sqliteName(path, "deferred", more)); err != nil {
		return nil, nil, errors.Join(err, writer.Close())
	}
	readers := max(4, runtime.GOMAXPROCS(0))
	reader.SetMaxOpenConns(readers)
	reader.SetMaxIdleConns(readers)
	// The writer first: it is the one that may turn the file to WAL.
	for _, pool := range []*sql.DB{writer, reader} {
		if err := pingSQLite(ctx, pool); err != nil {
			return nil, nil, errors.Join(err, reader.Close(), writer.Close())
		}
	}
	return writer, reader, nil
}

// pingSQLite connects. Turning a file to WAL is refused at once, without the busy timeout, while another process is turning it or folds
// its log: that is waited for here, for as long.
func pingSQLite(ctx context.Context, pool *sql.DB) error {
	tick := time.NewTicker(busyEvery)
	defer tick.Stop()
	for began := time.Now(); ; {
		err := pool.PingContext(ctx)
		if busy, ok := errors.AsType[*sqlite.Error](err); !ok || busy.Code()&0xff != sqlite3.SQLITE_BUSY || time.Since(began) > busyTimeout {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		}
	}
}

// sqliteName is the driver's name of a file; who does not begin IMMEDIATE only reads.
func sqliteName(path, txlock string, more url.Values) string {
	q := url.Values{
		"_busy_timeout": {fmt.Sprint(busyTimeout.Milliseconds())},
		"_foreign_keys": {"1"},
		"_synchronous":  {"FULL"},
		"_txlock":       {txlock},
		"_defensive":    {"1"},
		"_dqs":          {"0"},
		"_error_rc":     {"1"},
	}
	if txlock == "immediate" {
		q.Set("_journal_mode", "WAL")
	} else {
		q.Set("_query_only", "1")
	}
	maps.Copy(q, more)
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

// PostgresOptions are what stores differ in.
type PostgresOptions struct {
	MaxConns int    // of the pool
	Name     string // of the application, unless the URL gives one
	// IdleInTransaction ends a transaction that was idle for so long; 0: the server's own limit.
	IdleInTransaction time.Duration
}

// Postgres opens a pool to the database that rawURL names, and returns how it connects, too. Errors: ErrURL, and *ConnectError.
func Postgres(ctx context.Context, rawURL string, o PostgresOptions) (*sql.DB, *pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(rawURL)
	if err != nil {
		return nil, nil, ErrURL
	}
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = o.Name
	}
	var after []stdlib.OptionOpenDB
	if o.IdleInTransaction > 0 {
		// Not a parameter of the connection's start, which poolers refuse.
		after = append(after, stdlib.OptionAfterConnect(func(ctx context.Context, c *pgx.Conn) error {
			_, err := c.Exec(ctx, fmt.Sprintf("SET idle_in_transaction_session_timeout = %d", o.IdleInTransaction.Milliseconds()))
			return err
		}))
	}
	pool := stdlib.OpenDB(*cfg, after...)
	pool.SetMaxOpenConns(o.MaxConns)
	pool.SetMaxIdleConns(o.MaxConns)
	pool.SetConnMaxIdleTime(maxIdleTime)
	if err := pool.PingContext(ctx); err != nil {
		return nil, nil, &ConnectError{Host: cfg.Host, err: errors.Join(err, pool.Close())}
	}
	return pool, cfg, nil
}
