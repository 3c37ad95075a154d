package sqlstore_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/sqlstore"
)

// A rollout and all that was said of it can be read after others have followed it.
func TestLedger(t *testing.T) {
	onBoth(t, func(t *testing.T, _ sqlstore.Dialect, url string, _ *sql.DB) {
		c := newCohort(t, open(t, url, "c"), 3)
		var want []barrier.Rollout
		keep := func() { want = append([]barrier.Rollout{*c.row().Rollout}, want...) }

		c.commit(0)
		keep()
		ro := c.propose(0)
		c.ok(c.s.Nack(c.ctx, ro.Ref, "m0001", boot("m0001"), "no such pool"))
		seats := c.row().Seats
		c.ok(c.s.Abort(c.ctx, ro.Ref, barrier.ByOperator("ada"), "changed my mind"))
		keep()
		ro = c.commit(time.Minute)
		c.converge(ro)
		c.ok(c.s.Confirm(c.ctx, ro.Ref, c.token))
		keep()
		ro = c.commit(time.Minute)
		c.ok(c.s.Revert(c.ctx, ro.Ref, barrier.ByClaim(c.token), "not good"))
		keep()

		got, err := c.s.Rollouts(c.ctx, 10, 0)
		c.ok(err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("rollouts (-want +got):\n%s", diff)
		}
		got, err = c.s.Rollouts(c.ctx, 2, want[0].Generation)
		c.ok(err)
		if diff := cmp.Diff(want[1:3], got); diff != "" {
			t.Errorf("a page (-want +got):\n%s", diff)
		}
		for _, limit := range []int{0, sqlstore.MaxPage + 1} {
			_, err := c.s.Rollouts(c.ctx, limit, 0)
			c.is(err, barrier.ErrInvalid)
		}

		old, said, err := c.s.Rollout(c.ctx, want[2].ID)
		c.ok(err)
		if diff := cmp.Diff(want[2], old); diff != "" {
			t.Errorf("one of them (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(seats, said); diff != "" || said[1].Ballot.Reason != "no such pool" {
			t.Errorf("its seats (-want +got):\n%s", diff)
		}
		for _, id := range []barrier.RolloutID{"never", "", "\x00"} {
			_, _, err := c.s.Rollout(c.ctx, id)
			c.is(err, barrier.ErrUnknown)
		}
		other := open(t, url, "another")
		if got, err := other.Rollouts(c.ctx, 10, 0); err != nil || len(got) > 0 {
			t.Errorf("another cohort has %v, %v", got, err)
		}
	})
}

// A proposal that arrives again, after its rollout has ended and another began, opens nothing.
func TestAnOldProposalIsNotPutAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, _ sqlstore.Dialect, url string, _ *sql.DB) {
		c := newCohort(t, open(t, url, "c"), 1)
		first := c.commit(0)
		c.commit(0)
		before := c.row().Head
		_, err := c.s.Propose(c.ctx, barrier.Proposal{
			ID: first.ID, Proposer: "test", Digest: first.Digest, Version: first.Version, RosterRevision: first.RosterRevision,
			Seen: before.Generation,
		})
		c.is(err, barrier.ErrInvalid)
		if diff := cmp.Diff(before, c.row().Head); diff != "" {
			t.Errorf("the head changed (-before +after):\n%s", diff)
		}
	})
}
