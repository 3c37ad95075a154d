package store

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"

	"github.com/guardyn-edge/guardyn/internal/sqlconn"
)

//go:embed migrations
var migrationFiles embed.FS

// migrationLock is the key of the Postgres advisory lock under which one process migrates: "guardyn" in
// ASCII.
const migrationLock int64 = 0x6775617264796e

// SchemaError says that a database's schema is not the one that this build was made for.
type SchemaError struct {
	Have int64 // 0: never migrated
	Want int64
}

func (e *SchemaError) Error() string {
	switch {
	case e.Have == 0:
		return "the database has no schema yet: run `gdn migrate`"
	case e.Have < e.Want:
		return fmt.Sprintf("the database schema is version %d and this gdn needs %d: run `gdn migrate`", e.Have, e.Want)
	default:
		return fmt.Sprintf("the database schema is version %d and this gdn knows only %d: upgrade gdn", e.Have, e.Want)
	}
}

func checkSchema(have, want int64) error {
	if have != want {
		return &SchemaError{Have: have, Want: want}
	}
	return nil
}

// Migrate brings the schema of the database that rawURL names to this build's version, creating a SQLite
// file that does not exist. Several processes may call it at once; one does the work. A newer schema is a
// *SchemaError and is left alone.
func Migrate(ctx context.Context, rawURL string) (err error) {
	db, err := connect(ctx, rawURL, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	want := db.dialect.schemaWanted()
	for before := int64(-1); ; {
		have, err := db.SchemaVersion(ctx)
		if err != nil {
			return err
		}
		if have >= want {
			return checkSchema(have, want)
		}
		if have == before {
			return fmt.Errorf("migrate: the schema stays at version %d", have)
		}
		before = have
		if err := db.up(ctx); err != nil {
			// On SQLite, where no lock spans migrations, another process may have done the same one first.
			if now, again := db.SchemaVersion(ctx); again != nil || now == have {
				return fmt.Errorf("migrate from version %d: %w", have, err)
			}
		}
	}
}

func (db *DB) up(ctx context.Context) (err error) {
	dir, dialect, table := db.dialect.migrations()
	if dialect == goose.DialectPostgres {
		release, failed := sqlconn.LockMigrations(ctx, db.writer, migrationLock, "edge")
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, release()) }()
	}
	files, err := fs.Sub(migrationFiles, dir)
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(dialect, db.writer, files,
		goose.WithDisableGlobalRegistry(true), goose.WithTableName(table))
	if err != nil {
		return err
	}
	_, err = provider.Up(ctx)
	return err
}

// SchemaVersion returns the version of the database's schema, 0 when it was never migrated.
func (db *DB) SchemaVersion(ctx context.Context) (int64, error) {
	var there bool
	if err := db.reader.QueryRowContext(ctx, db.dialect.hasVersionTable()).Scan(&there); err != nil {
		return 0, fmt.Errorf("read the schema version: %w", err)
	}
	if !there {
		return 0, nil
	}
	_, _, table := db.dialect.migrations()
	var version int64
	err := db.reader.QueryRowContext(ctx, `SELECT coalesce(max(version_id), 0) FROM `+table).Scan(&version)
	if err != nil {
		return 0, fmt.Errorf("read the schema version: %w", err)
	}
	return version, nil
}
