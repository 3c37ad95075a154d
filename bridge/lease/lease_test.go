package lease_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/memory"
	"github.com/guardyn-edge/guardyn/bridge/lease"
)

const ttl = 12 * time.Second

// way is a member's way to the store.
type way struct {
	barrier.Leases
	mu   sync.Mutex
	fail error
	hang bool
}

func (w *way) set(fail error, hang bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail, w.hang = fail, hang
}

func (w *way) pass(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.hang {
		w.mu.Unlock()
		<-ctx.Done()
		w.mu.Lock()
		return ctx.Err()
	}
	return w.fail
}

func (w *way) Acquire(ctx context.Context, holder string, d time.Duration) (barrier.Lease, error) {
	if err := w.pass(ctx); err != nil {
		return barrier.Lease{}, err
	}
	return w.Leases.Acquire(ctx, holder, d)
}

func (w *way) Renew(ctx context.Context, l barrier.Lease) error {
	if err := w.pass(ctx); err != nil {
		return err
	}
	return w.Leases.Renew(ctx, l)
}

// holder is one member, and when it held.
type holder struct {
	*lease.Keeper
	way  *way
	stop context.CancelFunc
	done chan struct{}

	mu    sync.Mutex
	held  bool
	began int
	ended time.Time // when the session had stopped, the last time
	slow  time.Duration
}

func join(t *testing.T, store *memory.Store, id string) *holder {
	h := &holder{way: &way{Leases: store}, done: make(chan struct{})}
	h.Keeper = &lease.Keeper{Open: func() (barrier.Leases, error) { return h.way, nil }, Member: id, TTL: ttl, Log: slog.New(slog.DiscardHandler)}
	ctx, stop := context.WithCancel(t.Context())
	h.stop = stop
	go func() {
		defer close(h.done)
		h.Run(ctx, func(ctx context.Context) {
			h.mu.Lock()
			h.held = true
			h.began++
			h.mu.Unlock()
			<-ctx.Done()
			time.Sleep(h.slow) // what stopping takes
			h.mu.Lock()
			h.held, h.ended = false, time.Now()
			h.mu.Unlock()
		})
	}()
	return h
}

func (h *holder) holds() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held
}

func (h *holder) end() {
	h.stop()
	<-h.done
}

// TestOneAtATime: whatever the store does to one of them, the session of the one has stopped before the other's starts.
func TestOneAtATime(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(w *way)
		sure time.Duration // within which the other holds it
	}{
		{"the store does not answer", func(w *way) { w.set(errors.New("away"), false) }, ttl + ttl/3},
		{"the store hangs", func(w *way) { w.set(nil, true) }, ttl + ttl/3},
		{"the lease is another's", func(w *way) { w.set(barrier.ErrLost, false) }, 2 * ttl},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memory.New(memory.Options{Clock: time.Now})
				one := join(t, store, "one")
				one.slow = lease.Stopping(ttl)
				time.Sleep(time.Second)
				other := join(t, store, "other")
				time.Sleep(10 * ttl)
				if !one.holds() || other.holds() || one.Standing() != (lease.Standing{Held: true}) || other.Standing() != (lease.Standing{Holder: "one"}) {
					t.Fatalf("one is %+v, other %+v", one.Standing(), other.Standing())
				}
				tt.do(one.way)
				for range int(tt.sure / time.Millisecond) {
					time.Sleep(time.Millisecond)
					if one.holds() && other.holds() {
						t.Fatal("both hold it")
					}
				}
				if one.holds() || !other.holds() {
					t.Errorf("after %s one is %v, other %v", tt.sure, one.holds(), other.holds())
				}
				one.end()
				other.end()
			})
		})
	}
}

// TestGivenBack: who ends in order does not keep the other waiting for the lease's end.
func TestGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{Clock: time.Now})
		one := join(t, store, "one.with.dots")
		time.Sleep(time.Second)
		other := join(t, store, "other")
		time.Sleep(ttl)
		if s := other.Standing(); s.Holder != "one.with.dots" {
			t.Errorf("the holder is %q", s.Holder)
		}
		one.end()
		time.Sleep(ttl/6 + time.Second)
		if !other.holds() {
			t.Error("the other waits")
		}
		other.end()
		if s := other.Standing(); s != (lease.Standing{}) {
			t.Errorf("after its end it stands at %+v", s)
		}
	})
}

// TestShortOutage: a store that is away for less than a third of the TTL interrupts nothing.
func TestShortOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := join(t, memory.New(memory.Options{Clock: time.Now}), "one")
		time.Sleep(time.Second)
		for range 5 {
			one.way.set(errors.New("away"), false)
			time.Sleep(ttl/3 - time.Second)
			one.way.set(nil, false)
			time.Sleep(ttl)
		}
		if !one.holds() || one.began != 1 {
			t.Errorf("the session was started %d times", one.began)
		}
		one.end()
	})
}

// TestNoStore: without a store nobody holds, and says why.
func TestNoStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opened := 0
		k := &lease.Keeper{Open: func() (barrier.Leases, error) {
			if opened++; opened < 3 {
				return nil, errors.New("no database")
			}
			return memory.New(memory.Options{Clock: time.Now}), nil
		}, Member: "m", TTL: ttl, Log: slog.New(slog.DiscardHandler)}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			k.Run(ctx, func(ctx context.Context) { <-ctx.Done() })
		}()
		time.Sleep(time.Second)
		if s := k.Standing(); s.Err != "no database" || s.Held {
			t.Errorf("it stands at %+v", s)
		}
		time.Sleep(ttl)
		if !k.Standing().Held {
			t.Errorf("it stands at %+v", k.Standing())
		}
		stop()
		<-done
	})
}
