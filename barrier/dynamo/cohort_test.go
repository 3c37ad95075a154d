package dynamo_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// atOnce calls each for all members, 32 at a time.
func atOnce(t testing.TB, ms []barrier.MemberID, each func(barrier.MemberID) error) {
	t.Helper()
	var wait sync.WaitGroup
	next := make(chan barrier.MemberID)
	for range 32 {
		wait.Go(func() {
			for m := range next {
				if err := each(m); err != nil {
					t.Errorf("%s: %v", m, err)
				}
			}
		})
	}
	for _, m := range ms {
		next <- m
	}
	close(next)
	wait.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

func TestManyMembersVoteAtOnce(t *testing.T) {
	w := newWire()
	w.next = &http.Transport{MaxIdleConnsPerHost: 64}
	o := options(newTable(t))
	o.RequestTimeout = 20 * time.Second // the server of the tests has one lock for all
	s := open(t, o, w.use)
	// The largest roster that there can be takes a minute of the server; the conformance suite has it too.
	ids := make([]barrier.MemberID, 200)
	if os.Getenv("GUARDYN_TEST_SOAK") != "" {
		ids = make([]barrier.MemberID, barrier.MaxMembers)
	}
	for i := range ids {
		ids[i] = barrier.MemberID(strings.Repeat("m", 60) + string([]byte{'0' + byte(i/1000), '0' + byte(i/100%10), '0' + byte(i/10%10), '0' + byte(i%10)}))
	}
	roster := must(s.SetRoster(t.Context(), 0, ids))(t)
	baseline(t, s)
	started := time.Now()
	atOnce(t, ids, func(m barrier.MemberID) error {
		_, err := s.Join(t.Context(), m, bootOf("x"), 0)
		return err
	})
	t.Logf("%d joins in %v, with %d requests to write", len(ids), time.Since(started), w.writes())
	p := proposal(roster)
	p.Window, p.Soak, p.EvidenceTTL = time.Hour, time.Millisecond, time.Hour
	ro := must(s.Propose(t.Context(), p))(t)
	ok(t, s.Claim(t.Context(), 1))

	w.set(nil)
	started = time.Now()
	atOnce(t, ids, func(m barrier.MemberID) error { return s.Ack(t.Context(), ro.Ref, m, bootOf("x"), "built") })
	t.Logf("%d acks in %v", len(ids), time.Since(started))
	alone := func(votes int) {
		t.Helper()
		for _, r := range w.requests() {
			if r.writes() && strings.Contains(r.body, `"HEAD"`) {
				t.Fatalf("a vote stands in line for the head: %s", r.body)
			}
		}
		if n := w.writes(); n != votes {
			t.Errorf("%d requests for %d votes: they are in each other's way", n, votes)
		}
	}
	alone(len(ids))

	w.set(nil)
	started = time.Now()
	row := must(s.Current(t.Context()))(t)
	t.Logf("Current in %v, with %d requests", time.Since(started), len(w.requests()))
	if len(row.Seats) != len(ids) || !row.Seats[len(ids)-1].Counts() || row.Seats[len(ids)-1].Member != ids[len(ids)-1] {
		t.Errorf("%d seats, the last is %+v", len(row.Seats), row.Seats[len(row.Seats)-1])
	}
	ok(t, s.Commit(t.Context(), ro.Ref, 1))
	w.set(nil)
	atOnce(t, ids, func(m barrier.MemberID) error { return s.Converge(t.Context(), ro.Ref, m, bootOf("x"), "works") })
	alone(len(ids))
	until(t, s, func(row barrier.Row) bool { return barrier.Decide(row, barrier.Term{Token: 1}).Verb == barrier.Confirm })
	ok(t, s.Confirm(t.Context(), ro.Ref, 1))
	must(s.Propose(t.Context(), after(t, s, proposal(roster))))(t)
	if n := count(sortKeys(t, o.Table, "COHORT#"+o.Cohort), "BALLOT#"); n != 0 {
		t.Errorf("%d ballots of the last rollout are left", n)
	}
}

// A decision is sent only if it must arrive in time, whatever other clocks of the cohort say.
func TestMarginIsKept(t *testing.T) {
	o := options(newTable(t))
	o.ClockSkew = 5 * time.Second
	var mu sync.Mutex
	at := time.Now()
	o.Now = func() time.Time { mu.Lock(); defer mu.Unlock(); return at }
	set := func(to time.Time) { mu.Lock(); at = to; mu.Unlock() }
	w := newWire()
	s := open(t, o, w.use)
	margin := o.ClockSkew + o.RequestTimeout
	roster := members(t, s, 2)
	baseline(t, s)
	late := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, barrier.ErrLate) {
			t.Errorf("%s: %v, want that it is late", what, err)
		}
		if n := w.writes(); n != 0 {
			t.Errorf("%s was sent %d times", what, n)
		}
	}
	p := windowed(roster)
	p.Window, p.Soak, p.EvidenceTTL, p.Deadline = time.Minute, time.Second, 30*time.Second, time.Minute
	ro := must(s.Propose(t.Context(), p))(t)
	ok(t, s.Claim(t.Context(), 1))
	ack(t, s, ro.Ref, roster.Members...)
	if row := must(s.Current(t.Context()))(t); row.Margin != margin {
		t.Errorf("margin = %v, want %v", row.Margin, margin)
	}
	set(ro.Deadline.Add(-margin + 1))
	w.set(nil)
	late("Commit", s.Commit(t.Context(), ro.Ref, 1))
	set(ro.Deadline.Add(-margin))
	ok(t, s.Commit(t.Context(), ro.Ref, 1))
	ro = *must(s.Current(t.Context()))(t).Rollout
	converge := func() {
		t.Helper()
		for _, m := range roster.Members {
			ok(t, s.Converge(t.Context(), ro.Ref, m, bootOf(m), "works"))
		}
	}
	converge()
	evidence := o.Now()
	early := func(what string) {
		t.Helper()
		w.set(nil)
		if err := s.Confirm(t.Context(), ro.Ref, 1); !errors.Is(err, barrier.ErrNotConverged) || w.writes() != 0 {
			t.Errorf("%s: %v, %d requests to write", what, err, w.writes())
		}
	}
	set(evidence.Add(p.Soak + margin - 1))
	early("soaked by this clock alone")
	set(evidence.Add(p.EvidenceTTL - margin + 1))
	early("unexpired by this clock alone")
	for step := evidence; step.Before(ro.ConfirmDeadline.Add(-margin)); step = step.Add(10 * time.Second) {
		set(step)
		converge()
	}
	set(ro.ConfirmDeadline.Add(-margin + 1))
	w.set(nil)
	late("Confirm", s.Confirm(t.Context(), ro.Ref, 1))
	set(ro.ConfirmDeadline.Add(-margin))
	ok(t, s.Confirm(t.Context(), ro.Ref, 1))
}

