package host_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// late is a member's way to the rollout store by which, once it is slow, the row arrives when the others have long gone on.
type late struct {
	barrier.Store
	slow  atomic.Bool
	asked atomic.Int64
}

func (l *late) Current(ctx context.Context) (barrier.Row, error) {
	if l.slow.Load() {
		l.asked.Add(1)
		select {
		case <-time.After(10 * time.Second):
		case <-ctx.Done():
		}
	}
	return l.Store.Current(ctx)
}

// TestProposedOnce: two members see one change at one time, and one of them is so slow that the other's rollout is over when it comes to
// propose. What was decided is not put to the cohort again, whichever way it was decided.
func TestProposedOnce(t *testing.T) {
	for _, tt := range []struct {
		name   string
		sick   bool
		ending barrier.State
		runs   uint64
		verb   string
	}{
		{"committed", false, barrier.Committed, 2, "in step"},
		{"aborted", true, barrier.Aborted, 1, "refused"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, 3, func(w *world) {
				slow := w.members[1]
				way := &late{Store: w.store}
				slow.cfg.Rollouts.Store = way
				slow.home = &home{shared: true} // the same, that it sees first
				slow.home.write(text(1, coordinated, "s"))
				w.home.write(text(1, coordinated, "s"))
				w.members[0].start() // coordinates
				w.run(1, time.Minute, w.members[0])
				slow.start()
				w.members[2].start()
				w.run(1, time.Minute, w.members...)
				if tt.sick {
					w.members[2].rec.set(func(r *recorder) { r.fails["prepare"] = context.DeadlineExceeded })
				}
				way.slow.Store(true)
				slow.home.write(text(2, coordinated, "s", "x"))
				w.rest(2 * poll)
				if way.asked.Load() == 0 {
					t.Fatal("the slow member has not come to propose: nothing is proved")
				}
				w.home.write(text(2, coordinated, "s", "x"))
				w.rest(time.Minute)
				w.run(tt.runs, 0, w.members...)
				row, err := w.store.Current(context.Background())
				if err != nil || row.Generation != 1 || row.Rollout.State != tt.ending {
					t.Errorf("the cohort was asked %d times, the last time by %s for version %d, before that for %d: %v", row.Generation, row.Rollout.Proposer, row.Rollout.Version, row.Previous.Version, err)
				}
				if s := slow.host.Status(); s.Source.Verb != tt.verb {
					t.Errorf("the slow member: %+v", s.Source)
				}
			})
		})
	}
}
