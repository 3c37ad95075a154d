package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/guardyn-edge/guardyn/control"
)

// Two stores on one database are as two processes are.
func TestTwoProcesses(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			url := d.url(t)
			a, b := open(t, url), open(t, url)
			fill(t, a)
			const rounds = 20
			var (
				wg        sync.WaitGroup
				mu        sync.Mutex
				published int
			)
			for _, db := range []interface {
				Append(context.Context, control.AuditEntry) error
			}{a, b, a, b} {
				wg.Go(func() {
					for range rounds {
						if err := db.Append(t.Context(), control.AuditEntry{ID: uuid.NewString(), At: time.Unix(1, 0)}); err != nil {
							t.Error(err)
						}
					}
				})
			}
			for i := range 4 {
				db := a
				if i%2 == 1 {
					db = b
				}
				wg.Go(func() {
					for range rounds {
						err := publish(t, db, control.AuditEntry{ID: uuid.NewString(), At: time.Unix(2, 0)})
						if err != nil && !errors.Is(err, control.ErrConflict) {
							t.Error(err)
						} else if err == nil {
							mu.Lock()
							published++
							mu.Unlock()
						}
					}
				})
			}
			wg.Wait()
			p, err := b.Platform(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if want := uint64(published + 2); p.Generation != want || published < rounds {
				t.Errorf("generation %d after %d publications and 2 before", p.Generation, published)
			}
			history, err := a.History(t.Context(), control.Page{Limit: 1000})
			if err != nil {
				t.Fatal(err)
			}
			seen := map[uint64]bool{}
			for _, row := range history {
				for _, g := range row.Generations {
					if seen[g] {
						t.Errorf("generation %d twice", g)
					}
					seen[g] = true
				}
			}
			if len(seen) != published+2 {
				t.Errorf("%d activations after %d publications and 2 before", len(seen), published)
			}
		})
	}
}

func TestCancelledWriteLeavesNothing(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			db := open(t, d.url(t))
			fill(t, db)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			w := control.Workspace{ID: "w2", Name: "two", Plan: "standard", CreatedAt: time.Unix(1, 0)}
			if err := db.CreateWorkspace(ctx, w, control.AuditEntry{ID: "a", At: time.Unix(1, 0)}); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			if _, err := db.WorkspaceByID(t.Context(), "w2"); !errors.Is(err, control.ErrNotFound) {
				t.Errorf("got %v", err)
			}
			// The connection is of use again.
			if err := db.CreateWorkspace(t.Context(), w, control.AuditEntry{ID: "a", At: time.Unix(1, 0)}); err != nil {
				t.Error(err)
			}
		})
	}
}

// A deed whose audit entry cannot be written is not done.
func TestNoDeedWithoutItsAuditEntry(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			db := open(t, d.url(t))
			fill(t, db)
			entry := control.AuditEntry{ID: "once", At: time.Unix(1, 0)}
			if err := db.Append(t.Context(), entry); err != nil {
				t.Fatal(err)
			}
			w := control.Workspace{ID: "w2", Name: "two", Plan: "standard", CreatedAt: time.Unix(1, 0)}
			if err := db.CreateWorkspace(t.Context(), w, entry); err == nil || errors.Is(err, control.ErrExists) {
				t.Errorf("got %v, as if the workspace existed", err)
			}
			if _, err := db.WorkspaceByID(t.Context(), "w2"); !errors.Is(err, control.ErrNotFound) {
				t.Errorf("got %v", err)
			}
			before, err := db.Platform(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := publish(t, db, entry); err == nil {
				t.Error("published")
			}
			if after, err := db.Platform(t.Context()); err != nil || after != before {
				t.Errorf("the platform went from %v to %v, %v", before, after, err)
			}
			if live, err := db.Live(t.Context()); err != nil || fmt.Sprint(live.Generations) != "[2]" {
				t.Errorf("live is %v, %v", live, err)
			}
		})
	}
}
