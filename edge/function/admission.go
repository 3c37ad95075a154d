package function

import "sync"

// admission bounds the calls under way, over all and of each function, and those in line.
type admission struct {
	most, perFunction           int
	mostWaiting, waitingPerFunc int

	mu      sync.Mutex
	running int
	waiting fair
}

// place is what admission knows of one function. The zero place is of one that is not called.
type place struct {
	line
	running int
}

// enter takes a place, waiting for one until done; false: there is none.
func (a *admission) enter(p *place, done func() <-chan struct{}) bool {
	a.mu.Lock()
	if a.running < a.most && p.running < a.perFunction && len(p.waiters) == 0 {
		a.running++
		p.running++
		a.mu.Unlock()
		return true
	}
	if a.waiting.n >= a.mostWaiting || len(p.waiters) >= a.waitingPerFunc {
		a.mu.Unlock()
		return false
	}
	p.owner = p
	w := a.waiting.push(&p.line)
	a.mu.Unlock()
	select {
	case <-w.granted:
		return true
	case <-done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.waiting.remove(w)
}

func (a *admission) leave(p *place) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running--
	p.running--
	for a.running < a.most && a.waiting.pop(a.admit) {
	}
}

// admit gives the next of a line its place, when its function may have one.
func (a *admission) admit(l *line) bool {
	if l.owner.running >= a.perFunction {
		return false
	}
	a.running++
	l.owner.running++
	return true
}

// counts returns the calls under way and those in line.
func (a *admission) counts() (running, waiting int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.running, a.waiting.n
}
