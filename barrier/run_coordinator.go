package barrier

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// CoordinatorOptions are what a Coordinator runs on.
type CoordinatorOptions struct {
	Store  Decider
	Leases Leases

	Holder      string        // this process, for people; something random is added
	Lease       time.Duration // how long a lease lasts, MinLease to MaxLease; 0: 10 s. Looks come at least every third of it
	Poll        time.Duration // between looks, when no hint comes; 0: 1 s
	CallTimeout time.Duration // of one call; 0: 2 s
	Logger      *slog.Logger  // nil: slog.Default

	Clock func() time.Duration // a monotonic clock; nil: the process's
}

// Coordinator decides rollouts while it holds the lease. Any number may run; one decides. All that it needs is in the
// store, so a successor goes on where it ended.
type Coordinator struct {
	o       CoordinatorOptions
	lease   *Lease
	claimed time.Duration // when this term's claim was written
	claim   Token         // what it was
}

// NewCoordinator returns a Coordinator; nothing happens before Look or Run.
func NewCoordinator(o CoordinatorOptions) *Coordinator {
	o.Holder = cmp.Or(o.Holder, "coordinator") + "-" + rand.Text()
	o.Lease = min(max(cmp.Or(o.Lease, 10*time.Second), MinLease), MaxLease)
	o.Poll = min(cmp.Or(o.Poll, time.Second), o.Lease/3)
	o.CallTimeout = cmp.Or(o.CallTimeout, 2*time.Second)
	if o.Clock == nil {
		start := time.Now()
		o.Clock = func() time.Duration { return time.Since(start) }
	}
	o.Logger = cmp.Or(o.Logger, slog.Default()).With("coordinator", o.Holder)
	return &Coordinator{o: o}
}

// Run looks at every hint and at least every Poll, until ctx ends; then it gives the lease back. Looks take at
// most half of the time, however many hints come.
func (c *Coordinator) Run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer c.release(ctx)
	head, votes := c.o.Store.Watch(ctx, TopicHead), c.o.Store.Watch(ctx, TopicVotes)
	for ctx.Err() == nil {
		began := c.o.Clock()
		again, err := c.Look(ctx)
		if err != nil && ctx.Err() == nil {
			c.o.Logger.WarnContext(ctx, "look", "error", err)
		}
		took := c.o.Clock() - began
		if !pause(ctx, took) {
			return
		}
		timer := time.NewTimer(max(min(again, c.o.Poll)-took, time.Millisecond))
		select {
		case <-ctx.Done():
		case _, ok := <-head:
			if !ok {
				head = nil
			}
		case _, ok := <-votes:
			if !ok {
				votes = nil
			}
		case <-timer.C:
		}
		timer.Stop()
	}
}

// pause waits for d; false when ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// Look takes or renews the lease, reads the row, and does what Decide says, until that is to wait; it returns
// for how long at most. An error leaves open what became of a write: the next Look reads.
func (c *Coordinator) Look(ctx context.Context) (time.Duration, error) {
	for range maxActs {
		if held, err := c.hold(ctx); !held || err != nil {
			return c.o.Poll, err
		}
		call, cancel := context.WithTimeout(ctx, c.o.CallTimeout)
		row, err := c.o.Store.Current(call)
		cancel()
		if err != nil {
			return c.o.Poll, fmt.Errorf("read the row: %w", err)
		}
		if row.Claim == c.lease.Token && c.claim != row.Claim {
			c.claim, c.claimed = row.Claim, c.o.Clock() // the answer to the claim may have been lost
		}
		d := Decide(row, Term{Token: c.lease.Token, Held: c.held(), Lease: c.o.Lease})
		if d.Verb == Wait {
			c.o.Logger.DebugContext(ctx, "wait", "reason", d.Reason)
			if d.Again.IsZero() {
				return c.o.Poll, nil
			}
			// A moment later than due: at the very instant nothing has passed yet.
			return max(d.Again.Sub(row.Now), 0) + time.Millisecond, nil
		}
		if err := c.do(ctx, d, row); err != nil {
			return c.o.Poll, err
		}
		if d.Verb == StepDown {
			return c.o.Poll, nil
		}
	}
	return c.o.Poll, nil // a store that contradicts itself
}

// held is how long ago this term claimed.
func (c *Coordinator) held() time.Duration {
	if c.claim != c.lease.Token {
		return 0
	}
	return c.o.Clock() - c.claimed
}

// hold has the lease held: a coordinator that was paused learns here, before it looks, that it is deposed.
func (c *Coordinator) hold(ctx context.Context) (bool, error) {
	call, cancel := context.WithTimeout(ctx, c.o.CallTimeout)
	defer cancel()
	if c.lease != nil {
		err := c.o.Leases.Renew(call, *c.lease)
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, ErrLost) {
			return false, fmt.Errorf("renew the lease: %w", err)
		}
		c.o.Logger.InfoContext(ctx, "the lease is lost", "token", c.lease.Token)
		c.lease = nil
	}
	l, err := c.o.Leases.Acquire(call, c.o.Holder, c.o.Lease)
	if errors.Is(err, ErrHeld) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("acquire the lease: %w", err)
	}
	// A store that was put back may give the same token again: the claim of this term has yet to be written or seen.
	c.lease, c.claim = &l, 0
	c.o.Logger.InfoContext(ctx, "coordinates", "token", l.Token)
	return true, nil
}

func (c *Coordinator) do(ctx context.Context, d Decision, row Row) error {
	call, cancel := context.WithTimeout(ctx, c.o.CallTimeout)
	defer cancel()
	var (
		err error
		t   = c.lease.Token
	)
	switch d.Verb {
	case StepDown:
		// After a store was restored the claim can be above the lease that this process holds. Given back, the lease comes with a
		// higher token; held on to, it would keep everybody from deciding.
		c.o.Logger.InfoContext(ctx, "steps down", "reason", d.Reason)
		c.release(ctx)
		return nil
	case Claim:
		err = c.o.Store.Claim(call, t)
	case Commit:
		err = c.o.Store.Commit(call, d.Ref, t)
	case Abort:
		err = c.o.Store.Abort(call, d.Ref, ByClaim(t), d.Reason)
	case Confirm:
		err = c.o.Store.Confirm(call, d.Ref, t)
	case Revert:
		err = c.o.Store.Revert(call, d.Ref, ByClaim(t), d.Reason)
	}
	if err != nil {
		return fmt.Errorf("%s %v: %w", d.Verb, d.Ref, err)
	}
	if d.Verb != Claim {
		c.o.Logger.InfoContext(ctx, "rollout", "verb", d.Verb, "generation", d.Ref.Generation, "members", len(row.Seats), "reason", d.Reason)
	}
	return nil
}

// release gives the lease back, so that a successor need not wait for its end.
func (c *Coordinator) release(ctx context.Context) {
	if c.lease == nil {
		return
	}
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.o.CallTimeout)
	defer cancel()
	if err := c.o.Leases.Release(call, *c.lease); err != nil {
		c.o.Logger.WarnContext(ctx, "cannot give the lease back; it runs out", "error", err)
	}
	c.lease = nil
}
