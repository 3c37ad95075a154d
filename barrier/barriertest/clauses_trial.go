package barriertest

import (
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// trialErrors are the clauses that Converge and Withdraw have in common; call is the one.
func trialErrors(method string, call func(c *cohort, r barrier.Ref, m *member) error) []clause {
	return []clause{
		{name: "of another rollout than the newest is ErrUnknown", run: func(c *cohort) {
			ms := c.members(1)
			c.refused(barrier.ErrUnknown, func() error { return call(c, barrier.Ref{ID: "none", Generation: 1}, ms[0]) })
			old, _ := c.commit(ms)
			ro, _ := c.commit(ms, window)
			for _, r := range []barrier.Ref{old.Ref, {ID: ro.ID, Generation: old.Generation}, {ID: old.ID, Generation: ro.Generation}} {
				c.refused(barrier.ErrUnknown, func() error { return call(c, r, ms[0]) })
			}
		}},
		{name: "of one who is not in the epoch is ErrStranger", run: func(c *cohort) {
			ms := c.members(2)
			stranger := &member{id: "stranger"}
			c.join(stranger)
			ro, _ := c.commit(ms, window)
			c.refused(barrier.ErrStranger, func() error { return call(c, ro.Ref, stranger) })
		}},
		{name: "of a process that did not ack, since it joined later, is ErrJoinedLate", run: func(c *cohort) {
			ms := c.members(2)
			ro, _ := c.commit(ms, window)
			c.join(ms[1])
			c.refused(barrier.ErrJoinedLate, func() error { return call(c, ro.Ref, ms[1]) })
		}},
		{name: "without an open window is ErrNoWindow", run: func(c *cohort) {
			ms := c.members(1)
			c.baseline()
			ro := c.propose(window)
			c.refused(barrier.ErrNoWindow, func() error { return call(c, ro.Ref, ms[0]) })
			c.claim()
			c.ack(ro, ms...)
			c.refused(barrier.ErrNoWindow, func() error { return call(c, ro.Ref, ms[0]) })
			c.ok(c.Store.Abort(c.ctx, ro.Ref, barrier.ByOperator("suite"), "next"))
			ro, _ = c.commit(ms)
			c.refused(barrier.ErrNoWindow, func() error { return call(c, ro.Ref, ms[0]) })
		}},
		{name: "after the decision is a DecidedError that tells it", run: func(c *cohort) {
			ms := c.members(1)
			ro, _ := c.commit(ms, window)
			c.ok(c.Store.Revert(c.ctx, ro.Ref, barrier.ByOperator("suite"), "enough"))
			err := c.refused(barrier.ErrDecided, func() error { return call(c, ro.Ref, ms[0]) })
			c.tells(err, ro.Ref, barrier.Reverted, "enough")

			ro = c.confirmed(ms)
			err = c.refused(barrier.ErrDecided, func() error { return call(c, ro.Ref, ms[0]) })
			c.tells(err, ro.Ref, barrier.Confirmed, "")

			ro = c.propose()
			c.ok(c.Store.Abort(c.ctx, ro.Ref, barrier.ByOperator("suite"), "no"))
			err = c.refused(barrier.ErrDecided, func() error { return call(c, ro.Ref, ms[0]) })
			c.tells(err, ro.Ref, barrier.Aborted, "no")
		}},
		{name: "of an old process that comes late is refused", run: func(c *cohort) {
			ms := c.members(1)
			ro, _ := c.commit(ms, window)
			old := *ms[0]
			delayed := c.late(method, func(c *cohort) error { return call(c, ro.Ref, &old) })
			c.join(ms[0])
			c.refused(barrier.ErrSuperseded, delayed)
		}},
	}
}

func convergeCall(c *cohort, r barrier.Ref, m *member) error {
	return c.Store.Converge(c.ctx, r, m.id, m.boot, "works")
}

func withdrawCall(c *cohort, r barrier.Ref, m *member) error {
	return c.Store.Withdraw(c.ctx, r, m.id, m.boot, "does not work")
}

// confirmed makes a rollout, whose window ends well.
func (c *cohort) confirmed(ms []*member) barrier.Rollout {
	c.Helper()
	ro, t := c.commit(ms, window)
	c.converge(ro, ms...)
	row := c.row()
	c.past(row.Now.Add(ro.Soak + row.Margin))
	c.ok(c.Store.Confirm(c.ctx, ro.Ref, t))
	return *c.row().Rollout
}

// evidence reads the ballot of m.
func (c *cohort) ballot(m *member) barrier.Ballot {
	c.Helper()
	v, err := c.Store.Look(c.ctx, m.id)
	c.ok(err)
	return v.Ballot
}

var convergeClauses = append(trialErrors("Converge", convergeCall),
	clause{name: "is evidence, from now on", run: func(c *cohort) {
		ms := c.members(2)
		ro, _ := c.commit(ms, window)
		before := c.row()
		c.ok(c.Store.Converge(c.ctx, ro.Ref, ms[0].id, ms[0].boot, "3 of 3 probes"))
		after := c.row()
		b := after.Seats[0].Ballot
		c.between(before, b.ConvergedSince, after)
		c.between(before, b.RenewedAt, after)
		if b.Detail != "3 of 3 probes" || b.Vote != barrier.Acked || b.BuildDigest != "built" {
			c.Errorf("ballot = %+v", b)
		}
		if other := after.Seats[1].Ballot; !other.ConvergedSince.IsZero() || !other.RenewedAt.IsZero() {
			c.Errorf("the other member's ballot = %+v", other)
		}
	}},
	clause{name: "within the TTL renews, and holds since it was first written", waits: true, run: func(c *cohort) {
		ms := c.members(1)
		ro, _ := c.commit(ms, window)
		c.converge(ro, ms...)
		first := c.ballot(ms[0])
		c.past(first.RenewedAt)
		c.ok(c.Store.Converge(c.ctx, ro.Ref, ms[0].id, ms[0].boot, "again"))
		next := c.ballot(ms[0])
		if !next.ConvergedSince.Equal(first.ConvergedSince) || !next.RenewedAt.After(first.RenewedAt) || next.Detail != "again" {
			c.Errorf("ballot from %+v\nto %+v: want it renewed, since the same time", first, next)
		}
	}},
	clause{name: "after the TTL begins anew", waits: true, run: func(c *cohort) {
		ms := c.members(1)
		ro, _ := c.commit(ms, window, func(p *barrier.Proposal) { p.EvidenceTTL = barrier.MinEvidenceTTL })
		c.converge(ro, ms...)
		first := c.ballot(ms[0])
		expired := first.RenewedAt.Add(ro.EvidenceTTL)
		c.past(expired)
		c.converge(ro, ms...)
		next := c.ballot(ms[0])
		if !next.ConvergedSince.After(expired) || !next.RenewedAt.After(expired) {
			c.Errorf("ballot from %+v\nto %+v: want evidence that began after %v", first, next, expired)
		}
	}},
	clause{name: "after Withdraw is ErrWithdrawn", run: func(c *cohort) {
		ms := c.members(1)
		ro, _ := c.commit(ms, window)
		delayed := c.late("Converge", func(c *cohort) error { return convergeCall(c, ro.Ref, ms[0]) })
		c.converge(ro, ms...)
		c.ok(withdrawCall(c, ro.Ref, ms[0]))
		c.refused(barrier.ErrWithdrawn, func() error { return convergeCall(c, ro.Ref, ms[0]) })
		c.refused(barrier.ErrWithdrawn, delayed)
	}},
	clause{name: "has its detail cut at a character", run: func(c *cohort) {
		ms := c.members(1)
		ro, _ := c.commit(ms, window)
		c.ok(c.Store.Converge(c.ctx, ro.Ref, ms[0].id, ms[0].boot, tooLong))
		c.isCut(c.ballot(ms[0]).Detail)
	}},
)

var withdrawClauses = append(trialErrors("Withdraw", withdrawCall),
	clause{name: "takes evidence back", run: func(c *cohort) {
		ms := c.members(2)
		ro, t := c.commit(ms, window)
		c.converge(ro, ms...)
		before := c.row()
		c.past(before.Now.Add(ro.Soak + before.Margin))
		c.ok(c.Store.Withdraw(c.ctx, ro.Ref, ms[0].id, ms[0].boot, "no healthy origin"))
		after := c.row()
		b := after.Seats[0].Ballot
		if b.Withdrawn != "no healthy origin" || !b.ConvergedSince.IsZero() || !b.RenewedAt.IsZero() || b.Vote != barrier.Acked {
			c.Errorf("ballot = %+v", b)
		}
		c.between(before, b.WithdrawnAt, after)
		c.refused(barrier.ErrNotConverged, func() error { return c.Store.Confirm(c.ctx, ro.Ref, t) })
	}},
	clause{name: "says that the trial has failed before there was evidence", run: func(c *cohort) {
		ms := c.members(1)
		ro, t := c.commit(ms, window)
		c.ok(withdrawCall(c, ro.Ref, ms[0]))
		if b := c.ballot(ms[0]); b.Withdrawn != "does not work" {
			c.Errorf("ballot = %+v", b)
		}
		c.refused(barrier.ErrNotConverged, func() error { return c.Store.Confirm(c.ctx, ro.Ref, t) })
	}},
	clause{name: "again keeps the first reason", run: func(c *cohort) {
		ms := c.members(1)
		ro, _ := c.commit(ms, window)
		c.ok(withdrawCall(c, ro.Ref, ms[0]))
		c.idle(func() error { return withdrawCall(c, ro.Ref, ms[0]) })
		c.idle(func() error { return c.Store.Withdraw(c.ctx, ro.Ref, ms[0].id, ms[0].boot, "other words") })
	}},
	clause{name: "without a reason has withdrawn too", run: func(c *cohort) {
		ms := c.members(1)
		ro, _ := c.commit(ms, window)
		c.ok(c.Store.Withdraw(c.ctx, ro.Ref, ms[0].id, ms[0].boot, ""))
		c.refused(barrier.ErrWithdrawn, func() error { return convergeCall(c, ro.Ref, ms[0]) })
	}},
	clause{name: "changes the head, so that a Confirm on its way fails", run: func(c *cohort) {
		ms := c.members(1)
		ro, _ := c.commit(ms, window)
		before := c.row()
		c.ok(withdrawCall(c, ro.Ref, ms[0]))
		if after := c.row(); after.Revision <= before.Revision {
			c.Errorf("revision = %d, want more than %d", after.Revision, before.Revision)
		}
	}},
	clause{name: "has its reason cut at a character", run: func(c *cohort) {
		ms := c.members(1)
		ro, _ := c.commit(ms, window)
		c.ok(c.Store.Withdraw(c.ctx, ro.Ref, ms[0].id, ms[0].boot, tooLong))
		c.isCut(c.ballot(ms[0]).Withdrawn)
	}},
)

// short gives a proposal a window that ends after d, in which evidence holds.
func short(d time.Duration) func(*barrier.Proposal) {
	return func(p *barrier.Proposal) {
		window(p)
		p.Window = d
	}
}
