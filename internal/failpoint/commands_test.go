package failpoint_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/failpoint"
	"github.com/guardyn-edge/guardyn/store"
)

// armed runs a command that comes to p and fails there.
func (w *world) armed(t *testing.T, p failpoint.Point, action, database string, args ...string) {
	t.Helper()
	out, err := w.run(database, fmt.Sprintf("%s=%s", p, action), args...)
	var exit *exec.ExitError
	if !strings.Contains(out, fmt.Sprintf("failpoint %s: %s\n", p, action)) || !errors.As(err, &exit) {
		t.Fatalf("%s was not reached: %v\n%s", p, err, out)
	}
	if killed := exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL; killed != (action == kill) {
		t.Fatalf("ended otherwise: %v\n%s", err, out)
	}
	w.reached[p] = true
}

// bootstraps ends gdn migrate between its steps; run again it makes what is missing, once.
func (w *world) bootstraps(t *testing.T, url func(*testing.T) string) {
	args := []string{"migrate", "--bootstrap-operator", "op@example.com", "--workspace", "Amthal Group"}
	for _, p := range []failpoint.Point{
		failpoint.Migrated, failpoint.BootstrapPlan, failpoint.BootstrapWorkspace, failpoint.BootstrapUser, failpoint.BootstrapMembership,
	} {
		t.Run("migrate/"+p.String(), func(t *testing.T) {
			database := url(t)
			if database == "" {
				database = "sqlite:" + filepath.Join(t.TempDir(), "new.db")
			}
			for _, action := range []string{kill, fault} {
				w.armed(t, p, action, database, args...)
			}
			if out, err := w.run(database, "", args...); err != nil || !strings.Contains(out, "GUARDYN_TOKEN=") {
				t.Fatalf("migrate again: %v\n%s", err, out)
			}
			if out, err := w.run(database, "", args...); err == nil || !strings.Contains(out, "there is an operator already") {
				t.Errorf("migrate a third time: %v\n%s", err, out)
			}
			db, err := store.Open(t.Context(), database)
			must(t, "open", err)
			defer db.Close()
			page := control.Page{Limit: 10}
			users, err := db.ListUsers(t.Context(), page)
			must(t, "users", err)
			workspaces, err := db.ListWorkspaces(t.Context(), page)
			must(t, "workspaces", err)
			tokens, err := db.ListTokens(t.Context(), "", page)
			must(t, "tokens", err)
			if len(users) != 1 || len(workspaces) != 1 || len(tokens) != 1 {
				t.Errorf("%d users, %d workspaces, %d tokens", len(users), len(workspaces), len(tokens))
			}
		})
	}
}

// backups ends gdn backup and gdn restore between their steps: the file, and the database, is whole or not there.
func (w *world) backups(t *testing.T, url func(*testing.T) string) {
	sqlite := strings.HasPrefix(w.database, "sqlite:")
	fresh := func(t *testing.T) string {
		if sqlite {
			return "sqlite:" + filepath.Join(t.TempDir(), "restored.db")
		}
		return url(t)
	}
	whole := func(t *testing.T, database string) {
		t.Helper()
		if diff := cmp.Diff(history(t, w.database), history(t, database)); diff != "" {
			t.Errorf("restored history (-original +restored):\n%s", diff)
		}
	}
	placed := []failpoint.Point{failpoint.FileLinked, failpoint.FileDone}
	file := append([]failpoint.Point{failpoint.FileWritten, failpoint.FileSynced}, placed...)
	good := filepath.Join(t.TempDir(), "good.backup")
	if out, err := w.run(w.database, "", "backup", good); err != nil {
		t.Fatalf("backup: %v\n%s", err, out)
	}
	for _, p := range file {
		for _, action := range []string{kill, fault} {
			t.Run(fmt.Sprintf("backup/%s=%s", p, action), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "a.backup")
				w.armed(t, p, action, w.database, "backup", path)
				_, err := os.Stat(path)
				if there := action == kill && slices.Contains(placed, p); there != (err == nil) {
					t.Fatalf("the file's being there: %v", err)
				}
				if err != nil {
					if out, err := w.run(w.database, "", "backup", path); err != nil {
						t.Fatalf("backup again: %v\n%s", err, out)
					}
				}
				database := fresh(t)
				if out, err := w.run(database, "", "restore", path); err != nil {
					t.Fatalf("restore: %v\n%s", err, out)
				}
				whole(t, database)
			})
		}
	}
	points := []failpoint.Point{failpoint.Restored}
	if sqlite {
		points = append([]failpoint.Point{failpoint.FileCleared}, file...)
	}
	for _, p := range points {
		for _, action := range []string{kill, fault} {
			t.Run(fmt.Sprintf("restore/%s=%s", p, action), func(t *testing.T) {
				database := fresh(t)
				if p == failpoint.FileCleared {
					must(t, "an empty file", os.WriteFile(strings.TrimPrefix(database, "sqlite:"), nil, 0o600))
				}
				w.armed(t, p, action, database, "restore", good)
				done := p == failpoint.Restored || action == kill && slices.Contains(placed, p)
				out, err := w.run(database, "", "restore", good)
				if refused := err != nil && strings.Contains(out, "not empty"); refused != done || err != nil != done {
					t.Fatalf("restore again: %v\n%s", err, out)
				}
				whole(t, database)
			})
		}
	}
}

func history(t *testing.T, database string) []control.SnapshotRow {
	t.Helper()
	db, err := store.Open(t.Context(), database)
	must(t, "open", err)
	defer db.Close()
	rows, err := db.History(t.Context(), control.Page{Limit: 1000})
	must(t, "history", err)
	return rows
}
