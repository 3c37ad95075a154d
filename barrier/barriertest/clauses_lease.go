package barriertest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

var leaseClauses = []clause{
	{name: "Acquire takes a lease that nobody holds", run: func(c *cohort) {
		l, err := c.Leases.Acquire(c.ctx, "a", time.Minute)
		c.ok(err)
		if l.Holder != "a" || l.Token == 0 || l.TTL != time.Minute {
			c.Errorf("lease = %+v", l)
		}
	}},
	{name: "Acquire of one that is held is a HeldError that names the holder", run: func(c *cohort) {
		l := c.acquire("a", barrier.MaxLease)
		_, err := c.Leases.Acquire(c.ctx, "b", time.Minute)
		var held *barrier.HeldError
		if !errors.Is(err, barrier.ErrHeld) || !errors.As(err, &held) || held.Holder != "a" {
			c.Errorf("error = %v, want a *HeldError of a", err)
		}
		c.ok(c.Leases.Renew(c.ctx, l))
	}},
	{name: "Acquire by the present holder renews", waits: true, run: func(c *cohort) {
		c.growing(func(d time.Duration) bool {
			before := c.row()
			first := c.acquire("a", d)
			got := c.row().Now
			again, err := c.Leases.Acquire(c.ctx, "a", barrier.MaxLease)
			c.ok(err)
			if again.Token != first.Token {
				if after := c.row(); again.Token < first.Token || after.Now.Sub(before.Now) < d-2*after.Margin {
					c.Errorf("token = %d after %d within %s of %s", again.Token, first.Token, after.Now.Sub(before.Now), d)
				}
				c.release(again)
				return c.Failed() // its time was over: again, with more of it
			}
			c.past(got.Add(d))
			_, err = c.Leases.Acquire(c.ctx, "b", time.Minute)
			c.is(err, barrier.ErrHeld)
			if again.TTL != barrier.MaxLease {
				c.Errorf("lease = %+v", again)
			}
			return true
		})
	}},
	{name: "Acquire of one whose time is over takes it with a higher token", waits: true, run: func(c *cohort) {
		last := c.acquire("a", barrier.MinLease)
		for i := range 5 {
			l := c.expired(fmt.Sprintf("holder-%d", i), barrier.MinLease)
			if l.Token <= last.Token {
				c.Errorf("token = %d after %d", l.Token, last.Token)
			}
			c.is(c.Leases.Renew(c.ctx, last), barrier.ErrLost)
			last = l
		}
	}},
	{name: "tokens strictly increase over releases", run: func(c *cohort) {
		var last barrier.Token
		for i := range 10 {
			l := c.acquire(fmt.Sprintf("holder-%d", i%2), time.Minute)
			if l.Token <= last {
				c.Errorf("token = %d after %d", l.Token, last)
			}
			last = l.Token
			c.release(l)
		}
	}},
	{name: "Renew holds it for another TTL", waits: true, run: func(c *cohort) {
		c.growing(func(d time.Duration) bool {
			l := c.acquire("a", d)
			got := c.row().Now
			l.TTL = barrier.MaxLease
			if err := c.Leases.Renew(c.ctx, l); errors.Is(err, barrier.ErrLost) {
				return false
			} else {
				c.ok(err)
			}
			c.past(got.Add(d))
			_, err := c.Leases.Acquire(c.ctx, "b", time.Minute)
			c.is(err, barrier.ErrHeld)
			c.ok(c.Leases.Renew(c.ctx, l))
			return true
		})
	}},
	{name: "Renew of one that is not the current is ErrLost", run: func(c *cohort) {
		l := c.acquire("a", time.Minute)
		for _, other := range []barrier.Lease{
			{Holder: "a", Token: l.Token + 1, TTL: l.TTL},
			{Holder: "b", Token: l.Token + 1, TTL: l.TTL},
		} {
			c.is(c.Leases.Renew(c.ctx, other), barrier.ErrLost)
		}
		c.ok(c.Leases.Renew(c.ctx, l))
	}},
	{name: "Renew of one that was released is ErrLost", run: func(c *cohort) {
		l := c.acquire("a", time.Minute)
		c.release(l)
		c.is(c.Leases.Renew(c.ctx, l), barrier.ErrLost)
		next := c.acquire("a", time.Minute)
		c.is(c.Leases.Renew(c.ctx, l), barrier.ErrLost)
		c.ok(c.Leases.Renew(c.ctx, next))
	}},
	{name: "Release gives it back at once", run: func(c *cohort) {
		l := c.acquire("a", barrier.MaxLease)
		c.release(l)
		if next := c.acquire("b", time.Minute); next.Token <= l.Token {
			c.Errorf("token = %d after %d", next.Token, l.Token)
		}
	}},
	{name: "Release of one that is not the current is ErrLost and leaves that one", run: func(c *cohort) {
		old := c.acquire("a", time.Minute)
		delayed := c.late("Release", func(c *cohort) error { return c.Leases.Release(c.ctx, old) })
		c.release(old)
		l := c.acquire("a", barrier.MaxLease)
		c.is(c.Leases.Release(c.ctx, old), barrier.ErrLost)
		c.is(delayed(), barrier.ErrLost)
		c.is(c.Leases.Release(c.ctx, barrier.Lease{Holder: "a", Token: l.Token + 1, TTL: l.TTL}), barrier.ErrLost)
		_, err := c.Leases.Acquire(c.ctx, "b", time.Minute)
		c.is(err, barrier.ErrHeld)
		c.ok(c.Leases.Renew(c.ctx, l))
	}},
	{name: "Release twice is ErrLost", run: func(c *cohort) {
		l := c.acquire("a", time.Minute)
		c.release(l)
		c.is(c.Leases.Release(c.ctx, l), barrier.ErrLost)
	}},
	{name: "takes a holder of 1 to MaxNameBytes bytes for MinLease to MaxLease", run: func(c *cohort) {
		long := strings.Repeat("h", barrier.MaxNameBytes)
		for _, bad := range []struct {
			holder string
			ttl    time.Duration
		}{
			{"", time.Minute},
			{long + "h", time.Minute},
			{"a", 0},
			{"a", barrier.MinLease - 1},
			{"a", barrier.MaxLease + 1},
		} {
			_, err := c.Leases.Acquire(c.ctx, bad.holder, bad.ttl)
			c.is(err, barrier.ErrInvalid)
		}
		l := c.acquire(long, barrier.MaxLease)
		_, err := c.Leases.Acquire(c.ctx, "b", barrier.MinLease)
		var held *barrier.HeldError
		if !errors.As(err, &held) || held.Holder != long {
			c.Errorf("error = %v, want a *HeldError of the longest name", err)
		}
		c.release(l)
		c.acquire("b", barrier.MinLease)
	}},
}

// acquire takes a lease that is free.
func (c *cohort) acquire(holder string, ttl time.Duration) barrier.Lease {
	c.Helper()
	l, err := c.Leases.Acquire(c.ctx, holder, ttl)
	c.ok(err)
	return l
}

// expired takes a lease when the holder's time is over.
func (c *cohort) expired(holder string, ttl time.Duration) barrier.Lease {
	c.Helper()
	for {
		l, err := c.Leases.Acquire(c.ctx, holder, ttl)
		if errors.Is(err, barrier.ErrHeld) && c.ctx.Err() == nil {
			continue
		}
		c.ok(err)
		return l
	}
}

// release gives l back. In wrapped mode ErrLost tells of an earlier attempt that did.
func (c *cohort) release(l barrier.Lease) {
	c.Helper()
	if err := c.Leases.Release(c.ctx, l); c.mode != wrapped || !errors.Is(err, barrier.ErrLost) {
		c.ok(err)
	}
}
