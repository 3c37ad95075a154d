package store_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/internal/testpg"
	"github.com/guardyn-edge/guardyn/store"
)

func TestOpenRefusesURL(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct{ name, url, want string }{
		{"empty", "", "has no scheme"},
		{"no scheme", "guardyn.db", "has no scheme"},
		{"unknown scheme", "mysql://root@localhost/guardyn", `unknown scheme "mysql"`},
		{"upper case", "SQLITE:x.db", "unknown scheme"},
		{"no path", "sqlite:", "needs a path"},
		{"memory", "sqlite::memory:", "not offered"},
		{"memory by URI", "sqlite:file::memory:?cache=shared", "not offered"},
		{"two slashes", "sqlite://guardyn.db", "right after the colon"},
		{"directory that is not there", "sqlite:" + dir + "/none/guardyn.db", "none/guardyn.db"},
		{"a directory", "sqlite:" + dir, dir},
		{"postgres that does not parse", "postgres://u:hunter2@localhost:port/x", "does not parse"},
		{"postgres that does not answer", "postgres://u:hunter2@127.0.0.1:1/x?connect_timeout=5", "127.0.0.1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for verb, call := range map[string]func() error{
				"Open":    func() error { _, err := store.Open(t.Context(), tt.url); return err },
				"Migrate": func() error { return store.Migrate(t.Context(), tt.url) },
			} {
				err := call()
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%s says %v, not %q", verb, err, tt.want)
				} else if strings.Contains(err.Error(), "hunter2") {
					t.Errorf("%s tells the password: %v", verb, err)
				}
			}
		})
	}
}

func TestOpenCreatesNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "guardyn.db")
	_, err := store.Open(t.Context(), "sqlite:"+path)
	if schema := new(store.SchemaError); !errors.As(err, &schema) || schema.Have != 0 {
		t.Errorf("got %v, not a SchemaError of version 0", err)
	}
	if !strings.Contains(err.Error(), "gdn migrate") {
		t.Errorf("%v does not say what to do", err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file came into being: %v", err)
	}
}

func TestSQLiteFile(t *testing.T) {
	for _, name := range []string{"plain.db", "with space.db", "q?x=1&_pragma=foo.db", "hash#tag.db", "100%.db", "%41.db", "a:b.db", "é.db"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			url := "sqlite:" + filepath.Join(dir, name)
			open(t, url)
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode().Perm() != 0o600 {
				t.Errorf("others may use it: %v", info.Mode())
			}
			files, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				if !strings.HasPrefix(f.Name(), name) {
					t.Errorf("%s came into being beside it", f.Name())
				}
			}
		})
	}
	t.Run("relative", func(t *testing.T) {
		t.Chdir(t.TempDir())
		open(t, "sqlite:./guardyn.db")
		if _, err := os.Stat("guardyn.db"); err != nil {
			t.Error(err)
		}
	})
}

func TestSchemaVersion(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			url := d.url(t)
			db := open(t, url)
			want, err := db.SchemaVersion(t.Context())
			if err != nil || want < 1 {
				t.Fatalf("version %d, %v", want, err)
			}
			raw := d.raw(t, url)
			table := "edge.schema_version"
			if d.name == "SQLite" {
				table = "schema_version"
			}
			set := func(statement string) {
				t.Helper()
				if _, err := raw.ExecContext(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			refused := func(call string, err error, have int64, advice string) {
				t.Helper()
				schema := new(store.SchemaError)
				if !errors.As(err, &schema) || schema.Have != have || schema.Want != want || !strings.Contains(err.Error(), advice) {
					t.Errorf("%s: %v (%+v), not version %d and %q", call, err, schema, have, advice)
				}
			}
			set(`INSERT INTO ` + table + ` (version_id, is_applied) VALUES (99, true)`)
			_, err = store.Open(t.Context(), url)
			refused("Open of a newer schema", err, 99, "upgrade gdn")
			refused("Migrate of a newer schema", store.Migrate(t.Context(), url), 99, "upgrade gdn")
			set(`DELETE FROM ` + table + ` WHERE version_id > 0`)
			_, err = store.Open(t.Context(), url)
			refused("Open of no schema", err, 0, "run `gdn migrate`")
		})
	}
}

func TestSchemaErrorOfAnOlderSchema(t *testing.T) {
	err := &store.SchemaError{Have: 1, Want: 2}
	if got := err.Error(); !strings.Contains(got, "version 1") || !strings.Contains(got, "needs 2") || !strings.Contains(got, "run `gdn migrate`") {
		t.Error(got)
	}
}

// Several processes start at once on an empty database.
func TestMigrateAtOnce(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			url := d.url(t)
			const processes = 6
			errs := make(chan error, processes)
			for range processes {
				go func() { errs <- store.Migrate(t.Context(), url) }()
			}
			for range processes {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
			db := open(t, url) // which migrates once more
			var n int
			table := map[string]string{"SQLite": "platform", "Postgres": "edge.platform"}[d.name]
			if err := d.raw(t, url).QueryRowContext(t.Context(), `SELECT count(*) FROM `+table).Scan(&n); err != nil || n != 1 {
				t.Errorf("%d rows of platform, %v", n, err)
			}
			if _, err := db.Platform(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPostgresLivesInSchemaEdge(t *testing.T) {
	url := testpg.URL(t)
	open(t, url)
	rows, err := openSQL(t, "pgx", url).QueryContext(t.Context(), `
		SELECT n.nspname || '.' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname NOT IN ('edge', 'pg_catalog', 'pg_toast', 'information_schema')`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		t.Errorf("%s is outside of edge", name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

// A role that may not create schemas migrates inside one that was made for it.
func TestMigrateInAReadyMadeSchema(t *testing.T) {
	admin := testpg.URL(t)
	u, err := url.Parse(admin)
	if err != nil {
		t.Fatal(err)
	}
	role := strings.TrimPrefix(u.Path, "/") // unique, as the database is
	raw := openSQL(t, "pgx", admin)
	run := func(ctx context.Context, statement string) {
		t.Helper()
		if _, err := raw.ExecContext(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	run(t.Context(), `CREATE ROLE `+role+` LOGIN`)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		run(ctx, `DROP OWNED BY `+role+` CASCADE`)
		run(ctx, `DROP ROLE `+role)
	})
	q := u.Query()
	if q.Get("user") == "" {
		u.User = url.User(role)
	} else {
		q.Set("user", role)
		u.RawQuery = q.Encode()
	}
	if err := store.Migrate(t.Context(), u.String()); err == nil || !strings.Contains(err.Error(), "create schema edge") {
		t.Errorf("without the schema: %v", err)
	}
	run(t.Context(), `CREATE SCHEMA edge AUTHORIZATION `+role)
	fill(t, open(t, u.String()))
}

// A process that is suspended in a transaction keeps its rows for a while, not for good.
func TestPostgresEndsIdleTransactions(t *testing.T) {
	url := testpg.URL(t)
	if err := store.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	writer, _ := db.Pools()
	var limit string
	if err := writer.QueryRowContext(t.Context(), `SHOW idle_in_transaction_session_timeout`).Scan(&limit); err != nil || limit != "10s" {
		t.Errorf("%q, %v", limit, err)
	}
}
