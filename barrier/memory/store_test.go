package memory_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/memory"
)

// clock is a time that goes on when the test says so.
type clock struct{ now time.Time }

func (c *clock) read() time.Time { return c.now }

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestTheClockIsTheStoresTime(t *testing.T) {
	c := &clock{now: time.Date(2001, 2, 3, 4, 5, 6, 7, time.FixedZone("east", 3600))}
	s := memory.New(memory.Options{Clock: c.read})
	row, err := s.Current(t.Context())
	ok(t, err)
	if !row.Now.Equal(c.now) || row.Now.Location() != time.UTC {
		t.Errorf("now = %v, want %v in UTC", row.Now, c.now)
	}
	_, err = s.SetRoster(t.Context(), 0, []barrier.MemberID{"a"})
	ok(t, err)
	ro, err := s.Propose(t.Context(), barrier.Proposal{ID: "r", Proposer: "p", Digest: "test:1", RosterRevision: 1, Deadline: time.Second})
	ok(t, err)
	if want := c.now.Add(time.Second); !ro.Deadline.Equal(want) {
		t.Errorf("deadline = %v, want %v", ro.Deadline, want)
	}
}

func TestALeaseEndsOnTheInstant(t *testing.T) {
	c := &clock{now: time.Unix(1000, 0)}
	s := memory.New(memory.Options{Clock: c.read})
	a, err := s.Acquire(t.Context(), "a", time.Second)
	ok(t, err)
	c.now = c.now.Add(time.Second - 1)
	if _, err := s.Acquire(t.Context(), "b", time.Second); !errors.Is(err, barrier.ErrHeld) {
		t.Errorf("error = %v, want ErrHeld a nanosecond before the end", err)
	}
	ok(t, s.Renew(t.Context(), a))
	c.now = c.now.Add(time.Second)
	b, err := s.Acquire(t.Context(), "b", time.Second)
	ok(t, err)
	if b.Token != a.Token+1 {
		t.Errorf("token = %d after %d", b.Token, a.Token)
	}
}

// TestArtefactsAreKept for ArtefactRetention after the last Put, and while the row names them.
func TestArtefactsAreKept(t *testing.T) {
	ctx := t.Context()
	c := &clock{now: time.Unix(1000, 0)}
	s := memory.New(memory.Options{Clock: c.read})
	kept := func(d barrier.Digest, want bool) {
		t.Helper()
		ok(t, s.Put(ctx, "test:any", nil)) // a Put is when a store looks for what to delete
		if _, err := s.Get(ctx, d); errors.Is(err, barrier.ErrNoArtefact) == want {
			t.Errorf("Get(%s) = %v, want it kept: %v", d, err, want)
		}
	}
	_, err := s.SetRoster(ctx, 0, []barrier.MemberID{"a"})
	ok(t, err)
	for _, d := range []barrier.Digest{"test:once", "test:again", "test:baseline", "test:first", "test:second"} {
		ok(t, s.Put(ctx, d, []byte(d)))
	}
	_, err = s.AdoptBaseline(ctx, barrier.Pointer{Digest: "test:baseline"})
	ok(t, err)
	propose := func(id barrier.RolloutID, d barrier.Digest) {
		t.Helper()
		row, err := s.Current(ctx)
		ok(t, err)
		ro, err := s.Propose(ctx, barrier.Proposal{ID: id, Proposer: "p", Digest: d, RosterRevision: 1, Seen: row.Generation})
		ok(t, err)
		ok(t, s.Abort(ctx, ro.Ref, barrier.ByOperator("ann"), "next"))
	}
	propose("1", "test:first")
	c.now = c.now.Add(barrier.ArtefactRetention)
	kept("test:once", true)
	ok(t, s.Put(ctx, "test:again", nil))
	c.now = c.now.Add(time.Second)
	kept("test:once", false)
	kept("test:again", true)
	kept("test:baseline", true)
	kept("test:first", true)
	kept("test:second", false)
	ok(t, s.Put(ctx, "test:second", nil))
	propose("2", "test:second")
	c.now = c.now.Add(2 * barrier.ArtefactRetention)
	kept("test:first", true) // the previous outcome names it
	kept("test:second", true)
	propose("3", "test:third")
	kept("test:first", false)
	kept("test:second", true)
	kept("test:baseline", true)
}

