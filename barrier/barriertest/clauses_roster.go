package barriertest

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/guardyn-edge/guardyn/barrier"
)

var rosterClauses = []clause{
	{name: "makes the members the cohort, in any order", run: func(c *cohort) {
		given := []barrier.MemberID{"c", "a", "b"}
		r, err := c.Store.SetRoster(c.ctx, 0, given)
		c.ok(err)
		if !slices.Equal(given, []barrier.MemberID{"c", "a", "b"}) {
			c.Errorf("the caller's slice became %q", given)
		}
		given[0] = "changed" // it is the caller's still
		row := c.row()
		for _, got := range []barrier.Roster{r, row.Roster} {
			if got.Revision != 1 || !slices.Equal(got.Members, []barrier.MemberID{"a", "b", "c"}) {
				c.Errorf("roster = %+v, want revision 1 of a, b, c", got)
			}
		}
		r.Members[0] = "changed"
		c.unchanged(row)
		r, err = c.Store.SetRoster(c.ctx, 1, []barrier.MemberID{"a", "d"})
		c.ok(err)
		if row := c.row(); r.Revision != 2 || row.Roster.Revision != 2 || !slices.Equal(row.Roster.Members, []barrier.MemberID{"a", "d"}) {
			c.Errorf("roster = %+v, want revision 2 of a, d", row.Roster)
		}
	}},
	{name: "with another revision is ErrRoster", run: func(c *cohort) {
		c.roster(2)
		c.roster(3)
		for _, revision := range []uint64{0, 1, 3} {
			c.refused(barrier.ErrRoster, func() error {
				_, err := c.Store.SetRoster(c.ctx, revision, []barrier.MemberID{"x"})
				return err
			})
		}
	}},
	{name: "of the same members changes nothing, for one whose answer was lost too", run: func(c *cohort) {
		c.members(2)
		c.propose()
		same := []barrier.MemberID{memberID(1), memberID(0)}
		for _, revision := range []uint64{0, 1} {
			c.idle(func() error {
				r, err := c.Store.SetRoster(c.ctx, revision, same)
				if r.Revision != 1 {
					c.Errorf("revision = %d, want 1", r.Revision)
				}
				return err
			})
		}
	}},
	{name: "that comes late is ErrRoster", run: func(c *cohort) {
		c.roster(2)
		delayed := c.late("SetRoster", func(c *cohort) error {
			_, err := c.Store.SetRoster(c.ctx, 1, []barrier.MemberID{"late"})
			return err
		})
		c.roster(3)
		c.propose()
		c.refused(barrier.ErrRoster, delayed)
	}},
	{name: "aborts a rollout that is proposed or staging", run: func(c *cohort) {
		ms := c.members(3)
		for _, staging := range []bool{false, true} {
			ro := c.propose()
			if staging {
				c.claim()
				c.ack(ro, ms[:ro.EpochSize]...)
			}
			before := c.row()
			c.roster(len(before.Roster.Members) - 1)
			row := c.row()
			if got := *row.Rollout; got.State != barrier.Aborted || !strings.Contains(got.Reason, "roster") || row.Revision <= before.Revision ||
				row.Committed != before.Committed || len(row.Seats) != ro.EpochSize {
				c.Errorf("row: %s", show(row))
			}
			c.between(before, row.Rollout.DecidedAt, row)
		}
	}},
	{name: "while a window is open is an OpenError that names the rollout", run: func(c *cohort) {
		ms := c.members(2)
		ro, _ := c.commit(ms, window)
		err := c.refused(barrier.ErrOpen, func() error {
			_, err := c.Store.SetRoster(c.ctx, ro.RosterRevision, []barrier.MemberID{ms[0].id})
			return err
		})
		c.names(err, ro)
	}},
	{name: "after each end of a rollout leaves it as it is", run: func(c *cohort) {
		ms := c.members(2)
		size := 2
		change := func() {
			c.Helper()
			before := c.row()
			size = 5 - size // 2, 3, 2, …
			c.roster(size)
			after := c.row()
			if *normal(after.Head).Rollout != *normal(before.Head).Rollout || showSeats(after.Seats) != showSeats(before.Seats) {
				c.Errorf("row from %s\nto %s", show(before), show(after))
			}
		}
		c.commit(ms)
		change()
		c.members(2)
		ms = c.rejoined(ms)
		ro, t := c.commit(ms, window)
		c.ok(c.Store.Revert(c.ctx, ro.Ref, barrier.ByClaim(t), "failed"))
		change()
	}},
	{name: "of 0, of MaxMembers and one more, of bad ids or one twice is ErrInvalid", run: func(c *cohort) {
		c.roster(1)
		tooMany := make([]barrier.MemberID, barrier.MaxMembers+1)
		for i := range tooMany {
			tooMany[i] = memberID(i)
		}
		for _, members := range [][]barrier.MemberID{
			nil, tooMany,
			{"a", "b", "a"},
			{""},
			{"a b"},
			{barrier.MemberID(strings.Repeat("x", barrier.MaxIDBytes+1))},
		} {
			c.refused(barrier.ErrInvalid, func() error { _, err := c.Store.SetRoster(c.ctx, 1, members); return err })
		}
	}},
	{name: "of MaxMembers with the longest ids, who commit and confirm together", large: true, run: func(c *cohort) {
		ids := make([]barrier.MemberID, barrier.MaxMembers)
		for i := range ids {
			ids[i] = barrier.MemberID(fmt.Sprintf("%0*d", barrier.MaxIDBytes, i))
		}
		_, err := c.Store.SetRoster(c.ctx, 0, ids)
		c.ok(err)
		_, err = c.Store.AdoptBaseline(c.ctx, barrier.Pointer{Digest: longDigest})
		c.ok(err)
		boot := func(i int) barrier.BootID { return barrier.BootID(fmt.Sprintf("b%0*d", barrier.MaxIDBytes-1, i)) }
		c.each(len(ids), func(s barrier.Store, i int) error {
			_, err := s.Join(c.ctx, ids[i], boot(i), 0)
			return err
		})
		ro := c.propose(window)
		t := c.claim()
		built := strings.Repeat("d", barrier.MaxDigestBytes)
		last := len(ids) - 1
		c.each(last, func(s barrier.Store, i int) error { return s.Ack(c.ctx, ro.Ref, ids[i], boot(i), built) })
		c.refused(barrier.ErrBarrier, func() error { return c.Store.Commit(c.ctx, ro.Ref, t) })
		c.ok(c.Store.Ack(c.ctx, ro.Ref, ids[last], boot(last), built))
		c.ok(c.Store.Commit(c.ctx, ro.Ref, t))
		detail := strings.Repeat("d", barrier.MaxReasonBytes)
		c.each(last, func(s barrier.Store, i int) error { return s.Converge(c.ctx, ro.Ref, ids[i], boot(i), detail) })
		c.refused(barrier.ErrNotConverged, func() error { return c.Store.Confirm(c.ctx, ro.Ref, t) })
		c.ok(c.Store.Converge(c.ctx, ro.Ref, ids[last], boot(last), detail))
		row := c.row()
		c.past(row.Now.Add(ro.Soak + row.Margin))
		c.ok(c.Store.Confirm(c.ctx, ro.Ref, t))
		row = c.row()
		if row.Rollout.State != barrier.Confirmed || len(row.Seats) != barrier.MaxMembers || len(row.Roster.Members) != barrier.MaxMembers {
			c.Errorf("row: %s", show(row))
		}
		v, err := c.Store.Look(c.ctx, ids[500])
		c.ok(err)
		if !v.InEpoch || v.Ballot.Detail != detail || v.Ballot.BuildDigest != built {
			c.Errorf("view = %+v", v)
		}
	}},
}

// rejoined returns ms with the registrations that the store has.
func (c *cohort) rejoined(ms []*member) []*member {
	c.Helper()
	for _, m := range ms {
		v, err := c.Store.Look(c.ctx, m.id)
		c.ok(err)
		m.boot, m.reg = v.Registration.Boot, v.Registration
	}
	return ms
}

// each makes n calls, several at a time.
func (c *cohort) each(n int, call func(s barrier.Store, i int) error) {
	c.Helper()
	const abreast = 8
	var wg sync.WaitGroup
	for w := range abreast {
		wg.Go(func() {
			for i := w; i < n; i += abreast {
				if err := call(c.Store, i); err != nil {
					c.Errorf("call %d: %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
}
