package store

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/testpg"
)

func openFresh(t *testing.T, url string) *DB {
	t.Helper()
	if err := Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	db, err := Open(t.Context(), url)
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

func TestWriteRunsLostTransactionsAgain(t *testing.T) {
	db := openFresh(t, testpg.URL(t))
	lost := func(code string) error { return fmt.Errorf("deep: %w", &pgconn.PgError{Code: code}) }
	for _, tt := range []struct {
		name string
		errs []error // of each run; nil from then on
		want error
		runs int
	}{
		{"at once", nil, nil, 1},
		{"serialization failure", []error{lost("40001")}, nil, 2},
		{"deadlock, twice", []error{lost("40P01"), lost("40P01")}, nil, 3},
		{"for ever", []error{lost("40001"), lost("40001"), lost("40001"), lost("40001"), lost("40001"), nil}, control.ErrConflict, maxAttempts},
		{"another error", []error{lost("23514")}, nil, 1},
		{"an error of the port", []error{control.ErrNotFound}, control.ErrNotFound, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			runs := 0
			err := db.write(t.Context(), func(querier) error {
				runs++
				if runs <= len(tt.errs) {
					return tt.errs[runs-1]
				}
				return nil
			})
			if runs != tt.runs {
				t.Errorf("%d runs, not %d", runs, tt.runs)
			}
			if tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("got %v, not %v", err, tt.want)
			}
			if tt.want == nil && (err == nil) != (tt.name != "another error") {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Two transactions that lock two rows in opposite order: the database ends one, which is run again.
func TestWriteOutlivesADeadlock(t *testing.T) {
	db := openFresh(t, testpg.URL(t))
	for _, name := range []string{"a", "b"} {
		if _, err := db.writer.ExecContext(t.Context(), `INSERT INTO edge.plan (name, ceilings) VALUES ($1, '0')`, name); err != nil {
			t.Fatal(err)
		}
	}
	bothHoldOne := make(chan struct{}, 2)
	proceed := make(chan struct{})
	go func() {
		<-bothHoldOne
		<-bothHoldOne
		close(proceed)
	}()
	done := make(chan error, 2)
	runs := make(chan struct{}, 2*maxAttempts)
	for _, order := range [][2]string{{"a", "b"}, {"b", "a"}} {
		go func() {
			first := true
			done <- db.write(t.Context(), func(q querier) error {
				runs <- struct{}{}
				for i, name := range order {
					if _, err := q.exec(t.Context(), `UPDATE edge.plan SET ceilings = ceilings || '+' WHERE name = $1`, name); err != nil {
						return err
					}
					if i == 0 && first {
						first = false
						bothHoldOne <- struct{}{}
						<-proceed
					}
				}
				return nil
			})
		}()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if len(runs) < 3 {
		t.Errorf("%d runs: there was no deadlock", len(runs))
	}
	var ceilings string
	if err := db.writer.QueryRowContext(t.Context(), `SELECT string_agg(ceilings, ' ') FROM edge.plan WHERE name IN ('a', 'b')`).Scan(&ceilings); err != nil || ceilings != "0++ 0++" {
		t.Errorf("the rows say %q, %v", ceilings, err)
	}
}

func TestSQLiteConnections(t *testing.T) {
	db := openFresh(t, "sqlite:"+filepath.Join(t.TempDir(), "guardyn.db"))
	for pragma, want := range map[string][2]string{ // of the writer, of a reader
		"journal_mode": {"wal", "wal"},
		"synchronous":  {"2", "2"}, // FULL
		"foreign_keys": {"1", "1"},
		"busy_timeout": {"10000", "10000"},
		"query_only":   {"0", "1"},
	} {
		var got [2]string
		if err := db.writer.QueryRowContext(t.Context(), `PRAGMA `+pragma).Scan(&got[0]); err != nil {
			t.Fatal(err)
		}
		if err := db.reader.QueryRowContext(t.Context(), `PRAGMA `+pragma).Scan(&got[1]); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s is %v, not %v", pragma, got, want)
		}
	}
}

// A reader does not wait for the writer, and does not see what is not committed.
func TestReadDuringAWrite(t *testing.T) {
	for name, url := range map[string]string{
		"SQLite": "sqlite:" + filepath.Join(t.TempDir(), "guardyn.db"), "Postgres": testpg.URL(t),
	} {
		t.Run(name, func(t *testing.T) {
			db := openFresh(t, url)
			before, err := db.Revisions(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			err = db.write(t.Context(), func(q querier) error {
				if err := q.touchDirectory(t.Context()); err != nil {
					return err
				}
				during, err := db.Revisions(t.Context())
				during.Now = before.Now // the clock goes on
				if err == nil && during != before {
					err = fmt.Errorf("read %v before the commit, not %v", during, before)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if after, err := db.Revisions(t.Context()); err != nil || after.Directory != before.Directory+1 {
				t.Errorf("after the commit %v, %v", after, err)
			}
		})
	}
}

func TestReadersCannotWrite(t *testing.T) {
	for name, url := range map[string]string{
		"SQLite": "sqlite:" + filepath.Join(t.TempDir(), "guardyn.db"), "Postgres": testpg.URL(t),
	} {
		t.Run(name, func(t *testing.T) {
			db := openFresh(t, url)
			err := db.read(t.Context(), func(q querier) error { return q.touchDirectory(context.Background()) })
			if err == nil {
				t.Error("a read wrote")
			}
		})
	}
}
