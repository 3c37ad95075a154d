package barriertest

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

var raceClauses = []clause{
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
	{name: "of commit against abort has one outcome", run: func(c *cohort) {
		ms := c.members(2)
		c.rounds(func(int) {
			before := c.row().Committed
			ro, t := c.staged(ms)
			errs := c.race(2, func(h Handles, i int) error {
				if i == 0 {
					return h.Store.Commit(c.ctx, ro.Ref, t)
				}
				return h.Store.Abort(c.ctx, ro.Ref, barrier.ByOperator("ann"), "enough")
			})
			c.outcome(ro, errs, barrier.Committed, barrier.Aborted)
			if row := c.row(); row.Rollout.State == barrier.Aborted && row.Committed != before {
				c.Errorf("aborted, and the committed pointer moved: %s", show(row))
			}
		})
	}},
	{name: "of one decision made by many has one effect", run: func(c *cohort) {
		ms := c.members(2)
		c.rounds(func(int) {
			ro, t := c.staged(ms)
			before := c.row()
			for _, err := range c.race(4, func(h Handles, _ int) error { return h.Store.Commit(c.ctx, ro.Ref, t) }) {
				c.ok(err)
			}
			if row := c.state(ro, barrier.Committed); row.Revision != before.Revision+1 {
				c.Errorf("revision from %d to %d: want one effect", before.Revision, row.Revision)
			}
		})
	}},
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
	{name: "of confirm against revert has one outcome", run: func(c *cohort) {
		ms := c.members(2)
		c.rounds(func(int) {
			ro, t := c.soaked(ms)
			errs := c.race(2, func(h Handles, i int) error {
				if i == 0 {
					return h.Store.Confirm(c.ctx, ro.Ref, t)
				}
				return h.Store.Revert(c.ctx, ro.Ref, barrier.ByOperator("ann"), "enough")
			})
			c.outcome(ro, errs, barrier.Confirmed, barrier.Reverted)
		})
	}},
	{name: "of confirm against deadmen around D has one outcome", waits: true, run: confirmAgainstDeadmen},
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
	{name: "of claims ends with the highest", run: func(c *cohort) {
		const n = 5
		ms := c.members(1)
		c.rounds(func(round int) {
			ro := c.propose()
			base := c.token
			errs := c.race(n, func(h Handles, i int) error { return h.Store.Claim(c.ctx, barrier.Token(base+1+uint64((i+round)%n))) })
			c.token += n
			for i, err := range errs {
				if err != nil {
					c.is(err, barrier.ErrFenced)
				}
				if (i+round)%n == n-1 {
					c.ok(err)
				}
			}
			if row := c.state(ro, barrier.Staging); row.Claim != barrier.Token(c.token) {
				c.Errorf("claim = %d, want %d", row.Claim, c.token)
			}
			c.ack(ro, ms...)
			c.end()
		})
	}},
	{name: "of a claim against commit fences", run: func(c *cohort) {
		ms := c.members(1)
		c.rounds(func(int) {
			ro, t := c.staged(ms)
			var seen barrier.Row // after the Claim
			errs := c.race(2, func(h Handles, i int) error {
				if i == 0 {
					return h.Store.Commit(c.ctx, ro.Ref, t)
				}
				if err := h.Store.Claim(c.ctx, t+1); err != nil {
					return err
				}
				row, err := h.Store.Current(c.ctx)
				seen = row
				return err
			})
			c.token++
			c.ok(errs[1])
			row := c.row()
			if row.Claim != t+1 || row.Rollout.State == barrier.Committed && seen.Rollout.State != barrier.Committed {
				c.Errorf("row: %s\nafter the claim: %s", show(row), show(seen))
			}
			if row.Rollout.State != barrier.Committed {
				c.is(errs[0], barrier.ErrFenced)
			}
			c.end()
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
	{name: "of acquirers has one holder at a time, and tokens that grow", run: acquirers},
	{name: "of reads against a rollout shows it as it was at one instant", run: readers},
}

// confirmAgainstDeadmen lets the coordinator confirm as late as it can and members revert as early as they may.
func confirmAgainstDeadmen(c *cohort) {
	const n, rounds = 3, 6
	ms := c.members(n)
	span := barrier.MinDeadline + 4*c.row().Margin
	outcomes := map[barrier.State]int{}
	for round := range rounds {
		ro, t := c.soaked(ms, short(span), func(p *barrier.Proposal) { p.Grace = time.Millisecond })
		early := time.Duration(round) * 3 * time.Millisecond // before D, by the store's time
		errs := c.race(n+1, func(h Handles, i int) error {
			from := ro.ConfirmDeadline.Add(-early)
			if i > 0 {
				from = ro.RevertDue()
			}
			for {
				row, err := h.Store.Current(c.ctx)
				if err = errors.Join(err, c.ctx.Err()); err != nil {
					return err
				}
				if i == 0 {
					from = ro.ConfirmDeadline.Add(-early - row.Margin)
				}
				if !row.Now.Before(from) {
					break
				}
			}
			if i == 0 {
				return h.Store.Confirm(c.ctx, ro.Ref, t)
			}
			err := h.Store.Revert(c.ctx, ro.Ref, barrier.ByDeadman(ms[i-1].id, ms[i-1].boot), "out of time")
			for errors.Is(err, barrier.ErrEarly) && c.ctx.Err() == nil {
				err = h.Store.Revert(c.ctx, ro.Ref, barrier.ByDeadman(ms[i-1].id, ms[i-1].boot), "out of time")
			}
			return err
		})
		row := c.row()
		outcomes[row.Rollout.State]++
		switch row.Rollout.State {
		case barrier.Confirmed:
			c.ok(errs[0])
			for _, err := range errs[1:] {
				c.is(err, barrier.ErrDecided)
				c.tells(err, ro.Ref, barrier.Confirmed, "")
			}
		case barrier.Reverted:
			if !errors.Is(errs[0], barrier.ErrLate) {
				c.is(errs[0], barrier.ErrDecided)
			}
			for _, err := range errs[1:] {
				c.ok(err)
			}
		default:
			c.Errorf("row: %s", show(row))
		}
	}
	c.Logf("outcomes: %v", outcomes)
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

// acquirers take the lease from each other: by releases, so that the holder is alone, whose order shows the tokens'.
func acquirers(c *cohort) {
	const n, each = 4, 15
	var (
		mu      sync.Mutex
		tokens  []barrier.Token
		inside  int
		refused atomic.Int64 // calls of Acquire that were
		active  atomic.Int64 // processes that still take part
	)
	active.Store(n)
	start := time.Now()
	errs := c.race(n, func(h Handles, i int) error {
		defer active.Add(-1)
		for got := 0; got < each && (got < minRounds || time.Since(start) < 4*raceTime); {
			l, err := h.Leases.Acquire(c.ctx, holder(i), barrier.MaxLease)
			if errors.Is(err, barrier.ErrHeld) && c.ctx.Err() == nil {
				refused.Add(1)
				continue
			}
			if err != nil {
				return err
			}
			got++
			mu.Lock()
			inside++
			alone := inside == 1
			tokens = append(tokens, l.Token)
			mu.Unlock()
			if !alone {
				return fmt.Errorf("%s was given a lease that another holds", holder(i))
			}
			// Held until others have asked for it.
			for before := refused.Load(); refused.Load() < before+2 && active.Load() > 1 && c.ctx.Err() == nil; {
				runtime.Gosched()
			}
			if err := h.Leases.Renew(c.ctx, l); err != nil {
				return err
			}
			mu.Lock()
			inside--
			mu.Unlock()
			if err := h.Leases.Release(c.ctx, l); err != nil && !errors.Is(err, barrier.ErrLost) {
				return err
			}
		}
		return nil
	})
	for _, err := range errs {
		c.ok(err)
	}
	for i := 1; i < len(tokens); i++ {
		if tokens[i] <= tokens[i-1] {
			c.Fatalf("token %d was given after %d", tokens[i], tokens[i-1])
		}
	}
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
