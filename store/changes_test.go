package store

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/testpg"
)

// What one process writes is hinted to another, also after the connection that listens was cut.
func TestChangesCrossProcesses(t *testing.T) {
	ctx := t.Context()
	url := testpg.URL(t)
	if err := Migrate(ctx, url); err != nil {
		t.Fatal(err)
	}
	open := func() *DB {
		db, err := Open(ctx, url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	writer, reader := open(), open()
	changes := reader.Changes(ctx)
	hinted := func(what string) {
		t.Helper()
		select {
		case <-changes:
		case <-time.After(30 * time.Second):
			t.Fatalf("no hint %s", what)
		}
	}
	write := func() {
		t.Helper()
		at := time.Unix(1, 0)
		u := control.User{ID: uuid.NewString(), Email: uuid.NewString(), CreatedAt: at}
		if err := writer.CreateUser(ctx, u, control.AuditEntry{ID: uuid.NewString(), At: at}); err != nil {
			t.Fatal(err)
		}
	}
	hinted("that it listens")
	write()
	hinted("of a write")
	if _, err := writer.writer.ExecContext(ctx,
		`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = 'LISTEN `+notifyChannel+`'`); err != nil {
		t.Fatal(err)
	}
	hinted("that it listens again")
	write()
	hinted("of a write after a cut")
}
