package sim

import "github.com/guardyn-edge/guardyn/barrier"

// swapped checks what a process began to run: S2, S5, S6, I9, Durable, Informed.
func (c *checker) swapped(p *member, from, to barrier.Pointer) {
	c.committed(p, to)
	if to.Generation < from.Generation {
		c.left(p, from, to)
	}
	d := p.disk
	if to.Generation < d.confirmed {
		c.broken(I9, "%s runs %v after generation %d", p.name, to, d.confirmed)
	}
	if p.unsure && c.restores > 0 {
		return // its disk has a confirm that the store has lost, and that the process never took for saved
	}
	if to.Generation < d.highest && to != d.memory.Confirmed {
		c.broken(I9, "%s runs %v after generation %d, and does not go back to it", p.name, to, d.highest)
	}
	named := d.memory.Confirmed == to || d.memory.Trial != nil && d.memory.Trial.Pointer == to
	if !named || !d.has(to.Digest) {
		c.broken(Durable, "%s runs %v, and its disk would boot %v", p.name, to, d.memory.Confirmed)
	}
	if c.finals[to] != nil {
		d.confirmed = max(d.confirmed, to.Generation)
	}
}

// committed checks S2 and Informed.
func (c *checker) committed(p *member, to barrier.Pointer) {
	if c.finals[to] != nil {
		return
	}
	r := c.trials[to]
	switch {
	case r == nil:
		c.broken(S2, "%s runs %v, which is not committed", p.name, to)
	case !r.acked[p.boot]:
		c.broken(S2, "%s runs %v on trial, which it did not acknowledge", p.name, to)
	case !r.open() && p.seen > r.ended && c.restores == 0:
		c.broken(Informed, "%s begins %v, which is %s", p.name, to, r.state)
	}
}

// left checks S5 and S6: who goes from a generation to a lower one leaves a trial.
func (c *checker) left(p *member, from, to barrier.Pointer) {
	if v := c.finals[from]; v != nil {
		if v.gone {
			return // by a restored store's word
		}
		t := p.sit.Memory.Trial // a full disk does not keep it from leaving
		guessed := t != nil && t.TakenBack == barrier.ByGuess && !p.told && p.missed >= 2
		if !guessed {
			c.broken(S5, "%s goes from %v, which is confirmed, to %v", p.name, from, to)
		}
		return
	}
	if r := c.trials[from]; r != nil && to != r.base {
		c.broken(S6, "%s goes from %v to %v, and %v was committed", p.name, from, to, r.base)
	}
}

// saved checks Highest and Boots.
func (c *checker) saved(p *member, m barrier.Memory) {
	d := p.disk
	if m.Highest < d.highest || m.Confirmed.Generation < d.confirmed {
		c.broken(Highest, "%s saves highest %d and confirmed %v after %d and %d", p.name, m.Highest, m.Confirmed, d.highest, d.confirmed)
	}
	c.boots(p, m)
	d.highest = max(d.highest, m.Highest)
	d.confirmed = max(d.confirmed, m.Confirmed.Generation)
}

// loaded checks them again when a process starts.
func (c *checker) loaded(p *member, m barrier.Memory) {
	if d := p.disk; m.Highest < d.highest || m.Confirmed.Generation < d.confirmed {
		c.broken(Highest, "%s starts with highest %d and confirmed %v, and its disk had %d and %d", p.name, m.Highest, m.Confirmed, d.highest, d.confirmed)
	}
	c.boots(p, m)
}

func (c *checker) boots(p *member, m barrier.Memory) {
	if !m.Confirmed.IsZero() && c.finals[m.Confirmed] == nil {
		c.broken(Boots, "%s would boot %v", p.name, m.Confirmed)
	}
}

// settled checks S6 and S7 where a process sees nothing left to do.
func (c *checker) settled(p *member) {
	s := &p.sit
	running, want := s.Local.Running, p.committed
	if s.View == nil || running == want || s.Local.Superseded {
		return
	}
	if f := s.Local.Failure.Pointer; f == want || f == s.Memory.Confirmed && s.Local.Failure.Attempts > 0 {
		return // it says so, and tries again
	}
	if t := s.Memory.Trial; t != nil && t.TakenBack == "" && running == t.Pointer {
		if ro := s.View.Rollout; ro != nil && ro.Ref == t.Ref && ro.OnTrial() {
			return
		}
	}
	if c.restores > 0 && (want.Generation < s.Memory.Highest || want.Generation <= s.Memory.Confirmed.Generation) {
		c.w.cov.add(Diverged)
		return // it is ahead of a restored store, and says so
	}
	if r := c.trials[running]; r != nil && r.state == barrier.Reverted {
		c.broken(S6, "%s stays on %v, which was reverted; %v is committed", p.name, running, want)
		return
	}
	c.broken(S7, "%s stays on %v, and %v is committed", p.name, running, want)
}
