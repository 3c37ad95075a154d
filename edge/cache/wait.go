package cache

import "time"

// Turn is what a flight that was waited for came to.
type Turn uint8

// The turns.
const (
	// Served: there is an object.
	Served Turn = iota
	// ServedStale: the origin failed, and what is stale may be served.
	ServedStale
	// Failed: there is no answer.
	Failed
	// Released: the answer is another's alone.
	Released
	// Late: it took too long.
	Late
	// Left: the client left.
	Left
)

// Arrival is an object that a flight brought, or brings.
type Arrival struct {
	Turn   Turn
	Object *Object
	// Length is that of the body, -1 while it is not known.
	Length int64
	// Status is that of a failure; of what is served the origin's, when that is not the object's, else 0.
	Status int
}

// Head waits until the flight's answer is known, and for its body too when its length is not, for at most limit, and until the client has
// left.
func (f *Flight) Head(limit time.Duration, left <-chan struct{}) Arrival {
	var timer *time.Timer
	for {
		f.mu.Lock()
		a, settled := f.arrival()
		if !settled && f.changed == nil {
			f.changed = make(chan struct{})
		}
		changed := f.changed
		f.mu.Unlock()
		if settled {
			if a.Turn == Released {
				f.cache.counters.Released.Add(1)
			}
			return a
		}
		if timer == nil {
			timer = time.NewTimer(limit)
			defer timer.Stop()
		}
		select {
		case <-changed:
		case <-timer.C:
			f.cache.counters.TimedOut.Add(1)
			return Arrival{Turn: Late}
		case <-left:
			return Arrival{Turn: Left}
		}
	}
}

// arrival is what there is to be told, if there is. mu is held.
func (f *Flight) arrival() (a Arrival, settled bool) {
	switch f.state {
	case stateDone:
		return Arrival{Object: f.object, Length: int64(len(f.object.Body)), Status: f.status}, true
	case stateBringing:
		return Arrival{Object: f.object, Length: f.length}, f.length > 0
	case stateStale:
		return Arrival{Turn: ServedStale, Status: f.status}, true
	case stateFailed:
		return Arrival{Turn: Failed, Status: f.status}, true
	case stateReleased:
		return Arrival{Turn: Released}, true
	}
	return a, false
}

// Next returns what there is of the body from an offset on, in memory that must not be changed. Without any it returns a channel that is
// closed once there may be more. ended: there is no more after what is returned, whole says whether the body is.
func (f *Flight) Next(offset int64) (p []byte, more <-chan struct{}, ended, whole bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if int64(len(f.body)) > offset {
		p = f.body[offset:len(f.body):len(f.body)]
	}
	switch f.state {
	case stateDone:
		return p, nil, true, true
	case stateBringing:
		if f.length >= 0 && int64(len(f.body)) == f.length {
			return p, nil, true, true
		}
		if len(p) == 0 {
			if f.changed == nil {
				f.changed = make(chan struct{})
			}
			more = f.changed
		}
		return p, more, false, false
	}
	return p, nil, true, false
}

// Collapse counts a request that waits for another's answer.
func (c *Cache) Collapse() { c.counters.Collapsed.Add(1) }
