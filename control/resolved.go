package control

import (
	"sync"

	"github.com/guardyn-edge/guardyn/barrier"
)

// Resolution is how rollouts ended, for metrics.
type Resolution = barrier.Resolution

// decisions remembers what this process judged, so that each end is counted by one process and once it took place. The zero
// value is ready.
type decisions struct {
	mu      sync.Mutex
	judged  barrier.RolloutID // the last one whose end was judged here
	state   barrier.State
	counted map[Resolution]uint64
}

// note keeps what a step would end; its transaction may still fail.
func (d *decisions) note(ro *barrier.Rollout) {
	if ro.Open() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.judged, d.state = ro.ID, ro.State
}

// ended counts what took place, if it was judged here.
func (d *decisions) ended(ro barrier.Rollout) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if ro.ID != d.judged || ro.State != d.state {
		return
	}
	d.judged = ""
	if d.counted == nil {
		d.counted = make(map[Resolution]uint64)
	}
	d.counted[ro.Resolution()]++
}

func (d *decisions) count() map[Resolution]uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make(map[Resolution]uint64, len(d.counted))
	for r, n := range d.counted {
		out[r] = n
	}
	return out
}
