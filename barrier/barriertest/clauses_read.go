package barriertest

import (
	"context"
	"fmt"

	"github.com/guardyn-edge/guardyn/barrier"
)

var currentClauses = []clause{
	{name: "of a new cohort is zero but for the time", run: func(c *cohort) {
		row := c.row()
		if want := (barrier.Head{}); row.Head != want || row.Roster.Revision != 0 || len(row.Roster.Members)+len(row.Seats) != 0 {
			c.Errorf("row of an empty cohort: %s", show(row))
		}
		if row.Margin < 0 {
			c.Errorf("margin is %s", row.Margin)
		}
	}},
	{name: "returns the store's time, which passes", waits: true, run: func(c *cohort) {
		before := c.row()
		c.roster(1)
		ro := c.propose()
		after := c.row()
		if ro.ProposedAt.Before(before.Now.Add(-2*before.Margin)) || ro.ProposedAt.After(after.Now.Add(2*after.Margin)) {
			c.Errorf("proposed at %v, between reads at %v and %v", ro.ProposedAt, before.Now, after.Now)
		}
		c.past(after.Now)
	}},
	{name: "is no older than a write that ended, for every process", run: func(c *cohort) {
		c.members(1)
		readers := []Handles{c.process(), c.process()}
		for i := range 6 {
			ro := c.propose()
			c.ok(c.Store.Abort(c.ctx, ro.Ref, barrier.ByOperator("suite"), fmt.Sprint(i)))
			for _, r := range readers {
				row, err := r.Store.Current(c.ctx)
				c.ok(err)
				if row.Rollout == nil || row.Rollout.Ref != ro.Ref || row.Rollout.State != barrier.Aborted {
					c.Fatalf("round %d: another process reads %s", i, show(row))
				}
			}
		}
	}},
	{name: "shows the seats of the rollout's epoch, whatever the roster is now", run: func(c *cohort) {
		ms := c.members(3)
		ro := c.propose()
		c.ok(c.Store.Abort(c.ctx, ro.Ref, barrier.ByOperator("suite"), "enough"))
		_, err := c.Store.SetRoster(c.ctx, ro.RosterRevision, []barrier.MemberID{"z", ms[1].id})
		c.ok(err)
		row := c.row()
		if len(row.Seats) != 3 {
			c.Fatalf("%d seats, want those of the 3 members who were asked", len(row.Seats))
		}
		for i, s := range row.Seats {
			if s.Member != ms[i].id || s.Registration != ms[i].reg {
				c.Errorf("seat %d is %+v, want %s with %+v", i, s, ms[i].id, ms[i].reg)
			}
		}
	}},
	{name: "belongs to the caller", run: func(c *cohort) {
		ms := c.members(2)
		ro, _ := c.commit(ms)
		c.propose()
		before, scratch := c.row(), c.row()
		if scratch.Previous == nil {
			c.Fatalf("no previous outcome: %s", show(scratch))
		}
		scratch.Roster.Members[0] = "someone"
		scratch.Seats[0] = barrier.Seat{}
		scratch.Rollout.State = barrier.Aborted
		scratch.Previous.State = barrier.Reverted
		v, err := c.Store.Look(c.ctx, ms[0].id)
		c.ok(err)
		v.Rollout.Digest = "test:other"
		c.unchanged(before)
		if p := c.row().Previous; p == nil || p.Ref != ro.Ref || p.State != barrier.Committed {
			c.Errorf("previous outcome = %+v, want %v committed", p, ro.Ref)
		}
	}},
}

var lookClauses = []clause{
	{name: "shows a member what Current shows of it", run: func(c *cohort) {
		ms := c.members(3)
		ro, _ := c.commit(ms, window)
		c.converge(ro, ms[0])
		c.ok(c.Store.Withdraw(c.ctx, ro.Ref, ms[1].id, ms[1].boot, "does not work"))
		c.join(ms[2])
		row := c.row()
		for i, m := range ms {
			v, err := c.Store.Look(c.ctx, m.id)
			c.ok(err)
			seat := barrier.Seat{Member: m.id, Registration: v.Registration, Ballot: v.Ballot}
			if showSeats([]barrier.Seat{seat}) != showSeats(row.Seats[i:i+1]) || !v.InEpoch {
				c.Errorf("Look shows %s in epoch: %v\nCurrent shows %s", showSeats([]barrier.Seat{seat}), v.InEpoch, showSeats(row.Seats[i:i+1]))
			}
			got := row
			got.Head = v.Head
			if !same(got, row) {
				c.Errorf("Look shows %s\nCurrent shows %s", show(got), show(row))
			}
			if v.Now.Before(row.Now.Add(-2 * row.Margin)) {
				c.Errorf("Look at %v after Current at %v", v.Now, row.Now)
			}
		}
	}},
	{name: "of one who is not in the roster", run: func(c *cohort) {
		c.members(1)
		c.propose()
		reg, err := c.Store.Join(c.ctx, "joined", "boot", 0)
		c.ok(err)
		for m, want := range map[barrier.MemberID]barrier.Registration{"nobody": {}, "joined": reg} {
			v, err := c.Store.Look(c.ctx, m)
			c.ok(err)
			if v.InEpoch || v.Ballot != (barrier.Ballot{}) || v.Registration != want {
				c.Errorf("Look(%s) = %+v, want registration %+v and no part in the epoch", m, v, want)
			}
		}
	}},
	{name: "of one who has left the roster, but not the epoch", run: func(c *cohort) {
		ms := c.members(2)
		ro, _ := c.commit(ms)
		_, err := c.Store.SetRoster(c.ctx, ro.RosterRevision, []barrier.MemberID{ms[0].id})
		c.ok(err)
		v, err := c.Store.Look(c.ctx, ms[1].id)
		c.ok(err)
		if !v.InEpoch || v.Ballot.Vote != barrier.Acked {
			c.Errorf("Look = %+v, want its ack in the epoch that it was of", v)
		}
	}},
	{name: "has no ballot in a rollout that was just proposed", run: func(c *cohort) {
		ms := c.members(2)
		c.commit(ms)
		c.propose()
		for _, m := range ms {
			v, err := c.Store.Look(c.ctx, m.id)
			c.ok(err)
			if !v.InEpoch || v.Ballot != (barrier.Ballot{}) {
				c.Errorf("Look(%s) = %+v, want no ballot yet", m.id, v)
			}
		}
	}},
}

var watchClauses = []clause{
	{name: "closes when the context ends", run: func(c *cohort) {
		for _, topic := range []barrier.Topic{barrier.TopicHead, barrier.TopicVotes} {
			ctx, cancel := context.WithCancel(c.ctx)
			hints := c.Store.Watch(ctx, topic)
			c.members(2)
			cancel()
			c.closes(hints)
			c.closes(c.Store.Watch(ctx, topic)) // of one that has ended already
		}
	}},
	{name: "is merged: who does not read it holds nobody up", run: func(c *cohort) {
		for _, topic := range []barrier.Topic{barrier.TopicHead, barrier.TopicVotes} {
			c.Store.Watch(c.ctx, topic)
		}
		ms := c.members(2)
		for range 4 {
			ro := c.propose()
			c.ack(ro, ms...)
			c.ok(c.Store.Abort(c.ctx, ro.Ref, barrier.ByOperator("suite"), "next"))
		}
	}},
}

// closes reports it if hints does not close; it may hold hints before.
func (c *cohort) closes(hints <-chan struct{}) {
	c.Helper()
	for {
		select {
		case _, open := <-hints:
			if !open {
				return
			}
		case <-c.ctx.Done():
			c.Fatal("the watch is still open though its context has ended")
		}
	}
}
