package sqlconn

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// LockMigrations holds a Postgres advisory lock, on a connection of its own, until release is called, and makes the schema that
// the version table lives in. It waits on the server, without polling.
func LockMigrations(ctx context.Context, db *sql.DB, key int64, schema string) (release func() error, err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	release = func() error {
		_, err := conn.ExecContext(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock($1)`, key)
		return errors.Join(err, conn.Close())
	}
	if _, err := conn.ExecContext(ctx, `SELECT pg_advisory_lock($1)`, key); err != nil {
		return nil, errors.Join(fmt.Errorf("take the migration lock: %w", err), conn.Close())
	}
	// Not "create if absent" alone: that needs a right on the database which the owner of a ready-made
	// schema may not have.
	name := pgx.Identifier{schema}.Sanitize()
	var there bool
	err = conn.QueryRowContext(ctx, `SELECT to_regnamespace($1) IS NOT NULL`, name).Scan(&there)
	if err == nil && !there {
		_, err = conn.ExecContext(ctx, `CREATE SCHEMA `+name)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create schema %s: %w", schema, err), release())
	}
	return release, nil
}

// LatestMigration is the number of the last file in dir of what a program embeds; a directory that is not there, or a file without
// a number, is a fault of the program and panics.
func LatestMigration(embedded fs.FS, dir string) int64 {
	files, err := fs.ReadDir(embedded, dir)
	if err != nil {
		panic("embedded migrations: " + err.Error())
	}
	var latest int64
	for _, f := range files {
		number, _, _ := strings.Cut(f.Name(), "_")
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			panic("embedded migration " + f.Name() + " has no number")
		}
		latest = max(latest, n)
	}
	return latest
}
