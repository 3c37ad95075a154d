package barriertest

import (
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
	{name: "another incarnation is ErrSuperseded and changes nothing", run: func(c *cohort) {
		ms := c.members(1)
		c.propose()
		for _, incarnation := range []uint64{0, 2, 100} {
			c.refused(barrier.ErrSuperseded, func() error {
				_, err := c.Store.Join(c.ctx, ms[0].id, "other", incarnation)
				return err
			})
		}
	}},
}
