package function

import (
	"sync"
	"time"
)

const (
	// lightTime is how long a call may compute before it is a heavy one.
	lightTime = time.Millisecond
	// slice is how long a heavy one computes before another one's turn.
	slice = 2 * time.Millisecond
)

// processors are what calls compute on. Calls that have computed for long have one fewer, so that there is always one for those that have
// not, for the network and for all else that a node does.
type processors struct {
	slots, heavySlots int

	mu             sync.Mutex
	running, heavy int // heavy of the running ones
	light, long    fair
}

func newProcessors(n int) *processors { return &processors{slots: n, heavySlots: max(n-1, 1)} }

// turn is a call's part in processors.
type turn struct {
	light, long *line // of its function
	heavy       bool
	holds       bool
	since       time.Time     // it holds one
	used        time.Duration // before that
}

// take waits for a processor until done; false: it is over.
func (p *processors) take(t *turn, done func() <-chan struct{}) bool {
	p.mu.Lock()
	if p.free(t) {
		p.grant(t)
		p.mu.Unlock()
		t.begin()
		return true
	}
	w := p.wait(t)
	p.mu.Unlock()
	return p.await(t, w, done)
}

func (t *turn) begin() { t.holds, t.since = true, time.Now() }

func (p *processors) free(t *turn) bool {
	return p.running < p.slots && (!t.heavy || p.heavy < p.heavySlots)
}

func (p *processors) grant(t *turn) {
	p.running++
	if t.heavy {
		p.heavy++
	}
}

func (p *processors) wait(t *turn) *waiter {
	if t.heavy {
		return p.long.push(t.long)
	}
	return p.light.push(t.light)
}

func (p *processors) await(t *turn, w *waiter, done func() <-chan struct{}) bool {
	select {
	case <-w.granted:
		t.begin()
		return true
	case <-done():
	}
	p.mu.Lock()
	queue := &p.light
	if t.heavy {
		queue = &p.long
	}
	gone := queue.remove(w)
	p.mu.Unlock()
	if !gone {
		t.begin() // it came at the same time, and is given back by who called
	}
	return false
}

// give gives the processor back.
func (p *processors) give(t *turn) {
	if !t.holds {
		return
	}
	t.used += time.Since(t.since)
	t.holds = false
	p.mu.Lock()
	p.running--
	if t.heavy {
		p.heavy--
	}
	p.next()
	p.mu.Unlock()
}

// next grants what is free to those that wait, those that have not computed for long first.
func (p *processors) next() {
	for p.running < p.slots && p.light.pop(nil) {
		p.running++
	}
	for p.running < p.slots && p.heavy < p.heavySlots && p.long.pop(nil) {
		p.running++
		p.heavy++
	}
}

// pass is called by who computes, every now and then: it passes the processor on when another one's turn has come, and waits for
// its own until done; false: it is over.
func (p *processors) pass(t *turn, now time.Time, done func() <-chan struct{}) bool {
	held := now.Sub(t.since)
	p.mu.Lock()
	becomes := !t.heavy && t.used+held > lightTime
	stay := !becomes && (!t.heavy || !(p.light.n > 0 && p.running >= p.slots || p.long.n > 0 && held >= slice))
	if becomes && p.heavy < p.heavySlots {
		t.heavy, stay = true, true
		p.heavy++
	}
	if stay {
		p.mu.Unlock()
		return true
	}
	t.used += held
	t.holds = false
	p.running--
	if t.heavy {
		p.heavy--
	}
	t.heavy = true
	w := p.wait(t)
	p.next()
	p.mu.Unlock()
	return p.await(t, w, done)
}
