package host

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// idleMemoryInterval is how often an idle process looks at what memory it holds.
	idleMemoryInterval = 30 * time.Second
	// idleMemorySlack is what it may hold beyond twice what is alive, which is what it grows to by itself (GOGC=100), in octets.
	idleMemorySlack = 64 << 20
)

// idleMemory gives back to the system what a burst of work has left behind. The runtime does that by itself only as it collects, which
// an idle process does once in two minutes, and of memory that was full of what is dead it takes two of those.
type idleMemory struct {
	sample func() heapSample
	give   func()
}

// heapSample is of one moment.
type heapSample struct {
	cycles uint64 // of the collector, so far
	live   uint64 // octets that the last of them found alive
	held   uint64 // octets that the heap has of the system
}

func newIdleMemory() *idleMemory { return &idleMemory{sample: sampleHeap, give: debug.FreeOSMemory} }

// run looks at the memory until ctx ends.
func (m *idleMemory) run(ctx context.Context) {
	t := time.NewTicker(idleMemoryInterval)
	defer t.Stop()
	for before := m.sample(); ; {
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
		now := m.sample()
		if now.idleSince(before) && now.held > 2*now.live+idleMemorySlack {
			m.give()
			now = m.sample()
		}
		before = now
	}
}

// idleSince reports whether next to nothing was allocated: the one cycle may be that of the two minutes.
func (s heapSample) idleSince(before heapSample) bool { return s.cycles-before.cycles <= 1 }

func sampleHeap() heapSample {
	s := []metrics.Sample{
		{Name: "/gc/cycles/total:gc-cycles"},
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(s)
	v := func(i int) uint64 { return s[i].Value.Uint64() }
	return heapSample{cycles: v(0), live: v(1), held: v(2) + v(3) + v(4)}
}
