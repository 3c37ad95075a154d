package sim

import (
	"fmt"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// maxActs bounds one round of a member and of a coordinator, as in the drivers.
const maxActs = 16

// coordinator is one process that may hold the lease. It performs what barrier.Decide says, as barrier.Coordinator does.
type coordinator struct {
	*process
	index, boots int

	holder  string
	held    bool
	token   barrier.Token
	claim   barrier.Token
	claimed time.Duration
	acts    int
}

func newCoordinator(w *world, i int) *coordinator {
	c := &coordinator{index: i}
	c.process = newProcess(w, "")
	c.start()
	return c
}

// start is a new process, which remembers nothing.
func (c *coordinator) start() {
	c.boots++
	c.alive = true
	c.name = fmt.Sprintf("c%d-b%d", c.index+1, c.boots)
	c.holder = c.name
	c.held, c.token, c.claim, c.claimed = false, 0, 0, 0
	c.wake = c.round
	c.rest(c.w.between(0, c.w.cfg.poll))
}

func (c *coordinator) round() {
	c.acts = 0
	c.hold()
}

// hold renews before each look.
func (c *coordinator) hold() {
	if c.acts++; c.acts > maxActs {
		c.rest(0)
		return
	}
	s, ttl := c.w.store, c.w.cfg.lease
	holder, t := c.holder, c.token
	if !c.held {
		c.acquire()
		return
	}
	call(c.process, "renew", func() (struct{}, error) { return struct{}{}, s.renew(holder, t, ttl) }, func(_ struct{}, err error) {
		switch {
		case err == nil:
			c.look()
		case barrier.Code(err) == "lease_lost":
			c.held = false
			c.acquire()
		default:
			c.rest(c.w.cfg.poll)
		}
	})
}

func (c *coordinator) acquire() {
	s, holder, ttl := c.w.store, c.holder, c.w.cfg.lease
	call(c.process, "acquire", func() (barrier.Token, error) { return s.acquire(holder, ttl) }, func(t barrier.Token, err error) {
		if err != nil {
			c.rest(c.w.cfg.poll)
			return
		}
		c.held, c.token = true, t
		c.look()
	})
}

func (c *coordinator) look() {
	call(c.process, "current", c.w.store.row, func(row *barrier.Row, err error) {
		if err != nil {
			c.rest(c.w.cfg.poll)
			return
		}
		if row.Claim == c.token && c.claim != row.Claim {
			c.claim, c.claimed = row.Claim, c.mono()
		}
		term := barrier.Term{Token: c.token, Lease: c.w.cfg.lease}
		if c.claim == c.token {
			term.Held = c.mono() - c.claimed
		}
		d := barrier.Decide(*row, term)
		switch d.Verb {
		case barrier.Wait:
			if d.Again.IsZero() {
				c.rest(c.w.cfg.poll)
			} else {
				c.rest(min(max(d.Again.Sub(row.Now), 0)+time.Millisecond, c.w.cfg.poll))
			}
		case barrier.StepDown:
			c.w.cov.add(SteppedDown)
			c.held = false
			s, holder, t := c.w.store, c.holder, c.token
			call(c.process, "release", func() (struct{}, error) { return struct{}{}, s.release(holder, t) }, func(struct{}, error) { c.rest(c.w.cfg.poll) })
		default:
			c.w.event("verdict")
			c.think(func() { c.do(d, row) })
		}
	})
}

func (c *coordinator) do(d barrier.Decision, row *barrier.Row) {
	s, t, clock := c.w.store, c.token, c.w.store.now().Add(c.skew)
	c.w.trace.add(c.w.now, c.name, "→ %s %v %s", d.Verb, d.Ref, d.Reason)
	apply := map[barrier.Verb]func() error{
		barrier.Claim:   func() error { return s.claim(t) },
		barrier.Commit:  func() error { return s.commit(d.Ref, t) },
		barrier.Abort:   func() error { return s.abort(d.Ref, t, d.Reason) },
		barrier.Confirm: func() error { return s.confirm(d.Ref, t, clock) },
		barrier.Revert:  func() error { return s.revert(d.Ref, t, d.Reason) },
	}[d.Verb]
	call(c.process, string(d.Verb), func() (struct{}, error) { return struct{}{}, apply() }, func(_ struct{}, err error) {
		switch {
		case err != nil:
			c.rest(c.w.cfg.poll)
		case c.w.opt.Ablation == PointerLater && (d.Verb == barrier.Confirm || d.Verb == barrier.Commit && row.Rollout.Window == 0):
			c.think(func() { c.movePointer(row.Rollout.Pointer()) })
		default:
			c.hold()
		}
	})
}

func (c *coordinator) movePointer(p barrier.Pointer) {
	s := c.w.store
	call(c.process, "move pointer", func() (struct{}, error) { return struct{}{}, s.movePointer(p) }, func(struct{}, error) { c.hold() })
}
