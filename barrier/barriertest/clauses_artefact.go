package barriertest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

var artefactClauses = []clause{
	{name: "Get returns what was put, to every process", run: func(c *cohort) {
		want := []byte("line\r\n\x00\xff ✓")
		c.ok(c.Artefacts.Put(c.ctx, "test:1", want))
		c.ok(c.Artefacts.Put(c.ctx, longDigest, []byte("long")))
		for _, h := range []Handles{c.Handles, c.process()} {
			for d, want := range map[barrier.Digest][]byte{"test:1": want, longDigest: []byte("long")} {
				got, err := h.Artefacts.Get(c.ctx, d)
				c.ok(err)
				if !bytes.Equal(got, want) {
					c.Errorf("Get(%.20s) = %q, want %q", d, got, want)
				}
			}
		}
	}},
	{name: "Get of what was not put is ErrNoArtefact", run: func(c *cohort) {
		c.ok(c.Artefacts.Put(c.ctx, "test:1", []byte("x")))
		_, err := c.Artefacts.Get(c.ctx, "test:2")
		c.is(err, barrier.ErrNoArtefact)
	}},
	{name: "Put of what is there already is a success", run: func(c *cohort) {
		for range 3 {
			c.ok(c.Artefacts.Put(c.ctx, "test:1", []byte("x")))
		}
		c.holds("test:1", []byte("x"))
	}},
	{name: "bytes under a digest never change", run: func(c *cohort) {
		c.ok(c.Artefacts.Put(c.ctx, "test:1", []byte("first")))
		if err := c.Artefacts.Put(c.ctx, "test:1", []byte("second")); err != nil {
			c.is(err, barrier.ErrInvalid) // a store may tell that they differ
		}
		c.holds("test:1", []byte("first"))
	}},
	{name: "bytes belong to the caller", run: func(c *cohort) {
		given := []byte("given")
		c.ok(c.Artefacts.Put(c.ctx, "test:1", given))
		given[0] = 'G'
		got, err := c.Artefacts.Get(c.ctx, "test:1")
		c.ok(err)
		if len(got) > 1 {
			got[1] = 'O'
		}
		c.holds("test:1", []byte("given"))
	}},
	{name: "takes 0 to MaxArtefactBytes bytes", run: func(c *cohort) {
		largest := make([]byte, barrier.MaxArtefactBytes+1)
		random := rand.NewChaCha8([32]byte{1})
		random.Read(largest)
		c.is(c.Artefacts.Put(c.ctx, "test:more", largest), barrier.ErrInvalid)
		_, err := c.Artefacts.Get(c.ctx, "test:more")
		c.is(err, barrier.ErrNoArtefact)
		largest = largest[:barrier.MaxArtefactBytes]
		c.ok(c.Artefacts.Put(c.ctx, "test:largest", largest))
		c.holds("test:largest", largest)
		c.ok(c.Artefacts.Put(c.ctx, "test:empty", nil))
		c.holds("test:empty", nil)
	}},
	{name: "Put under a digest that is none is ErrInvalid", run: func(c *cohort) {
		for _, d := range []barrier.Digest{"", "no scheme", ":", "test:", longDigest + "d"} {
			c.is(c.Artefacts.Put(c.ctx, d, []byte("x")), barrier.ErrInvalid)
		}
	}},
	{name: "Puts of the same bytes at once all succeed", run: func(c *cohort) {
		want := bytes.Repeat([]byte("0123456789abcdef"), 1<<14)
		errs := c.race(6, func(h Handles, i int) error { return h.Artefacts.Put(c.ctx, "test:1", want) })
		for _, err := range errs {
			c.ok(err)
		}
		c.holds("test:1", want)
	}},
}

// holds reports it if want is not what is kept under d.
func (c *cohort) holds(d barrier.Digest, want []byte) {
	c.Helper()
	got, err := c.Artefacts.Get(c.ctx, d)
	c.ok(err)
	if !bytes.Equal(got, want) {
		c.Errorf("%s holds %d bytes %.20q, want %d bytes %.20q", d, len(got), got, len(want), want)
	}
}

var durableClauses = []clause{
	{name: "a new process sees everything that earlier ones wrote", run: func(c *cohort) {
		ms := c.members(3)
		c.ok(c.Artefacts.Put(c.ctx, "test:1", []byte("artefact")))
		l := c.acquire("a", barrier.MaxLease)
		check := func(what string) {
			c.Helper()
			before := c.row()
			c.Handles = c.process()
			c.unchanged(before)
			for _, m := range ms {
				v, err := c.Store.Look(c.ctx, m.id)
				c.ok(err)
				if v.Registration != m.reg {
					c.Errorf("%s: registration of %s = %+v, want %+v", what, m.id, v.Registration, m.reg)
				}
			}
			c.holds("test:1", []byte("artefact"))
			_, err := c.Leases.Acquire(c.ctx, "b", time.Minute)
			c.is(err, barrier.ErrHeld)
			c.ok(c.Leases.Renew(c.ctx, l))
		}
		check("members, artefact and lease")
		_, err := c.Store.AdoptBaseline(c.ctx, barrier.Pointer{Digest: "test:baseline"})
		c.ok(err)
		check("baseline")
		ro := c.propose(window)
		check("proposal")
		t := c.claim()
		check("claim")
		c.ack(ro, ms...)
		check("votes")
		c.ok(c.Store.Commit(c.ctx, ro.Ref, t))
		check("commit")
		c.converge(ro, ms[1:]...)
		c.ok(withdrawCall(c, ro.Ref, ms[0]))
		check("evidence")
		c.ok(c.Store.Revert(c.ctx, ro.Ref, barrier.ByClaim(t), "failed"))
		check("revert")
		c.propose()
		check("next proposal")
		c.release(l)
		c.Handles = c.process()
		if next := c.acquire("a", time.Minute); next.Token <= l.Token {
			c.Errorf("token = %d after %d: released leases are forgotten", next.Token, l.Token)
		}
	}},
	{name: "two cohorts know nothing of each other", run: func(c *cohort) {
		other := c.another()
		ms := c.members(2)
		ro, _ := c.commit(ms, window)
		c.ok(c.Artefacts.Put(c.ctx, "test:1", []byte("x")))
		c.acquire("a", time.Minute)
		if row := other.row(); row.Revision != 0 || row.Rollout != nil || len(row.Roster.Members) != 0 {
			c.Errorf("the other cohort's row: %s", show(row))
		}
		if _, err := other.Artefacts.Get(c.ctx, "test:1"); err == nil {
			c.Error("the other cohort has the artefact")
		}
		other.acquire("b", time.Minute)
		other.members(3)
		theirs := other.propose()
		if got := *c.row().Rollout; got.Ref != ro.Ref || fmt.Sprint(theirs.EpochSize, got.EpochSize) != "3 2" {
			c.Errorf("rollout = %+v, want %v", got, ro.Ref)
		}
	}},
}
