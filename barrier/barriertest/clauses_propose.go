package barriertest

import (
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

var proposeClauses = []clause{
	{name: "opens a rollout whose epoch is the roster", run: func(c *cohort) {
		ms := c.members(3)
		_, err := c.Store.AdoptBaseline(c.ctx, barrier.Pointer{Digest: "test:baseline", Version: 3})
		c.ok(err)
		before := c.row()
		p := c.proposal(func(p *barrier.Proposal) {
			p.Proposer, p.Digest, p.Version = "ann ✓", "blake3:0123", 1<<53+1
			p.Deadline, p.Window, p.Soak, p.Grace, p.EvidenceTTL = 61*time.Second, 90*time.Second, 11*time.Second, 1500*time.Millisecond, 3*time.Second
		})
		ro, err := c.Store.Propose(c.ctx, p)
		c.ok(err)
		after := c.row()
		want := barrier.Rollout{
			Ref:    barrier.Ref{ID: p.ID, Generation: 1},
			Digest: p.Digest, Version: p.Version, Proposer: p.Proposer, RosterRevision: 1, EpochSize: 3,
			Window: p.Window, Soak: p.Soak, Grace: p.Grace, EvidenceTTL: p.EvidenceTTL,
			ProposedAt: ro.ProposedAt, Deadline: ro.ProposedAt.Add(p.Deadline), State: barrier.Proposed,
		}
		c.between(before, ro.ProposedAt, after)
		wantRow := after
		wantRow.Head = barrier.Head{Revision: after.Revision, Generation: 1, Committed: before.Committed, Rollout: &want}
		if !same(wantRow, after) || after.Revision <= before.Revision {
			c.Errorf("row: %s\nwant %s", show(after), show(wantRow))
		}
		wantRow.Rollout = &ro
		if !same(wantRow, after) {
			c.Errorf("row: %s\nand Propose returned %s", show(after), show(wantRow))
		}
		for i, s := range after.Seats {
			if s.Member != ms[i].id || s.Registration != ms[i].reg || s.Ballot != (barrier.Ballot{}) {
				c.Errorf("seat %d = %+v", i, s)
			}
		}
	}},
	{name: "takes the next generation, and never one twice", run: func(c *cohort) {
		ms := c.members(1)
		abort := func(ro barrier.Rollout) {
			c.ok(c.Store.Abort(c.ctx, ro.Ref, barrier.ByOperator("suite"), "next"))
		}
		for want := range uint64(3) {
			ro := c.propose()
			if ro.Generation != want+1 {
				c.Errorf("generation = %d, want %d", ro.Generation, want+1)
			}
			abort(ro)
		}
		if ro, _ := c.commit(ms); ro.Generation != 4 {
			c.Errorf("generation = %d, want 4", ro.Generation)
		}
		for _, g := range []struct{ after, want uint64 }{{3, 5}, {5, 6}, {99, 100}, {0, 101}, {1 << 62, 1<<62 + 1}, {0, 1<<62 + 2}} {
			ro := c.propose(func(p *barrier.Proposal) { p.After = g.after })
			if ro.Generation != g.want || c.row().Generation != g.want {
				c.Errorf("generation after %d = %d, want %d", g.after, ro.Generation, g.want)
			}
			abort(ro)
		}
	}},
	{name: "again returns the same rollout, if it still is the newest", run: func(c *cohort) {
		ms := c.members(1)
		p := c.proposal()
		ro, err := c.Store.Propose(c.ctx, p)
		c.ok(err)
		again := func() error {
			got, err := c.Store.Propose(c.ctx, p)
			if got.Ref != ro.Ref || got.State != c.row().Rollout.State {
				c.Errorf("rollout = %+v, want %v as it is", got, ro.Ref)
			}
			return err
		}
		c.idle(again)
		t := c.claim()
		c.ack(ro, ms...)
		c.idle(again)
		c.ok(c.Store.Commit(c.ctx, ro.Ref, t))
		c.idle(again)
		p = c.proposal()
		ro, err = c.Store.Propose(c.ctx, p)
		c.ok(err)
		c.ok(c.Store.Abort(c.ctx, ro.Ref, barrier.ByOperator("suite"), "enough"))
		c.idle(again)
	}},
	{name: "again with another digest is ErrInvalid", run: func(c *cohort) {
		c.members(1)
		p := c.proposal()
		_, err := c.Store.Propose(c.ctx, p)
		c.ok(err)
		p.Digest += "-other"
		c.refused(barrier.ErrInvalid, func() error { _, err := c.Store.Propose(c.ctx, p); return err })
	}},
	{name: "while a rollout is open is an OpenError that names it", run: func(c *cohort) {
		ms := c.members(1)
		refused := func() {
			c.Helper()
			err := c.refused(barrier.ErrOpen, func() error { _, err := c.Store.Propose(c.ctx, c.proposal()); return err })
			c.names(err, *c.row().Rollout)
		}
		ro := c.propose()
		refused()
		c.claim()
		refused()
		c.ok(c.Store.Abort(c.ctx, ro.Ref, barrier.ByOperator("suite"), "next"))
		c.commit(ms, window)
		refused()
	}},
	{name: "after a window that is over and was not ended is an OpenError", waits: true, run: func(c *cohort) {
		ms := c.members(1)
		ro, _ := c.commit(ms, short(barrier.MinDeadline))
		c.past(ro.RevertDue())
		err := c.refused(barrier.ErrOpen, func() error { _, err := c.Store.Propose(c.ctx, c.proposal()); return err })
		c.names(err, ro)
	}},
	{name: "after each end of a rollout, and keeps its outcome", run: func(c *cohort) {
		ms := c.members(1)
		next := func(ro barrier.Rollout, s barrier.State, reason string) {
			c.Helper()
			c.propose()
			row := c.row()
			want := barrier.Outcome{Ref: ro.Ref, Digest: ro.Digest, Version: ro.Version, State: s, Reason: reason}
			if row.Previous == nil || *row.Previous != want {
				c.Errorf("previous = %+v, want %+v", row.Previous, want)
			}
			c.ok(c.Store.Abort(c.ctx, row.Rollout.Ref, barrier.ByOperator("suite"), "next"))
		}
		ro := c.propose()
		c.ok(c.Store.Abort(c.ctx, ro.Ref, barrier.ByOperator("suite"), "no good"))
		next(ro, barrier.Aborted, "no good")
		ro, _ = c.commit(ms)
		next(ro, barrier.Committed, "")
		next(c.confirmed(ms), barrier.Confirmed, "")
		ro, t := c.commit(ms, window)
		c.ok(c.Store.Revert(c.ctx, ro.Ref, barrier.ByClaim(t), "failed"))
		next(ro, barrier.Reverted, "failed")
	}},
	{name: "for another roster than the present one is ErrRoster", run: func(c *cohort) {
		c.members(1)
		c.members(2)
		for _, revision := range []uint64{0, 1, 3} {
			c.refused(barrier.ErrRoster, func() error {
				_, err := c.Store.Propose(c.ctx, c.proposal(func(p *barrier.Proposal) { p.RosterRevision = revision }))
				return err
			})
		}
	}},
	{name: "by who has not seen the newest generation is ErrStale", run: func(c *cohort) {
		c.members(1)
		late := c.proposal() // a copy of it comes when everything is over
		for range 2 {
			ro := c.propose()
			c.ok(c.Store.Abort(c.ctx, ro.Ref, barrier.ByOperator("suite"), "next"))
			c.refused(barrier.ErrStale, func() error { _, err := c.Store.Propose(c.ctx, late); return err })
		}
		c.refused(barrier.ErrStale, func() error {
			_, err := c.Store.Propose(c.ctx, c.proposal(func(p *barrier.Proposal) { p.Seen++ }))
			return err
		})
	}},
	{name: "to an empty roster is ErrInvalid", run: func(c *cohort) {
		c.refused(barrier.ErrInvalid, func() error { _, err := c.Store.Propose(c.ctx, c.proposal()); return err })
	}},
	{name: "of a window before anything was committed is ErrNoBaseline", run: func(c *cohort) {
		c.members(1)
		c.refused(barrier.ErrNoBaseline, func() error { _, err := c.Store.Propose(c.ctx, c.proposal(window)); return err })
	}},
	{name: "with zero durations takes the defaults", run: func(c *cohort) {
		c.members(1)
		c.baseline()
		ro := c.propose(func(p *barrier.Proposal) { p.Deadline, p.Window = 0, time.Minute })
		if ro.Deadline.Sub(ro.ProposedAt) != barrier.DefaultDeadline || ro.Soak != barrier.DefaultSoak ||
			ro.Grace != barrier.DefaultGrace || ro.EvidenceTTL != barrier.DefaultEvidenceTTL {
			c.Errorf("rollout = %+v, want the defaults", ro)
		}
	}},
	{name: "that is not valid is ErrInvalid with all problems", run: func(c *cohort) {
		c.members(1)
		err := c.refused(barrier.ErrInvalid, func() error {
			_, err := c.Store.Propose(c.ctx, c.proposal(func(p *barrier.Proposal) {
				p.ID, p.Proposer, p.Digest, p.Deadline = "a b", "", "nothing", time.Millisecond
			}))
			return err
		})
		for _, field := range []string{"id", "proposer", "digest", "deadline"} {
			if err != nil && !strings.Contains(err.Error(), field) {
				c.Errorf("error %q does not name the %s", err, field)
			}
		}
		for name, change := range map[string]func(*barrier.Proposal){
			"long id":           func(p *barrier.Proposal) { p.ID = barrier.RolloutID(strings.Repeat("i", barrier.MaxIDBytes+1)) },
			"long proposer":     func(p *barrier.Proposal) { p.Proposer = strings.Repeat("p", barrier.MaxNameBytes+1) },
			"long digest":       func(p *barrier.Proposal) { p.Digest = longDigest + "d" },
			"no digest":         func(p *barrier.Proposal) { p.Digest = "" },
			"short deadline":    func(p *barrier.Proposal) { p.Deadline = barrier.MinDeadline - time.Millisecond },
			"long deadline":     func(p *barrier.Proposal) { p.Deadline = barrier.MaxDeadline + time.Millisecond },
			"split millisecond": func(p *barrier.Proposal) { p.Deadline = time.Second + time.Microsecond },
			"negative window":   func(p *barrier.Proposal) { p.Window = -time.Second },
			"long window":       func(p *barrier.Proposal) { window(p); p.Window = barrier.MaxWindow + time.Millisecond },
			"window of 1 soak":  func(p *barrier.Proposal) { window(p); p.Window, p.Soak = time.Minute, time.Minute },
			"long grace":        func(p *barrier.Proposal) { window(p); p.Grace = barrier.MaxGrace + time.Millisecond },
			"short evidence":    func(p *barrier.Proposal) { window(p); p.EvidenceTTL = barrier.MinEvidenceTTL - time.Millisecond },
			"long evidence":     func(p *barrier.Proposal) { window(p); p.EvidenceTTL = barrier.MaxEvidenceTTL + time.Millisecond },
			"soak, no window":   func(p *barrier.Proposal) { p.Soak = time.Second },
			"far generation":    func(p *barrier.Proposal) { p.After = 1<<62 + 1 },
		} {
			before := c.row()
			if _, err := c.Store.Propose(c.ctx, c.proposal(change)); barrier.Code(err) != "invalid" {
				c.Errorf("%s: error = %v, want ErrInvalid", name, err)
			}
			c.unchanged(before)
		}
	}},
	{name: "takes the longest of everything", run: func(c *cohort) {
		c.members(1)
		_, err := c.Store.AdoptBaseline(c.ctx, barrier.Pointer{Digest: longDigest, Version: 1<<63 - 1})
		c.ok(err)
		p := c.proposal(func(p *barrier.Proposal) {
			p.ID = barrier.RolloutID(strings.Repeat("i", barrier.MaxIDBytes))
			p.Proposer = strings.Repeat("✓", barrier.MaxNameBytes/3)
			p.Digest, p.Version = longDigest, 1<<63-1
			p.Deadline, p.Window, p.Soak = barrier.MaxDeadline, barrier.MaxWindow, barrier.MaxWindow/2
			p.Grace, p.EvidenceTTL = barrier.MaxGrace, barrier.MaxEvidenceTTL
		})
		ro, err := c.Store.Propose(c.ctx, p)
		c.ok(err)
		row := c.row()
		if got := *row.Rollout; got.ID != p.ID || got.Proposer != p.Proposer || got.Digest != p.Digest || got.Version != p.Version ||
			got.Window != p.Window || got.Soak != p.Soak || got.Grace != p.Grace || got.EvidenceTTL != p.EvidenceTTL ||
			!got.Deadline.Equal(ro.ProposedAt.Add(p.Deadline)) || row.Committed.Digest != longDigest || row.Committed.Version != p.Version {
			c.Errorf("row: %s", show(row))
		}
	}},
}

// longDigest has MaxDigestBytes bytes.
var longDigest = barrier.Digest("test:" + strings.Repeat("d", barrier.MaxDigestBytes-len("test:")))

var baselineClauses = []clause{
	{name: "makes it the committed pointer if there is none", run: func(c *cohort) {
		p := barrier.Pointer{Digest: "test:baseline", Version: 5}
		o, err := c.Store.AdoptBaseline(c.ctx, p)
		c.ok(err)
		if o != barrier.BaselineAdopted && !(c.mode == wrapped && o == barrier.BaselineVerified) { // the first answer may have been lost
			c.Errorf("outcome = %s, want adopted", o)
		}
		if row := c.row(); row.Committed != p {
			c.Errorf("committed = %v, want %v", row.Committed, p)
		}
	}},
	{name: "that is there already is verified", run: func(c *cohort) {
		p := barrier.Pointer{Digest: "test:baseline", Version: 5}
		_, err := c.Store.AdoptBaseline(c.ctx, p)
		c.ok(err)
		c.idle(func() error {
			o, err := c.Store.AdoptBaseline(c.ctx, p)
			if o != barrier.BaselineVerified {
				c.Errorf("outcome = %s, want verified", o)
			}
			return err
		})
	}},
	{name: "never rewinds", run: func(c *cohort) {
		ms := c.members(1)
		c.commit(ms)
		for _, d := range []barrier.Digest{"test:baseline", "test:other"} {
			c.idle(func() error {
				o, err := c.Store.AdoptBaseline(c.ctx, barrier.Pointer{Digest: d})
				if o != barrier.BaselineSuperseded {
					c.Errorf("outcome = %s, want superseded", o)
				}
				return err
			})
		}
	}},
	{name: "that contradicts the one there is ErrInvalid", run: func(c *cohort) {
		c.baseline()
		c.refused(barrier.ErrInvalid, func() error {
			o, err := c.Store.AdoptBaseline(c.ctx, barrier.Pointer{Digest: "test:other"})
			if o != barrier.BaselineFailed {
				c.Errorf("outcome = %s, want failed", o)
			}
			return err
		})
	}},
	{name: "that is not valid is ErrInvalid", run: func(c *cohort) {
		for _, p := range []barrier.Pointer{{}, {Digest: "no scheme"}, {Digest: longDigest + "d"}, {Digest: "test:baseline", Generation: 1}} {
			c.refused(barrier.ErrInvalid, func() error { _, err := c.Store.AdoptBaseline(c.ctx, p); return err })
		}
	}},
}
