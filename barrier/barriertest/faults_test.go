package barriertest

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// faulty returns handles to an empty store under f, and the store's own.
func faulty(f *Faults) (wrapped, own Handles) {
	b := newBent("")
	own = Handles{Store: b, Leases: b, Artefacts: b}
	return Faulty(own, f), own
}

func roster(t *testing.T, h Handles) barrier.Roster {
	t.Helper()
	row, err := h.Store.Current(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return row.Roster
}

func TestFaults(t *testing.T) {
	set := func(h Handles) error {
		_, err := h.Store.SetRoster(t.Context(), 0, []barrier.MemberID{"a"})
		return err
	}
	for _, tt := range []struct {
		name    string
		fault   Fault
		fails   bool
		applied bool
	}{
		{"none", None, false, true},
		{"lost", Lost, true, false},
		{"applied", Applied, true, true},
		{"slow, with nobody to overtake", Slow, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var f Faults
			h, own := faulty(&f)
			f.Next("SetRoster", tt.fault)
			err := set(h)
			if errors.Is(err, ErrFault) != tt.fails || barrier.Code(err) != "" {
				t.Errorf("error = %v, want a fault: %v, and none of the ports'", err, tt.fails)
			}
			if got := roster(t, own).Revision == 1; got != tt.applied {
				t.Errorf("applied = %v, want %v", got, tt.applied)
			}
			if err := set(h); err != nil {
				t.Errorf("the call after it: %v", err)
			}
		})
	}
}

// TestAppliedHidesTheAnswer shows that not even a refusal comes through.
func TestAppliedHidesTheAnswer(t *testing.T) {
	var f Faults
	h, _ := faulty(&f)
	f.Next("Claim", Applied)
	if err := h.Store.Claim(t.Context(), 0); !errors.Is(err, ErrFault) || errors.Is(err, barrier.ErrInvalid) {
		t.Errorf("error = %v, want nothing but the fault", err)
	}
}

func TestHeldCallsAreOvertaken(t *testing.T) {
	var f Faults
	h, own := faulty(&f)
	held := f.Hold("SetRoster")
	answer := make(chan error)
	go func() {
		_, err := h.Store.SetRoster(t.Context(), 0, []barrier.MemberID{"held"})
		answer <- err
	}()
	<-held.Arrived()
	if _, err := h.Store.SetRoster(t.Context(), 0, []barrier.MemberID{"overtook"}); err != nil {
		t.Fatal(err)
	}
	held.Let()
	if err := <-answer; !errors.Is(err, barrier.ErrRoster) {
		t.Errorf("error = %v, want ErrRoster", err)
	}
	if got := roster(t, own).Members; !slices.Equal(got, []barrier.MemberID{"overtook"}) {
		t.Errorf("roster = %v", got)
	}
}

// TestHeldCallsOutliveTheirCaller is the write that arrives when nobody waits for it any more.
func TestHeldCallsOutliveTheirCaller(t *testing.T) {
	var f Faults
	h, own := faulty(&f)
	held := f.Hold("SetRoster")
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error)
	go func() {
		_, err := h.Store.SetRoster(ctx, 0, []barrier.MemberID{"late"})
		answer <- err
	}()
	<-held.Arrived()
	cancel()
	if err := <-answer; !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want the context's", err)
	}
	if got := roster(t, own).Revision; got != 0 {
		t.Errorf("revision = %d before the call was let through", got)
	}
	held.Let()
	if got := roster(t, own).Members; !slices.Equal(got, []barrier.MemberID{"late"}) {
		t.Errorf("roster = %v, want the one that came late", got)
	}
}

// TestSlowWaitsToBeOvertaken holds one call in the store, makes a slow one, and lets the first end.
func TestSlowWaitsToBeOvertaken(t *testing.T) {
	var f Faults
	gate := &gate{Store: newBent(""), entered: make(chan struct{}), leave: make(chan struct{})}
	h := Faulty(Handles{Store: gate}, &f)
	order := make(chan string, 2)
	first, slow := make(chan error), make(chan error)
	go func() {
		err := h.Store.Claim(t.Context(), 1)
		order <- "first"
		first <- err
	}()
	<-gate.entered
	f.Next("Abort", Slow)
	go func() {
		err := h.Store.Abort(t.Context(), barrier.Ref{}, barrier.ByOperator("ann"), "")
		order <- "slow"
		slow <- err
	}()
	for f.waiting() == 0 {
		runtime.Gosched()
	}
	close(gate.leave)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if err := <-slow; !errors.Is(err, barrier.ErrUnknown) {
		t.Errorf("error = %v, want the store's answer", err)
	}
	if got := <-order; got != "first" {
		t.Errorf("%s ended first", got)
	}
}

