// Package lease has an exclusive session held by one member at a time: by the one that holds its lease, for as long as that is sure.
//
// # Why never by two
//
// A lease that a store gave or renewed in answer to a call lasts at least until its TTL after the moment before the call, by whatever clock the
// store has. The holder counts from that moment on its own monotonic clock, and stops the session when a third of the TTL is still
// left: that third is for the session to stop in (Stopping, at most), and for clocks that do not run at one speed, of
// which a sixth of the TTL remains. Nobody else is given the lease before its end. What can break it is a store whose clock is set forward
// by more than that sixth while the holder cannot reach it, and a machine that sleeps with its connections alive: its monotonic clock stands
// still. There the broker itself, which knows one connection for each client id, is the last to decide.
package lease

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// DefaultTTL is how long a lease lasts that is not renewed.
const DefaultTTL = 15 * time.Second

// Stopping is how long a session may take to stop: what runs under a Keeper keeps to it.
func Stopping(ttl time.Duration) time.Duration { return ttl / 6 }

// Keeper holds one lease for one member.
type Keeper struct {
	Open   func() (barrier.Leases, error) // called once, and again after it failed
	Member string
	TTL    time.Duration // 0: DefaultTTL; at least barrier.MinLease
	Log    interface {
		Info(msg string, args ...any)
		Warn(msg string, args ...any)
	}
	// Changed is called when Standing changes. It may be nil.
	Changed func(Standing)

	mu       sync.Mutex
	standing Standing
}

// Standing is where a member stands with a lease.
type Standing struct {
	Held   bool
	Holder string // another member that holds it, if known
	Err    string // why nothing is known
}

// Standing returns where the member stands.
func (k *Keeper) Standing() Standing {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.standing
}

func (k *Keeper) set(s Standing) {
	k.mu.Lock()
	changed := k.standing != s
	k.standing = s
	k.mu.Unlock()
	if changed && k.Changed != nil {
		k.Changed(s)
	}
}

func (k *Keeper) ttl() time.Duration {
	if k.TTL <= 0 {
		return DefaultTTL
	}
	return k.TTL
}

// Run holds the lease whenever it can, until ctx ends, and calls hold while it does: hold's context ends when the lease ends or ctx does, and
// hold returns soon after, within Stopping. Then the lease is given back. Run has waited for hold when it returns.
func (k *Keeper) Run(ctx context.Context, hold func(ctx context.Context)) {
	holder := k.Member + "." + rand.Text()
	var leases barrier.Leases
	for ctx.Err() == nil {
		var err error
		if leases == nil {
			if leases, err = k.Open(); err != nil {
				leases = nil
			}
		}
		if err == nil {
			err = k.term(ctx, leases, holder, hold)
		}
		var held *barrier.HeldError
		switch {
		case err == nil || ctx.Err() != nil:
		case errors.As(err, &held):
			name, _, _ := cutLast(held.Holder)
			k.set(Standing{Holder: name})
		default:
			k.set(Standing{Err: err.Error()})
			k.Log.Warn("the lease of an exclusive session cannot be had", "error", err)
		}
		wait(ctx, k.ttl()/6)
	}
	k.set(Standing{})
}

// cutLast is strings.Cut at the last dot.
func cutLast(s string) (before, after string, found bool) {
	if i := strings.LastIndexByte(s, '.'); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// term is one holding of the lease.
func (k *Keeper) term(ctx context.Context, leases barrier.Leases, holder string, hold func(ctx context.Context)) error {
	ttl := k.ttl()
	asked := time.Now()
	call, cancel := context.WithTimeout(ctx, ttl/3)
	defer cancel()
	l, err := leases.Acquire(call, holder, ttl)
	if err != nil {
		return fmt.Errorf("acquire: %w", err)
	}
	holding, stop := context.WithCancel(ctx)
	defer stop()
	// The fence does not wait for the store: a call that hangs does not keep the session alive.
	fence := time.AfterFunc(time.Until(asked.Add(ttl-ttl/3)), stop)
	defer fence.Stop()
	k.set(Standing{Held: true})
	k.Log.Info("holds the lease of an exclusive session", "token", uint64(l.Token))
	var work sync.WaitGroup
	work.Go(func() { hold(holding) })
	lost := k.renew(holding, leases, l, fence)
	stop()
	work.Wait()
	k.set(Standing{})
	if lost != nil {
		k.Log.Warn("the lease of an exclusive session is lost; the session is stopped", "token", uint64(l.Token), "error", lost)
	}
	if !errors.Is(lost, barrier.ErrLost) {
		give, cancel := context.WithTimeout(context.WithoutCancel(ctx), ttl/3)
		defer cancel()
		if err := leases.Release(give, l); err != nil && !errors.Is(err, barrier.ErrLost) {
			k.Log.Warn("the lease cannot be given back; it runs out", "error", err)
		}
	}
	return nil
}

// renew holds the lease until holding ends, by the fence or its parent, or the lease is lost; then it says why.
func (k *Keeper) renew(holding context.Context, leases barrier.Leases, l barrier.Lease, fence *time.Timer) error {
	var last error
	for {
		wait(holding, l.TTL/6)
		if holding.Err() != nil {
			return last
		}
		asked := time.Now()
		err := leases.Renew(holding, l)
		switch {
		case err == nil && fence.Reset(time.Until(asked.Add(l.TTL-l.TTL/3))):
			last = nil
		case err == nil:
			// The fence was reached while the store answered: holding has ended, whatever it said.
			return errors.New("the store was too slow")
		case errors.Is(err, barrier.ErrLost):
			return err
		default:
			last = fmt.Errorf("renew: %w", err)
		}
	}
}
