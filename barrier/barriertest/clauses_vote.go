package barriertest

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/guardyn-edge/guardyn/barrier"
)

// voteErrors are the clauses that Ack and Nack have in common. method is the port's, vote is the one and other the opposite vote.
func voteErrors(method string, vote, other func(c *cohort, r barrier.Ref, m *member) error) []clause {
	return []clause{
		{name: "of another rollout than the newest is ErrUnknown", run: func(c *cohort) {
			ms := c.members(1)
			c.refused(barrier.ErrUnknown, func() error { return vote(c, barrier.Ref{ID: "none", Generation: 1}, ms[0]) })
			old, _ := c.commit(ms)
			ro := c.propose()
			for _, r := range []barrier.Ref{
				old.Ref,
				{ID: ro.ID, Generation: ro.Generation + 1},
				{ID: old.ID, Generation: ro.Generation},
				{},
			} {
				c.refused(barrier.ErrUnknown, func() error { return vote(c, r, ms[0]) })
			}
		}},
		{name: "of one who is not in the epoch is ErrStranger", run: func(c *cohort) {
			c.members(2)
			stranger := &member{id: "stranger"}
			c.join(stranger)
			ro := c.propose()
			c.refused(barrier.ErrStranger, func() error { return vote(c, ro.Ref, stranger) })
		}},
		{name: "of a process that never joined is ErrSuperseded", run: func(c *cohort) {
			c.roster(1)
			ro := c.propose()
			c.refused(barrier.ErrSuperseded, func() error { return vote(c, ro.Ref, &member{id: memberID(0), boot: "boot"}) })
		}},
		{name: "of a process that joined after the proposal is ErrJoinedLate", run: func(c *cohort) {
			ms := c.members(2)
			ro := c.propose()
			c.join(ms[0])
			c.refused(barrier.ErrJoinedLate, func() error { return vote(c, ro.Ref, ms[0]) })
			c.claim()
			c.refused(barrier.ErrJoinedLate, func() error { return vote(c, ro.Ref, ms[0]) })
		}},
		{name: "after the decision is a DecidedError that tells it", run: func(c *cohort) {
			ms := c.members(2)
			ro := c.propose()
			c.ok(c.Store.Abort(c.ctx, ro.Ref, barrier.ByOperator("suite"), "enough"))
			err := c.refused(barrier.ErrDecided, func() error { return vote(c, ro.Ref, ms[0]) })
			c.tells(err, ro.Ref, barrier.Aborted, "enough")
		}},
		{name: "after the deadline is ErrLate", waits: true, run: func(c *cohort) {
			ms := c.members(1)
			ro := c.propose(func(p *barrier.Proposal) { p.Deadline = barrier.MinDeadline })
			c.past(ro.Deadline)
			c.refused(barrier.ErrLate, func() error { return vote(c, ro.Ref, ms[0]) })
		}},
		{name: "after the other vote is ErrVoted", run: func(c *cohort) {
			ms := c.members(1)
			ro := c.propose()
			c.ok(other(c, ro.Ref, ms[0]))
			c.refused(barrier.ErrVoted, func() error { return vote(c, ro.Ref, ms[0]) })
		}},
		{name: "the same vote again is a success without effect, after the decision too", run: func(c *cohort) {
			ms := c.members(2)
			ro := c.propose()
			c.ok(vote(c, ro.Ref, ms[0]))
			c.idle(func() error { return vote(c, ro.Ref, ms[0]) })
			c.claim()
			c.idle(func() error { return vote(c, ro.Ref, ms[0]) })
			c.ok(c.Store.Abort(c.ctx, ro.Ref, barrier.ByOperator("suite"), "enough"))
			c.idle(func() error { return vote(c, ro.Ref, ms[0]) })
		}},
		{name: "the same vote again is a success after the deadline too", waits: true, run: func(c *cohort) {
			ms := c.members(1)
			c.growing(func(d time.Duration) bool {
				ro := c.propose(func(p *barrier.Proposal) { p.Deadline = d })
				if !c.inTime(vote(c, ro.Ref, ms[0])) {
					c.ok(c.Store.Abort(c.ctx, ro.Ref, barrier.ByOperator("suite"), "slow"))
					return false
				}
				c.past(ro.Deadline)
				c.idle(func() error { return vote(c, ro.Ref, ms[0]) })
				return true
			})
		}},
		{name: "of an old process that comes late is refused", run: func(c *cohort) {
			ms := c.members(1)
			ro := c.propose()
			old := *ms[0]
			delayed := c.late(method, func(c *cohort) error { return vote(c, ro.Ref, &old) })
			c.join(ms[0])
			c.refused(barrier.ErrSuperseded, delayed)
		}},
		{name: "counts from proposed and from staging", run: func(c *cohort) {
			ms := c.members(2)
			ro := c.propose()
			c.ok(vote(c, ro.Ref, ms[0]))
			c.claim()
			c.ok(vote(c, ro.Ref, ms[1]))
			for _, s := range c.row().Seats {
				if !s.Counts() || s.Ballot.Vote == barrier.NoVote {
					c.Errorf("seat = %+v, want a vote that counts", s)
				}
			}
		}},
	}
}

