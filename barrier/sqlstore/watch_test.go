package sqlstore_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/sqlstore"
)

// hinted waits for a hint.
func hinted(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case _, open := <-c:
		if !open {
			t.Fatalf("closed, instead of a hint %s", what)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("no hint %s", what)
	}
}

// drain takes a hint that may be there.
func drain(c <-chan struct{}) {
	select {
	case <-c:
	default:
	}
}

// What one process writes is hinted to another.
func TestWatchAcrossProcesses(t *testing.T) {
	onBoth(t, func(t *testing.T, _ sqlstore.Dialect, url string, _ *sql.DB) {
		c := newCohort(t, open(t, url, "c"), 2)
		other := open(t, url, "c")
		head, votes := other.Watch(t.Context(), barrier.TopicHead), other.Watch(t.Context(), barrier.TopicVotes)
		hinted(t, head, "of the head that it watches now")
		hinted(t, votes, "of the votes that it watches now")
		ro := c.propose(time.Minute)
		hinted(t, head, "of a proposal")
		drain(votes)
		c.ok(c.s.Ack(c.ctx, ro.Ref, "m0000", boot("m0000"), ""))
		hinted(t, votes, "of an ack")
		c.ok(c.s.Ack(c.ctx, ro.Ref, "m0001", boot("m0001"), ""))
		hinted(t, votes, "of another ack")
		drain(head)
		c.ok(c.s.Commit(c.ctx, ro.Ref, c.token))
		hinted(t, head, "of a commit")
		c.ok(c.s.Converge(c.ctx, ro.Ref, "m0000", boot("m0000"), ""))
		hinted(t, votes, "of evidence")
		drain(head)
		c.ok(c.s.Withdraw(c.ctx, ro.Ref, "m0001", boot("m0001"), ""))
		hinted(t, head, "of a withdrawal, of the head")
		hinted(t, votes, "of a withdrawal, of the votes")
		_, err := c.s.Join(c.ctx, "m0000", "new", 1)
		c.ok(err)
		hinted(t, votes, "of a new process")
	})
}

// In the process that writes, SQLite's hints do not wait for the poll.
func TestWatchInProcess(t *testing.T) {
	url := sqliteURL(t)
	migrate(t, url)
	c := newCohort(t, open(t, url, "c", sqlstore.PollInterval(time.Hour)), 1)
	head := c.s.Watch(t.Context(), barrier.TopicHead)
	hinted(t, head, "that it watches")
	c.propose(0)
	hinted(t, head, "of a proposal")
}

// However many watch, one connection listens; when it is cut, all are woken once it is back.
func TestWatchOneConnection(t *testing.T) {
	url := databases[1].url(t)
	migrate(t, url)
	raw := databases[1].raw(t, url)
	c := newCohort(t, open(t, url, "c"), 1)
	other := open(t, url, "c")
	const watchers = 50
	var all []<-chan struct{}
	for i := range watchers {
		topic := []barrier.Topic{barrier.TopicHead, barrier.TopicVotes}[i%2]
		all = append(all, other.Watch(t.Context(), topic))
	}
	for _, w := range all {
		hinted(t, w, "that it watches")
	}
	listening := `FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN %'`
	var n int
	c.ok(raw.QueryRowContext(c.ctx, `SELECT count(*) `+listening).Scan(&n))
	if n != 1 {
		t.Errorf("%d connections listen", n)
	}
	for _, w := range all {
		drain(w)
	}
	if _, err := raw.ExecContext(c.ctx, `SELECT pg_terminate_backend(pid, 10000) `+listening); err != nil {
		t.Fatal(err)
	}
	for _, w := range all {
		hinted(t, w, "that it listens again")
	}
	c.propose(0)
	hinted(t, all[0], "of a proposal after the cut")
}

// A watch ends with its context, also after the Store has ended, and a Store that is closed leaves nothing running.
func TestWatchEnds(t *testing.T) {
	onBoth(t, func(t *testing.T, d sqlstore.Dialect, url string, raw *sql.DB) {
		closed := func(c <-chan struct{}) {
			t.Helper()
			for {
				select {
				case _, open := <-c:
					if !open {
						return
					}
				case <-time.After(30 * time.Second):
					t.Fatal("not closed")
				}
			}
		}
		s, err := sqlstore.Open(t.Context(), url, "c")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		first := s.Watch(ctx, barrier.TopicHead)
		second := s.Watch(t.Context(), barrier.TopicHead)
		hinted(t, first, "that it watches")
		cancel()
		closed(first)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		select {
		case _, open := <-second:
			if !open {
				t.Error("closed before its context was done")
			}
		default:
		}
		ctx, cancel = context.WithCancel(t.Context())
		late := s.Watch(ctx, barrier.TopicVotes)
		unknown := s.Watch(ctx, "weather")
		cancel()
		closed(late)
		closed(unknown)
		if d == sqlstore.Postgres {
			for n := 1; n > 0; {
				if err := raw.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_stat_activity
					WHERE datname = current_database() AND pid <> pg_backend_pid()`).Scan(&n); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}
