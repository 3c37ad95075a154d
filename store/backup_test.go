package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/store"
)

// fillDatabase makes an operator and a few workspaces, so that there is something to find again.
func fillDatabase(t *testing.T, db *store.DB) control.Bootstrapped {
	t.Helper()
	made, err := control.Bootstrap(t.Context(), db, time.Now(), "op@example.com", "Acme")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		addWorkspace(t, t.Context(), db, fmt.Sprintf("w%02d", i))
	}
	return made
}

func addWorkspace(t *testing.T, ctx context.Context, db *store.DB, name string) {
	t.Helper()
	id := fmt.Sprintf("018f0000-0000-7000-8000-%012x", time.Now().UnixNano()&0xffffffffffff)
	w := control.Workspace{ID: id, Name: name, Plan: "standard", CreatedAt: time.Now().UTC()}
	entry := control.AuditEntry{ID: strings.Replace(id, "-7000-", "-7001-", 1), At: time.Now().UTC(), Actor: "test", Action: "workspace.create", Outcome: "ok"}
	if err := db.CreateWorkspace(ctx, w, entry); err != nil && ctx.Err() == nil {
		t.Error(err)
	}
}

func workspaces(t *testing.T, db *store.DB) []string {
	t.Helper()
	all, err := db.ListWorkspaces(t.Context(), control.Page{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, w := range all {
		names = append(names, w.Name+" "+w.ID)
	}
	return names
}

func TestBackupAndRestore(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			url := d.url(t)
			source := open(t, url)
			made := fillDatabase(t, source)
			path := filepath.Join(t.TempDir(), "backup")
			before := workspaces(t, source)

			// Somebody writes all the while: the copy is one state.
			ctx, stop := context.WithCancel(t.Context())
			var writing sync.WaitGroup
			writing.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					addWorkspace(t, ctx, source, fmt.Sprintf("meanwhile %d", i))
				}
			})
			err := store.Backup(t.Context(), url, path)
			stop()
			writing.Wait()
			if err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(path)
			if err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("mode %v, %v; want 600", info.Mode(), err)
			}
			if err := store.Backup(t.Context(), url, path); !errors.Is(err, fs.ErrExist) {
				t.Errorf("onto a file that exists: %v", err)
			}

			fresh := d.url(t)
			if err := store.Restore(t.Context(), fresh, path); err != nil {
				t.Fatal(err)
			}
			if err := store.Restore(t.Context(), fresh, path); !errors.Is(err, store.ErrNotEmpty) {
				t.Errorf("onto what holds something: %v", err)
			}
			restored, err := store.Open(t.Context(), fresh)
			if err != nil {
				t.Fatal(err)
			}
			defer restored.Close()
			after := workspaces(t, restored)
			if len(after) < len(before) {
				t.Errorf("%d workspaces, there were %d", len(after), len(before))
			}
			names := strings.Join(after, "\n")
			for _, w := range before {
				if !strings.Contains(names, w) {
					t.Errorf("workspace %s is lost", w)
				}
			}
			if _, err := restored.UserByEmail(t.Context(), made.User.Email); err != nil {
				t.Error(err)
			}
			// Its triggers came with it: the audit log stays append-only.
			raw := d.raw(t, fresh)
			if _, err := raw.ExecContext(t.Context(), `DELETE FROM `+map[string]string{"SQLite": "audit", "Postgres": "edge.audit"}[d.name]); err == nil {
				t.Error("the audit log of the restored database can be deleted from")
			}
			addWorkspace(t, t.Context(), restored, "new after the restore")
			leftovers, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".gdn*"))
			if len(leftovers) > 0 {
				t.Errorf("left behind: %v", leftovers)
			}
		})
	}
}