// What can undo a decision between its read and its write makes the write fail.
func TestWhatUndoesADecisionMovesTheHead(t *testing.T) {
	table := newTable(t)
	tests := []struct {
		name      string
		confirm   bool
		meanwhile func(ctx context.Context, s barrier.Store, ro barrier.Rollout, roster barrier.Roster) error
		want      error
	}{
		{"a member's new process", false, func(ctx context.Context, s barrier.Store, _ barrier.Rollout, _ barrier.Roster) error {
			_, err := s.Join(ctx, "m0001", "other", 1)
			return err
		}, barrier.ErrBarrier},
		{"a change of the roster", false, func(ctx context.Context, s barrier.Store, _ barrier.Rollout, r barrier.Roster) error {
			_, err := s.SetRoster(ctx, r.Revision, r.Members[:1])
			return err
		}, barrier.ErrDecided},
		{"a later claim", false, func(ctx context.Context, s barrier.Store, _ barrier.Rollout, _ barrier.Roster) error {
			return s.Claim(ctx, 2)
		}, barrier.ErrFenced},
		{"an abort", false, func(ctx context.Context, s barrier.Store, ro barrier.Rollout, _ barrier.Roster) error {
			return s.Abort(ctx, ro.Ref, barrier.ByOperator("test"), "no")
		}, barrier.ErrDecided},
		{"a vote again", false, func(ctx context.Context, s barrier.Store, ro barrier.Rollout, _ barrier.Roster) error {
			return s.Ack(ctx, ro.Ref, "m0001", bootOf("m0001"), "built")
		}, nil},
		{"a member's new process in the window", true, func(ctx context.Context, s barrier.Store, _ barrier.Rollout, _ barrier.Roster) error {
			_, err := s.Join(ctx, "m0001", "other", 1)
			return err
		}, barrier.ErrNotConverged},
		{"a withdrawal", true, func(ctx context.Context, s barrier.Store, ro barrier.Rollout, _ barrier.Roster) error {
			return s.Withdraw(ctx, ro.Ref, "m0001", bootOf("m0001"), "no")
		}, barrier.ErrNotConverged},
		{"a renewal", true, func(ctx context.Context, s barrier.Store, ro barrier.Rollout, _ barrier.Roster) error {
			return s.Converge(ctx, ro.Ref, "m0001", bootOf("m0001"), "still works")
		}, nil},
		{"a revert", true, func(ctx context.Context, s barrier.Store, ro barrier.Rollout, _ barrier.Roster) error {
			return s.Revert(ctx, ro.Ref, barrier.ByOperator("test"), "no")
		}, barrier.ErrDecided},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := options(table)
			w := newWire()
			s, other := open(t, o, w.use), open(t, o)
			roster := members(t, s, 2)
			baseline(t, s)
			ro := must(s.Propose(t.Context(), windowed(roster)))(t)
			ok(t, s.Claim(t.Context(), 1))
			ack(t, s, ro.Ref, roster.Members...)
			decide := s.Commit
			if tt.confirm {
				ok(t, s.Commit(t.Context(), ro.Ref, 1))
				for _, m := range roster.Members {
					ok(t, s.Converge(t.Context(), ro.Ref, m, bootOf(m), "works"))
				}
				until(t, s, func(row barrier.Row) bool { return barrier.Decide(row, barrier.Term{Token: 1}).Verb == barrier.Confirm })
				decide = s.Confirm
			}
			met := false
			w.set(func(r request) fate {
				if r.writes() && !met {
					met = true
					ok(t, tt.meanwhile(t.Context(), other, ro, roster))
				}
				return pass
			})
			if err := decide(t.Context(), ro.Ref, 1); !errors.Is(err, tt.want) || !met {
				t.Errorf("error = %v, want %v", err, tt.want)
			}
		})
	}
}

// A process that joins while a rollout is proposed is in it or after it, never in between: see Join.
func TestJoinDoesNotMissAProposal(t *testing.T) {
	o := options(newTable(t))
	w := newWire()
	s, other := open(t, o, w.use), open(t, o)
	roster := members(t, s, 2)
	var ro barrier.Rollout
	met := false
	w.set(func(r request) fate {
		if r.writes() && !met {
			met = true
			ro = must(other.Propose(t.Context(), proposal(roster)))(t)
		}
		return pass
	})
	reg := must(s.Join(t.Context(), "m0001", "boot-2", 1))(t)
	if want := (barrier.Registration{Boot: "boot-2", Incarnation: 2, Joined: ro.Generation}); reg != want || !met {
		t.Errorf("registration = %+v, want %+v", reg, want)
	}
	if err := s.Ack(t.Context(), ro.Ref, "m0001", "boot-2", "built"); !errors.Is(err, barrier.ErrJoinedLate) {
		t.Errorf("Ack: %v", err)
	}
}
