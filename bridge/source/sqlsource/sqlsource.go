// Package sqlsource keeps bridges' documents in a table of a Postgres database.
//
// The table is bridge.document, one row for each document. A person may change a row by hand: body and version together, the
// version upward.
package sqlsource

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/pressly/goose/v3"

	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/source"
	"github.com/guardyn-edge/guardyn/internal/sqlconn"
)

//go:embed migrations
var migrationFiles embed.FS

// migrationLock is the key of the Postgres advisory lock under which one process migrates: "bridge" in ASCII.
const migrationLock int64 = 0x627269646765

// maxConns bounds a source's connections.
const maxConns = 2

// Source is one document. All members read the same row.
type Source struct {
	db   *sql.DB
	name string
	text string
}

var _ source.Source = (*Source)(nil)

// Open returns the document of that name (letters, digits, '.', '_' and '-') in the database that rawURL names. It changes no
// schema; Migrate does.
func Open(ctx context.Context, rawURL, name string) (*Source, error) {
	db, cfg, err := sqlconn.Postgres(ctx, rawURL, sqlconn.PostgresOptions{MaxConns: maxConns, Name: "guardyn-bridge"})
	if err != nil {
		return nil, fmt.Errorf("open the source: %w", err)
	}
	s := &Source{db: db, name: name, text: "postgres://" + cfg.Host + "/" + url.PathEscape(cfg.Database) + "?document=" + name}
	var standby, there bool
	err = db.QueryRowContext(ctx, `SELECT pg_is_in_recovery(), to_regclass('bridge.document') IS NOT NULL`).Scan(&standby, &there)
	switch {
	case err != nil:
	case standby:
		err = errors.New("the server is a standby, which may show what is old; name the primary")
	case !there:
		err = errors.New("the database has no bridge.document yet: gdn bridge migrate makes it")
	}
	if err != nil {
		return nil, fmt.Errorf("open the source %s: %w", s, errors.Join(err, db.Close()))
	}
	return s, nil
}

// Migrate makes the table in the database that rawURL names, or brings it to this build's version. Several processes may call
// it at once.
func Migrate(ctx context.Context, rawURL string) (err error) {
	db, _, err := sqlconn.Postgres(ctx, rawURL, sqlconn.PostgresOptions{MaxConns: maxConns, Name: "guardyn-bridge"})
	if err != nil {
		return fmt.Errorf("migrate the source: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	release, err := sqlconn.LockMigrations(ctx, db, migrationLock, "bridge")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithDisableGlobalRegistry(true), goose.WithTableName("bridge.schema_version"))
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}

// Read implements source.Source.
func (s *Source) Read(ctx context.Context) (source.Stored, error) {
	var out source.Stored
	err := s.db.QueryRowContext(ctx, `SELECT version, body, lineage::text FROM bridge.document WHERE name = $1`, s.name).
		Scan(&out.Version, &out.Body, &out.Lineage)
	if errors.Is(err, sql.ErrNoRows) {
		err = source.ErrMissing
	}
	return out, s.wrap(err)
}

// SaveIfVersion implements source.Source.
func (s *Source) SaveIfVersion(ctx context.Context, version uint64, body []byte) (source.Stored, error) {
	body, err := prepare(body, version+1)
	if err != nil {
		return source.Stored{}, s.wrap(err)
	}
	out := source.Stored{Body: body}
	err = s.db.QueryRowContext(ctx, `UPDATE bridge.document SET version = version + 1, body = $3, changed_at = clock_timestamp()
		WHERE name = $1 AND version = $2 RETURNING version, lineage::text`, s.name, int64(version), string(body)).Scan(&out.Version, &out.Lineage)
	if errors.Is(err, sql.ErrNoRows) {
		now, err := s.Read(ctx)
		if err != nil {
			return source.Stored{}, err
		}
		return source.Stored{}, s.wrap(&source.VersionError{Have: now.Version})
	}
	return out, s.wrap(err)
}

// CreateIfAbsent implements source.Source.
func (s *Source) CreateIfAbsent(ctx context.Context, body []byte) (source.Stored, error) {
	body, err := prepare(body, 1)
	if err != nil {
		return source.Stored{}, s.wrap(err)
	}
	out := source.Stored{Body: body}
	err = s.db.QueryRowContext(ctx, `INSERT INTO bridge.document (name, version, body) VALUES ($1, 1, $2)
		ON CONFLICT (name) DO NOTHING RETURNING version, lineage::text`, s.name, string(body)).Scan(&out.Version, &out.Lineage)
	if errors.Is(err, sql.ErrNoRows) {
		err = source.ErrExists
	}
	return out, s.wrap(err)
}

// prepare is the text that is stored.
func prepare(body []byte, version uint64) ([]byte, error) {
	if !utf8.Valid(body) || strings.Contains(string(body), "\x00") {
		return nil, errors.New("the document is not text: it is no UTF-8, or has NUL characters")
	}
	return document.WithVersion(body, version)
}

func (s *Source) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", s, err)
}

// Shared implements source.Source.
func (*Source) Shared() bool { return true }

// String implements source.Source.
func (s *Source) String() string { return s.text }

// Close implements source.Source.
func (s *Source) Close() error { return s.db.Close() }
