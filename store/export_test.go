package store

import (
	"context"
	"errors"
	"io/fs"

	"github.com/pressly/goose/v3"

	"github.com/guardyn-edge/guardyn/internal/sqlconn"
)

// BackupAsIs is Backup without a look at the schema.
func BackupAsIs(ctx context.Context, rawURL, path string) error {
	db, err := connect(ctx, rawURL, false)
	if err != nil {
		return err
	}
	defer db.Close()
	return placeFile(path, func(temporary string) error { return db.copyTo(ctx, rawURL, temporary) })
}

// OpenAt brings a new database to an old schema and opens it, as a build of that time did.
func OpenAt(ctx context.Context, rawURL string, version int64) (*DB, error) {
	db, err := connect(ctx, rawURL, true)
	if err != nil {
		return nil, err
	}
	dir, dialect, table := db.dialect.migrations()
	if dialect == goose.DialectPostgres {
		release, err := sqlconn.LockMigrations(ctx, db.writer, migrationLock, "edge")
		if err != nil {
			return nil, err
		}
		defer func() { _ = release() }()
	}
	files, err := fs.Sub(migrationFiles, dir)
	if err == nil {
		var provider *goose.Provider
		if provider, err = goose.NewProvider(dialect, db.writer, files, goose.WithDisableGlobalRegistry(true), goose.WithTableName(table)); err == nil {
			_, err = provider.UpTo(ctx, version)
		}
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}