// TestHints says which writes wake which watches.
func TestHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := memory.New(memory.Options{})
		head, votes := s.Watch(ctx, barrier.TopicHead), s.Watch(ctx, barrier.TopicVotes)
		hinted := func(c <-chan struct{}) bool {
			select {
			case <-c:
				return true
			default:
				return false
			}
		}
		expect := func(what string, wantHead, wantVotes bool) {
			t.Helper()
			if h, v := hinted(head), hinted(votes); h != wantHead || v != wantVotes {
				t.Errorf("%s: hints of the head %v, of votes %v; want %v, %v", what, h, v, wantHead, wantVotes)
			}
			if hinted(head) || hinted(votes) {
				t.Errorf("%s: hints are not merged", what)
			}
		}
		expect("nothing", false, false)
		_, err := s.SetRoster(ctx, 0, []barrier.MemberID{"a", "b"})
		ok(t, err)
		expect("SetRoster", true, false)
		_, err = s.Join(ctx, "a", "boot", 0)
		ok(t, err)
		expect("Join", false, true)
		_, err = s.Join(ctx, "a", "boot", 0)
		ok(t, err)
		expect("Join again", false, false)
		ro, err := s.Propose(ctx, barrier.Proposal{ID: "1", Proposer: "p", Digest: "test:1", RosterRevision: 1})
		ok(t, err)
		expect("Propose", true, false)
		ok(t, s.Ack(ctx, ro.Ref, "a", "boot", ""))
		expect("Ack", false, true)
		ok(t, s.Ack(ctx, ro.Ref, "a", "boot", ""))
		expect("Ack again", false, false)
		_, err = s.Join(ctx, "a", "next", 1)
		ok(t, err)
		expect("Join that voids a vote", true, true)
		if err := s.Commit(ctx, ro.Ref, 1); err == nil {
			t.Error("committed")
		}
		expect("a refused Commit", false, false)
		ok(t, s.Claim(ctx, 1))
		ok(t, s.Abort(ctx, ro.Ref, barrier.ByClaim(1), "enough"))
		expect("Claim and Abort", true, false)
		cancel()
		synctest.Wait()
		if _, open := <-head; open {
			t.Error("the watch of the head is open")
		}
		if _, open := <-votes; open {
			t.Error("the watch of votes is open")
		}
		ok(t, s.Claim(t.Context(), 2)) // nobody listens
	})
}

func TestACallWhoseContextIsOverHasNoEffect(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := memory.New(memory.Options{})
	calls := map[string]func() error{
		"SetRoster": func() error { _, err := s.SetRoster(ctx, 0, []barrier.MemberID{"a"}); return err },
		"Claim":     func() error { return s.Claim(ctx, 1) },
		"Join":      func() error { _, err := s.Join(ctx, "a", "b", 0); return err },
		"Acquire":   func() error { _, err := s.Acquire(ctx, "a", time.Minute); return err },
		"Put":       func() error { return s.Put(ctx, "test:1", nil) },
		"Current":   func() error { _, err := s.Current(ctx); return err },
		"Look":      func() error { _, err := s.Look(ctx, "a"); return err },
		"Get":       func() error { _, err := s.Get(ctx, "test:1"); return err },
		"Release":   func() error { return s.Release(ctx, barrier.Lease{Holder: "a", Token: 1}) },
		"Propose":   func() error { _, err := s.Propose(ctx, barrier.Proposal{}); return err },
		"Adopt":     func() error { _, err := s.AdoptBaseline(ctx, barrier.Pointer{Digest: "test:1"}); return err },
		"Ack":       func() error { return s.Ack(ctx, barrier.Ref{}, "a", "b", "") },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error = %v, want the context's", name, err)
		}
	}
	row, err := s.Current(t.Context())
	ok(t, err)
	if row.Revision != 0 || row.Roster.Revision != 0 {
		t.Errorf("row = %+v", row)
	}
	if l, err := s.Acquire(t.Context(), "b", time.Minute); err != nil || l.Token != 1 {
		t.Errorf("lease = %+v, %v", l, err)
	}
}
