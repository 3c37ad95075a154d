package barriertest

import (
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

var confirmClauses = []clause{
	{name: "moves the committed pointer", run: func(c *cohort) {
		ms := c.members(3)
		ro, t := c.commit(ms, window)
		c.converge(ro, ms...)
		row := c.row()
		c.past(row.Now.Add(ro.Soak + row.Margin))
		before := c.row()
		c.ok(c.Store.Confirm(c.ctx, ro.Ref, t))
		after := c.row()
		if got := *after.Rollout; got.State != barrier.Confirmed || after.Committed != ro.Pointer() || got.DecidedBy != barrier.ByClaim(t).String() ||
			!got.CommittedAt.Equal(ro.CommittedAt) {
			c.Errorf("row: %s", show(after))
		}
		c.between(before, after.Rollout.DecidedAt, after)
	}},
	{name: "without evidence from all is ErrNotConverged", run: func(c *cohort) {
		ms := c.members(3)
		ro, t := c.commit(ms, window)
		for _, m := range ms {
			c.refused(barrier.ErrNotConverged, func() error { return c.Store.Confirm(c.ctx, ro.Ref, t) })
			c.converge(ro, m)
			row := c.row()
			c.past(row.Now.Add(ro.Soak + row.Margin))
		}
		c.ok(c.Store.Confirm(c.ctx, ro.Ref, t))
	}},
	{name: "of evidence that has not held for soak is ErrNotConverged", run: func(c *cohort) {
		ms := c.members(2)
		ro, t := c.commit(ms, window, func(p *barrier.Proposal) { p.Soak = time.Hour })
		c.converge(ro, ms...)
		c.converge(ro, ms...)
		c.refused(barrier.ErrNotConverged, func() error { return c.Store.Confirm(c.ctx, ro.Ref, t) })
	}},
	{name: "of evidence that has expired is ErrNotConverged", waits: true, run: func(c *cohort) {
		ms := c.members(2)
		ro, t := c.commit(ms, window, func(p *barrier.Proposal) { p.EvidenceTTL = barrier.MinEvidenceTTL })
		c.converge(ro, ms...)
		c.past(c.row().Now.Add(ro.EvidenceTTL))
		c.refused(barrier.ErrNotConverged, func() error { return c.Store.Confirm(c.ctx, ro.Ref, t) })
	}},
	{name: "of evidence that broke and has not held for soak since is ErrNotConverged", waits: true, run: func(c *cohort) {
		ms := c.members(1)
		ro, t := c.commit(ms, func(p *barrier.Proposal) {
			p.Window, p.Soak, p.Grace, p.EvidenceTTL = 4*time.Hour, time.Hour, time.Millisecond, barrier.MinEvidenceTTL
		})
		c.converge(ro, ms...)
		first := c.ballot(ms[0])
		c.past(first.RenewedAt.Add(ro.EvidenceTTL))
		c.converge(ro, ms...)
		c.refused(barrier.ErrNotConverged, func() error { return c.Store.Confirm(c.ctx, ro.Ref, t) })
		if b := c.ballot(ms[0]); !b.ConvergedSince.After(first.RenewedAt) {
			c.Errorf("evidence holds since %v, and was broken after %v", b.ConvergedSince, first.RenewedAt)
		}
	}},
	{name: "after D is ErrLate", waits: true, run: func(c *cohort) {
		ms := c.members(2)
		ro, t := c.commit(ms, short(barrier.MinDeadline))
		c.converge(ro, ms...)
		delayed := c.late("Confirm", func(c *cohort) error { return c.Store.Confirm(c.ctx, ro.Ref, t) })
		c.past(ro.ConfirmDeadline)
		c.refused(barrier.ErrLate, func() error { return c.Store.Confirm(c.ctx, ro.Ref, t) })
		c.refused(barrier.ErrLate, delayed)
	}},
	{name: "without the claim is ErrFenced", run: func(c *cohort) {
		ms := c.members(1)
		ro, t := c.commit(ms, window)
		c.converge(ro, ms...)
		row := c.row()
		c.past(row.Now.Add(ro.Soak + row.Margin))
		delayed := c.late("Confirm", func(c *cohort) error { return c.Store.Confirm(c.ctx, ro.Ref, t) })
		now := c.claim()
		for _, other := range []barrier.Token{0, t, now + 1} {
			c.refused(barrier.ErrFenced, func() error { return c.Store.Confirm(c.ctx, ro.Ref, other) })
		}
		c.refused(barrier.ErrFenced, delayed)
		c.ok(c.Store.Confirm(c.ctx, ro.Ref, now))
	}},
	{name: "without an open window is ErrNoWindow", run: func(c *cohort) {
		c.noWindow(func(ro barrier.Rollout, t barrier.Token) error { return c.Store.Confirm(c.ctx, ro.Ref, t) })
	}},
	{name: "of another rollout than the newest is ErrUnknown", run: func(c *cohort) {
		ms := c.members(1)
		c.claim()
		c.refused(barrier.ErrUnknown, func() error { return c.Store.Confirm(c.ctx, barrier.Ref{ID: "none", Generation: 1}, 1) })
		old := c.confirmed(ms)
		ro, t := c.commit(ms, window)
		c.converge(ro, ms...)
		for _, r := range []barrier.Ref{old.Ref, {ID: ro.ID, Generation: old.Generation}, {ID: old.ID, Generation: ro.Generation}} {
			c.refused(barrier.ErrUnknown, func() error { return c.Store.Confirm(c.ctx, r, t) })
		}
	}},
	{name: "after another decision is a DecidedError that tells it", run: func(c *cohort) {
		ms := c.members(1)
		ro, t := c.commit(ms, window)
		c.converge(ro, ms...)
		c.ok(c.Store.Revert(c.ctx, ro.Ref, barrier.ByClaim(t), "failed"))
		confirm := func() error { return c.Store.Confirm(c.ctx, ro.Ref, t) }
		c.tells(c.refused(barrier.ErrDecided, confirm), ro.Ref, barrier.Reverted, "failed")
		ro = c.propose()
		t = c.claim()
		c.ok(c.Store.Abort(c.ctx, ro.Ref, barrier.ByClaim(t), "no"))
		c.tells(c.refused(barrier.ErrDecided, confirm), ro.Ref, barrier.Aborted, "no")
	}},
	{name: "again is a success without effect", run: func(c *cohort) {
		ms := c.members(1)
		ro := c.confirmed(ms)
		c.idle(func() error { return c.Store.Confirm(c.ctx, ro.Ref, c.row().Claim) })
	}},
}

// noWindow asserts that call is ErrNoWindow of rollouts that have none open.
func (c *cohort) noWindow(call func(ro barrier.Rollout, t barrier.Token) error) {
	c.Helper()
	ms := c.members(1)
	c.baseline()
	t := c.claim()
	ro := c.propose(window)
	c.refused(barrier.ErrNoWindow, func() error { return call(ro, t) })
	t = c.claim()
	c.ack(ro, ms...)
	c.refused(barrier.ErrNoWindow, func() error { return call(ro, t) })
	c.ok(c.Store.Abort(c.ctx, ro.Ref, barrier.ByClaim(t), "next"))
	ro, t = c.commit(ms)
	c.refused(barrier.ErrNoWindow, func() error { return call(ro, t) })
}

var revertClauses = []clause{
	{name: "by the claim or an operator ends the window at any time", run: func(c *cohort) {
		ms := c.members(2)
		for _, operator := range []bool{false, true} {
			ro, t := c.commit(ms, window)
			by := barrier.ByClaim(t)
			if operator {
				by = barrier.ByOperator("ann")
			}
			before := c.row()
			c.ok(c.Store.Revert(c.ctx, ro.Ref, by, "does not work"))
			after := c.row()
			if got := *after.Rollout; got.State != barrier.Reverted || got.DecidedBy != by.String() || got.Reason != "does not work" ||
				after.Committed != before.Committed || !got.CommittedAt.Equal(ro.CommittedAt) {
				c.Errorf("row: %s", show(after))
			}
			c.between(before, after.Rollout.DecidedAt, after)
		}
	}},
	{name: "by a deadman before D is ErrEarly", run: func(c *cohort) {
		ms := c.members(2)
		ro, _ := c.commit(ms, window)
		c.refused(barrier.ErrEarly, func() error { return c.deadman(ro, ms[1]) })
	}},
	{name: "by a deadman within the grace is ErrEarly", waits: true, run: func(c *cohort) {
		ms := c.members(2)
		ro, _ := c.commit(ms, short(barrier.MinDeadline), func(p *barrier.Proposal) { p.Grace = time.Hour })
		c.past(ro.ConfirmDeadline)
		c.refused(barrier.ErrEarly, func() error { return c.deadman(ro, ms[1]) })
	}},
	{name: "by a deadman of any member after D and grace", waits: true, run: func(c *cohort) {
		ms := c.members(2)
		ro, _ := c.commit(ms, short(barrier.MinDeadline))
		c.past(ro.RevertDue())
		c.ok(c.deadman(ro, ms[1]))
		row := c.row()
		if got := *row.Rollout; got.State != barrier.Reverted || got.DecidedBy != "deadman of "+string(ms[1].id) || got.Reason != "out of time" {
			c.Errorf("row: %s", show(row))
		}
		c.idle(func() error { return c.deadman(ro, ms[1]) })
		c.idle(func() error { return c.deadman(ro, ms[0]) })
	}},
	{name: "by a deadman who is no member of the epoch is ErrStranger", waits: true, run: func(c *cohort) {
		ms := c.members(2)
		stranger := &member{id: "stranger"}
		c.join(stranger)
		ro, _ := c.commit(ms, short(barrier.MinDeadline))
		c.past(ro.RevertDue())
		c.refused(barrier.ErrStranger, func() error { return c.deadman(ro, stranger) })
	}},
	{name: "by a deadman of an earlier process is ErrSuperseded", waits: true, run: func(c *cohort) {
		ms := c.members(2)
		ro, _ := c.commit(ms, short(barrier.MinDeadline))
		old := *ms[0]
		c.join(ms[0])
		c.past(ro.RevertDue())
		c.refused(barrier.ErrSuperseded, func() error { return c.deadman(ro, &old) })
		c.ok(c.deadman(ro, ms[0])) // a process that has restarted may: it is of the epoch's member
	}},
	{name: "without the claim is ErrFenced", run: func(c *cohort) {
		ms := c.members(1)
		ro, t := c.commit(ms, window)
		now := c.claim()
		for _, other := range []barrier.Token{t, now + 1} {
			c.refused(barrier.ErrFenced, func() error { return c.Store.Revert(c.ctx, ro.Ref, barrier.ByClaim(other), "no") })
		}
	}},
	{name: "by nobody or by two is ErrInvalid", run: func(c *cohort) {
		ms := c.members(1)
		ro, t := c.commit(ms, window)
		for _, by := range []barrier.Authority{{}, {Token: t, Operator: "ann"}, {Token: t, Member: ms[0].id, Boot: ms[0].boot}, {Member: ms[0].id}} {
			c.refused(barrier.ErrInvalid, func() error { return c.Store.Revert(c.ctx, ro.Ref, by, "no") })
		}
	}},
	{name: "without an open window is ErrNoWindow", run: func(c *cohort) {
		c.noWindow(func(ro barrier.Rollout, t barrier.Token) error {
			return c.Store.Revert(c.ctx, ro.Ref, barrier.ByClaim(t), "no")
		})
	}},
	{name: "of another rollout than the newest is ErrUnknown", run: func(c *cohort) {
		ms := c.members(1)
		c.refused(barrier.ErrUnknown, func() error {
			return c.Store.Revert(c.ctx, barrier.Ref{ID: "none", Generation: 1}, barrier.ByOperator("ann"), "no")
		})
		old := c.confirmed(ms)
		delayed := c.late("Revert", func(c *cohort) error { return c.Store.Revert(c.ctx, old.Ref, barrier.ByOperator("ann"), "late") })
		c.commit(ms, window)
		c.refused(barrier.ErrUnknown, delayed)
	}},
	{name: "after another decision is a DecidedError that tells it", waits: true, run: func(c *cohort) {
		ms := c.members(1)
		ro := c.confirmed(ms)
		for _, by := range []barrier.Authority{barrier.ByClaim(c.row().Claim), barrier.ByOperator("ann"), barrier.ByDeadman(ms[0].id, ms[0].boot)} {
			err := c.refused(barrier.ErrDecided, func() error { return c.Store.Revert(c.ctx, ro.Ref, by, "no") })
			c.tells(err, ro.Ref, barrier.Confirmed, "")
		}
		ro = c.propose()
		c.ok(c.Store.Abort(c.ctx, ro.Ref, barrier.ByOperator("ann"), "enough"))
		err := c.refused(barrier.ErrDecided, func() error { return c.Store.Revert(c.ctx, ro.Ref, barrier.ByOperator("ann"), "no") })
		c.tells(err, ro.Ref, barrier.Aborted, "enough")
	}},
	{name: "again is a success without effect, and keeps the first reason", run: func(c *cohort) {
		ms := c.members(1)
		ro, t := c.commit(ms, window)
		c.ok(c.Store.Revert(c.ctx, ro.Ref, barrier.ByClaim(t), "first"))
		c.idle(func() error { return c.Store.Revert(c.ctx, ro.Ref, barrier.ByClaim(t), "first") })
		c.idle(func() error { return c.Store.Revert(c.ctx, ro.Ref, barrier.ByOperator("ann"), "second") })
		c.idle(func() error { return c.deadman(ro, ms[0]) })
	}},
	{name: "has its reason cut at a character", run: func(c *cohort) {
		ms := c.members(1)
		ro, _ := c.commit(ms, window)
		c.ok(c.Store.Revert(c.ctx, ro.Ref, barrier.ByOperator("ann"), tooLong))
		c.isCut(c.row().Rollout.Reason)
	}},
}

// deadman reverts ro as m does.
func (c *cohort) deadman(ro barrier.Rollout, m *member) error {
	return c.Store.Revert(c.ctx, ro.Ref, barrier.ByDeadman(m.id, m.boot), "out of time")
}
