package sqlsource_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/guardyn-edge/guardyn/bridge/source"
	"github.com/guardyn-edge/guardyn/bridge/source/sourcetest"
	"github.com/guardyn-edge/guardyn/bridge/source/sqlsource"
	"github.com/guardyn-edge/guardyn/internal/sqlconn"
	"github.com/guardyn-edge/guardyn/internal/testpg"
)

func TestMain(m *testing.M) { testpg.Main(m) }

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestSuite(t *testing.T) {
	sourcetest.Run(t, func(t testing.TB) sourcetest.Home {
		url := testpg.URL(t)
		ok(t, sqlsource.Migrate(t.Context(), url))
		db, _, err := sqlconn.Postgres(t.Context(), url, sqlconn.PostgresOptions{MaxConns: 1, Name: "test"})
		ok(t, err)
		t.Cleanup(func() { ok(t, db.Close()) })
		exec := func(t testing.TB, statement string, args ...any) {
			t.Helper()
			_, err := db.ExecContext(t.Context(), statement, args...)
			ok(t, err)
		}
		// Another document beside it is none of its business.
		exec(t, `INSERT INTO bridge.document (name, version, body) VALUES ('other', 3, 'version: 3')`)
		return sourcetest.Home{
			Open: func(t testing.TB) source.Source {
				s, err := sqlsource.Open(t.Context(), url, "ours")
				ok(t, err)
				return s
			},
			Write: func(t testing.TB, version uint64, body string) {
				exec(t, `INSERT INTO bridge.document (name, version, body) VALUES ('ours', $1, $2)
					ON CONFLICT (name) DO UPDATE SET version = excluded.version, body = excluded.body`, int64(version), body)
			},
			Delete: func(t testing.TB) { exec(t, `DELETE FROM bridge.document WHERE name = 'ours'`) },
			Break: func(t testing.TB) func() {
				exec(t, `ALTER TABLE bridge.document RENAME TO gone`)
				return func() { exec(t, `ALTER TABLE bridge.gone RENAME TO document`) }
			},
		}
	})
}

func TestMigrateTogether(t *testing.T) {
	url := testpg.URL(t)
	if _, err := sqlsource.Open(t.Context(), url, "ours"); err == nil || !strings.Contains(err.Error(), "gdn bridge migrate") {
		t.Errorf("before: %v", err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := sqlsource.Migrate(t.Context(), url); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s, err := sqlsource.Open(t.Context(), url, "ours")
	ok(t, err)
	ok(t, s.Close())
}

// TestSecretsAreNotTold: what names the source is printed in logs and on health pages.
func TestSecretsAreNotTold(t *testing.T) {
	url := testpg.URL(t)
	ok(t, sqlsource.Migrate(t.Context(), url))
	s, err := sqlsource.Open(t.Context(), strings.Replace(url, "user=postgres", "user=postgres&password=hunter2", 1), "ours")
	ok(t, err)
	if strings.Contains(s.String(), "hunter2") || !strings.Contains(s.String(), "document=ours") {
		t.Errorf("it is called %s", s)
	}
	ok(t, s.Close())
	if _, err := s.Read(context.Background()); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("after Close: %v", err)
	}
	if _, err := sqlsource.Open(t.Context(), "postgres://me:hunter2@[", "ours"); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a URL that does not parse: %v", err)
	}
}
