package control

import (
	"context"
	"sync"
)

// sharedCall lets concurrent callers share one run of an expensive function without giving anybody a
// result that is older than their call: who comes while a run goes on shares the one that follows it. At most
// one run goes on at a time. The zero value is ready.
type sharedCall[T any] struct {
	mu      sync.Mutex
	running bool
	next    *run[T] // what waits for the present run to end, nil when nobody does
}

// run is one run with who shares it.
type run[T any] struct {
	ctx    context.Context // done when nobody waits any more
	cancel context.CancelFunc
	fn     func(context.Context) (T, error)
	users  int
	done   chan struct{}
	val    T
	err    error
}

// do returns the result of a run of fn that begins after do was called. fn's context is done when all who
// share the run have gone.
func (c *sharedCall[T]) do(ctx context.Context, fn func(context.Context) (T, error)) (T, error) {
	r := c.join(ctx, fn)
	select {
	case <-r.done:
		c.leave(r)
		return r.val, r.err
	case <-ctx.Done():
		c.leave(r)
		var none T
		return none, ctx.Err()
	}
}

func (c *sharedCall[T]) join(ctx context.Context, fn func(context.Context) (T, error)) *run[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == nil {
		r := &run[T]{fn: fn, done: make(chan struct{})}
		r.ctx, r.cancel = context.WithCancel(context.WithoutCancel(ctx))
		c.next = r
	}
	r := c.next
	r.users++
	if !c.running {
		c.start()
	}
	return r
}

// start runs c.next, then what has come in the meantime. c.mu is held. The goroutine ends when nobody waits:
// who waits for a run keeps it, and a run that nobody waits for is cancelled.
func (c *sharedCall[T]) start() {
	c.running = true
	go func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for c.next != nil {
			r := c.next
			c.next = nil
			c.mu.Unlock()
			r.val, r.err = r.fn(r.ctx)
			close(r.done)
			c.mu.Lock()
		}
		c.running = false
	}()
}

func (c *sharedCall[T]) leave(r *run[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r.users--; r.users == 0 {
		r.cancel()
	}
}
