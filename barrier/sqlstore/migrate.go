package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/guardyn-edge/guardyn/internal/sqlconn"
)

//go:embed migrations
var migrationFiles embed.FS

// migrationLock is the key of the Postgres advisory lock under which one process migrates: "barrier" in ASCII.
const migrationLock int64 = 0x62617272696572

// SchemaError says that the barrier's tables are not those that this build was made for.
type SchemaError struct {
	Have int64 // 0: there are none
	Want int64
}

func (e *SchemaError) Error() string {
	switch {
	case e.Have == 0:
		return "the database has no barrier tables yet: migrate it"
	case e.Have < e.Want:
		return fmt.Sprintf("the barrier's tables are of version %d and this program needs %d: migrate the database", e.Have, e.Want)
	default:
		return fmt.Sprintf("the barrier's tables are of version %d and this program knows only %d: upgrade it", e.Have, e.Want)
	}
}

func checkSchema(have, want int64) error {
	if have != want {
		return &SchemaError{Have: have, Want: want}
	}
	return nil
}

// Migrate brings the barrier's tables in db to this build's version; it touches nothing else there and keeps its own count,
// in barrier.schema_version or barrier_schema_version. Several processes may call it at once. Newer tables are a
// *SchemaError and are left alone. A Postgres pool needs 2 connections, and a role that may create the schema "barrier" or owns
// it.
func Migrate(ctx context.Context, db *sql.DB, d Dialect) error {
	want := d.schemaWanted()
	failures := 0
	for {
		have, err := SchemaVersion(ctx, db, d)
		if err != nil {
			return err
		}
		if have >= want {
			return checkSchema(have, want)
		}
		if err := d.up(ctx, db); err != nil {
			// On SQLite, where no lock spans migrations, another process may be doing the same one.
			now, again := SchemaVersion(ctx, db, d)
			if again != nil || now == have {
				if failures++; failures == maxAttempts || !Transient(err) {
					return fmt.Errorf("migrate from version %d: %w", have, err)
				}
				if err := pause(ctx, 10*time.Millisecond<<failures); err != nil {
					return err
				}
			}
		}
	}
}

func (d Dialect) up(ctx context.Context, db *sql.DB) (err error) {
	dialect := goose.DialectSQLite3
	if d == Postgres {
		dialect = goose.DialectPostgres
		release, failed := sqlconn.LockMigrations(ctx, db, migrationLock, "barrier")
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, release()) }()
	}
	files, err := fs.Sub(migrationFiles, "migrations/"+string(d))
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(dialect, db, files,
		goose.WithDisableGlobalRegistry(true), goose.WithTableName(d.rewrite("barrier.schema_version")))
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}

// SchemaVersion returns the version of the barrier's tables in db, 0 when there are none.
func SchemaVersion(ctx context.Context, db *sql.DB, d Dialect) (int64, error) {
	there := `SELECT to_regclass('barrier.schema_version') IS NOT NULL`
	if d == SQLite {
		there = `SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'barrier_schema_version')`
	}
	var (
		found   bool
		version int64
	)
	err := db.QueryRowContext(ctx, there).Scan(&found)
	if err == nil && found {
		err = db.QueryRowContext(ctx, d.rewrite(`SELECT coalesce(max(version_id), 0) FROM barrier.schema_version`)).Scan(&version)
	}
	if err != nil {
		return 0, fmt.Errorf("read the version of the barrier's tables: %w", err)
	}
	return version, nil
}

// schemaWanted is the number of the dialect's last embedded file.
func (d Dialect) schemaWanted() int64 {
	return sqlconn.LatestMigration(migrationFiles, "migrations/"+string(d))
}

// pause waits for d, or until ctx is done, whose error it returns then.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
