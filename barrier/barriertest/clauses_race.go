package barriertest

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// decisionRaces are of coordinators, operators and deadmen.
var decisionRaces = []clause{
	{name: "of commit against abort has one outcome", run: func(c *cohort) {
		ms := c.members(2)
		c.rounds(func(int) {
			before := c.row().Committed
			ro, t := c.staged(ms)
			errs := c.race(2, func(h Handles, i int) error {
				if i == 0 {
					return h.Store.Commit(c.ctx, ro.Ref, t)
				}
				return h.Store.Abort(c.ctx, ro.Ref, barrier.ByOperator("ann"), "enough")
			})
			c.outcome(ro, errs, barrier.Committed, barrier.Aborted)
			if row := c.row(); row.Rollout.State == barrier.Aborted && row.Committed != before {
				c.Errorf("aborted, and the committed pointer moved: %s", show(row))
			}
		})
	}},
	{name: "of one decision made by many has one effect", run: func(c *cohort) {
		ms := c.members(2)
		c.rounds(func(int) {
			ro, t := c.staged(ms)
			before := c.row()
			for _, err := range c.race(4, func(h Handles, _ int) error { return h.Store.Commit(c.ctx, ro.Ref, t) }) {
				c.ok(err)
			}
			if row := c.state(ro, barrier.Committed); row.Revision != before.Revision+1 {
				c.Errorf("revision from %d to %d: want one effect", before.Revision, row.Revision)
			}
		})
	}},
	{name: "of confirm against revert has one outcome", run: func(c *cohort) {
		ms := c.members(2)
		c.rounds(func(int) {
			ro, t := c.soaked(ms)
			errs := c.race(2, func(h Handles, i int) error {
				if i == 0 {
					return h.Store.Confirm(c.ctx, ro.Ref, t)
				}
				return h.Store.Revert(c.ctx, ro.Ref, barrier.ByOperator("ann"), "enough")
			})
			c.outcome(ro, errs, barrier.Confirmed, barrier.Reverted)
		})
	}},
	{name: "of confirm against deadmen around D has one outcome", waits: true, run: confirmAgainstDeadmen},
	{name: "of claims ends with the highest", run: func(c *cohort) {
		const n = 5
		ms := c.members(1)
		c.rounds(func(round int) {
			ro := c.propose()
			base := c.token
			errs := c.race(n, func(h Handles, i int) error { return h.Store.Claim(c.ctx, barrier.Token(base+1+uint64((i+round)%n))) })
			c.token += n
			for i, err := range errs {
				if err != nil {
					c.is(err, barrier.ErrFenced)
				}
				if (i+round)%n == n-1 {
					c.ok(err)
				}
			}
			if row := c.state(ro, barrier.Staging); row.Claim != barrier.Token(c.token) {
				c.Errorf("claim = %d, want %d", row.Claim, c.token)
			}
			c.ack(ro, ms...)
			c.end()
		})
	}},
	{name: "of a claim against commit fences", run: func(c *cohort) {
		ms := c.members(1)
		c.rounds(func(int) {
			ro, t := c.staged(ms)
			var seen barrier.Row // after the Claim
			errs := c.race(2, func(h Handles, i int) error {
				if i == 0 {
					return h.Store.Commit(c.ctx, ro.Ref, t)
				}
				if err := h.Store.Claim(c.ctx, t+1); err != nil {
					return err
				}
				row, err := h.Store.Current(c.ctx)
				seen = row
				return err
			})
			c.token++
			c.ok(errs[1])
			row := c.row()
			if row.Claim != t+1 || row.Rollout.State == barrier.Committed && seen.Rollout.State != barrier.Committed {
				c.Errorf("row: %s\nafter the claim: %s", show(row), show(seen))
			}
			if row.Rollout.State != barrier.Committed {
				c.is(errs[0], barrier.ErrFenced)
			}
			c.end()
		})
	}},
	{name: "of acquirers has one holder at a time, and tokens that grow", run: acquirers},
}

