package source

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"sync"
	"time"
)

// State is what was observed.
type State string

// The states.
const (
	Present State = "present"
	Missing State = "missing"    // for certain
	Failed  State = "read error" // nothing is known
)

// Observation is one look at a source that showed something else than the one before.
type Observation struct {
	State  State
	Stored Stored // of Present
	Err    error  // of Failed
	At     time.Time
}

// DefaultPoll is between looks, DefaultTimeout bounds one.
const (
	DefaultPoll    = time.Second
	DefaultTimeout = 10 * time.Second
)

// Observer looks at a source and tells what it sees in order, nothing merged: what follows is not looked for before what came
// was taken. A document that was deleted and created again between two looks is told as missing and present when the source can tell.
type Observer struct {
	Source  Source
	Poll    time.Duration    // 0: DefaultPoll
	Timeout time.Duration    // 0: DefaultTimeout
	Now     func() time.Time // nil: time.Now

	once  sync.Once
	nudge chan struct{}

	mu   sync.Mutex
	last time.Time // of the last answer
}

func (o *Observer) start() { o.once.Do(func() { o.nudge = make(chan struct{}, 1) }) }

// Nudge makes the next look come at once.
func (o *Observer) Nudge() {
	o.start()
	select {
	case o.nudge <- struct{}{}:
	default:
	}
}

// Answered is when the source last answered, be it that nothing is there; zero before.
func (o *Observer) Answered() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last
}

// Run tells observations to out, which it closes at its end, until ctx ends. It must be called once.
func (o *Observer) Run(ctx context.Context, out chan<- Observation) {
	defer close(out)
	o.start()
	now := o.Now
	if now == nil {
		now = time.Now
	}
	var seen Observation
	tick := time.NewTicker(cmp.Or(o.Poll, DefaultPoll))
	defer tick.Stop()
	for {
		for _, next := range o.look(ctx, seen, now) {
			select {
			case out <- next:
				seen = next
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-tick.C:
		case <-o.nudge:
		case <-ctx.Done():
			return
		}
	}
}

// look returns what is to be told after seen.
func (o *Observer) look(ctx context.Context, seen Observation, now func() time.Time) []Observation {
	limited, cancel := context.WithTimeout(ctx, cmp.Or(o.Timeout, DefaultTimeout))
	defer cancel()
	stored, err := o.Source.Read(limited)
	next := Observation{State: Present, Stored: stored, At: now()}
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, ErrMissing):
		next = Observation{State: Missing, At: next.At}
	case err != nil:
		next = Observation{State: Failed, Err: err, At: next.At}
	}
	if next.State != Failed {
		o.mu.Lock()
		o.last = next.At
		o.mu.Unlock()
	}
	switch {
	case next.State != seen.State:
	case next.State == Missing,
		next.State == Failed && next.Err.Error() == seen.Err.Error(),
		next.State == Present && next.Stored.Equal(seen.Stored):
		return nil
	case next.State == Present && next.Stored.Lineage != seen.Stored.Lineage:
		return []Observation{{State: Missing, At: next.At}, next}
	}
	return []Observation{next}
}

// Equal tells whether nobody has written between two looks that saw s and t, as far as the source can tell.
func (s Stored) Equal(t Stored) bool {
	return s.Version == t.Version && s.Lineage == t.Lineage && bytes.Equal(s.Body, t.Body)
}
