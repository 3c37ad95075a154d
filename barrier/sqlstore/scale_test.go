package sqlstore_test

import (
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/sqlstore"
)

// A cohort of the largest size votes at once through one bounded pool, while the coordinator's decisions get through.
func TestThousandMembers(t *testing.T) {
	n := barrier.MaxMembers
	if testing.Short() {
		n = 100
	}
	onBoth(t, func(t *testing.T, _ sqlstore.Dialect, url string, _ *sql.DB) {
		began := time.Now()
		lap := func(what string) {
			t.Logf("%-40s %v", what, time.Since(began).Round(time.Millisecond))
			began = time.Now()
		}
		members := open(t, url, "c") // with DefaultMaxConns
		coordinator := open(t, url, "c")
		c := newCohort(t, members, n)
		lap(fmt.Sprintf("%d joined, one after the other", n))
		ro := c.propose(time.Hour)
		lap("proposed")
		all := func(call func(m barrier.MemberID) error) {
			t.Helper()
			var wg sync.WaitGroup
			for _, m := range c.members {
				wg.Go(func() {
					if err := call(m); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
		acks := make(chan struct{})
		go func() {
			defer close(acks)
			all(func(m barrier.MemberID) error { return members.Ack(c.ctx, ro.Ref, m, boot(m), "build") })
		}()
		for voting := true; voting; { // decisions meanwhile: what a coordinator does at every term
			select {
			case <-acks:
				voting = false
			default:
				c.token++
				at := time.Now()
				if err := coordinator.Claim(c.ctx, c.token); err != nil {
					t.Fatalf("a claim among votes, after %v: %v", time.Since(at), err)
				}
			}
		}
		lap("acked, at once")
		c.ok(coordinator.Commit(c.ctx, ro.Ref, c.token))
		lap("committed")
		all(func(m barrier.MemberID) error { return members.Converge(c.ctx, ro.Ref, m, boot(m), "works") })
		lap("converged, at once")
		all(func(m barrier.MemberID) error { _, err := members.Look(c.ctx, m); return err })
		lap("looked, at once")
		c.past(c.row().Now.Add(ro.Soak))
		began = time.Now()
		row := c.row()
		lap("read the whole row")
		if len(row.Seats) != n || len(row.Roster.Members) != n {
			t.Fatalf("%d seats, %d in the roster", len(row.Seats), len(row.Roster.Members))
		}
		c.ok(coordinator.Confirm(c.ctx, ro.Ref, c.token))
		lap("confirmed")
	})
}
