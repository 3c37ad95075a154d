package control

import (
	"strings"
	"sync"

	"github.com/guardyn-edge/guardyn/barrier"
)

// Resolution is how rollouts ended, for metrics.
type Resolution struct {
	Outcome barrier.State
	Reason  string // its class: "", "nack", "deadline", "restarted", "roster", "build", "operator", "deadman", "failed", "other"
}

// resolution of a rollout that is over.
func resolution(ro barrier.Rollout) Resolution {
	r := Resolution{Outcome: ro.State}
	if ro.State != barrier.Aborted && ro.State != barrier.Reverted {
		return r
	}
	of := func(s, class string) bool {
		if r.Reason == "" && strings.Contains(ro.Reason, s) {
			r.Reason = class
		}
		return r.Reason != ""
	}
	switch {
	case strings.HasPrefix(ro.DecidedBy, "operator "):
		r.Reason = "operator"
	case strings.HasPrefix(ro.DecidedBy, "deadman of "):
		r.Reason = "deadman"
	case ro.DecidedBy == "roster change", strings.HasPrefix(ro.Reason, "the roster changed"):
		r.Reason = "roster"
	case strings.HasPrefix(ro.Reason, "the deadline passed"), strings.HasPrefix(ro.Reason, "not confirmed in time"):
		r.Reason = "deadline"
	case of("refused by ", "nack"), of("started after the proposal", "restarted"), of(": restarted in the window", "restarted"),
		of("failed on ", "failed"), of(" built ", "build"):
	default:
		r.Reason = "other"
	}
	return r
}

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
	d.counted[resolution(ro)]++
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