// gate is a store whose Claim stays inside until it may leave.
type gate struct {
	barrier.Store
	entered, leave chan struct{}
}

func (g *gate) Claim(ctx context.Context, t barrier.Token) error {
	close(g.entered)
	<-g.leave
	return g.Store.Claim(ctx, t)
}

func TestSeededFaultsComeAgain(t *testing.T) {
	run := func(seed uint64) string {
		f := Seeded(seed)
		var b strings.Builder
		for range 100 {
			fault, _ := f.take("Ack")
			b.WriteByte("-las"[fault])
		}
		return b.String()
	}
	a := run(1)
	if b := run(1); a != b {
		t.Errorf("two runs of one seed:\n%s\n%s", a, b)
	}
	if a == run(2) {
		t.Error("two seeds, the same faults")
	}
	for _, fault := range "-las" {
		if n := strings.Count(a, string(fault)); n < 10 {
			t.Errorf("%d of 100 calls meet %q", n, fault)
		}
	}
}

// TestALostWatchIsSilent and closes all the same.
func TestALostWatchIsSilent(t *testing.T) {
	var f Faults
	h, _ := faulty(&f)
	f.Next("Watch", Lost)
	ctx, cancel := context.WithCancel(t.Context())
	c := h.Store.Watch(ctx, barrier.TopicHead)
	select {
	case <-c:
		t.Fatal("a hint, or closed")
	default:
	}
	cancel()
	for range c {
		t.Error("a hint")
	}
}

// TestEveryCallMeetsFaults goes through all methods of the three ports.
func TestEveryCallMeetsFaults(t *testing.T) {
	ctx := t.Context()
	var f Faults
	h, _ := faulty(&f)
	s, l, a := h.Store, h.Leases, h.Artefacts
	ref, by := barrier.Ref{}, barrier.ByOperator("ann")
	for method, call := range map[string]func() error{
		"Current":       func() error { _, err := s.Current(ctx); return err },
		"Look":          func() error { _, err := s.Look(ctx, "a"); return err },
		"Join":          func() error { _, err := s.Join(ctx, "a", "b", 0); return err },
		"Ack":           func() error { return s.Ack(ctx, ref, "a", "b", "") },
		"Nack":          func() error { return s.Nack(ctx, ref, "a", "b", "") },
		"Converge":      func() error { return s.Converge(ctx, ref, "a", "b", "") },
		"Withdraw":      func() error { return s.Withdraw(ctx, ref, "a", "b", "") },
		"Claim":         func() error { return s.Claim(ctx, 1) },
		"Commit":        func() error { return s.Commit(ctx, ref, 1) },
		"Abort":         func() error { return s.Abort(ctx, ref, by, "") },
		"Confirm":       func() error { return s.Confirm(ctx, ref, 1) },
		"Revert":        func() error { return s.Revert(ctx, ref, by, "") },
		"Propose":       func() error { _, err := s.Propose(ctx, barrier.Proposal{}); return err },
		"SetRoster":     func() error { _, err := s.SetRoster(ctx, 0, nil); return err },
		"AdoptBaseline": func() error { _, err := s.AdoptBaseline(ctx, barrier.Pointer{}); return err },
		"Acquire":       func() error { _, err := l.Acquire(ctx, "a", time.Minute); return err },
		"Renew":         func() error { return l.Renew(ctx, barrier.Lease{}) },
		"Release":       func() error { return l.Release(ctx, barrier.Lease{}) },
		"Put":           func() error { return a.Put(ctx, "test:1", nil) },
		"Get":           func() error { _, err := a.Get(ctx, "test:1"); return err },
	} {
		f.Next(method, Lost)
		if err := call(); !errors.Is(err, ErrFault) {
			t.Errorf("%s: error = %v, want the fault", method, err)
		}
		if err := call(); errors.Is(err, ErrFault) {
			t.Errorf("%s met a second fault: %v", method, err)
		}
	}
}

// TestRetryingEnds shows that a store which never answers ends the suite's patience.
func TestRetryingEnds(t *testing.T) {
	var f Faults
	h, _ := faulty(&f)
	for range attempts {
		f.Next("Claim", Lost)
	}
	h = retrying(h)
	if err := h.Store.Claim(t.Context(), 1); !errors.Is(err, ErrFault) {
		t.Errorf("error = %v, want the last fault", err)
	}
	if err := h.Store.Claim(t.Context(), 1); err != nil {
		t.Error(err)
	}
}
