package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/sqlstore"
)

// A coordinator that is suspended inside of its decision loses the lock, and decides nothing when it wakes.
func TestSuspendedInADecision(t *testing.T) {
	url := databases[1].url(t)
	migrate(t, url)
	raw := databases[1].raw(t, url)
	inside, wake := make(chan int, 1), make(chan struct{})
	suspended := open(t, url, "c", sqlstore.OnChange(func(ctx context.Context, tx *sql.Tx, _, _ barrier.Head) error {
		var pid int
		if err := tx.QueryRowContext(ctx, `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
			return err
		}
		inside <- pid
		<-wake
		return nil
	}))
	c := newCohort(t, open(t, url, "c"), 2)
	ro := c.propose(0)
	c.ackAll(ro)
	answer := make(chan error, 1)
	go func() { answer <- suspended.Commit(c.ctx, ro.Ref, c.token) }()
	pid := <-inside

	// Others wait for it, and not for ever.
	began := time.Now()
	err := c.s.Ack(c.ctx, ro.Ref, "m0000", boot("m0000"), "build")
	if pg := new(pgconn.PgError); err != nil && (!errors.As(err, &pg) || pg.Code != "55P03") {
		t.Errorf("a vote meanwhile: %v", err)
	}
	if waited := time.Since(began); waited > 30*time.Second {
		t.Errorf("a vote meanwhile waited %v", waited)
	}
	for there := true; there; {
		c.ok(raw.QueryRowContext(c.ctx, `SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE pid = $1)`, pid).Scan(&there))
	}
	c.token++
	c.ok(c.s.Claim(c.ctx, c.token))
	c.ok(c.s.Abort(c.ctx, ro.Ref, barrier.ByClaim(c.token), "the other one is gone"))
	close(wake)
	if err := <-answer; err == nil || barrier.Code(err) != "" {
		t.Errorf("it woke up and got %v", err)
	}
	if state := c.row().Rollout.State; state != barrier.Aborted {
		t.Errorf("it woke up, and the rollout is %s", state)
	}
}

// One statement of a decision does not run for ever.
func TestStatementTimeout(t *testing.T) {
	url := databases[1].url(t)
	migrate(t, url)
	slow := false
	c := newCohort(t, open(t, url, "c", sqlstore.OnChange(func(ctx context.Context, tx *sql.Tx, _, _ barrier.Head) error {
		if !slow {
			return nil
		}
		_, err := tx.ExecContext(ctx, `SELECT pg_sleep(3600)`)
		return err
	})), 1)
	ro := c.propose(0)
	slow = true
	err := c.s.Abort(c.ctx, ro.Ref, barrier.ByClaim(c.token), "")
	slow = false
	if pg := new(pgconn.PgError); !errors.As(err, &pg) || pg.Code != "57014" {
		t.Errorf("got %v, not statement_timeout", err)
	}
	c.ok(c.s.Abort(c.ctx, ro.Ref, barrier.ByClaim(c.token), ""))
}

// A decision whose deadline passes between its look at the clock and its COMMIT is refused by the COMMIT.
func TestDecisionLateAtCommit(t *testing.T) {
	for _, verb := range []string{"Commit", "Confirm"} {
		t.Run(verb, func(t *testing.T) {
			onBoth(t, func(t *testing.T, d sqlstore.Dialect, url string, raw *sql.DB) {
				const short = 500 * time.Millisecond
				var offset atomic.Int64
				slow := false
				c := newCohort(t, open(t, url, "c",
					sqlstore.Clock(func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }),
					sqlstore.OnChange(func(ctx context.Context, tx *sql.Tx, _, _ barrier.Head) error {
						if !slow {
							return nil
						}
						if d == sqlstore.SQLite {
							offset.Add(int64(short))
							return nil
						}
						_, err := tx.ExecContext(ctx, `SELECT pg_sleep(0.5)`)
						return err
					})), 2)
				decide := c.s.Commit
				in := func(tx *sql.Tx, r barrier.Ref) error { return c.s.In(tx).Commit(c.ctx, r, c.token) }
				attempt := func(call func(ro barrier.Rollout) error) {
					t.Helper()
					for d := short; ; d *= 2 { // a loaded machine may be late on its own
						var ro barrier.Rollout
						if verb == "Confirm" {
							ro = c.propose(d)
						} else {
							ro = c.propose(0, func(p *barrier.Proposal) { p.Deadline = d })
						}
						c.ackAll(ro)
						if verb == "Confirm" {
							c.ok(c.s.Commit(c.ctx, ro.Ref, c.token))
							c.converge(ro)
							ro = *c.row().Rollout
						}
						before := c.row()
						if d == short && before.Now.After(deadline(*before.Rollout)) {
							c.end(ro)
							continue
						}
						slow = true
						err := call(ro)
						slow = false
						c.is(err, barrier.ErrLate)
						after := c.row()
						if diff := cmp.Diff(before.Head, after.Head); diff != "" {
							t.Errorf("the head changed (-before +after):\n%s", diff)
						}
						c.end(ro)
						return
					}
				}
				if verb == "Confirm" {
					decide = c.s.Confirm
					in = func(tx *sql.Tx, r barrier.Ref) error { return c.s.In(tx).Confirm(c.ctx, r, c.token) }
				}
				attempt(func(ro barrier.Rollout) error { return decide(c.ctx, ro.Ref, c.token) })
				if d == sqlstore.Postgres {
					attempt(func(ro barrier.Rollout) error {
						tx := begin(t, raw)
						if err := in(tx, ro.Ref); err != nil {
							return err
						}
						return sqlstore.Named(tx.Commit())
					})
				}
			})
		})
	}
}

func deadline(ro barrier.Rollout) time.Time {
	if ro.OnTrial() {
		return ro.ConfirmDeadline
	}
	return ro.Deadline
}

// end ends a rollout, however far it has come.
func (c *cohort) end(ro barrier.Rollout) {
	c.t.Helper()
	if c.row().Rollout.OnTrial() {
		c.ok(c.s.Revert(c.ctx, ro.Ref, barrier.ByClaim(c.token), ""))
		return
	}
	c.ok(c.s.Abort(c.ctx, ro.Ref, barrier.ByClaim(c.token), ""))
}

// A decision that takes too long is refused even when its deadline is far: the evidence that it saw is old.
func TestDecisionTooSlow(t *testing.T) {
	onBoth(t, func(t *testing.T, d sqlstore.Dialect, url string, _ *sql.DB) {
		var offset atomic.Int64
		slow := false
		c := newCohort(t, open(t, url, "c",
			sqlstore.Clock(func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }),
			sqlstore.OnChange(func(ctx context.Context, tx *sql.Tx, _, _ barrier.Head) error {
				if !slow {
					return nil
				}
				if d == sqlstore.SQLite {
					offset.Add(int64(5 * time.Second))
					return nil
				}
				for range 3 { // each within its timeout
					if _, err := tx.ExecContext(ctx, `SELECT pg_sleep(1.5)`); err != nil {
						return err
					}
				}
				return nil
			})), 1)
		ro := c.propose(0)
		c.ackAll(ro)
		before := c.row().Head
		slow = true
		err := c.s.Commit(c.ctx, ro.Ref, c.token)
		slow = false
		if err == nil || barrier.Code(err) != "" || !strings.Contains(err.Error(), "long") {
			t.Errorf("got %v", err)
		}
		if diff := cmp.Diff(before, c.row().Head); diff != "" {
			t.Errorf("the head changed (-before +after):\n%s", diff)
		}
		c.ok(c.s.Commit(c.ctx, ro.Ref, c.token))
	})
}
