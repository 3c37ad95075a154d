package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // registers the driver "sqlite"

	"github.com/guardyn-edge/guardyn/control"
)

// DefaultMaxConns bounds the connections that a DB opens to Postgres. SQLite has one for writing and up
// to max(4, GOMAXPROCS) for reading.
const DefaultMaxConns = 16

// connMaxIdleTime closes Postgres connections that were not needed for that long.
const connMaxIdleTime = 5 * time.Minute

// idleTimeout is how long a transaction on Postgres may wait for its process: one that is suspended in it must not keep
// others from the rows that it holds. The server ends the connection.
const idleTimeout = 10 * time.Second

// busyTimeout is how long SQLite waits for another process that writes.
const busyTimeout = 10 * time.Second

// DB is a store on one database. It is safe for concurrent use.
type DB struct {
	dialect dialect
	writer  *sql.DB // on SQLite a single connection whose transactions begin IMMEDIATE
	reader  *sql.DB // on Postgres the same as writer
	hints   hints
	listen  *pgx.ConnConfig        // how Changes connects to Postgres; nil on SQLite
	cohort  func(*sql.Tx) CohortTx // see JoinCohort; nil: there is none
}

var _ control.Store = (*DB)(nil)

// Option changes how Open connects.
type Option func(*options)

type options struct{ maxConns int }

// MaxConns replaces DefaultMaxConns; n is at least 2.
func MaxConns(n int) Option { return func(o *options) { o.maxConns = n } }

// Open connects to the database that rawURL names, "sqlite:PATH" or "postgres://…", and checks that its
// schema is the one this build was made for: else the error is a *SchemaError. It never changes a schema
// and creates no file; Migrate does.
func Open(ctx context.Context, rawURL string, opts ...Option) (*DB, error) {
	db, err := connect(ctx, rawURL, false, opts...)
	if err != nil {
		return nil, err
	}
	have, err := db.SchemaVersion(ctx)
	if err == nil {
		err = checkSchema(have, db.dialect.schemaWanted())
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// Close waits for running statements and closes every connection.
func (db *DB) Close() error {
	var err error
	if db.reader != db.writer {
		err = db.reader.Close()
	}
	// The writer closes last: it is the one that may fold SQLite's log into the file.
	return errors.Join(err, db.writer.Close())
}

// connect opens without looking at the schema. create allows a SQLite file to come into being.
func connect(ctx context.Context, rawURL string, create bool, opts ...Option) (*DB, error) {
	o := options{maxConns: DefaultMaxConns}
	for _, opt := range opts {
		opt(&o)
	}
	if o.maxConns < 2 {
		return nil, fmt.Errorf("open database: at least 2 connections are needed, not %d", o.maxConns)
	}
	scheme, rest, ok := strings.Cut(rawURL, ":")
	if !ok {
		return nil, errors.New("open database: the URL has no scheme: write sqlite:PATH or postgres://USER@HOST/DATABASE")
	}
	switch scheme {
	case "sqlite":
		return connectSQLite(ctx, rest, create)
	case "postgres", "postgresql":
		return connectPostgres(ctx, rawURL, o)
	default:
		return nil, fmt.Errorf("open database: unknown scheme %q: write sqlite:PATH or postgres://USER@HOST/DATABASE", scheme)
	}
}

func connectSQLite(ctx context.Context, path string, create bool) (*DB, error) {
	switch {
	case path == "":
		return nil, errors.New("open database: sqlite: needs a path, as in sqlite:./guardyn.db")
	case strings.Contains(path, ":memory:"):
		return nil, errors.New("open database: sqlite in memory is not offered: rows must outlive the process; name a file")
	case strings.HasPrefix(path, "//") && !strings.HasPrefix(path, "///"):
		return nil, fmt.Errorf("open database: sqlite:%s: write the path right after the colon, as in sqlite:./guardyn.db", path)
	}
	if create {
		// Tokens' hashes and sealed keys are nobody else's to read.
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, fmt.Errorf("open database: %w", err)
		}
		if err := f.Close(); err != nil {
			return nil, fmt.Errorf("open database: %w", err)
		}
	} else if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("open database: %s does not exist: %w", path, &SchemaError{Have: 0, Want: sqliteDialect{}.schemaWanted()})
	} else if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	db := &DB{dialect: sqliteDialect{}}
	var err error
	if db.writer, err = sql.Open("sqlite", sqliteName(path, "immediate", "")); err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	db.writer.SetMaxOpenConns(1)
	if db.reader, err = sql.Open("sqlite", sqliteName(path, "deferred", "1")); err != nil {
		return nil, fmt.Errorf("open database: %w", errors.Join(err, db.writer.Close()))
	}
	readers := max(4, runtime.GOMAXPROCS(0))
	db.reader.SetMaxOpenConns(readers)
	db.reader.SetMaxIdleConns(readers)
	// The writer first: it is the one that may turn the file to WAL.
	for _, pool := range []*sql.DB{db.writer, db.reader} {
		if err := pool.PingContext(ctx); err != nil {
			return nil, fmt.Errorf("open database %s: %w", path, errors.Join(err, db.Close()))
		}
	}
	return db, nil
}

// sqliteName is the driver's name of a file: WAL, an fsync at every commit, foreign keys enforced.
func sqliteName(path, txlock, queryOnly string) string {
	q := url.Values{
		"_busy_timeout": {fmt.Sprint(busyTimeout.Milliseconds())},
		"_foreign_keys": {"1"},
		"_journal_mode": {"WAL"},
		"_synchronous":  {"FULL"},
		"_txlock":       {txlock},
		"_defensive":    {"1"},
		"_dqs":          {"0"},
		"_error_rc":     {"1"},
		"_pragma":       {"cache_size(-65536)", "temp_store(MEMORY)"},

		"_time_integer_format": {"unix_micro"},
	}
	if queryOnly != "" {
		q.Set("_query_only", queryOnly)
		q.Del("_journal_mode")
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

func connectPostgres(ctx context.Context, rawURL string, o options) (*DB, error) {
	cfg, err := pgx.ParseConfig(rawURL)
	if err != nil {
		// pgx's message may hold the URL, and the URL a password.
		return nil, errors.New("open database: the postgres URL does not parse: write postgres://USER:PASSWORD@HOST:PORT/DATABASE")
	}
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "gdn"
	}
	// Not a parameter of the connection's start, which poolers refuse.
	pool := stdlib.OpenDB(*cfg, stdlib.OptionAfterConnect(func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, fmt.Sprintf("SET idle_in_transaction_session_timeout = %d", idleTimeout.Milliseconds()))
		return err
	}))
	pool.SetMaxOpenConns(o.maxConns)
	pool.SetMaxIdleConns(o.maxConns)
	pool.SetConnMaxIdleTime(connMaxIdleTime)
	db := &DB{dialect: postgresDialect{}, writer: pool, reader: pool, listen: cfg}
	if err := pool.PingContext(ctx); err != nil {
		return nil, fmt.Errorf("open database at %s: %w", cfg.Host, errors.Join(err, db.Close()))
	}
	return db, nil
}