// confirmAgainstDeadmen lets the coordinator confirm as late as it can and members revert as early as they may. It goes on until
// each has won, as far as the store is fast enough to let the coordinator win.
func confirmAgainstDeadmen(c *cohort) {
	const n, least, most = 3, 4, 16
	ms := c.members(n)
	span := barrier.MinDeadline + 4*c.row().Margin
	early := time.Duration(0) // how long before D the coordinator confirms
	outcomes := map[barrier.State]int{}
	for round := 0; round < most && (round < least || len(outcomes) < 2) && !c.Failed(); round++ {
		ro, t := c.soaked(ms, short(span), func(p *barrier.Proposal) { p.Grace = time.Millisecond })
		errs := c.race(n+1, func(h Handles, i int) error {
			for {
				row, err := h.Store.Current(c.ctx)
				if err = errors.Join(err, c.ctx.Err()); err != nil {
					return err
				}
				from := ro.RevertDue()
				if i == 0 {
					from = ro.ConfirmDeadline.Add(-early - row.Margin)
				}
				if !row.Now.Before(from) {
					break
				}
			}
			if i == 0 {
				return h.Store.Confirm(c.ctx, ro.Ref, t)
			}
			for {
				err := h.Store.Revert(c.ctx, ro.Ref, barrier.ByDeadman(ms[i-1].id, ms[i-1].boot), "out of time")
				if !errors.Is(err, barrier.ErrEarly) || c.ctx.Err() != nil {
					return err
				}
			}
		})
		row := c.row()
		outcomes[row.Rollout.State]++
		switch row.Rollout.State {
		case barrier.Confirmed:
			c.ok(errs[0])
			for _, err := range errs[1:] {
				c.is(err, barrier.ErrDecided)
				c.tells(err, ro.Ref, barrier.Confirmed, "")
			}
			early /= 4
		case barrier.Reverted:
			if !errors.Is(errs[0], barrier.ErrLate) {
				c.is(errs[0], barrier.ErrDecided)
			}
			for _, err := range errs[1:] {
				c.ok(err)
			}
			early = max(2*early, 2*time.Millisecond)
			span = max(span, 2*early)
		default:
			c.Errorf("row: %s", show(row))
		}
	}
	c.Logf("outcomes: %v", outcomes)
}

// acquirers take the lease from each other: by releases, so that the holder is alone, whose order shows the tokens'.
func acquirers(c *cohort) {
	const n, each = 4, 15
	var (
		mu      sync.Mutex
		tokens  []barrier.Token
		inside  int
		refused atomic.Int64 // calls of Acquire that were
		active  atomic.Int64 // processes that still take part
		over    atomic.Bool  // one has failed: what it holds it keeps, and the others need not wait for its end
	)
	active.Store(n)
	start := time.Now()
	errs := c.race(n, func(h Handles, i int) (err error) {
		defer func() {
			active.Add(-1)
			if err != nil {
				over.Store(true)
			}
		}()
		for got := 0; got < each && (got < minRounds || time.Since(start) < 4*raceTime); {
			l, err := h.Leases.Acquire(c.ctx, holder(i), barrier.MaxLease)
			if errors.Is(err, barrier.ErrHeld) && c.ctx.Err() == nil && !over.Load() {
				refused.Add(1)
				continue
			}
			if err != nil {
				return err
			}
			got++
			mu.Lock()
			inside++
			alone := inside == 1
			tokens = append(tokens, l.Token)
			mu.Unlock()
			if !alone {
				return fmt.Errorf("%s was given a lease that another holds", holder(i))
			}
			// Held until others have asked for it.
			for before := refused.Load(); refused.Load() < before+2 && active.Load() > 1 && c.ctx.Err() == nil && !over.Load(); {
				runtime.Gosched()
			}
			if err := h.Leases.Renew(c.ctx, l); err != nil {
				return err
			}
			mu.Lock()
			inside--
			mu.Unlock()
			if err := h.Leases.Release(c.ctx, l); err != nil && !errors.Is(err, barrier.ErrLost) {
				return err
			}
		}
		return nil
	})
	for _, err := range errs {
		c.ok(err)
	}
	for i := 1; i < len(tokens); i++ {
		if tokens[i] <= tokens[i-1] {
			c.Fatalf("token %d was given after %d", tokens[i], tokens[i-1])
		}
	}
}
