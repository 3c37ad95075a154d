package barriertest

import (
	"fmt"

	"github.com/guardyn-edge/guardyn/barrier"
)

// voteRaces are of members with each other and with who decides.
var voteRaces = []clause{
	{name: "of acks all count", run: func(c *cohort) {
		const n = 12
		ms := c.members(n)
		c.rounds(func(int) {
			ro := c.propose()
			t := c.claim()
			for _, err := range c.race(n, func(h Handles, i int) error {
				return h.Store.Ack(c.ctx, ro.Ref, ms[i].id, ms[i].boot, "built")
			}) {
				c.ok(err)
			}
			for _, s := range c.row().Seats {
				if !s.Counts() || s.Ballot.Vote != barrier.Acked {
					c.Errorf("the vote of %s was lost: %+v", s.Member, s.Ballot)
				}
			}
			c.ok(c.Store.Commit(c.ctx, ro.Ref, t))
		})
	}},
	{name: "of ack against nack of one process has one vote", run: func(c *cohort) {
		ms := c.members(1)
		c.rounds(func(int) {
			ro := c.propose()
			errs := c.race(2, func(h Handles, i int) error {
				if i == 0 {
					return h.Store.Ack(c.ctx, ro.Ref, ms[0].id, ms[0].boot, "built")
				}
				return h.Store.Nack(c.ctx, ro.Ref, ms[0].id, ms[0].boot, "no")
			})
			want := []barrier.Vote{barrier.Acked, barrier.Nacked}[c.only(errs, barrier.ErrVoted)]
			if got := c.ballot(ms[0]); got.Vote != want {
				c.Errorf("ballot = %+v, want %s", got, want)
			}
			c.end()
		})
	}},
	{name: "of acks against abort leaves no vote unanswered", run: func(c *cohort) {
		const n = 4
		ms := c.members(n)
		c.rounds(func(int) {
			ro := c.propose()
			errs := c.race(n+1, func(h Handles, i int) error {
				if i == n {
					return h.Store.Abort(c.ctx, ro.Ref, barrier.ByOperator("ann"), "enough")
				}
				return h.Store.Ack(c.ctx, ro.Ref, ms[i].id, ms[i].boot, "built")
			})
			c.ok(errs[n])
			for i, s := range c.state(ro, barrier.Aborted).Seats {
				if errs[i] != nil {
					c.is(errs[i], barrier.ErrDecided)
				}
				if voted := s.Ballot.Vote == barrier.Acked; voted != (errs[i] == nil) {
					c.Errorf("%s voted: %v, and was told %v", s.Member, voted, errs[i])
				}
			}
		})
	}},
	{name: "of joins against commit never commits a voided ack", run: func(c *cohort) {
		const n = 3
		ms := c.members(n)
		c.rounds(func(round int) {
			ro, t := c.staged(ms)
			before := c.row()
			var seen barrier.Row // after the Join
			errs := c.race(2, func(h Handles, i int) error {
				if i == 0 {
					return h.Store.Commit(c.ctx, ro.Ref, t)
				}
				m := ms[round%n]
				boot := barrier.BootID(fmt.Sprintf("race-%d", round))
				reg, err := h.Store.Join(c.ctx, m.id, boot, m.reg.Incarnation)
				if err != nil {
					return err
				}
				m.boot, m.reg = boot, reg
				seen, err = h.Store.Current(c.ctx)
				return err
			})
			c.ok(errs[1])
			row := c.row()
			switch row.Rollout.State {
			case barrier.Committed:
				c.ok(errs[0])
				if seen.Rollout.State != barrier.Committed {
					c.Errorf("committed after the Join had returned: %s", show(row))
				}
			case barrier.Staging:
				c.is(errs[0], barrier.ErrBarrier)
			default:
				c.Errorf("row: %s", show(row))
			}
			// Each of the two changes the head if it comes first, and neither if it comes last.
			if row.Revision != before.Revision+1 {
				c.Errorf("revision from %d to %d: both took effect: %s", before.Revision, row.Revision, show(row))
			}
			c.end()
		})
	}},
	{name: "of joins at one incarnation has one winner", run: func(c *cohort) {
		var reg barrier.Registration
		c.rounds(func(round int) {
			var regs [4]barrier.Registration
			errs := c.race(len(regs), func(h Handles, i int) error {
				r, err := h.Store.Join(c.ctx, "a", barrier.BootID(fmt.Sprintf("boot-%d-%d", round, i)), reg.Incarnation)
				regs[i] = r
				return err
			})
			i := c.only(errs, barrier.ErrSuperseded)
			v, err := c.Store.Look(c.ctx, "a")
			c.ok(err)
			if v.Registration != regs[i] || regs[i].Incarnation != reg.Incarnation+1 {
				c.Errorf("registration = %+v, and the winner's is %+v after %+v", v.Registration, regs[i], reg)
			}
			reg = regs[i]
		})
	}},
	{name: "of withdraw against confirm never confirms withdrawn evidence", run: func(c *cohort) {
		ms := c.members(2)
		c.rounds(func(round int) {
			ro, t := c.soaked(ms)
			m := ms[round%2]
			errs := c.race(2, func(h Handles, i int) error {
				if i == 0 {
					return h.Store.Confirm(c.ctx, ro.Ref, t)
				}
				return h.Store.Withdraw(c.ctx, ro.Ref, m.id, m.boot, "failed")
			})
			withdrawn := c.ballot(m).Withdrawn != ""
			switch row := c.row(); row.Rollout.State {
			case barrier.Confirmed:
				c.ok(errs[0])
				c.is(errs[1], barrier.ErrDecided)
				if withdrawn {
					c.Errorf("row: %s", show(row))
				}
			case barrier.Committed:
				c.is(errs[0], barrier.ErrNotConverged)
				c.ok(errs[1])
				if !withdrawn {
					c.Errorf("row: %s", show(row))
				}
			default:
				c.Errorf("row: %s", show(row))
			}
			c.end()
		})
	}},
	{name: "of joins against confirm never confirms a restarted member", run: func(c *cohort) {
		ms := c.members(2)
		c.rounds(func(round int) {
			ro, t := c.soaked(ms)
			before := c.row()
			m := ms[round%2]
			errs := c.race(2, func(h Handles, i int) error {
				if i == 0 {
					return h.Store.Confirm(c.ctx, ro.Ref, t)
				}
				boot := barrier.BootID(fmt.Sprintf("race-%d", round))
				reg, err := h.Store.Join(c.ctx, m.id, boot, m.reg.Incarnation)
				m.boot, m.reg = boot, reg
				return err
			})
			c.ok(errs[1])
			row := c.row()
			if row.Rollout.State == barrier.Confirmed {
				c.ok(errs[0])
			} else {
				c.is(errs[0], barrier.ErrNotConverged)
			}
			if row.Revision != before.Revision+1 {
				c.Errorf("revision from %d to %d: both took effect: %s", before.Revision, row.Revision, show(row))
			}
			c.end()
		})
	}},
}
