package host

import (
	"context"
	"maps"
	"sync"

	"github.com/guardyn-edge/guardyn/barrier"
)

// watched is a rollout store that counts how rollouts end, as whoever reads it sees it.
type watched struct {
	barrier.Store

	mu     sync.Mutex
	first  bool              // something was read
	empty  bool              // nothing was committed when the row was last read
	last   barrier.RolloutID // that is over and was counted, or was over before this process began
	counts map[barrier.Resolution]uint64
}

// Look implements barrier.Reader.
func (w *watched) Look(ctx context.Context, m barrier.MemberID) (barrier.View, error) {
	v, err := w.Store.Look(ctx, m)
	if err == nil {
		w.note(v.Head)
	}
	return v, err
}

// Current implements barrier.Reader.
func (w *watched) Current(ctx context.Context) (barrier.Row, error) {
	row, err := w.Store.Current(ctx)
	if err == nil {
		w.note(row.Head)
	}
	return row, err
}

func (w *watched) note(h barrier.Head) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ro := h.Rollout
	w.empty = h.Committed.IsZero()
	began := !w.first
	w.first = true
	if ro == nil || ro.Open() || ro.ID == w.last {
		return
	}
	if w.last = ro.ID; began {
		return
	}
	if w.counts == nil {
		w.counts = map[barrier.Resolution]uint64{}
	}
	w.counts[ro.Resolution()]++
}

// emptied tells whether a store that was read has nothing committed.
func (w *watched) emptied() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.first && w.empty
}

// Resolved are the rollouts that this process has seen end.
func (h *Host) Resolved() map[barrier.Resolution]uint64 {
	w := h.watched
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.counts)
}
