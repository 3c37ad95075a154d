package store_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/sqlstore"
	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/testpg"
	"github.com/guardyn-edge/guardyn/store"
	"github.com/guardyn-edge/guardyn/store/storetest"
)

func TestMain(m *testing.M) { testpg.Main(m) }

// migrated is a Postgres database with the store's schema and a cohort's.
var migrated = testpg.NewTemplate(func(ctx context.Context, url string) error {
	return errors.Join(store.Migrate(ctx, url), sqlstore.MigrateURL(ctx, url))
})

// databases are the two that the store speaks to: how to name a fresh one, and how to reach it without
// the store.
var databases = []struct {
	name string
	url  func(t testing.TB) string
	made func(t testing.TB) string // as url; it may be migrated already
	raw  func(t testing.TB, url string) *sql.DB
}{
	{"SQLite", sqliteURL, sqliteURL, func(t testing.TB, url string) *sql.DB {
		return openSQL(t, "sqlite", url[len("sqlite:"):]+"?_pragma=busy_timeout(10000)")
	}},
	{"Postgres", testpg.URL, migrated.URL, func(t testing.TB, url string) *sql.DB { return openSQL(t, "pgx", url) }},
}

func sqliteURL(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "guardyn.db") }

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

// open migrates the database and opens it until the test ends.
func open(t testing.TB, url string) *store.DB {
	t.Helper()
	if err := store.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), url)
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

func TestStore(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) control.Store { return open(t, d.made(t)) })
		})
	}
}

// joined is a store that was joined to a cohort, whose steps do what decide says.
func joined(t *testing.T, url string, decide storetest.Decide) (*store.DB, *sqlstore.Store) {
	t.Helper()
	if err := sqlstore.MigrateURL(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	db := open(t, url)
	writer, reader := db.Pools()
	cohort, err := sqlstore.New(t.Context(), writer, sqlstore.Dialect(db.Kind()), "nodes", sqlstore.ReadFrom(reader),
		sqlstore.OnChange(func(ctx context.Context, tx *sql.Tx, before, after barrier.Head) error {
			return db.DecideIn(ctx, tx, before, after, decide)
		}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cohort.Close(); err != nil {
			t.Error(err)
		}
	})
	db.JoinCohort(func(tx *sql.Tx) store.CohortTx { return cohort.In(tx) })
	return db, cohort
}

// A store that was joined to a cohort keeps what any store keeps, and what rollouts need.
func TestJoinedStore(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			storetest.RunJoined(t, func(t *testing.T, decide storetest.Decide) (control.Store, control.Cohort) {
				return joined(t, d.made(t), decide)
			})
		})
	}
}

func TestDurability(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			url := d.url(t)
			if err := store.Migrate(t.Context(), url); err != nil {
				t.Fatal(err)
			}
			storetest.RunDurability(t, func(t *testing.T) control.Store {
				db, err := store.Open(t.Context(), url)
				if err != nil {
					t.Fatal(err)
				}
				return db
			})
		})
	}
}
