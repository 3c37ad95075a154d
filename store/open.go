package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/sqlconn"
)

// DefaultMaxConns bounds the connections that a DB opens to Postgres. SQLite has one for writing and up
// to max(4, GOMAXPROCS) for reading.
const DefaultMaxConns = 16

// idleTimeout is how long a transaction on Postgres may wait for its process: one that is suspended in it must not keep
// others from the rows that it holds. The server ends the connection.
const idleTimeout = 10 * time.Second

// DB is a store on one database. It is safe for concurrent use.
type DB struct {
	dialect dialect
	writer  *sql.DB // on SQLite a single connection whose transactions begin IMMEDIATE
	reader  *sql.DB // on Postgres the same as writer
	hints   hints
	listen  *pgx.ConnConfig        // how Changes connects to Postgres; nil on SQLite
	cohort  func(*sql.Tx) CohortTx // see JoinCohort; nil: there is none
	// lastRead is what ReadConfiguration read last, which it holds in memory.
	lastRead atomic.Pointer[zonesRead]
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
	writer, reader, err := sqlconn.SQLite(ctx, path, url.Values{
		"_pragma":              {"cache_size(-65536)", "temp_store(MEMORY)"},
		"_time_integer_format": {"unix_micro"},
	})
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", path, err)
	}
	return &DB{dialect: sqliteDialect{}, writer: writer, reader: reader}, nil
}

func connectPostgres(ctx context.Context, rawURL string, o options) (*DB, error) {
	pool, cfg, err := sqlconn.Postgres(ctx, rawURL, sqlconn.PostgresOptions{
		MaxConns: o.maxConns, Name: "gdn", IdleInTransaction: idleTimeout,
	})
	switch {
	case errors.Is(err, sqlconn.ErrURL):
		return nil, fmt.Errorf("open database: %w", err)
	case err != nil:
		return nil, fmt.Errorf("open database at %w", err)
	}
	return &DB{dialect: postgresDialect{}, writer: pool, reader: pool, listen: cfg}, nil
}
