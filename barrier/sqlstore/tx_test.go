package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/sqlstore"
)

// A host has a table of its own with a pointer in it, in the cohort's database.
func hostTable(t *testing.T, raw *sql.DB) (pointer func() string) {
	t.Helper()
	for _, statement := range []string{`CREATE TABLE live (digest text NOT NULL)`, `INSERT INTO live VALUES ('test:baseline')`} {
		if _, err := raw.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	return func() (digest string) {
		t.Helper()
		if err := raw.QueryRowContext(t.Context(), `SELECT digest FROM live`).Scan(&digest); err != nil {
			t.Fatal(err)
		}
		return digest
	}
}

// movePointer is what a host does with a change of the committed pointer.
func movePointer(ctx context.Context, tx *sql.Tx, before, after barrier.Head) error {
	if after.Committed == before.Committed {
		return nil
	}
	_, err := tx.ExecContext(ctx, `UPDATE live SET digest = $1`, string(after.Committed.Digest))
	return err
}

// begin is the caller's own transaction. It is made on a pool whose mode of beginning is the driver's default.
func begin(t *testing.T, raw *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := raw.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// Everything that is done in the caller's transaction takes effect with it or not at all.
func TestInTheCallersTransaction(t *testing.T) {
	onBoth(t, func(t *testing.T, _ sqlstore.Dialect, url string, raw *sql.DB) {
		c := newCohort(t, open(t, url, "c"), 2)
		pointer := hostTable(t, raw)
		steps := []struct {
			name string
			do   func(tx *sqlstore.Tx) error
		}{
			{"SetRoster", func(tx *sqlstore.Tx) error {
				_, err := tx.SetRoster(c.ctx, 1, []barrier.MemberID{"m0000"})
				return err
			}},
			{"Propose", func(tx *sqlstore.Tx) error {
				_, err := tx.Propose(c.ctx, barrier.Proposal{
					ID: "one", Proposer: "test", Digest: "test:one", RosterRevision: 2, Seen: c.row().Generation, Window: time.Minute, Soak: time.Millisecond, EvidenceTTL: time.Hour,
				})
				return err
			}},
			{"Claim", func(tx *sqlstore.Tx) error { return tx.Claim(c.ctx, 7) }},
			{"Commit", func(tx *sqlstore.Tx) error { return tx.Commit(c.ctx, c.row().Rollout.Ref, 7) }},
			{"Confirm", func(tx *sqlstore.Tx) error { return tx.Confirm(c.ctx, c.row().Rollout.Ref, 7) }},
			{"Advance", func(tx *sqlstore.Tx) error {
				return tx.Advance(c.ctx, barrier.Pointer{Generation: 9, Digest: "test:nine"})
			}},
			{"Raise", func(tx *sqlstore.Tx) error { return tx.Raise(c.ctx, 20) }},
			{"Propose again", func(tx *sqlstore.Tx) error {
				_, err := tx.Propose(c.ctx, barrier.Proposal{ID: "two", Proposer: "test", Digest: "test:two", RosterRevision: 2, Seen: c.row().Generation})
				return err
			}},
			{"Abort", func(tx *sqlstore.Tx) error {
				return tx.Abort(c.ctx, c.row().Rollout.Ref, barrier.ByClaim(7), "enough")
			}},
			{"EmptyRoster", func(tx *sqlstore.Tx) error {
				_, err := tx.EmptyRoster(c.ctx, 2)
				return err
			}},
		}
		for _, step := range steps {
			switch step.name {
			case "Commit":
				c.ok(c.s.Ack(c.ctx, c.row().Rollout.Ref, "m0000", boot("m0000"), ""))
			case "Confirm":
				c.ok(c.s.Converge(c.ctx, c.row().Rollout.Ref, "m0000", boot("m0000"), ""))
				c.past(c.row().Now.Add(time.Millisecond))
			}
			before, at := c.row(), pointer()
			for _, ending := range []string{"rollback", "commit"} {
				tx := begin(t, raw)
				c.ok(step.do(c.s.In(tx)))
				if _, err := tx.ExecContext(c.ctx, `UPDATE live SET digest = $1`, step.name); err != nil {
					t.Fatal(err)
				}
				if inside, err := c.s.In(tx).Current(c.ctx); err != nil || inside.Revision != before.Revision+1 {
					t.Errorf("%s: the transaction sees revision %d, %v", step.name, inside.Revision, err)
				}
				if ending == "rollback" {
					c.ok(tx.Rollback())
					after := c.row()
					after.Now = before.Now
					if diff := cmp.Diff(before, after); diff != "" || pointer() != at {
						t.Errorf("%s left something behind (-before +after):\n%s\nlive: %s", step.name, diff, pointer())
					}
					continue
				}
				c.ok(tx.Commit())
				if after := c.row(); after.Revision != before.Revision+1 || pointer() != step.name {
					t.Errorf("%s: revision from %d to %d, live %s", step.name, before.Revision, after.Revision, pointer())
				}
			}
		}
		want := barrier.Pointer{Generation: 9, Digest: "test:nine"}
		row := c.row()
		if row.Committed != want || row.Generation != 21 || len(row.Roster.Members) > 0 || row.Rollout.State != barrier.Aborted || row.Previous.State != barrier.Confirmed {
			t.Errorf("the row is %+v", row.Head)
		}
	})
}

// A named error leaves the caller's transaction usable, with nothing of the call in it.
func TestNamedErrorInTheCallersTransaction(t *testing.T) {
	onBoth(t, func(t *testing.T, _ sqlstore.Dialect, url string, raw *sql.DB) {
		c := newCohort(t, open(t, url, "c"), 2)
		pointer := hostTable(t, raw)
		ro := c.propose(0)
		before := c.row().Head
		tx := begin(t, raw)
		in := c.s.In(tx)
		c.is(in.Commit(c.ctx, ro.Ref, c.token), barrier.ErrBarrier)
		c.is(in.Commit(c.ctx, ro.Ref, c.token-1), barrier.ErrFenced)
		c.is(in.Advance(c.ctx, barrier.Pointer{Generation: 99, Digest: "test:99"}), barrier.ErrOpen)
		if _, err := tx.ExecContext(c.ctx, `UPDATE live SET digest = 'mine'`); err != nil {
			t.Fatal(err)
		}
		c.ok(tx.Commit())
		if diff := cmp.Diff(before, c.row().Head); diff != "" || pointer() != "mine" {
			t.Errorf("(-before +after):\n%s\nlive: %s", diff, pointer())
		}
	})
}

// The hook's writes and the decision are one.
func TestOnChange(t *testing.T) {
	onBoth(t, func(t *testing.T, _ sqlstore.Dialect, url string, raw *sql.DB) {
		pointer := hostTable(t, raw)
		var failure error
		c := newCohort(t, open(t, url, "c", sqlstore.OnChange(func(ctx context.Context, tx *sql.Tx, before, after barrier.Head) error {
			return errors.Join(movePointer(ctx, tx, before, after), failure)
		})), 2)
		at := func(what string, d barrier.Digest) {
			t.Helper()
			if committed := c.row().Committed.Digest; barrier.Digest(pointer()) != d || committed != d {
				t.Errorf("%s: live is %s and committed %s, want %s", what, pointer(), committed, d)
			}
		}
		at("at first", "test:baseline")

		ro := c.propose(0)
		c.ackAll(ro)
		before := c.row().Head
		failure = errors.New("no room")
		if err := c.s.Commit(c.ctx, ro.Ref, c.token); !errors.Is(err, failure) {
			t.Errorf("got %v, not what the hook said", err)
		}
		if diff := cmp.Diff(before, c.row().Head); diff != "" {
			t.Errorf("the hook failed and the head changed (-before +after):\n%s", diff)
		}
		at("after a hook that failed", "test:baseline")
		failure = nil
		c.ok(c.s.Commit(c.ctx, ro.Ref, c.token))
		at("after Commit", ro.Digest)

		trial := c.commit(time.Minute)
		at("on trial", ro.Digest)
		c.converge(trial)
		c.ok(c.s.Confirm(c.ctx, trial.Ref, c.token))
		at("after Confirm", trial.Digest)

		failed := c.commit(time.Minute)
		c.ok(c.s.Revert(c.ctx, failed.Ref, barrier.ByOperator("ada"), "bad"))
		at("after Revert", trial.Digest)
	})
}

// A connection that dies before COMMIT takes the decision and the host's pointer with it, and one that dies after leaves both.
func TestConnectionDiesInADecision(t *testing.T) {
	url := databases[1].url(t)
	migrate(t, url)
	raw := databases[1].raw(t, url)
	pointer := hostTable(t, raw)
	kill := false
	c := newCohort(t, open(t, url, "c", sqlstore.OnChange(func(ctx context.Context, tx *sql.Tx, before, after barrier.Head) error {
		if err := movePointer(ctx, tx, before, after); err != nil || !kill {
			return err
		}
		var pid int
		if err := tx.QueryRowContext(ctx, `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
			return err
		}
		// From outside, and the hook succeeds: it is the COMMIT that meets a dead connection.
		_, err := raw.ExecContext(ctx, `SELECT pg_terminate_backend($1, 10000)`, pid)
		return err
	})), 2)
	ro := c.propose(0)
	c.ackAll(ro)
	before := c.row().Head
	kill = true
	err := c.s.Commit(c.ctx, ro.Ref, c.token)
	kill = false
	if err == nil || barrier.Code(err) != "" {
		t.Errorf("got %v from a dead connection", err)
	}
	if diff := cmp.Diff(before, c.row().Head); diff != "" || pointer() != "test:baseline" {
		t.Errorf("(-before +after):\n%s\nlive: %s", diff, pointer())
	}

	// The same in the caller's transaction.
	tx := begin(t, raw)
	c.ok(c.s.In(tx).Commit(c.ctx, ro.Ref, c.token))
	if _, err := tx.ExecContext(c.ctx, `UPDATE live SET digest = 'mine'`); err != nil {
		t.Fatal(err)
	}
	var pid int
	c.ok(tx.QueryRowContext(c.ctx, `SELECT pg_backend_pid()`).Scan(&pid))
	if _, err := raw.ExecContext(c.ctx, `SELECT pg_terminate_backend($1, 10000)`, pid); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err == nil {
		t.Error("a dead connection committed")
	}
	if diff := cmp.Diff(before, c.row().Head); diff != "" || pointer() != "test:baseline" {
		t.Errorf("(-before +after):\n%s\nlive: %s", diff, pointer())
	}

	c.ok(c.s.Commit(c.ctx, ro.Ref, c.token))
	if row := c.row(); row.Committed.Digest != ro.Digest || pointer() != string(ro.Digest) {
		t.Errorf("live %s, committed %v", pointer(), row.Committed)
	}
}

func TestIsolationIsChecked(t *testing.T) {
	url := databases[1].url(t)
	migrate(t, url)
	raw := databases[1].raw(t, url)
	c := newCohort(t, open(t, url, "c"), 1)
	for _, level := range []sql.IsolationLevel{sql.LevelRepeatableRead, sql.LevelSerializable} {
		tx, err := raw.BeginTx(c.ctx, &sql.TxOptions{Isolation: level})
		c.ok(err)
		if err := c.s.In(tx).Claim(c.ctx, 99); err == nil || !strings.Contains(err.Error(), "read committed is needed") {
			t.Errorf("%v: got %v", level, err)
		}
		c.ok(tx.Rollback())
	}
	// The Store's own transactions do not depend on what the database's default is.
	if _, err := raw.ExecContext(c.ctx, `DO $$ BEGIN
		EXECUTE format('ALTER DATABASE %I SET default_transaction_isolation = serializable', current_database()); END $$`); err != nil {
		t.Fatal(err)
	}
	another := open(t, url, "c")
	c.ok(another.Claim(c.ctx, 99))
}

// A database that answers before a commit is on disk is not taken at its word.
func TestSynchronousCommit(t *testing.T) {
	url := databases[1].url(t)
	migrate(t, url)
	for setting, want := range map[string]string{"off": "local", "on": "on", "remote_write": "remote_write"} {
		var got string
		s := open(t, url+"&options=-csynchronous_commit%3D"+setting, "c-"+setting,
			sqlstore.OnChange(func(ctx context.Context, tx *sql.Tx, _, _ barrier.Head) error {
				return tx.QueryRowContext(ctx, `SHOW synchronous_commit`).Scan(&got)
			}))
		if err := s.Claim(t.Context(), 1); err != nil || got != want {
			t.Errorf("%s became %q, %v", setting, got, err)
		}
	}
}

// A vote or evidence that meets a decision under way waits for it, and is judged by what it finds then.
func TestVotesWaitForADecision(t *testing.T) {
	onBoth(t, func(t *testing.T, d sqlstore.Dialect, url string, raw *sql.DB) {
		c := newCohort(t, open(t, url, "c"), 2)
		for name, call := range map[string]func(r barrier.Ref) error{
			"Ack":      func(r barrier.Ref) error { return c.s.Ack(c.ctx, r, "m0000", boot("m0000"), "late") },
			"Converge": func(r barrier.Ref) error { return c.s.Converge(c.ctx, r, "m0000", boot("m0000"), "late") },
		} {
			ro := c.propose(time.Minute)
			decide := func(tx *sqlstore.Tx) error { return tx.Abort(c.ctx, ro.Ref, barrier.ByClaim(c.token), "") }
			if name == "Converge" {
				c.ackAll(ro)
				c.ok(c.s.Commit(c.ctx, ro.Ref, c.token))
				decide = func(tx *sqlstore.Tx) error { return tx.Revert(c.ctx, ro.Ref, barrier.ByClaim(c.token), "") }
			}
			tx := begin(t, raw)
			c.ok(decide(c.s.In(tx)))
			answer := make(chan error, 1)
			go func() { answer <- call(ro.Ref) }()
			for waiting := d == sqlstore.SQLite; !waiting; { // there the file's lock shows in no table
				c.ok(raw.QueryRowContext(c.ctx, `SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)`).Scan(&waiting))
				select {
				case err := <-answer:
					t.Fatalf("%s did not wait: %v", name, err)
				default:
				}
			}
			c.ok(tx.Commit())
			c.is(<-answer, barrier.ErrDecided)
		}
	})
}

// Two calls of one member at once, which share the cohort's lock, end as if one came after the other.
func TestOneMemberVotesTwiceAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, _ sqlstore.Dialect, url string, _ *sql.DB) {
		a, b := open(t, url, "c"), open(t, url, "c")
		c := newCohort(t, a, 1)
		for range 50 {
			ro := c.propose(0)
			answers := make(chan error, 2)
			go func() { answers <- a.Ack(c.ctx, ro.Ref, "m0000", boot("m0000"), "build") }()
			go func() { answers <- b.Nack(c.ctx, ro.Ref, "m0000", boot("m0000"), "no") }()
			first, second := <-answers, <-answers
			if (first == nil) == (second == nil) || !errors.Is(errors.Join(first, second), barrier.ErrVoted) {
				t.Fatalf("an ack and a nack at once: %v and %v", first, second)
			}
			c.ok(c.s.Abort(c.ctx, ro.Ref, barrier.ByClaim(c.token), ""))
		}
	})
}
