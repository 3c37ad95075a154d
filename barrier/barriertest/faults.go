package barriertest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
)

// ErrFault is what a call is answered with that a Fault befell. It is none of the ports' errors: it says nothing about
// whether the call took effect.
var ErrFault = errors.New("injected fault")

// Fault is what befalls one call.
type Fault int

// The faults.
const (
	None    Fault = iota
	Lost          // the call never reaches the store, and is answered with ErrFault
	Applied       // the call takes effect, and is answered with ErrFault
	Slow          // another call that is under way overtakes it; when there is none, it goes on
)

// Faults decides what befalls the calls of Faulty handles. The zero Faults lets every call through until it is told otherwise.
// It is safe for concurrent use; several Handles may share one.
type Faults struct {
	mu     sync.Mutex
	script map[string][]Fault
	held   map[string][]*Held
	random *rand.Rand

	moving int           // calls under way that do not wait to be overtaken
	slow   int           // calls that wait to be overtaken
	ended  chan struct{} // closed when one of them ends, and made anew
}

// Seeded returns Faults under which one call in four is lost, one applied but answered with an error, and one slow. One
// goroutine's calls meet the same faults for the same seed.
func Seeded(seed uint64) *Faults { return &Faults{random: rand.New(rand.NewPCG(seed, 0))} }

// Next makes the next calls of method, named as in the port, meet faults in this order, before any others.
func (f *Faults) Next(method string, faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.script == nil {
		f.script = map[string][]Fault{}
	}
	f.script[method] = append(f.script[method], faults...)
}

// Hold makes the next call of method wait at the store's door until Held.Let.
func (f *Faults) Hold(method string) *Held {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held == nil {
		f.held = map[string][]*Held{}
	}
	h := &Held{arrived: make(chan struct{}), done: make(chan struct{})}
	f.held[method] = append(f.held[method], h)
	return h
}

// Held is a call that is on its way. It outlives its caller: one that gave up waiting, since its context ended, does not
// know that the call arrives later.
type Held struct {
	arrived chan struct{} // closed when the call has been made
	call    func()        // set before
	done    chan struct{} // closed when the store has answered
}

// Arrived is closed when the call waits.
func (h *Held) Arrived() <-chan struct{} { return h.arrived }

// Let lets the call reach the store, once, and returns when it was answered. The call must have arrived.
func (h *Held) Let() {
	<-h.arrived
	h.call()
	close(h.done)
}

// take says what befalls a call of method that begins.
func (f *Faults) take(method string) (Fault, *Held) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if hs := f.held[method]; len(hs) > 0 {
		f.held[method] = hs[1:]
		return None, hs[0]
	}
	if fs := f.script[method]; len(fs) > 0 {
		f.script[method] = fs[1:]
		return fs[0], nil
	}
	if f.random != nil {
		return Fault(f.random.IntN(4)), nil
	}
	return None, nil
}

// through makes one call under f.
func through[T any](ctx context.Context, f *Faults, method string, call func(context.Context) (T, error)) (T, error) {
	var none T
	fault, held := f.take(method)
	if held != nil {
		var (
			v   T
			err error
		)
		held.call = func() { v, err = call(context.WithoutCancel(ctx)) }
		close(held.arrived)
		select {
		case <-held.done:
			return v, err
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
	switch fault {
	case Lost:
		return none, fmt.Errorf("%s: %w: lost", method, ErrFault)
	case Slow:
		f.wait(ctx)
	}
	f.begin()
	defer f.end()
	v, err := call(ctx)
	if fault == Applied {
		return none, fmt.Errorf("%s: %w: the answer was lost", method, ErrFault)
	}
	return v, err
}

// waiting returns how many calls wait to be overtaken.
func (f *Faults) waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.slow
}

// does is through for a call that only fails or succeeds.
func does(ctx context.Context, f *Faults, method string, call func(context.Context) error) error {
	_, err := through(ctx, f, method, func(ctx context.Context) (struct{}, error) { return struct{}{}, call(ctx) })
	return err
}

func (f *Faults) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.moving++
}

func (f *Faults) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.moving--
	if f.ended != nil {
		close(f.ended)
		f.ended = nil
	}
}

// wait returns when a call that is under way has ended, or there is none. Calls that wait are not under way, so they never
// wait for each other.
func (f *Faults) wait(ctx context.Context) {
	f.mu.Lock()
	if f.moving == 0 {
		f.mu.Unlock()
		return
	}
	if f.ended == nil {
		f.ended = make(chan struct{})
	}
	ended := f.ended
	f.slow++
	f.mu.Unlock()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.slow--
}
