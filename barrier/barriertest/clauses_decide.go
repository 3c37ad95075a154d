package barriertest

import (
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

var claimClauses = []clause{
	{name: "makes the token the one whose decisions count", run: func(c *cohort) {
		ms := c.members(1)
		c.ok(c.Store.Claim(c.ctx, 7))
		if row := c.row(); row.Claim != 7 {
			c.Errorf("claim = %d, want 7", row.Claim)
		}
		ro := c.propose()
		c.ok(c.Store.Claim(c.ctx, 7))
		c.ack(ro, ms...)
		c.ok(c.Store.Claim(c.ctx, 9))
		for _, t := range []barrier.Token{7, 8, 10, 0} { // the first decision of a deposed coordinator too
			c.refused(barrier.ErrFenced, func() error { return c.Store.Commit(c.ctx, ro.Ref, t) })
		}
		c.ok(c.Store.Commit(c.ctx, ro.Ref, 9))
	}},
	{name: "takes up a rollout that is proposed", run: func(c *cohort) {
		c.members(1)
		first := c.propose()
		c.ok(c.Store.Claim(c.ctx, 1))
		if s := c.row().Rollout.State; s != barrier.Staging {
			c.Errorf("state = %s, want staging", s)
		}
		c.ok(c.Store.Abort(c.ctx, first.Ref, barrier.ByClaim(1), "next"))
		c.propose()
		if s := c.row().Rollout.State; s != barrier.Proposed {
			c.Errorf("state = %s, want proposed", s)
		}
		c.ok(c.Store.Claim(c.ctx, 1)) // by the claim that stands
		if row := c.row(); row.Rollout.State != barrier.Staging || row.Claim != 1 {
			c.Errorf("state = %s with claim %d, want staging with 1", row.Rollout.State, row.Claim)
		}
	}},
	{name: "again is a success without effect", run: func(c *cohort) {
		ms := c.members(1)
		c.ok(c.Store.Claim(c.ctx, 3))
		c.idle(func() error { return c.Store.Claim(c.ctx, 3) })
		c.propose()
		c.ok(c.Store.Claim(c.ctx, 3))
		c.idle(func() error { return c.Store.Claim(c.ctx, 3) })
		c.ok(c.Store.Abort(c.ctx, c.row().Rollout.Ref, barrier.ByClaim(3), "next"))
		c.token = 3
		_, t := c.commit(ms, window)
		c.idle(func() error { return c.Store.Claim(c.ctx, t) })
	}},
	{name: "with a lower token is ErrFenced", run: func(c *cohort) {
		c.members(1)
		c.ok(c.Store.Claim(c.ctx, 5))
		c.propose()
		c.refused(barrier.ErrFenced, func() error { return c.Store.Claim(c.ctx, 4) })
	}},
	{name: "with token 0 is ErrInvalid", run: func(c *cohort) {
		c.refused(barrier.ErrInvalid, func() error { return c.Store.Claim(c.ctx, 0) })
	}},
	{name: "leaves a rollout on trial, and one that is decided, as they are", run: func(c *cohort) {
		ms := c.members(1)
		for _, changes := range [][]func(*barrier.Proposal){nil, {window}} {
			c.commit(ms, changes...)
			before := c.row()
			want := *before.Rollout
			t := c.claim()
			if after := c.row(); *after.Rollout != want || after.Claim != t {
				c.Errorf("row from %s\nto %s", show(before), show(after))
			}
		}
	}},
}

var commitClauses = []clause{
	{name: "moves the committed pointer", run: func(c *cohort) {
		ms := c.members(3)
		ro := c.propose()
		t := c.claim()
		c.ack(ro, ms...)
		before := c.row()
		c.ok(c.Store.Commit(c.ctx, ro.Ref, t))
		after := c.row()
		got := *after.Rollout
		if got.State != barrier.Committed || after.Committed != ro.Pointer() || got.Open() || got.DecidedBy != barrier.ByClaim(t).String() {
			c.Errorf("row: %s", show(after))
		}
		c.between(before, got.CommittedAt, after)
		c.between(before, got.DecidedAt, after)
	}},
	{name: "with a window stamps D and leaves the pointer", run: func(c *cohort) {
		ms := c.members(3)
		ro, _ := c.commit(ms, window)
		row := c.row()
		if !ro.OnTrial() || !ro.ConfirmDeadline.Equal(ro.CommittedAt.Add(2*time.Hour)) || row.Committed.Digest != "test:baseline" {
			c.Errorf("row: %s", show(row))
		}
	}},
	{name: "without all votes is ErrBarrier", run: func(c *cohort) {
		ms := c.members(3)
		ro := c.propose()
		t := c.claim()
		for _, m := range ms {
			c.refused(barrier.ErrBarrier, func() error { return c.Store.Commit(c.ctx, ro.Ref, t) })
			c.ack(ro, m)
		}
		c.ok(c.Store.Commit(c.ctx, ro.Ref, t))
	}},
	{name: "with a Nack is ErrBarrier", run: func(c *cohort) {
		ms := c.members(2)
		ro := c.propose()
		t := c.claim()
		c.ack(ro, ms[0])
		c.ok(nackVote(c, ro.Ref, ms[1]))
		c.refused(barrier.ErrBarrier, func() error { return c.Store.Commit(c.ctx, ro.Ref, t) })
	}},
	{name: "of members that built different things is ErrBarrier", run: func(c *cohort) {
		ms := c.members(2)
		ro := c.propose()
		t := c.claim()
		c.ack(ro, ms[0])
		c.ok(c.Store.Ack(c.ctx, ro.Ref, ms[1].id, ms[1].boot, "built otherwise"))
		c.refused(barrier.ErrBarrier, func() error { return c.Store.Commit(c.ctx, ro.Ref, t) })
	}},
	{name: "does not count the votes of an earlier rollout", run: func(c *cohort) {
		ms := c.members(2)
		c.commit(ms)
		ro := c.propose()
		t := c.claim()
		c.ack(ro, ms[0])
		c.refused(barrier.ErrBarrier, func() error { return c.Store.Commit(c.ctx, ro.Ref, t) })
	}},
	{name: "of a rollout that was not taken up is ErrBarrier", run: func(c *cohort) {
		ms := c.members(1)
		t := c.claim()
		ro := c.propose()
		c.ack(ro, ms...)
		c.refused(barrier.ErrBarrier, func() error { return c.Store.Commit(c.ctx, ro.Ref, t) })
	}},
	{name: "after the deadline is ErrLate", waits: true, run: func(c *cohort) {
		ms := c.members(2)
		c.growing(func(d time.Duration) bool {
			ro := c.propose(func(p *barrier.Proposal) { p.Deadline = d })
			t := c.claim()
			for _, m := range ms {
				if !c.inTime(ackVote(c, ro.Ref, m)) {
					c.ok(c.Store.Abort(c.ctx, ro.Ref, barrier.ByClaim(t), "slow"))
					return false
				}
			}
			c.past(ro.Deadline)
			c.refused(barrier.ErrLate, func() error { return c.Store.Commit(c.ctx, ro.Ref, t) })
			return true
		})
	}},
	{name: "of another rollout than the newest is ErrUnknown", run: func(c *cohort) {
		ms := c.members(1)
		c.claim()
		c.refused(barrier.ErrUnknown, func() error { return c.Store.Commit(c.ctx, barrier.Ref{ID: "none", Generation: 1}, 1) })
		old, _ := c.commit(ms)
		ro := c.propose()
		t := c.claim()
		c.ack(ro, ms...)
		for _, r := range []barrier.Ref{old.Ref, {ID: ro.ID, Generation: old.Generation}, {ID: old.ID, Generation: ro.Generation}} {
			c.refused(barrier.ErrUnknown, func() error { return c.Store.Commit(c.ctx, r, t) })
		}
	}},
	{name: "after another decision is a DecidedError that tells it", run: func(c *cohort) {
		ms := c.members(1)
		ro := c.propose()
		t := c.claim()
		c.ack(ro, ms...)
		c.ok(c.Store.Abort(c.ctx, ro.Ref, barrier.ByOperator("suite"), "enough"))
		err := c.refused(barrier.ErrDecided, func() error { return c.Store.Commit(c.ctx, ro.Ref, t) })
		c.tells(err, ro.Ref, barrier.Aborted, "enough")

		ro, t = c.commit(ms, window)
		c.ok(c.Store.Revert(c.ctx, ro.Ref, barrier.ByOperator("suite"), "no good"))
		err = c.refused(barrier.ErrDecided, func() error { return c.Store.Commit(c.ctx, ro.Ref, t) })
		c.tells(err, ro.Ref, barrier.Reverted, "no good")
	}},
	{name: "after the roster has changed is refused", run: func(c *cohort) {
		ms := c.members(2)
		ro := c.propose()
		t := c.claim()
		c.ack(ro, ms...)
		delayed := c.late("Commit", func(c *cohort) error { return c.Store.Commit(c.ctx, ro.Ref, t) })
		_, err := c.Store.SetRoster(c.ctx, ro.RosterRevision, []barrier.MemberID{ms[0].id})
		c.ok(err)
		c.refused(barrier.ErrDecided, delayed)
	}},
	{name: "again is a success without effect", run: func(c *cohort) {
		ms := c.members(2)
		for _, changes := range [][]func(*barrier.Proposal){nil, {window}} {
			ro, t := c.commit(ms, changes...)
			c.idle(func() error { return c.Store.Commit(c.ctx, ro.Ref, t) })
		}
	}},
	{name: "of a deposed coordinator that comes late is ErrFenced", run: func(c *cohort) {
		ms := c.members(1)
		ro := c.propose()
		t := c.claim()
		c.ack(ro, ms...)
		delayed := c.late("Commit", func(c *cohort) error { return c.Store.Commit(c.ctx, ro.Ref, t) })
		c.claim()
		c.refused(barrier.ErrFenced, delayed)
	}},
}

var abortClauses = []clause{
	{name: "decides against a rollout that is proposed", run: func(c *cohort) {
		c.members(1)
		ro := c.propose()
		before := c.row()
		c.ok(c.Store.Abort(c.ctx, ro.Ref, barrier.ByOperator("ann"), "a typing error"))
		c.aborted(before, ro, "operator ann", "a typing error")
	}},
	{name: "decides against a rollout that is staging", run: func(c *cohort) {
		ms := c.members(2)
		c.commit(ms)
		ro := c.propose()
		t := c.claim()
		c.ack(ro, ms...)
		before := c.row()
		c.ok(c.Store.Abort(c.ctx, ro.Ref, barrier.ByClaim(t), "refused by member-0001"))
		c.aborted(before, ro, barrier.ByClaim(t).String(), "refused by member-0001")
	}},
	{name: "without the claim is ErrFenced", run: func(c *cohort) {
		c.members(1)
		ro := c.propose()
		t := c.claim()
		for _, other := range []barrier.Token{t + 1, t + 100} {
			c.refused(barrier.ErrFenced, func() error { return c.Store.Abort(c.ctx, ro.Ref, barrier.ByClaim(other), "no") })
		}
		c.claim()
		c.refused(barrier.ErrFenced, func() error { return c.Store.Abort(c.ctx, ro.Ref, barrier.ByClaim(t), "no") })
	}},
	{name: "by a member, by nobody or by two is ErrInvalid", run: func(c *cohort) {
		ms := c.members(1)
		ro := c.propose()
		t := c.claim()
		for _, by := range []barrier.Authority{barrier.ByDeadman(ms[0].id, ms[0].boot), {}, {Token: t, Operator: "ann"}} {
			c.refused(barrier.ErrInvalid, func() error { return c.Store.Abort(c.ctx, ro.Ref, by, "no") })
		}
	}},
	{name: "of another rollout than the newest is ErrUnknown", run: func(c *cohort) {
		ms := c.members(1)
		c.refused(barrier.ErrUnknown, func() error {
			return c.Store.Abort(c.ctx, barrier.Ref{ID: "none", Generation: 1}, barrier.ByOperator("ann"), "no")
		})
		old, t := c.commit(ms)
		delayed := c.late("Abort", func(c *cohort) error { return c.Store.Abort(c.ctx, old.Ref, barrier.ByClaim(t), "late") })
		c.propose()
		c.refused(barrier.ErrUnknown, delayed)
	}},
	{name: "after another decision is a DecidedError that tells it", run: func(c *cohort) {
		ms := c.members(1)
		ro, t := c.commit(ms)
		abort := func() error { return c.Store.Abort(c.ctx, ro.Ref, barrier.ByClaim(t), "no") }
		c.tells(c.refused(barrier.ErrDecided, abort), ro.Ref, barrier.Committed, "")
		ro, t = c.commit(ms, window)
		c.tells(c.refused(barrier.ErrDecided, abort), ro.Ref, barrier.Committed, "")
		c.ok(c.Store.Revert(c.ctx, ro.Ref, barrier.ByClaim(t), "failed"))
		c.tells(c.refused(barrier.ErrDecided, abort), ro.Ref, barrier.Reverted, "failed")
	}},
	{name: "again is a success without effect, and keeps the first reason", run: func(c *cohort) {
		c.members(1)
		ro := c.propose()
		t := c.claim()
		c.ok(c.Store.Abort(c.ctx, ro.Ref, barrier.ByClaim(t), "first"))
		c.idle(func() error { return c.Store.Abort(c.ctx, ro.Ref, barrier.ByClaim(t), "first") })
		c.idle(func() error { return c.Store.Abort(c.ctx, ro.Ref, barrier.ByOperator("ann"), "second") })
	}},
	{name: "has its reason cut at a character", run: func(c *cohort) {
		c.members(1)
		ro := c.propose()
		c.ok(c.Store.Abort(c.ctx, ro.Ref, barrier.ByOperator("ann"), tooLong))
		c.isCut(c.row().Rollout.Reason)
	}},
}

// aborted reports it if ro is not, with everything else as it was before.
func (c *cohort) aborted(before barrier.Row, ro barrier.Rollout, by, reason string) {
	c.Helper()
	after := c.row()
	got := *after.Rollout
	if got.Ref != ro.Ref || got.State != barrier.Aborted || got.DecidedBy != by || got.Reason != reason ||
		after.Committed != before.Committed || after.Revision <= before.Revision {
		c.Errorf("row: %s\nwant it aborted by %q for %q", show(after), by, reason)
	}
	c.between(before, got.DecidedAt, after)
}