// A schema that stands ready and empty is filled; the role may not be one that makes schemas.
func TestRestoreIntoReadySchema(t *testing.T) {
	pg := databases[1]
	url := pg.url(t)
	fillDatabase(t, open(t, url))
	path := filepath.Join(t.TempDir(), "backup")
	if err := store.Backup(t.Context(), url, path); err != nil {
		t.Fatal(err)
	}
	fresh := pg.url(t)
	if _, err := pg.raw(t, fresh).ExecContext(t.Context(), `CREATE SCHEMA edge`); err != nil {
		t.Fatal(err)
	}
	if err := store.Restore(t.Context(), fresh, path); err != nil {
		t.Fatal(err)
	}
	open(t, fresh)
}

func TestRestoreRefuses(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	backup := func(d int, change string) string {
		url := databases[d].url(t)
		fillDatabase(t, open(t, url))
		if change != "" {
			if _, err := databases[d].raw(t, url).ExecContext(t.Context(), change); err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(t.TempDir(), "backup")
		// By the tools themselves: what is made here is no database of this build.
		if change == "" {
			if err := store.Backup(t.Context(), url, path); err != nil {
				t.Fatal(err)
			}
			return path
		}
		if err := store.BackupAsIs(t.Context(), url, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	lite, pg := backup(0, ""), backup(1, "")
	whole, err := os.ReadFile(lite)
	if err != nil {
		t.Fatal(err)
	}
	torn := append([]byte{}, whole...)
	for i := len(torn) / 2; i < len(torn)/2+4096; i++ {
		torn[i] ^= 0xff
	}
	archive, err := os.ReadFile(pg)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, url, path, want string
	}{
		{"no file", sqliteURL(t), filepath.Join(dir, "none"), "no such file"},
		{"neither", sqliteURL(t), file("text", "hello"), "is not a backup"},
		{"empty", sqliteURL(t), file("empty", ""), "is not a backup"},
		{"SQLite into Postgres", databases[1].url(t), lite, "is a backup of SQLite"},
		{"Postgres into SQLite", sqliteURL(t), pg, "is a backup of PostgreSQL"},
		{"unknown database", "mysql://x", lite, "unknown scheme"},
		{"damaged SQLite", sqliteURL(t), file("torn", string(torn)), "damaged"},
		{"cut SQLite", sqliteURL(t), file("cut", string(whole[:len(whole)/2])), "damaged"},
		{"cut archive", databases[1].url(t), file("cutpg", string(archive[:len(archive)/2])), "pg_restore"},
		{"newer SQLite", sqliteURL(t), backup(0, `INSERT INTO schema_version (version_id, is_applied) VALUES (999, 1)`), "upgrade gdn"},
		{"newer Postgres", databases[1].url(t), backup(1, `INSERT INTO edge.schema_version (version_id, is_applied) VALUES (999, true)`), "upgrade gdn"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := store.Restore(t.Context(), tt.url, tt.path)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("%v, want %q", err, tt.want)
			}
			if path, ok := strings.CutPrefix(tt.url, "sqlite:"); ok {
				if left, _ := os.ReadDir(filepath.Dir(path)); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
			} else if strings.HasPrefix(tt.url, "postgres:") {
				var there sql.NullString
				if err := databases[1].raw(t, tt.url).QueryRowContext(t.Context(), `SELECT to_regnamespace('edge')::text`).Scan(&there); err != nil || there.Valid {
					t.Errorf("schema edge: %v, %v", there, err)
				}
			}
		})
	}
}

func TestBackupWithoutTools(t *testing.T) {
	url := databases[1].url(t)
	open(t, url)
	t.Setenv("PATH", t.TempDir())
	path := filepath.Join(t.TempDir(), "backup")
	var missing *store.MissingToolError
	if err := store.Backup(t.Context(), url, path); !errors.As(err, &missing) || !strings.Contains(err.Error(), "postgresql-client") {
		t.Errorf("%v", err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestBackupOfNothing(t *testing.T) {
	var schema *store.SchemaError
	for _, d := range databases {
		path := filepath.Join(t.TempDir(), "backup")
		if err := store.Backup(t.Context(), d.url(t), path); !errors.As(err, &schema) || schema.Have != 0 {
			t.Errorf("%s: %v", d.name, err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s: there is a file", d.name)
		}
	}
}
