package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"

	"github.com/guardyn-edge/guardyn/internal/durable"
	"github.com/guardyn-edge/guardyn/store"
)

// operatorIs tells whether the database of dir has an operator already.
func operatorIs(t *testing.T, dir *durable.Dir) bool {
	t.Helper()
	db, err := store.Open(context.Background(), databaseURL(dir, databaseFile))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = db.UserByEmail(context.Background(), devOperator)
	return err == nil
}

func TestFirstStartSurvivesCrashes(t *testing.T) {
	file := func(dir *durable.Dir, name string) string { return filepath.Join(dir.Path(), name) }
	tests := []struct {
		name  string
		crash func(t *testing.T, dir *durable.Dir) // makes what a crash leaves of a directory that started once
		same  bool                                 // the secrets stay
	}{
		{"nothing happened", func(*testing.T, *durable.Dir) {}, true},
		{"before the secrets were kept", func(t *testing.T, dir *durable.Dir) {
			must(t, os.Rename(file(dir, databaseFile), file(dir, unfinishedDatabase)))
			must(t, os.Remove(file(dir, secretsFile)))
		}, false},
		{"in the middle of the database", func(t *testing.T, dir *durable.Dir) {
			must(t, os.Remove(file(dir, databaseFile)))
			must(t, os.Remove(file(dir, secretsFile)))
			must(t, os.WriteFile(file(dir, unfinishedDatabase), []byte("SQLite form"), 0o600))
			must(t, os.WriteFile(file(dir, unfinishedDatabase+"-wal"), []byte("torn"), 0o600))
		}, false},
		{"before the database got its name", func(t *testing.T, dir *durable.Dir) {
			must(t, os.Rename(file(dir, databaseFile), file(dir, unfinishedDatabase)))
		}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir, err := durable.Open(t.TempDir())
			must(t, err)
			defer dir.Close()
			before, err := firstStart(t.Context(), dir)
			must(t, err)
			tt.crash(t, dir)
			after, err := firstStart(t.Context(), dir)
			must(t, err)
			if same := cmp.Equal(before, after); same != tt.same {
				t.Errorf("secrets are the same: %v, want %v", same, tt.same)
			}
			if !operatorIs(t, dir) {
				t.Error("the database lacks the operator whose token is kept")
			}
			if _, err := os.Stat(file(dir, unfinishedDatabase)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the unfinished database is left: %v", err)
			}
		})
	}
}

// TestSecretsOfAnEarlierBuild are completed by a start, and otherwise stay.
func TestSecretsOfAnEarlierBuild(t *testing.T) {
	dir, err := durable.Open(t.TempDir())
	must(t, err)
	defer dir.Close()
	first, err := firstStart(t.Context(), dir)
	must(t, err)
	old := first
	old.SecretIdentity = ""
	must(t, old.save(dir))
	now, err := firstStart(t.Context(), dir)
	must(t, err)
	if _, err := age.ParseX25519Identity(now.SecretIdentity); err != nil {
		t.Errorf("the sealing identity is %q: %v", now.SecretIdentity, err)
	}
	again, err := firstStart(t.Context(), dir)
	must(t, err)
	if !cmp.Equal(now, again) {
		t.Error("the secrets change with each start")
	}
	now.SecretIdentity = ""
	if !cmp.Equal(now, old) {
		t.Error("other secrets were changed")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
