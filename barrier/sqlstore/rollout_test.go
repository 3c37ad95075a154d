package sqlstore_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/sqlstore"
)

// cohort drives one cohort by hand.
type cohort struct {
	t       testing.TB
	ctx     context.Context
	s       *sqlstore.Store
	members []barrier.MemberID
	token   barrier.Token
}

func boot(m barrier.MemberID) barrier.BootID { return barrier.BootID("boot-of-" + m) }

// newCohort sets a roster of n members who all have joined, with something committed.
func newCohort(t testing.TB, s *sqlstore.Store, n int) *cohort {
	t.Helper()
	c := &cohort{t: t, ctx: t.Context(), s: s}
	for i := range n {
		c.members = append(c.members, barrier.MemberID(fmt.Sprintf("m%04d", i)))
	}
	_, err := s.SetRoster(c.ctx, 0, c.members)
	c.ok(err)
	_, err = s.AdoptBaseline(c.ctx, barrier.Pointer{Digest: "test:baseline", Version: 1})
	c.ok(err)
	for _, m := range c.members {
		_, err := s.Join(c.ctx, m, boot(m), 0)
		c.ok(err)
	}
	c.claim()
	return c
}

func (c *cohort) ok(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *cohort) is(err, want error) {
	c.t.Helper()
	if !errors.Is(err, want) {
		c.t.Errorf("got %v, want %v", err, want)
	}
}

func (c *cohort) row() barrier.Row {
	c.t.Helper()
	row, err := c.s.Current(c.ctx)
	c.ok(err)
	return row
}

// claim is a new coordinator's.
func (c *cohort) claim() {
	c.t.Helper()
	c.token++
	c.ok(c.s.Claim(c.ctx, c.token))
}

// propose opens a rollout, with a window unless it is 0, and takes it up.
func (c *cohort) propose(window time.Duration, change ...func(*barrier.Proposal)) barrier.Rollout {
	c.t.Helper()
	id := rand.Text()
	p := barrier.Proposal{
		ID: barrier.RolloutID(id), Proposer: "test", Digest: barrier.Digest("test:" + id), Version: 2,
		RosterRevision: c.row().Roster.Revision, Seen: c.row().Generation, Window: window,
	}
	if window > 0 {
		p.Soak, p.EvidenceTTL = time.Millisecond, time.Hour
	}
	for _, f := range change {
		f(&p)
	}
	ro, err := c.s.Propose(c.ctx, p)
	c.ok(err)
	c.claim()
	return ro
}

func (c *cohort) ackAll(ro barrier.Rollout) {
	c.t.Helper()
	for _, m := range c.members {
		c.ok(c.s.Ack(c.ctx, ro.Ref, m, boot(m), "build"))
	}
}

// converge has every member converge, and returns when that has held for the soak.
func (c *cohort) converge(ro barrier.Rollout) {
	c.t.Helper()
	for _, m := range c.members {
		c.ok(c.s.Converge(c.ctx, ro.Ref, m, boot(m), "works"))
	}
	c.past(c.row().Now.Add(ro.Soak))
}

// past returns when the store's time is after t.
func (c *cohort) past(t time.Time) {
	c.t.Helper()
	for !c.row().Now.After(t) {
	}
}

// commit takes a new rollout to committed.
func (c *cohort) commit(window time.Duration) barrier.Rollout {
	c.t.Helper()
	ro := c.propose(window)
	c.ackAll(ro)
	c.ok(c.s.Commit(c.ctx, ro.Ref, c.token))
	return *c.row().Rollout
}
