package function

import (
	"sync/atomic"
	"time"
)

// counters only rise.
type counters struct {
	compiled, loaded, shared atomic.Uint64
	compileTime              atomic.Int64
	calls                    Counts
}

// Counts are of one function, or of all.
type Counts struct {
	results [kinds]atomic.Uint64
	nanos   atomic.Int64
	memory  atomic.Int64
}

func (c *Counts) add(k Kind, took time.Duration, memory int64) {
	c.results[k].Add(1)
	c.nanos.Add(int64(took))
	for {
		most := c.memory.Load()
		if memory <= most || c.memory.CompareAndSwap(most, memory) {
			return
		}
	}
}

// Snapshot is what was counted up to a moment.
type Snapshot struct {
	// Results counts calls by what became of them.
	Results [kinds]uint64
	// Time is how long all of them took, waiting included. Memory is the most bytes that one had.
	Time   time.Duration
	Memory int64
}

func (c *Counts) snapshot() Snapshot {
	s := Snapshot{Time: time.Duration(c.nanos.Load()), Memory: c.memory.Load()}
	for i := range s.Results {
		s.Results[i] = c.results[i].Load()
	}
	return s
}

// Counts returns what was counted of the function since its zone has it.
func (f *Function) Counts() Snapshot { return f.state.counts.snapshot() }

// Running is how many calls of the function are under way.
func (f *Function) Running() int {
	a := &f.engine.admission
	a.mu.Lock()
	defer a.mu.Unlock()
	return f.state.place.running
}

// Metrics are what an engine counted since it was made, and what is in it now.
type Metrics struct {
	Calls Snapshot
	// Compiled counts modules that machine code was made of, Loaded those whose code was on disk, Shared those that had it already.
	Compiled, Loaded, Shared uint64
	// CompileTime is what the first two took.
	CompileTime time.Duration
	// Running calls and Waiting ones; Memory is how many bytes the running ones hold.
	Running, Waiting int
	Memory           int64
}

// Metrics returns the engine's counts.
func (e *Engine) Metrics() Metrics {
	m := Metrics{
		Calls: e.counts.calls.snapshot(), Compiled: e.counts.compiled.Load(), Loaded: e.counts.loaded.Load(), Shared: e.counts.shared.Load(),
		CompileTime: time.Duration(e.counts.compileTime.Load()), Memory: e.memories.used.Load(),
	}
	m.Running, m.Waiting = e.admission.counts()
	return m
}
