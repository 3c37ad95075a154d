package sqlstore

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
)

// DefaultMaxConns bounds the connections that Open makes to Postgres, beside the one that listens: 1,000 members in one
// process vote through them in turn. SQLite has one for writing and up to max(4, GOMAXPROCS) for reading.
const DefaultMaxConns = 16

// connMaxIdleTime closes Postgres connections that were not needed for that long.
const connMaxIdleTime = 5 * time.Minute

// busyTimeout is how long SQLite waits for another process that writes.
const busyTimeout = 10 * time.Second

// MaxConns replaces DefaultMaxConns; n is at least 2.
func MaxConns(n int) Option { return func(o *options) { o.maxConns = n } }

// pools are the connections to one database. On Postgres both are the same.
type pools struct {
	dialect        Dialect
	writer, reader *sql.DB
}

func (p pools) close() error {
	if p.reader == p.writer {
		return p.writer.Close()
	}
	// The writer closes last: it is the one that may fold SQLite's log into the file.
	return errors.Join(p.reader.Close(), p.writer.Close())
}

// Open is New on connections of its own to the database that rawURL names, "sqlite:PATH" or "postgres://…". It changes no
// schema and creates no file; MigrateURL does.
func Open(ctx context.Context, rawURL, cohort string, opts ...Option) (*Store, error) {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	p, err := connect(ctx, rawURL, false, o.maxConns)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	s, err := New(ctx, p.writer, p.dialect, cohort, append([]Option{ReadFrom(p.reader)}, opts...)...)
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	s.owned = []*sql.DB{p.reader, p.writer} // closing one twice is nothing
	return s, nil
}

// MigrateURL is Migrate on the database that rawURL names, as Open takes it. A SQLite file that does not exist is created,
// for its owner alone.
func MigrateURL(ctx context.Context, rawURL string) (err error) {
	p, err := connect(ctx, rawURL, true, 0)
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	defer func() { err = errors.Join(err, p.close()) }()
	return Migrate(ctx, p.writer, p.dialect)
}

func connect(ctx context.Context, rawURL string, create bool, maxConns int) (pools, error) {
	switch scheme, rest, _ := strings.Cut(rawURL, ":"); scheme {
	case "sqlite":
		return connectSQLite(ctx, rest, create)
	case "postgres", "postgresql":
		return connectPostgres(ctx, rawURL, maxConns)
	default:
		return pools{}, errors.New("the URL is neither sqlite:PATH nor postgres://USER@HOST/DATABASE")
	}
}

func connectSQLite(ctx context.Context, path string, create bool) (pools, error) {
	none := pools{}
	switch {
	case path == "", strings.Contains(path, ":memory:"):
		return none, errors.New("sqlite: needs the path of a file, as in sqlite:./barrier.db")
	case strings.HasPrefix(path, "//") && !strings.HasPrefix(path, "///"):
		return none, fmt.Errorf("sqlite:%s: write the path right after the colon, as in sqlite:./barrier.db", path)
	}
	if create {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return none, err
		}
		if err := f.Close(); err != nil {
			return none, err
		}
	} else if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return none, fmt.Errorf("%s does not exist: %w", path, &SchemaError{Have: 0, Want: SQLite.schemaWanted()})
	} else if err != nil {
		return none, err
	}
	writer, err := sql.Open("sqlite", sqliteName(path, "immediate", false))
	if err != nil {
		return none, err
	}
	writer.SetMaxOpenConns(1)
	reader, err := sql.Open("sqlite", sqliteName(path, "deferred", true))
	if err != nil {
		return none, errors.Join(err, writer.Close())
	}
	readers := max(4, runtime.GOMAXPROCS(0))
	reader.SetMaxOpenConns(readers)
	reader.SetMaxIdleConns(readers)
	p := pools{dialect: SQLite, writer: writer, reader: reader}
	// The writer first: it is the one that may turn the file to WAL.
	for _, pool := range []*sql.DB{writer, reader} {
		if err := pool.PingContext(ctx); err != nil {
			return none, fmt.Errorf("%s: %w", path, errors.Join(err, p.close()))
		}
	}
	return p, nil
}

// sqliteName is the driver's name of a file: WAL, an fsync at every commit, foreign keys enforced.
func sqliteName(path, txlock string, queryOnly bool) string {
	q := url.Values{
		"_busy_timeout": {fmt.Sprint(busyTimeout.Milliseconds())},
		"_foreign_keys": {"1"},
		"_synchronous":  {"FULL"},
		"_txlock":       {txlock},
		"_defensive":    {"1"},
		"_dqs":          {"0"},
		"_error_rc":     {"1"},
	}
	if queryOnly {
		q.Set("_query_only", "1")
	} else {
		q.Set("_journal_mode", "WAL")
	}
	return "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode()
}

func connectPostgres(ctx context.Context, rawURL string, maxConns int) (pools, error) {
	if maxConns == 0 {
		maxConns = DefaultMaxConns
	}
	if maxConns < 2 {
		return pools{}, fmt.Errorf("at least 2 connections are needed, not %d", maxConns)
	}
	cfg, err := pgx.ParseConfig(rawURL)
	if err != nil {
		// pgx's message may hold the URL, and the URL a password.
		return pools{}, errors.New("the postgres URL does not parse: write postgres://USER:PASSWORD@HOST:PORT/DATABASE")
	}
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "barrier"
	}
	pool := stdlib.OpenDB(*cfg)
	pool.SetMaxOpenConns(maxConns)
	pool.SetMaxIdleConns(maxConns)
	pool.SetConnMaxIdleTime(connMaxIdleTime)
	p := pools{dialect: Postgres, writer: pool, reader: pool}
	if err := pool.PingContext(ctx); err != nil {
		return pools{}, fmt.Errorf("%s: %w", cfg.Host, errors.Join(err, p.close()))
	}
	return p, nil
}