func ackVote(c *cohort, r barrier.Ref, m *member) error {
	return c.Store.Ack(c.ctx, r, m.id, m.boot, "built")
}

func nackVote(c *cohort, r barrier.Ref, m *member) error {
	return c.Store.Nack(c.ctx, r, m.id, m.boot, "does not validate")
}

var ackClauses = append(voteErrors("Ack", ackVote, nackVote),
	clause{name: "is the member's vote, with what it built and when", run: func(c *cohort) {
		ms := c.members(2)
		ro := c.propose()
		before := c.row()
		c.ok(c.Store.Ack(c.ctx, ro.Ref, ms[1].id, ms[1].boot, "build-7"))
		after := c.row()
		b := after.Seats[1].Ballot
		if b.Vote != barrier.Acked || b.Boot != ms[1].boot || b.BuildDigest != "build-7" || b.Reason != "" {
			c.Errorf("ballot = %+v", b)
		}
		c.between(before, b.VotedAt, after)
		if other := after.Seats[0].Ballot; other != (barrier.Ballot{}) {
			c.Errorf("the other member's ballot = %+v", other)
		}
	}},
	clause{name: "with another build digest is ErrVoted", run: func(c *cohort) {
		ms := c.members(1)
		ro := c.propose()
		c.ack(ro, ms...)
		c.refused(barrier.ErrVoted, func() error { return c.Store.Ack(c.ctx, ro.Ref, ms[0].id, ms[0].boot, "built otherwise") })
	}},
	clause{name: "takes a build digest of 0 to MaxDigestBytes bytes", run: func(c *cohort) {
		ms := c.members(2)
		ro := c.propose()
		long := strings.Repeat("d", barrier.MaxDigestBytes)
		c.refused(barrier.ErrInvalid, func() error { return c.Store.Ack(c.ctx, ro.Ref, ms[0].id, ms[0].boot, long+"d") })
		c.ok(c.Store.Ack(c.ctx, ro.Ref, ms[0].id, ms[0].boot, ""))
		c.ok(c.Store.Ack(c.ctx, ro.Ref, ms[1].id, ms[1].boot, long))
		row := c.row()
		if row.Seats[0].Ballot.BuildDigest != "" || row.Seats[1].Ballot.BuildDigest != long {
			c.Errorf("row: %s", show(row))
		}
	}},
)

var nackClauses = append(voteErrors("Nack", nackVote, ackVote),
	clause{name: "is the member's vote, with its reason and when", run: func(c *cohort) {
		ms := c.members(1)
		ro := c.propose()
		before := c.row()
		c.ok(c.Store.Nack(c.ctx, ro.Ref, ms[0].id, ms[0].boot, "a \"reason\"\nof two lines, ✓"))
		after := c.row()
		b := after.Seats[0].Ballot
		if b.Vote != barrier.Nacked || b.Boot != ms[0].boot || b.BuildDigest != "" || b.Reason != "a \"reason\"\nof two lines, ✓" {
			c.Errorf("ballot = %+v", b)
		}
		c.between(before, b.VotedAt, after)
	}},
	clause{name: "again with other words keeps the first", run: func(c *cohort) {
		ms := c.members(1)
		ro := c.propose()
		c.ok(nackVote(c, ro.Ref, ms[0]))
		c.idle(func() error { return c.Store.Nack(c.ctx, ro.Ref, ms[0].id, ms[0].boot, "other words") })
	}},
	clause{name: "has its reason cut at a character", run: func(c *cohort) {
		ms := c.members(2)
		ro := c.propose()
		c.ok(c.Store.Nack(c.ctx, ro.Ref, ms[0].id, ms[0].boot, tooLong))
		c.ok(c.Store.Nack(c.ctx, ro.Ref, ms[1].id, ms[1].boot, "not \xff UTF-8"))
		row := c.row()
		c.isCut(row.Seats[0].Ballot.Reason)
		if s := row.Seats[1].Ballot.Reason; !utf8.ValidString(s) || !strings.HasPrefix(s, "not ") {
			c.Errorf("reason = %q", s)
		}
	}},
)
