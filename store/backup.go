package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ErrNotEmpty refuses to restore into a database that holds something.
var ErrNotEmpty = errors.New("the database is not empty")

// A backup of SQLite is a SQLite file, one of Postgres an archive of pg_dump in its custom format. They begin
// so:
const (
	sqliteMagic   = "SQLite format 3\x00"
	postgresMagic = "PGDMP"
)

// PostgresTools is the Debian package that has pg_dump and pg_restore.
const PostgresTools = "postgresql-client"

// MissingToolError says that a program which a backup of Postgres needs is not installed.
type MissingToolError struct{ Tool string }

func (e *MissingToolError) Error() string {
	return fmt.Sprintf("%s is not installed: install the Debian package %s, of the server's version or a newer one", e.Tool, PostgresTools)
}

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
	if err := syncPath(temporary); err != nil {
		return err
	}
	// A link, unlike a rename, fails when the name is taken.
	if err := os.Link(temporary, path); err != nil {
		return err
	}
	return syncPath(dir)
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

// dumpPostgres runs pg_dump, which reads one state of the database.
func dumpPostgres(ctx context.Context, rawURL, path string) error {
	_, err := runPostgresTool(ctx, "pg_dump", rawURL,
		"--format=custom", "--schema=edge", "--no-owner", "--no-privileges", "--file="+path)
	return err
}

// restorePostgres runs pg_restore in one transaction, so that nothing stays of a restore that failed.
func restorePostgres(ctx context.Context, rawURL, backup string) error {
	db, err := connect(ctx, rawURL, false)
	if err != nil {
		return err
	}
	var schema bool
	var things int
	err = db.reader.QueryRowContext(ctx, `SELECT to_regnamespace('edge') IS NOT NULL,
		(SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace('edge'))`).Scan(&schema, &things)
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	if things > 0 {
		return fmt.Errorf("schema edge: %w", ErrNotEmpty)
	}
	contents, err := runPostgresTool(ctx, "pg_restore", "", "--list", backup)
	if err != nil {
		return err
	}
	if !bytes.Contains(contents, []byte(" TABLE edge schema_version ")) {
		return fmt.Errorf("%s: it is not a backup of a control plane: it has none of its tables", backup)
	}
	if err := checkPostgresArchive(ctx, backup); err != nil {
		return fmt.Errorf("%s: %w", backup, err)
	}
	args := []string{"--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges"}
	if schema {
		// The schema stands ready, perhaps because this role may not make one: all else is restored into it.
		list, err := contentsWithoutSchema(contents)
		if err != nil {
			return err
		}
		defer os.Remove(list)
		args = append(args, "--use-list="+list)
	}
	_, err = runPostgresTool(ctx, "pg_restore", rawURL, append(args, backup)...)
	return err
}

// checkPostgresArchive reads the schema's version out of the archive before anything is restored.
func checkPostgresArchive(ctx context.Context, backup string) error {
	text, err := runPostgresTool(ctx, "pg_restore", "", "--data-only", "--schema=edge", "--table=schema_version", "--file=-", backup)
	if err != nil {
		return err
	}
	var have int64
	column := -1
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "COPY edge.schema_version ("):
			_, rest, _ := strings.Cut(line, "(")
			names, _, _ := strings.Cut(rest, ")")
			column = slices.Index(strings.Split(names, ", "), "version_id")
		case line == `\.`:
			column = -1
		case column >= 0:
			if fields := strings.Split(line, "\t"); column < len(fields) {
				version, err := strconv.ParseInt(fields[column], 10, 64)
				if err != nil {
					return fmt.Errorf("version of its schema: %w", err)
				}
				have = max(have, version)
			}
		}
	}
	want := postgresDialect{}.schemaWanted()
	switch {
	case have == 0:
		return errors.New("it does not say which version its schema is")
	case have > want:
		return &SchemaError{Have: have, Want: want}
	}
	return nil
}

// contentsWithoutSchema writes the archive's contents, less the making of the schema, for pg_restore.
func contentsWithoutSchema(contents []byte) (path string, err error) {
	f, err := os.CreateTemp("", "gdn-restore-*")
	if err != nil {
		return "", err
	}
	for line := range bytes.Lines(contents) {
		if !bytes.Contains(line, []byte(" SCHEMA - edge ")) {
			if _, err := f.Write(line); err != nil {
				return "", errors.Join(err, f.Close(), os.Remove(f.Name()))
			}
		}
	}
	if err := f.Close(); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// maxToolWords bounds what is repeated of a program's complaint, in bytes.
const maxToolWords = 4 << 10

// runPostgresTool runs a program of PostgreSQL against the database, unless rawURL is empty. A password goes by
// the environment: arguments are everybody's to read. The program ends when ctx does.
func runPostgresTool(ctx context.Context, tool, rawURL string, args ...string) ([]byte, error) {
	program, err := findPostgresTool(tool)
	if err != nil {
		return nil, err
	}
	env := os.Environ()
	if rawURL != "" {
		name, password, err := withoutPassword(rawURL)
		if err != nil {
			return nil, err
		}
		if password != "" {
			env = append(env, "PGPASSWORD="+password)
		}
		args = append([]string{"--dbname=" + name, "--no-password"}, args...)
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = env
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		words := strings.TrimSpace(complaint.String())
		if len(words) > maxToolWords {
			words = words[:maxToolWords] + "…"
		}
		return nil, fmt.Errorf("%s: %w: %s", tool, err, words)
	}
	return out.Bytes(), nil
}

// withoutPassword takes the password out of a URL.
func withoutPassword(rawURL string) (name, password string, err error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return "", "", errors.New("open database: the postgres URL does not parse: write postgres://USER:PASSWORD@HOST:PORT/DATABASE")
	}
	if u.User != nil {
		password, _ = u.User.Password()
		u.User = url.User(u.User.Username())
	}
	q := u.Query()
	if p := q.Get("password"); p != "" {
		password = p
		q.Del("password")
		u.RawQuery = q.Encode()
	}
	return u.String(), password, nil
}

// findPostgresTool finds a program in PATH. Debian puts one there that takes the server's version.
func findPostgresTool(tool string) (string, error) {
	path, err := exec.LookPath(tool)
	if err != nil {
		return "", &MissingToolError{Tool: tool}
	}
	return path, nil
}
