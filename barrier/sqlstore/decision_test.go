package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/sqlstore"
)

// in runs f in a transaction of its own and commits it when f has no error.
func (c *cohort) in(raw *sql.DB, f func(*sqlstore.Tx) error) error {
	c.t.Helper()
	tx, err := raw.BeginTx(c.ctx, nil)
	c.ok(err)
	if err := f(c.s.In(tx)); err != nil {
		c.ok(tx.Rollback())
		return err
	}
	c.ok(tx.Commit())
	return nil
}

func TestRaise(t *testing.T) {
	onBoth(t, func(t *testing.T, _ sqlstore.Dialect, url string, raw *sql.DB) {
		c := newCohort(t, open(t, url, "c"), 1)
		raise := func(to uint64) error {
			return c.in(raw, func(tx *sqlstore.Tx) error { return tx.Raise(c.ctx, to) })
		}
		before := c.row()
		c.ok(raise(57))
		c.ok(raise(12))
		if now := c.row(); now.Generation != 57 || now.Revision != before.Revision+1 || now.Committed != before.Committed {
			t.Errorf("the head is %+v", now.Head)
		}
		c.is(raise(1<<63), barrier.ErrInvalid)
		ro := c.propose(0)
		if ro.Generation != 58 {
			t.Errorf("the next rollout has generation %d", ro.Generation)
		}
		c.is(raise(99), barrier.ErrOpen)
		if now := c.row(); now.Generation != 58 {
			t.Errorf("raised to %d while a rollout is open", now.Generation)
		}
	})
}

func TestEmptyRoster(t *testing.T) {
	onBoth(t, func(t *testing.T, _ sqlstore.Dialect, url string, raw *sql.DB) {
		c := newCohort(t, open(t, url, "c"), 2)
		empty := func(revision uint64) (roster barrier.Roster, err error) {
			err = c.in(raw, func(tx *sqlstore.Tx) (err error) {
				roster, err = tx.EmptyRoster(c.ctx, revision)
				return err
			})
			return roster, err
		}
		_, err := empty(7)
		c.is(err, barrier.ErrRoster)
		ro := c.propose(0)
		for range 2 { // the second is the same call again
			roster, err := empty(1)
			c.ok(err)
			if diff := cmp.Diff(barrier.Roster{Revision: 2}, roster); diff != "" {
				t.Error(diff)
			}
		}
		row := c.row()
		if row.Roster.Revision != 2 || len(row.Roster.Members) != 0 || row.Rollout.State != barrier.Aborted || row.Rollout.ID != ro.ID {
			t.Errorf("the row is %+v", row)
		}
		_, err = c.s.Propose(c.ctx, barrier.Proposal{ID: "x", Proposer: "test", Digest: "test:x", RosterRevision: 2, Seen: row.Generation})
		c.is(err, barrier.ErrInvalid)
		_, err = c.s.SetRoster(c.ctx, 2, c.members)
		c.ok(err)
		ro = c.propose(time.Minute)
		c.ok(c.s.Ack(c.ctx, ro.Ref, "m0000", boot("m0000"), ""))
		c.ok(c.s.Ack(c.ctx, ro.Ref, "m0001", boot("m0001"), ""))
		c.ok(c.s.Claim(c.ctx, c.token))
		c.ok(c.s.Commit(c.ctx, ro.Ref, c.token))
		_, err = empty(3)
		c.is(err, barrier.ErrOpen)
	})
}

// While the lock is held nobody else decides.
func TestLock(t *testing.T) {
	onBoth(t, func(t *testing.T, _ sqlstore.Dialect, url string, raw *sql.DB) {
		c := newCohort(t, open(t, url, "c"), 1)
		other := open(t, url, "c")
		tx := begin(t, raw)
		c.ok(c.s.In(tx).Lock(c.ctx))
		done := make(chan error, 1)
		go func() { done <- other.Claim(context.WithoutCancel(c.ctx), 99) }()
		select {
		case err := <-done:
			t.Errorf("claimed meanwhile: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
		c.ok(tx.Rollback())
		c.ok(<-done)
	})
}

func TestRolloutByID(t *testing.T) {
	onBoth(t, func(t *testing.T, _ sqlstore.Dialect, url string, _ *sql.DB) {
		c := newCohort(t, open(t, url, "c"), 2)
		first := c.propose(0)
		c.ok(c.s.Nack(c.ctx, first.Ref, "m0001", boot("m0001"), "too blue"))
		c.ok(c.s.Abort(c.ctx, first.Ref, barrier.ByOperator("ada"), "no"))
		seats := c.row().Seats
		c.propose(0)
		ro, got, err := c.s.Rollout(c.ctx, first.ID)
		c.ok(err)
		if diff := cmp.Diff(seats, got); diff != "" || ro.State != barrier.Aborted || ro.Ref != first.Ref || ro.DecidedBy != "operator ada" {
			t.Errorf("rollout %+v, seats (-want +got):\n%s", ro, diff)
		}
		for _, id := range []barrier.RolloutID{"never", "", "no such\x00id"} {
			if _, _, err := c.s.Rollout(c.ctx, id); !errors.Is(err, barrier.ErrUnknown) {
				t.Errorf("rollout %q: %v", id, err)
			}
		}
	})
}
