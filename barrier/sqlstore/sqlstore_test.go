package sqlstore_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/guardyn-edge/guardyn/barrier/barriertest"
	"github.com/guardyn-edge/guardyn/barrier/sqlstore"
	"github.com/guardyn-edge/guardyn/internal/testpg"
)

// databases are the two: how to name a fresh one, and how to reach it without the store.
var databases = []struct {
	dialect sqlstore.Dialect
	url     func(t testing.TB) string
	raw     func(t testing.TB, url string) *sql.DB
}{
	{sqlstore.SQLite, sqliteURL, func(t testing.TB, url string) *sql.DB {
		return openSQL(t, "sqlite", url[len("sqlite:"):]+"?_pragma=busy_timeout(10000)&_pragma=foreign_keys(1)")
	}},
	{sqlstore.Postgres, testpg.URL, func(t testing.TB, url string) *sql.DB { return openSQL(t, "pgx", url) }},
}

func onBoth(t *testing.T, f func(t *testing.T, d sqlstore.Dialect, url string, raw *sql.DB)) {
	for _, d := range databases {
		t.Run(string(d.dialect), func(t *testing.T) {
			url := d.url(t)
			migrate(t, url)
			f(t, d.dialect, url, d.raw(t, url))
		})
	}
}

func sqliteURL(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "barrier.db") }

func openSQL(t testing.TB, driver, name string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func migrate(t testing.TB, url string) {
	t.Helper()
	if err := sqlstore.MigrateURL(t.Context(), url); err != nil {
		t.Fatal(err)
	}
}

// open opens a cohort as one process does, until the test ends.
func open(t testing.TB, url, cohort string, opts ...sqlstore.Option) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.Open(t.Context(), url, cohort, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestConformance: each handle has connections of its own, as another process has.
func TestConformance(t *testing.T) {
	for _, d := range databases {
		t.Run(string(d.dialect), func(t *testing.T) {
			url := d.url(t)
			migrate(t, url)
			var cohorts atomic.Int64
			barriertest.Run(t, func(t testing.TB) barriertest.Opener {
				url, cohort := url, fmt.Sprintf("cohort-%d", cohorts.Add(1))
				return func(t testing.TB) barriertest.Handles {
					s := open(t, url, cohort, sqlstore.MaxConns(4))
					return barriertest.Handles{Store: s, Leases: s, Artefacts: s}
				}
			})
		})
	}
}
