package sqlstore_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/pressly/goose/v3"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/sqlstore"
)

// Several processes start at once on an empty database.
func TestMigrateAtOnce(t *testing.T) {
	for _, d := range databases {
		t.Run(string(d.dialect), func(t *testing.T) {
			url := d.url(t)
			const processes = 6
			errs := make(chan error, processes)
			for range processes {
				go func() { errs <- sqlstore.MigrateURL(t.Context(), url) }()
			}
			for range processes {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
			newCohort(t, open(t, url, "c"), 1).commit(0)
		})
	}
}

// A pool whose transactions begin as the driver does by default migrates and serves too, at once with others.
func TestMigrateTheCallersPool(t *testing.T) {
	for _, d := range databases {
		t.Run(string(d.dialect), func(t *testing.T) {
			url := d.url(t)
			const processes = 4
			errs := make(chan error, processes)
			pools := make([]*sql.DB, processes)
			for i := range pools {
				pools[i] = d.raw(t, url)
				if d.dialect == sqlstore.SQLite {
					if _, err := pools[i].ExecContext(t.Context(), `PRAGMA journal_mode = WAL`); err != nil {
						t.Fatal(err)
					}
				}
			}
			for _, db := range pools {
				go func() { errs <- sqlstore.Migrate(t.Context(), db, d.dialect) }()
			}
			for range processes {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
			s, err := sqlstore.New(t.Context(), pools[0], d.dialect, "c")
			if err != nil {
				t.Fatal(err)
			}
			newCohort(t, s, 2).commit(0)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if err := pools[0].PingContext(t.Context()); err != nil {
				t.Errorf("Close closed the caller's pool: %v", err)
			}
		})
	}
}

// hostMigrates is a host that keeps its own tables in the database, and its own count of them, with the same library.
func hostMigrates(t *testing.T, d sqlstore.Dialect, raw *sql.DB) error {
	dialect, table := goose.DialectSQLite3, "schema_version"
	if d == sqlstore.Postgres {
		dialect, table = goose.DialectPostgres, "public.schema_version"
	}
	provider, err := goose.NewProvider(dialect, raw, fstest.MapFS{
		"00001_tables.sql": {Data: []byte("-- +goose Up\nCREATE TABLE head (n integer);\nCREATE TABLE rollout (n integer);")},
		"00002_more.sql":   {Data: []byte("-- +goose Up\nCREATE TABLE member (n integer);")},
	}, goose.WithDisableGlobalRegistry(true), goose.WithTableName(table))
	if err != nil {
		return err
	}
	_, err = provider.Up(t.Context())
	return err
}

// The barrier lives in its host's database, whichever of the two migrates first.
func TestBesideTheHost(t *testing.T) {
	for _, d := range databases {
		for _, order := range []string{"host first", "barrier first"} {
			t.Run(string(d.dialect)+"/"+order, func(t *testing.T) {
				url := d.url(t)
				raw := d.raw(t, url)
				steps := []func() error{
					func() error { return hostMigrates(t, d.dialect, raw) },
					func() error { return sqlstore.MigrateURL(t.Context(), url) },
				}
				if order == "barrier first" {
					steps[0], steps[1] = steps[1], steps[0]
				}
				for range 2 { // a second time there is nothing to do
					for _, step := range steps {
						if err := step(); err != nil {
							t.Fatal(err)
						}
					}
				}
				newCohort(t, open(t, url, "c"), 1).commit(0)
				var hosts int
				if err := raw.QueryRowContext(t.Context(), `SELECT count(*) FROM head, member`).Scan(&hosts); err != nil || hosts != 0 {
					t.Errorf("the host's tables: %d rows, %v", hosts, err)
				}
				if d.dialect != sqlstore.Postgres {
					return
				}
				var outside string
				if err := raw.QueryRowContext(t.Context(), `SELECT coalesce(string_agg(n.nspname || '.' || c.relname, ' ' ORDER BY c.relname), '')
					FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
					WHERE c.relkind = 'r' AND n.nspname NOT IN ('barrier', 'pg_catalog', 'information_schema')`).Scan(&outside); err != nil ||
					outside != "public.head public.member public.rollout public.schema_version" {
					t.Errorf("outside of schema barrier: %s, %v", outside, err)
				}
			})
		}
	}
}

func TestSchemaError(t *testing.T) {
	for _, d := range databases {
		t.Run(string(d.dialect), func(t *testing.T) {
			url := d.url(t)
			if d.dialect == sqlstore.Postgres {
				_, err := sqlstore.Open(t.Context(), url, "c")
				if schema := new(sqlstore.SchemaError); !errors.As(err, &schema) || schema.Have != 0 {
					t.Errorf("an empty database: %v", err)
				}
			}
			migrate(t, url)
			raw := d.raw(t, url)
			want, err := sqlstore.SchemaVersion(t.Context(), raw, d.dialect)
			if err != nil || want < 1 {
				t.Fatalf("version %d, %v", want, err)
			}
			table := map[sqlstore.Dialect]string{sqlstore.SQLite: "barrier_schema_version", sqlstore.Postgres: "barrier.schema_version"}[d.dialect]
			if _, err := raw.ExecContext(t.Context(), `INSERT INTO `+table+` (version_id, is_applied) VALUES (99, true)`); err != nil {
				t.Fatal(err)
			}
			_, opening := sqlstore.Open(t.Context(), url, "c")
			for call, err := range map[string]error{"Open": opening, "Migrate": sqlstore.MigrateURL(t.Context(), url)} {
				schema := new(sqlstore.SchemaError)
				if !errors.As(err, &schema) || *schema != (sqlstore.SchemaError{Have: 99, Want: want}) || !strings.Contains(err.Error(), "upgrade") {
					t.Errorf("%s of newer tables: %v", call, err)
				}
			}
		})
	}
	if err := (&sqlstore.SchemaError{Have: 1, Want: 2}); !strings.Contains(err.Error(), "migrate") {
		t.Error(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	good := "sqlite:" + filepath.Join(dir, "good.db")
	migrate(t, good)
	for _, tt := range []struct{ name, url, cohort, want string }{
		{"no scheme", "barrier.db", "c", "neither"},
		{"unknown scheme", "mysql://root@localhost/x", "c", "neither"},
		{"no path", "sqlite:", "c", "path of a file"},
		{"memory", "sqlite::memory:", "c", "path of a file"},
		{"two slashes", "sqlite://barrier.db", "c", "right after the colon"},
		{"a file that is not there", "sqlite:" + dir + "/none.db", "c", "migrate"},
		{"a directory", "sqlite:" + dir, "c", dir},
		{"postgres that does not parse", "postgres://u:hunter2@localhost:port/x", "c", "does not parse"},
		{"postgres that does not answer", "postgres://u:hunter2@127.0.0.1:1/x?connect_timeout=5", "c", "127.0.0.1"},
		{"no cohort", good, "", "cohort"},
		{"a cohort with a space", good, "a b", "cohort"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := sqlstore.Open(t.Context(), tt.url, tt.cohort)
			if err == nil {
				t.Fatal(errors.Join(errors.New("opened"), s.Close()))
			}
			if !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	if _, err := os.Stat(dir + "/none.db"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Open made the file: %v", err)
	}
	if info, err := os.Stat(dir + "/good.db"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may use the file: %v, %v", info.Mode(), err)
	}
	if _, err := sqlstore.Open(t.Context(), "postgres://localhost/x", "c", sqlstore.MaxConns(1)); err == nil {
		t.Error("one connection was enough")
	}
	raw := databases[0].raw(t, good)
	if _, err := sqlstore.New(t.Context(), raw, "oracle", "c"); err == nil {
		t.Error("a dialect that is none")
	}
}

// Cohorts in one database do not see each other.
func TestCohortsAreApart(t *testing.T) {
	onBoth(t, func(t *testing.T, _ sqlstore.Dialect, url string, _ *sql.DB) {
		one, two := newCohort(t, open(t, url, "one"), 2), newCohort(t, open(t, url, "two"), 3)
		ro := one.commit(0)
		two.is(two.s.Commit(two.ctx, ro.Ref, two.token), barrier.ErrUnknown)
		if row := two.row(); row.Rollout != nil || len(row.Roster.Members) != 3 || row.Committed.Digest != "test:baseline" {
			t.Errorf("the other cohort is %+v", row)
		}
		lease, err := one.s.Acquire(one.ctx, "h", barrier.MaxLease)
		one.ok(err)
		other, err := two.s.Acquire(two.ctx, "h2", barrier.MaxLease)
		two.ok(err)
		if lease.Token != one.token+1 || other.Token != two.token+1 {
			t.Errorf("tokens %d and %d after claims %d and %d", lease.Token, other.Token, one.token, two.token)
		}
		one.ok(one.s.Put(one.ctx, "a:b", []byte("one")))
		_, err = two.s.Get(two.ctx, "a:b")
		two.is(err, barrier.ErrNoArtefact)
	})
}
