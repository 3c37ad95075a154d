package barriertest

import (
	"errors"
	"fmt"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// cohortRaces are of proposals and rosters, and of reads with all of them.
var cohortRaces = []clause{
	{name: "of proposers has one winner, whom the others name", run: func(c *cohort) {
		c.members(2)
		const n = 6
		c.rounds(func(round int) {
			var proposals [n]barrier.Proposal
			for i := range proposals {
				proposals[i] = c.proposal(func(p *barrier.Proposal) { p.Proposer = holder(i) })
			}
			var won [n]barrier.Rollout
			errs := c.race(n, func(h Handles, i int) error {
				ro, err := h.Store.Propose(c.ctx, proposals[i])
				won[i] = ro
				return err
			})
			i := c.only(errs, barrier.ErrOpen)
			row := c.state(won[i], barrier.Proposed)
			if row.Rollout.ID != proposals[i].ID || row.Generation != uint64(round+1) {
				c.Errorf("row: %s\nwant rollout %s at generation %d", show(row), proposals[i].ID, round+1)
			}
			for _, err := range errs {
				if err != nil {
					c.names(err, won[i])
				}
			}
			c.end()
		})
	}},
	{name: "of a roster change against commit has one outcome", run: func(c *cohort) {
		c.baseline()
		c.rounds(func(round int) {
			ms := c.rejoinedOrNew(2)
			c.trialOrNot(ms, round)
		})
	}},
	{name: "of a roster change against a proposal has one order", run: func(c *cohort) {
		c.members(2)
		c.rounds(func(round int) {
			p := c.proposal()
			errs := c.race(2, func(h Handles, i int) error {
				if i == 0 {
					_, err := h.Store.Propose(c.ctx, p)
					return err
				}
				_, err := h.Store.SetRoster(c.ctx, p.RosterRevision, []barrier.MemberID{memberID(0), memberID(round + 2)})
				return err
			})
			c.ok(errs[1])
			row := c.row()
			if errs[0] != nil {
				c.is(errs[0], barrier.ErrRoster)
			} else if row.Rollout == nil || row.Rollout.ID != p.ID || row.Rollout.State != barrier.Aborted {
				c.Errorf("row: %s\nwant the rollout aborted", show(row))
			}
			if open := row.Rollout; open != nil && open.Open() || row.Roster.Revision != p.RosterRevision+1 {
				c.Errorf("row: %s", show(row))
			}
		})
	}},
	{name: "of roster changes has one winner", run: func(c *cohort) {
		c.rounds(func(round int) {
			errs := c.race(4, func(h Handles, i int) error {
				_, err := h.Store.SetRoster(c.ctx, uint64(round), []barrier.MemberID{memberID(round), memberID(1000 + i)})
				return err
			})
			i := c.only(errs, barrier.ErrRoster)
			if row := c.row(); row.Roster.Revision != uint64(round+1) || !row.Roster.Contains(memberID(1000+i)) {
				c.Errorf("row: %s\n%v, want the roster of process %d", show(row), row.Roster, i)
			}
		})
	}},
	{name: "of baselines adopts one", run: func(c *cohort) {
		const n = 4
		errs := c.race(n, func(h Handles, i int) error {
			_, err := h.Store.AdoptBaseline(c.ctx, barrier.Pointer{Digest: barrier.Digest(fmt.Sprintf("test:baseline-%d", i))})
			return err
		})
		i := c.only(errs, barrier.ErrInvalid)
		if row := c.row(); row.Committed.Digest != barrier.Digest(fmt.Sprintf("test:baseline-%d", i)) {
			c.Errorf("row: %s\nwant the baseline of process %d", show(row), i)
		}
	}},
	{name: "of reads against a rollout shows it as it was at one instant", run: readers},
}

// rejoinedOrNew makes a roster of n members, that of the round before, and returns them as they have joined.
func (c *cohort) rejoinedOrNew(n int) []*member {
	c.Helper()
	c.roster(n)
	ms := make([]*member, n)
	for i := range ms {
		ms[i] = &member{id: memberID(i)}
	}
	for _, m := range c.rejoined(ms) {
		if m.boot == "" {
			c.join(m)
		}
	}
	return ms
}

// trialOrNot races a roster change against a commit, with a window in every second round.
func (c *cohort) trialOrNot(ms []*member, round int) {
	c.Helper()
	var changes []func(*barrier.Proposal)
	windowed := round%2 == 1
	if windowed {
		changes = append(changes, window)
	}
	ro, t := c.staged(ms, changes...)
	errs := c.race(2, func(h Handles, i int) error {
		if i == 0 {
			return h.Store.Commit(c.ctx, ro.Ref, t)
		}
		_, err := h.Store.SetRoster(c.ctx, ro.RosterRevision, []barrier.MemberID{memberID(0)})
		return err
	})
	row := c.row()
	changed := row.Roster.Revision == ro.RosterRevision+1
	switch state := row.Rollout.State; {
	case state == barrier.Aborted && changed:
		c.is(errs[0], barrier.ErrDecided)
		c.ok(errs[1])
	case state == barrier.Committed && windowed && !changed:
		c.ok(errs[0])
		c.is(errs[1], barrier.ErrOpen)
	case state == barrier.Committed && !windowed && changed:
		c.ok(errs[0])
		c.ok(errs[1])
	default:
		c.Errorf("row: %s\nerrors %v", show(row), errs)
	}
	c.end()
}

// readers read while a rollout goes through its states; every read is judged by the invariants.
func readers(c *cohort) {
	ms := c.members(3)
	done := make(chan struct{})
	errs := c.race(4, func(h Handles, i int) error {
		if i == 0 {
			defer close(done)
			c := *c
			c.Handles = h
			return c.through(ms)
		}
		for {
			select {
			case <-done:
				return nil
			default:
			}
			row, err := h.Store.Current(c.ctx)
			if err = errors.Join(err, c.ctx.Err()); err != nil {
				return err
			}
			if ro := row.Rollout; ro != nil && ro.State == barrier.Proposed {
				for _, s := range row.Seats {
					if s.Ballot.Vote != barrier.NoVote && s.Ballot.BuildDigest != string(ro.ID) {
						return fmt.Errorf("a vote on %q is shown as one on %v", s.Ballot.BuildDigest, ro.Ref)
					}
				}
			}
			v, err := h.Store.Look(c.ctx, ms[i-1].id)
			if err != nil {
				return err
			}
			if b := v.Ballot; b.Vote != barrier.NoVote && (v.Rollout == nil || b.BuildDigest != string(v.Rollout.ID)) {
				return fmt.Errorf("Look shows a vote on %q as one on %+v", b.BuildDigest, v.Rollout)
			}
		}
	})
	for _, err := range errs {
		c.ok(err)
	}
}

// through takes rollouts from Propose to Commit, with returned errors rather than ended clauses: it is not the clause's goroutine.
func (c *cohort) through(ms []*member) error {
	start := time.Now()
	for i := 0; i < maxRounds && (i < minRounds || time.Since(start) < raceTime); i++ {
		row, err := c.Store.Current(c.ctx)
		if err != nil {
			return err
		}
		t := row.Claim + 1
		ro, err := c.Store.Propose(c.ctx, barrier.Proposal{
			ID: barrier.RolloutID(fmt.Sprintf("through-%d", i)), Proposer: "suite", Digest: "test:artefact", RosterRevision: row.Roster.Revision,
			Seen: row.Generation,
		})
		if err != nil {
			return err
		}
		for n, m := range ms {
			if n == 1 {
				if err := c.Store.Claim(c.ctx, t); err != nil {
					return err
				}
			}
			if err := c.Store.Ack(c.ctx, ro.Ref, m.id, m.boot, string(ro.ID)); err != nil {
				return err
			}
		}
		if err := c.Store.Commit(c.ctx, ro.Ref, t); err != nil {
			return err
		}
	}
	return nil
}
