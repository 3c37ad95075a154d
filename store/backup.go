package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/guardyn-edge/guardyn/internal/failpoint"
)

// ErrNotEmpty refuses to restore into a database that holds something.
var ErrNotEmpty = errors.New("the database is not empty")

// A backup of SQLite is a SQLite file, one of Postgres an archive of pg_dump in its custom format. They begin
// so:
const (
	sqliteMagic   = "SQLite format 3\x00"
	postgresMagic = "PGDMP"
)

// Backup writes a consistent copy of the database that rawURL names into a new file, which only its owner may
// read; processes that use the database go on. A file that exists is fs.ErrExist. When Backup returns nil the
// file is whole and on disk; with an error there is none.
func Backup(ctx context.Context, rawURL, path string) (err error) {
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s: %w", path, fs.ErrExist)
	}
	db, err := Open(ctx, rawURL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return placeFile(path, func(temporary string) error { return db.copyTo(ctx, rawURL, temporary) })
}

// copyTo fills an empty file with one state of the database, whoever writes meanwhile.
func (db *DB) copyTo(ctx context.Context, rawURL, path string) error {
	if _, ok := db.dialect.(postgresDialect); ok {
		return dumpPostgres(ctx, rawURL, path)
	}
	// On the writer, since the reading connections may write to no file at all. It reads only (WAL): no other
	// process waits for it.
	if _, err := db.writer.ExecContext(ctx, `VACUUM INTO ?1`, path); err != nil {
		return fmt.Errorf("copy the database: %w", err)
	}
	return nil
}

// Restore fills the database that rawURL names from a file of Backup. The database must be of the same kind and
// hold nothing (ErrNotEmpty); a SQLite file that does not exist is made. The schema is the backup's: Migrate
// brings it to this build's version, a newer one is a *SchemaError. With an error nothing was restored.
func Restore(ctx context.Context, rawURL, path string) error {
	kind, err := backupKind(path)
	if err != nil {
		return err
	}
	scheme, rest, _ := strings.Cut(rawURL, ":")
	switch {
	case scheme == "sqlite" && kind == sqliteMagic:
		return restoreSQLite(ctx, rest, rawURL, path)
	case (scheme == "postgres" || scheme == "postgresql") && kind == postgresMagic:
		return restorePostgres(ctx, rawURL, path)
	case scheme == "sqlite":
		return fmt.Errorf("%s is a backup of PostgreSQL and the database is SQLite; restore it into a PostgreSQL database", path)
	case scheme == "postgres" || scheme == "postgresql":
		return fmt.Errorf("%s is a backup of SQLite and the database is PostgreSQL; restore it into a SQLite file", path)
	}
	return fmt.Errorf("open database: unknown scheme %q: write sqlite:PATH or postgres://USER@HOST/DATABASE", scheme)
}

func backupKind(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	head := make([]byte, len(sqliteMagic))
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return "", err
	}
	for _, magic := range []string{sqliteMagic, postgresMagic} {
		if strings.HasPrefix(string(head[:n]), magic) {
			return magic, nil
		}
	}
	return "", fmt.Errorf("%s is not a backup: it begins neither as a SQLite file nor as an archive of pg_dump", path)
}

// placeFile makes a file whole or not at all: write fills a temporary one beside it, which takes the name only
// when nothing has it.
func placeFile(path string, write func(temporary string) error) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".gdn-backup-*") // mode 0600
	if err != nil {
		return err
	}
	temporary := f.Name()
	defer func() {
		_ = os.Remove(temporary + "-journal")
		err = errors.Join(err, os.Remove(temporary))
	}()
	if err := f.Close(); err != nil {
		return err
	}
	if err := write(temporary); err != nil {
		return err
	}
	if err := failpoint.Hit(failpoint.FileWritten); err != nil {
		return err
	}
	if err := syncPath(temporary); err != nil {
		return err
	}
	if err := failpoint.Hit(failpoint.FileSynced); err != nil {
		return err
	}
	// A link, unlike a rename, fails when the name is taken.
	if err := os.Link(temporary, path); err != nil {
		return err
	}
	err = failpoint.Hit(failpoint.FileLinked)
	if err == nil {
		err = syncPath(dir)
	}
	if err == nil {
		err = failpoint.Hit(failpoint.FileDone)
	}
	if err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// restoreSQLite copies the backup, judges the copy, and gives it the database's name.
func restoreSQLite(ctx context.Context, path, rawURL, backup string) error {
	if path == "" {
		return errors.New("open database: sqlite: needs a path, as in sqlite:./guardyn.db")
	}
	empty := false
	switch info, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if empty, err = emptySQLite(ctx, rawURL, info.Size()); err != nil {
			return err
		}
		if !empty {
			return fmt.Errorf("%s: %w", path, ErrNotEmpty)
		}
	}
	return placeFile(path, func(temporary string) error {
		if err := copyFile(temporary, backup); err != nil {
			return err
		}
		if err := checkSQLite(ctx, temporary); err != nil {
			return fmt.Errorf("%s: %w", backup, err)
		}
		if empty {
			// A log that an earlier file of this name left behind is not the copy's.
			for _, suffix := range []string{"", "-wal", "-shm"} {
				if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
			return failpoint.Hit(failpoint.FileCleared)
		}
		return nil
	})
}

// emptySQLite reports whether the file holds no table.
func emptySQLite(ctx context.Context, rawURL string, size int64) (bool, error) {
	if size == 0 {
		return true, nil
	}
	db, err := connect(ctx, rawURL, false)
	if err != nil {
		return false, err
	}
	var tables int
	err = db.reader.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_master`).Scan(&tables)
	return tables == 0, errors.Join(err, db.Close())
}

// checkSQLite judges a copy: that it is whole, and that its schema is none of a newer build.
func checkSQLite(ctx context.Context, path string) (err error) {
	name := "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + url.Values{"mode": {"ro"}, "immutable": {"1"}}.Encode()
	pool, err := sql.Open("sqlite", name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	var verdict string
	if err := pool.QueryRowContext(ctx, `PRAGMA integrity_check(1)`).Scan(&verdict); err != nil {
		return fmt.Errorf("the backup is damaged: %w", err)
	}
	if verdict != "ok" {
		return fmt.Errorf("the backup is damaged: %s", verdict)
	}
	db := &DB{dialect: sqliteDialect{}, reader: pool, writer: pool}
	return checkRestored(ctx, db)
}

// checkRestored refuses what holds no schema of the store's, or a newer one.
func checkRestored(ctx context.Context, db *DB) error {
	have, err := db.SchemaVersion(ctx)
	if err != nil {
		return err
	}
	want := db.dialect.schemaWanted()
	switch {
	case have == 0:
		return errors.New("it is not a backup of a control plane: it has none of its tables")
	case have > want:
		return &SchemaError{Have: have, Want: want}
	}
	return nil
}

func copyFile(to, from string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
