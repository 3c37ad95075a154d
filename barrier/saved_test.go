package barrier_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// TestSavedThoughItFailed: the write of a trial, and of its end, is done, and what makes it durable says that it failed. The member
// finds it on its disk: with a disk that fails it proves no trial, and from a confirmed one it goes on.
func TestSavedThoughItFailed(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fails func(barrier.Memory) bool
		state barrier.State
		serve string
	}{
		{"a trial", func(m barrier.Memory) bool { return m.Trial != nil }, barrier.Reverted, "d0"},
		{"its confirm", func(m barrier.Memory) bool { return m.Trial == nil && m.Highest > 0 }, barrier.Confirmed, "d1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGroup(t, 2)
				m := g.machines[0]
				failed := false
				m.step = func(call string) error {
					if call == "saved" && !failed && tc.fails(m.remembers()) {
						failed = true
						return errDown
					}
					return nil
				}
				members, coordinator := g.whole()
				g.propose("d1", time.Minute)
				time.Sleep(30 * time.Second)
				synctest.Wait()
				g.is(tc.state)
				g.serve(tc.serve)
				if row, mem := g.row(), m.remembers(); !failed || mem.Confirmed != row.Committed || mem.Trial != nil {
					t.Errorf("failed: %t; it remembers %+v, and %v is committed", failed, mem, row.Committed)
				}
				endAll(t, append(members, coordinator)...)
			})
		})
	}
}
