package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/guardyn-edge/guardyn/internal/sqlconn"
)

// DefaultMaxConns bounds the connections that Open makes to Postgres, beside the one that listens: 1,000 members in one
// process vote through them in turn. SQLite has one for writing and up to max(4, GOMAXPROCS) for reading.
const DefaultMaxConns = 16

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
	writer, reader, err := sqlconn.SQLite(ctx, path, nil)
	if err != nil {
		return none, fmt.Errorf("%s: %w", path, err)
	}
	return pools{dialect: SQLite, writer: writer, reader: reader}, nil
}

func connectPostgres(ctx context.Context, rawURL string, maxConns int) (pools, error) {
	if maxConns == 0 {
		maxConns = DefaultMaxConns
	}
	if maxConns < 2 {
		return pools{}, fmt.Errorf("at least 2 connections are needed, not %d", maxConns)
	}
	pool, _, err := sqlconn.Postgres(ctx, rawURL, sqlconn.PostgresOptions{MaxConns: maxConns, Name: "barrier"})
	if err != nil {
		return pools{}, err
	}
	return pools{dialect: Postgres, writer: pool, reader: pool}, nil
}
