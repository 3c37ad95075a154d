package function

import "slices"

// waiter is a call in a line. granted is closed when its turn has come.
type waiter struct {
	line    *line
	granted chan struct{}
}

// line holds the waiters of one function, first come first.
type line struct {
	waiters []*waiter
	owner   *place // of an admission's line
}

// fair gives turns to the functions that wait, one after another.
type fair struct {
	lines []*line // those that have waiters, next first
	n     int     // waiters
}

func (f *fair) push(l *line) *waiter {
	w := &waiter{line: l, granted: make(chan struct{})}
	if len(l.waiters) == 0 {
		f.lines = append(f.lines, l)
	}
	l.waiters = append(l.waiters, w)
	f.n++
	return w
}

// pop grants the first waiter of the next line that may; false when there is none.
func (f *fair) pop(may func(*line) bool) bool {
	for i, l := range f.lines {
		if may != nil && !may(l) {
			continue
		}
		w := l.waiters[0]
		l.waiters = slices.Delete(l.waiters, 0, 1)
		f.lines = slices.Delete(f.lines, i, i+1)
		if len(l.waiters) > 0 {
			f.lines = append(f.lines, l)
		}
		f.n--
		close(w.granted)
		return true
	}
	return false
}

// remove takes w out; false: its turn has come.
func (f *fair) remove(w *waiter) bool {
	i := slices.Index(w.line.waiters, w)
	if i < 0 {
		return false
	}
	w.line.waiters = slices.Delete(w.line.waiters, i, i+1)
	if len(w.line.waiters) == 0 {
		at := slices.Index(f.lines, w.line)
		f.lines = slices.Delete(f.lines, at, at+1)
	}
	f.n--
	return true
}
