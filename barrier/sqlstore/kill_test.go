package sqlstore_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/sqlstore"
	"github.com/guardyn-edge/guardyn/internal/testpg"
)

// EnvWorker makes the test binary a process that rolls out in a loop until it is killed, in the database that it names.
const envWorker = "GUARDYN_TEST_BARRIER_WORKER"

func TestMain(m *testing.M) {
	if url := os.Getenv(envWorker); url != "" {
		fmt.Fprintln(os.Stderr, work(url))
		os.Exit(1)
	}
	testpg.Main(m)
}

// work proposes, votes, decides and moves a pointer of its own with each decision; it prints a line before each call.
func work(url string) error {
	ctx := context.Background()
	s, err := sqlstore.Open(ctx, url, "c", sqlstore.OnChange(movePointer))
	if err != nil {
		return err
	}
	for {
		row, err := s.Current(ctx)
		if err != nil {
			return err
		}
		members := row.Roster.Members
		each := func(call func(m barrier.MemberID, b barrier.BootID) error) (err error) {
			for _, seat := range row.Seats {
				err = errors.Join(err, call(seat.Member, seat.Registration.Boot))
			}
			return err
		}
		token := row.Claim + 1
		fmt.Println("step")
		if err := s.Claim(ctx, token); err != nil {
			return err
		}
		switch ro := row.Rollout; {
		case ro == nil || !ro.Open():
			p := barrier.Proposal{
				ID: barrier.RolloutID(fmt.Sprintf("r%d", row.Generation+1)), Proposer: "worker", Digest: barrier.Digest(fmt.Sprintf("test:%d", row.Generation+1)),
				RosterRevision: row.Roster.Revision, Seen: row.Generation, Deadline: time.Hour,
			}
			if row.Generation%2 == 1 {
				p.Window, p.Soak, p.EvidenceTTL = time.Hour, time.Millisecond, time.Hour
			}
			_, err = s.Propose(ctx, p)
		case ro.Voting():
			err = each(func(m barrier.MemberID, b barrier.BootID) error { return s.Ack(ctx, ro.Ref, m, b, "build") })
			if err == nil {
				err = s.Commit(ctx, ro.Ref, token)
			}
		default:
			err = each(func(m barrier.MemberID, b barrier.BootID) error { return s.Converge(ctx, ro.Ref, m, b, "works") })
			if err == nil && ro.Generation%4 == 0 {
				err = s.Revert(ctx, ro.Ref, barrier.ByClaim(token), "bad")
			} else if err == nil {
				err = s.Confirm(ctx, ro.Ref, token)
				if errors.Is(err, barrier.ErrNotConverged) {
					err = nil // not for long enough yet
				}
			}
		}
		if err != nil {
			return fmt.Errorf("%w, with %d members in %+v", err, len(members), row.Head)
		}
	}
}

// A process that dies by kill -9 anywhere leaves whole rows that agree with each other, and another one goes on from them.
func TestKilled(t *testing.T) {
	kills := 25
	if testing.Short() {
		kills = 5
	}
	onBoth(t, func(t *testing.T, _ sqlstore.Dialect, url string, raw *sql.DB) {
		pointer := hostTable(t, raw)
		c := newCohort(t, open(t, url, "c"), 3)
		random := rand.New(rand.NewPCG(1, 2))
		var last barrier.Row
		for kill := range kills {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), envWorker+"="+url)
			var stderr strings.Builder
			cmd.Stderr = &stderr
			out, err := cmd.StdoutPipe()
			c.ok(err)
			c.ok(cmd.Start())
			lines := bufio.NewScanner(out)
			for range 1 + random.IntN(12) {
				if !lines.Scan() {
					t.Fatalf("the worker ended by itself: %s", stderr.String())
				}
			}
			spin := random.IntN(200_000) // somewhere inside of the step
			for range spin {
			}
			c.ok(cmd.Process.Kill())
			_ = cmd.Wait() // it was killed
			if stderr.Len() > 0 {
				t.Fatalf("the worker failed: %s", stderr.String())
			}

			row := c.row()
			if row.Revision < last.Revision || row.Generation < last.Generation || row.Claim < last.Claim || row.Committed.Generation < last.Committed.Generation {
				t.Fatalf("kill %d: the head fell from %+v to %+v", kill, last.Head, row.Head)
			}
			last = row
			c.whole(row, pointer())
		}
		if last.Generation < 3 {
			t.Errorf("only %d rollouts: the workers did nothing", last.Generation)
		}
		t.Logf("%d rollouts, %d changes of the head", last.Generation, last.Revision)
	})
}

// whole checks that the head, the ledger, the ballots and the host's pointer agree.
func (c *cohort) whole(row barrier.Row, pointer string) {
	c.t.Helper()
	if row.Committed.Digest != barrier.Digest(pointer) {
		c.t.Errorf("committed is %v and the host's pointer %s", row.Committed, pointer)
	}
	ledger, err := c.s.Rollouts(c.ctx, sqlstore.MaxPage, 0)
	c.ok(err)
	if uint64(len(ledger)) != row.Generation {
		c.t.Errorf("%d rollouts in the ledger, generation %d", len(ledger), row.Generation)
	}
	committed := barrier.Pointer{Digest: "test:baseline", Version: 1}
	for i := len(ledger) - 1; i >= 0; i-- {
		ro := ledger[i]
		if ro.Open() && i > 0 {
			c.t.Errorf("%v is %s, and not the newest", ro.Ref, ro.State)
		}
		if ro.State == barrier.Confirmed || ro.State == barrier.Committed && ro.Window == 0 {
			committed = ro.Pointer()
		}
		_, seats, err := c.s.Rollout(c.ctx, ro.ID)
		c.ok(err)
		if len(seats) != ro.EpochSize {
			c.t.Errorf("%v has %d ballots for %d members", ro.Ref, len(seats), ro.EpochSize)
		}
		for _, b := range seats {
			if decided := ro.State != barrier.Proposed && ro.State != barrier.Staging && ro.State != barrier.Aborted; decided && b.Ballot.Vote != barrier.Acked {
				c.t.Errorf("%v is %s and %s said %q", ro.Ref, ro.State, b.Member, b.Ballot.Vote)
			}
		}
	}
	if row.Committed != committed {
		c.t.Errorf("committed is %v, and by the ledger %v", row.Committed, committed)
	}
}
