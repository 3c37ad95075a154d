package barriertest

import (
	"strings"

	"github.com/guardyn-edge/guardyn/barrier"
)

var joinClauses = []clause{
	{name: "makes the boot the member's process", run: func(c *cohort) {
		reg, err := c.Store.Join(c.ctx, "a", "boot-1", 0)
		c.ok(err)
		if want := (barrier.Registration{Boot: "boot-1", Incarnation: 1}); reg != want {
			c.Errorf("registration = %+v, want %+v", reg, want)
		}
		v, err := c.Store.Look(c.ctx, "a")
		c.ok(err)
		if v.Registration != reg {
			c.Errorf("Look shows %+v, Join returned %+v", v.Registration, reg)
		}
	}},
	{name: "counts the processes and notes the generation", run: func(c *cohort) {
		ms := c.members(1)
		ro := c.propose()
		c.join(ms[0])
		if want := (barrier.Registration{Boot: ms[0].boot, Incarnation: 2, Joined: ro.Generation}); ms[0].reg != want {
			c.Errorf("registration = %+v, want %+v", ms[0].reg, want)
		}
	}},
	{name: "the same call again is a success without effect", run: func(c *cohort) {
		m := c.members(1)[0]
		ro := c.propose()
		c.ack(ro, m)
		c.idle(func() error {
			reg, err := c.Store.Join(c.ctx, m.id, m.boot, 0)
			if reg != m.reg {
				c.Errorf("registration = %+v, want %+v", reg, m.reg)
			}
			return err
		})
	}},
	{name: "with another incarnation is ErrSuperseded", run: func(c *cohort) {
		m := c.members(1)[0]
		ro := c.propose()
		c.ack(ro, m)
		for _, incarnation := range []uint64{0, 2, 100} {
			c.refused(barrier.ErrSuperseded, func() error {
				_, err := c.Store.Join(c.ctx, m.id, "other", incarnation)
				return err
			})
		}
	}},
	{name: "of an old process that comes late changes nothing", run: func(c *cohort) {
		first := c.late("Join", func(c *cohort) error {
			_, err := c.Store.Join(c.ctx, "a", "old", 0)
			return err
		})
		reg, err := c.Store.Join(c.ctx, "a", "new", 0)
		c.ok(err)
		c.refused(barrier.ErrSuperseded, first)
		v, err := c.Store.Look(c.ctx, "a")
		c.ok(err)
		if v.Registration != reg {
			c.Errorf("registration = %+v, want %+v still", v.Registration, reg)
		}
	}},
	{name: "voids the votes of the earlier process", run: func(c *cohort) {
		ms := c.members(2)
		ro := c.propose()
		t := c.claim()
		c.ack(ro, ms...)
		c.join(ms[1])
		if s := c.row().Seats[1]; s.Counts() {
			c.Errorf("the ballot still counts: %+v", s)
		}
		c.refused(barrier.ErrBarrier, func() error { return c.Store.Commit(c.ctx, ro.Ref, t) })
	}},
	{name: "voids the evidence of the earlier process", run: func(c *cohort) {
		ms := c.members(2)
		ro, t := c.commit(ms, window)
		c.converge(ro, ms...)
		c.past(c.row().Now.Add(ro.Soak))
		c.join(ms[1])
		c.refused(barrier.ErrNotConverged, func() error { return c.Store.Confirm(c.ctx, ro.Ref, t) })
	}},
	{name: "changes the head while a rollout of the member's is open", run: func(c *cohort) {
		ms := c.members(2)
		for _, open := range []func(){
			func() { c.propose() },
			func() { c.claim() },
			func() {
				ro := *c.row().Rollout
				c.ok(c.Store.Abort(c.ctx, ro.Ref, barrier.ByOperator("suite"), "next"))
				c.commit(ms, window)
			},
		} {
			open()
			before := c.row()
			c.join(ms[0])
			if after := c.row(); after.Revision <= before.Revision {
				c.Errorf("revision %d after a Join in a rollout that is %s, want more than %d", after.Revision, before.Rollout.State, before.Revision)
			}
		}
	}},
	{name: "changes nothing in a rollout that is decided, nor in one of others", run: func(c *cohort) {
		ms := c.members(2)
		c.commit(ms)
		before := c.row()
		c.join(ms[0])
		c.propose()
		open := c.row()
		_, err := c.Store.Join(c.ctx, "stranger", "boot", 0)
		c.ok(err)
		c.unchanged(open)
		if open.Previous == nil || open.Previous.State != before.Rollout.State {
			c.Errorf("previous = %+v, want %s", open.Previous, before.Rollout.State)
		}
	}},
	{name: "an earlier process's calls are ErrSuperseded", run: func(c *cohort) {
		ms := c.members(2)
		ro := c.propose()
		old := *ms[0]
		c.join(ms[0])
		c.refused(barrier.ErrSuperseded, func() error { return c.Store.Ack(c.ctx, ro.Ref, old.id, old.boot, "built") })
		c.refused(barrier.ErrSuperseded, func() error { return c.Store.Nack(c.ctx, ro.Ref, old.id, old.boot, "no") })
		c.refused(barrier.ErrSuperseded, func() error {
			_, err := c.Store.Join(c.ctx, old.id, old.boot, 0)
			return err
		})
		c.ok(c.Store.Abort(c.ctx, ro.Ref, barrier.ByOperator("suite"), "next"))
		ro, _ = c.commit(ms, window)
		old = *ms[0]
		c.join(ms[0])
		c.refused(barrier.ErrSuperseded, func() error { return c.Store.Ack(c.ctx, ro.Ref, old.id, old.boot, "built") })
		c.refused(barrier.ErrSuperseded, func() error { return c.Store.Converge(c.ctx, ro.Ref, old.id, old.boot, "works") })
		c.refused(barrier.ErrSuperseded, func() error { return c.Store.Withdraw(c.ctx, ro.Ref, old.id, old.boot, "no") })
		c.refused(barrier.ErrSuperseded, func() error {
			return c.Store.Revert(c.ctx, ro.Ref, barrier.ByDeadman(old.id, old.boot), "out of time")
		})
	}},
	{name: "takes the longest ids and no longer ones", run: func(c *cohort) {
		id := strings.Repeat("x", barrier.MaxIDBytes)
		_, err := c.Store.Join(c.ctx, barrier.MemberID(id), barrier.BootID(id), 0)
		c.ok(err)
		v, err := c.Store.Look(c.ctx, barrier.MemberID(id))
		c.ok(err)
		if v.Registration.Boot != barrier.BootID(id) {
			c.Errorf("registration = %+v", v.Registration)
		}
		for _, bad := range []string{"", id + "x", "a b", "é", "a/b", "a#b"} {
			for _, call := range []func() error{
				func() error { _, err := c.Store.Join(c.ctx, barrier.MemberID(bad), "boot", 0); return err },
				func() error { _, err := c.Store.Join(c.ctx, "member", barrier.BootID(bad), 0); return err },
			} {
				c.refused(barrier.ErrInvalid, call)
			}
		}
	}},
}
