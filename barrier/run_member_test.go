package barrier_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// whole starts a process of every member and a coordinator, and returns when its lock delay is over.
func (g *group) whole(changes ...func(*barrier.MemberOptions)) (members []*process, coordinator *process) {
	g.t.Helper()
	for _, m := range g.machines {
		members = append(members, run(g.member(m, g.direct(), changes...).Run))
	}
	coordinator = g.coordinate(g.direct())
	time.Sleep(15 * time.Second)
	g.serve("d0")
	return members, coordinator
}

func endAll(t *testing.T, ps ...*process) {
	t.Helper()
	for _, p := range ps {
		if err := p.end(); err != nil {
			t.Errorf("ended with %v", err)
		}
	}
}

func TestHintsAloneCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 3)
		var members []*process
		for _, m := range g.machines {
			members = append(members, run(g.member(m, g.direct(), func(o *barrier.MemberOptions) { o.Timing.Poll = 24 * time.Hour }).Run))
		}
		coordinator := g.coordinate(g.direct(), func(o *barrier.CoordinatorOptions) { o.Poll, o.Lease = 24*time.Hour, barrier.MaxLease })
		time.Sleep(barrier.MaxLease + time.Second) // the lock delay
		synctest.Wait()
		began := time.Now()
		g.propose("d1", 0)
		synctest.Wait()
		g.is(barrier.Committed)
		g.serve("d1")
		if passed := time.Since(began); passed != 0 {
			t.Errorf("it took %v of polling", passed)
		}
		endAll(t, append(members, coordinator)...)
		for _, m := range g.machines {
			m.leaks(t, 0)
		}
	})
}

func TestPollsFindWhatHintsDoNotTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 3)
		deaf := func() *caller { return &caller{Store: g.store, mute: true} }
		var all []*process
		for _, m := range g.machines {
			all = append(all, run(g.member(m, deaf()).Run))
		}
		all = append(all, g.coordinate(deaf()))
		time.Sleep(15*time.Second + 500*time.Millisecond) // between two polls
		g.propose("d1", 0)
		synctest.Wait()
		g.is(barrier.Proposed)
		time.Sleep(3*time.Second + time.Millisecond) // a poll to vote, one to decide, one to swap
		synctest.Wait()
		g.serve("d1")
		endAll(t, all...)
	})
}

func TestTrialInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 3)
		members, coordinator := g.whole()
		began := time.Now()
		g.propose("d1", time.Minute)
		synctest.Wait()
		g.is(barrier.Committed)
		g.serve("d1")
		time.Sleep(5*time.Second + 10*time.Millisecond)
		synctest.Wait()
		g.is(barrier.Confirmed)
		if passed := time.Since(began); passed > 5*time.Second+10*time.Millisecond {
			t.Errorf("confirmed after %v, and the soak is 5 s", passed)
		}

		// One is sick from the start of the next: the cohort goes back when less than the soak of 5 s remains before D.
		g.machines[1].mu.Lock()
		g.machines[1].sick = "no origin"
		g.machines[1].mu.Unlock()
		g.propose("d2", time.Minute)
		time.Sleep(54 * time.Second)
		g.is(barrier.Committed)
		g.serve("d2")
		time.Sleep(2100 * time.Millisecond) // and one poll
		synctest.Wait()
		g.is(barrier.Reverted)
		g.serve("d1")
		endAll(t, append(members, coordinator)...)
		for _, m := range g.machines {
			m.leaks(t, 0)
			if mem := m.remembers(); mem.Trial != nil || mem.Confirmed.Digest != "t:d1" || mem.Highest != 2 {
				t.Errorf("%+v", mem)
			}
		}
	})
}

func TestSupersededProcessLeavesTheTrialAndStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 3)
		members, coordinator := g.whole()
		g.propose("d1", time.Minute)
		synctest.Wait()
		g.serve("d1")
		// A second machine of m0, which knows nothing, joins.
		second := newMachine("m0")
		p := run(g.member(second, g.direct()).Run)
		synctest.Wait()
		time.Sleep(1100 * time.Millisecond)
		synctest.Wait()
		select {
		case <-members[0].done:
		default:
			t.Fatal("the older process goes on")
		}
		if err := members[0].err; !errors.Is(err, barrier.ErrSuperseded) {
			t.Errorf("Run returned %v", err)
		}
		g.is(barrier.Reverted)
		g.serve("d0")
		if got := second.running(); got != "d0" {
			t.Errorf("the newer process serves %q", got)
		}
		if tr := g.machines[0].remembers().Trial; tr == nil || tr.TakenBack != barrier.BySupplant {
			t.Errorf("the older process remembers %+v", tr)
		}
		endAll(t, append(members[1:], coordinator, p)...)
		for _, m := range append(g.machines, second) {
			m.leaks(t, 0)
		}
	})
}

func TestTerminalIsSaidAndTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 1)
		var (
			broken atomic.Bool
			tried  atomic.Int64
		)
		g.machines[0].step = func(call string) error {
			if call == "swap" && broken.Load() {
				tried.Add(1)
				return errors.New("port in use")
			}
			return nil
		}
		member := g.member(g.machines[0], g.direct())
		m, coordinator := run(member.Run), g.coordinate(g.direct())
		time.Sleep(15 * time.Second)
		broken.Store(true)
		g.propose("d1", 0)
		synctest.Wait()
		s, attempts := member.Status(), int(tried.Load())
		if s.Applied || s.TerminalReason != "" || s.Confirmed.Digest != "t:d1" || s.Running.Digest != "t:d0" || attempts != 1 {
			t.Errorf("after %d attempts: %+v", attempts, s)
		}
		time.Sleep(15 * time.Second) // 1, 2, 4 and 8 s after the first
		synctest.Wait()
		attempts = int(tried.Load())
		if s := member.Status(); s.Applied || s.TerminalGeneration != 1 || s.TerminalReason != "port in use" || attempts != barrier.DefaultTiming.MaxAttempts {
			t.Errorf("after %d attempts: %+v", attempts, s)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if attempts = int(tried.Load()); attempts > barrier.DefaultTiming.MaxAttempts+12 {
			t.Errorf("%d attempts: not one a minute", attempts)
		}
		broken.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := member.Status(); !s.Applied || s.TerminalReason != "" || s.TerminalGeneration != 0 || s.Stale {
			t.Errorf("%+v", s)
		}
		endAll(t, m, coordinator)
		g.machines[0].leaks(t, 0)
	})
}

// TestEndedOrFailedAtEveryCall goes through one rollout, once for each call that the member makes, in which the call fails, or the
// process ends there and another one is started. Whatever happens, all members end up with what is committed.
func TestEndedOrFailedAtEveryCall(t *testing.T) {
	ways := []struct {
		name   string
		window time.Duration
		sick   bool
	}{{"without a window", 0, false}, {"confirmed", time.Minute, false}, {"reverted", time.Minute, true}}
	for _, way := range ways {
		for _, kind := range []string{"fails", "ends"} {
			t.Run(way.name+", "+kind, func(t *testing.T) {
				calls := atEveryCall(t, way.window, way.sick, kind, -1)
				if len(calls) < 20 {
					t.Fatalf("only the calls %v", calls)
				}
				seen := map[string]int{}
				for i, call := range calls {
					if seen[call]++; seen[call] > 9 { // the polls of an idle member are all the same
						continue
					}
					t.Run(fmt.Sprintf("at %d, %s", i, call), func(t *testing.T) { atEveryCall(t, way.window, way.sick, kind, i) })
				}
			})
		}
	}
}

// atEveryCall has the member m0 meet its fate at call number at, and returns all calls that it made.
func atEveryCall(t *testing.T, window time.Duration, sick bool, kind string, at int) (calls []string) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 2)
		m := g.machines[0]
		if sick {
			g.machines[1].sick = "no origin"
		}
		var (
			mu sync.Mutex // guards p and calls
			p  *process
		)
		start := func() {
			member := g.member(m, &caller{Store: g.store, step: m.step})
			mu.Lock()
			defer mu.Unlock()
			p = run(member.Run)
		}
		m.step = func(call string) error {
			mu.Lock()
			defer mu.Unlock()
			n := len(calls)
			calls = append(calls, call)
			switch {
			case n != at:
				return nil
			case kind == "fails":
				return errDown
			case call == "load": // before there is a process to end
				return nil
			}
			p.cancel()
			return nil
		}
		if at == 0 && kind == "fails" { // the very first call is Load
			if _, err := barrier.NewMember(t.Context(), barrier.MemberOptions{ID: m.id, Store: g.direct(), Artefacts: g.direct(), Host: m, Slots: m}); !errors.Is(err, errDown) {
				t.Errorf("NewMember: %v", err)
			}
			calls = nil
			at = -1
		}
		other, coordinator := run(g.member(g.machines[1], g.direct()).Run), g.coordinate(g.direct())
		start()
		time.Sleep(20 * time.Second)
		proposed := false
		for range 100 {
			if kind == "ends" {
				select {
				case <-p.done:
					if p.err != nil {
						t.Errorf("Run returned %v", p.err)
					}
					m.leaks(t, 0)
					start()
				default:
				}
			}
			if !proposed && m.running() == "d0" && g.machines[1].running() == "d0" {
				proposed = true
				g.propose("d1", window)
			}
			time.Sleep(time.Second)
		}
		row := g.row()
		if !proposed || row.Rollout.Open() {
			t.Fatalf("not over: %+v", row.Rollout)
		}
		g.serve(strings.TrimPrefix(string(row.Committed.Digest), "t:"))
		if mem := m.remembers(); mem.Confirmed != row.Committed || mem.Trial != nil {
			t.Errorf("it remembers %+v, and %v is committed", mem, row.Committed)
		}
		if at < 0 {
			want := map[bool]barrier.State{true: barrier.Reverted, false: barrier.Committed}[sick]
			if window > 0 && !sick {
				want = barrier.Confirmed
			}
			g.is(want)
		}
		endAll(t, p, other, coordinator)
		for _, m := range g.machines {
			m.leaks(t, 0)
		}
	})
	return calls
}

func TestEndedMemberDiscards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 2)
		m := run(g.member(g.machines[0], g.direct()).Run)
		synctest.Wait()
		g.propose("d1", 0) // m1 never answers
		synctest.Wait()
		g.machines[0].leaks(t, 1)
		endAll(t, m)
		g.machines[0].leaks(t, 0)
		if g.machines[0].running() != "d0" {
			t.Error("what runs does not go on running")
		}
	})
}

func TestNewMemberRefuses(t *testing.T) {
	g := newGroup(t, 1)
	m := g.machines[0]
	for name, o := range map[string]barrier.MemberOptions{
		"no store":      {ID: "m0", Artefacts: g.direct(), Host: m, Slots: m},
		"no artefacts":  {ID: "m0", Store: g.direct(), Host: m, Slots: m},
		"no host":       {ID: "m0", Store: g.direct(), Artefacts: g.direct(), Slots: m},
		"no slots":      {ID: "m0", Store: g.direct(), Artefacts: g.direct(), Host: m},
		"no id":         {Store: g.direct(), Artefacts: g.direct(), Host: m, Slots: m},
		"a bad process": {ID: "m0", Boot: "a b", Store: g.direct(), Artefacts: g.direct(), Host: m, Slots: m},
	} {
		if _, err := barrier.NewMember(t.Context(), o); !errors.Is(err, barrier.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	m.step = func(string) error { return errDown }
	if _, err := barrier.NewMember(t.Context(), barrier.MemberOptions{ID: "m0", Store: g.direct(), Artefacts: g.direct(), Host: m, Slots: m}); !errors.Is(err, errDown) {
		t.Errorf("a disk that cannot be read: %v", err)
	}
}

func TestStatusBeforeAnything(t *testing.T) {
	g := newGroup(t, 1)
	s := g.member(g.machines[0], g.direct(), func(o *barrier.MemberOptions) {
		o.Boot = "b1"
		o.Running = barrier.Pointer{Digest: "t:d0"}
	}).Status()
	if s.Member != "m0" || s.Boot != "b1" || s.Running.Digest != "t:d0" || s.Applied || s.State != "" {
		t.Errorf("%+v", s)
	}
}

// TestTakesOverWhatRuns: a host that runs what is committed already is not made to swap.
func TestTakesOverWhatRuns(t *testing.T) {
	g := newGroup(t, 1)
	m := g.machines[0]
	m.memory.Confirmed = barrier.Pointer{Digest: "t:d0"}
	member := g.member(m, g.direct(), func(o *barrier.MemberOptions) { o.Running = barrier.Pointer{Digest: "t:d0"} })
	if _, err := member.Poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := member.Status(); !s.Applied || len(m.made) != 0 {
		t.Errorf("%+v, %d prepared", s, len(m.made))
	}
}

// TestRefusals: each thing that is wrong with a candidate is a nack that says it, and nothing is kept prepared.
func TestRefusals(t *testing.T) {
	tests := []struct {
		name string
		do   func(g *group, m *machine)
		says string
	}{
		{"the bytes are others", func(g *group, _ *machine) {
			_ = g.store.Put(context.Background(), "t:d1", []byte("evil"))
		}, "the bytes have the digest t:evil, not t:d1"},
		{"the digest cannot be told", failAt("digest"), "digest: injected"},
		{"the class cannot be told", failAt("classify"), "classify: injected"},
		{"the class is refused", func(_ *group, m *machine) {
			m.class = barrier.Class{Refused: true, Name: "replacement-required", Reason: "replace the process"}
		}, "replacement-required: replace the process"},
		{"it cannot be built", failAt("prepare"), "injected"},
		{"it cannot be kept", failAt("keep"), "keep the bytes: injected"},
		{"its build digest is too long", func(_ *group, m *machine) { m.builds = strings.Repeat("x", 201) }, "build digest has 201 bytes, more than 200"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := newGroup(t, 1)
			m := g.machines[0]
			member := g.member(m, g.direct())
			if _, err := member.Poll(t.Context()); err != nil {
				t.Fatal(err)
			}
			tt.do(g, m)
			proposer := newMachine("proposer")
			if _, err := (barrier.Proposer{Store: g.store, Artefacts: g.store, Host: proposer}).Propose(t.Context(), []byte("d1"), barrier.Proposal{Proposer: "test"}); err != nil {
				t.Fatal(err)
			}
			if _, err := member.Poll(t.Context()); err != nil {
				t.Fatal(err)
			}
			if b := g.row().Seats[0].Ballot; b.Vote != barrier.Nacked || b.Reason != tt.says {
				t.Errorf("%+v, want a nack that says %q", b, tt.says)
			}
			if !member.Status().Nacked {
				t.Error("the status does not say so")
			}
			m.leaks(t, 0)
		})
	}
}

func failAt(call string) func(*group, *machine) {
	return func(_ *group, m *machine) {
		m.step = func(c string) error {
			if c == call {
				return errDown
			}
			return nil
		}
	}
}

// TestUnknownHealthIsNoHealth: a host that cannot say how it does has not converged, and says why.
func TestUnknownHealthIsNoHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 1)
		member := g.member(g.machines[0], g.direct(), func(o *barrier.MemberOptions) {
			o.Timing = barrier.Timing{Poll: 100 * time.Millisecond, MaxAttempts: 2, MaxBackoff: time.Second, CallTimeout: time.Second, FetchTimeout: time.Second}
		})
		failAt("converged")(g, g.machines[0])
		m, coordinator := run(member.Run), g.coordinate(g.direct())
		time.Sleep(15 * time.Second)
		g.propose("d1", time.Minute)
		time.Sleep(time.Second)
		if s := member.Status(); !s.ConfirmPending || s.Converged || s.Waiting != "not converged: injected" {
			t.Errorf("%+v", s)
		}
		endAll(t, m, coordinator)
	})
}

// deaf is a store that says yes and writes nothing.
type deaf struct {
	*caller
	calls int
}

func (d *deaf) Claim(context.Context, barrier.Token) error {
	d.calls++
	return nil
}

func (d *deaf) Join(_ context.Context, _ barrier.MemberID, b barrier.BootID, i uint64) (barrier.Registration, error) {
	d.calls++
	return barrier.Registration{Boot: b, Incarnation: i + 1}, nil
}

// TestOneRoundIsBounded: a store that contradicts itself is asked again at the next poll, not at once and for ever.
func TestOneRoundIsBounded(t *testing.T) {
	g := newGroup(t, 1)
	const most = 20
	d := &deaf{caller: g.direct()}
	co := barrier.NewCoordinator(barrier.CoordinatorOptions{Store: d, Leases: d, Logger: g.quiet})
	if again, err := co.Look(t.Context()); err != nil || again < time.Second || d.calls == 0 || d.calls > most {
		t.Errorf("the coordinator made %d calls and looks again after %v, %v", d.calls, again, err)
	}
	d.calls = 0
	m := g.machines[0]
	member, err := barrier.NewMember(t.Context(), barrier.MemberOptions{
		ID: m.id, Store: d, Artefacts: d, Host: m, Slots: m, Logger: g.quiet, Clock: func() time.Duration { return 0 },
	})
	if err != nil {
		t.Fatal(err)
	}
	if until, err := member.Poll(t.Context()); err != nil || until != time.Second || d.calls == 0 || d.calls > most {
		t.Errorf("the member made %d calls and polls again at %v, %v", d.calls, until, err)
	}
}

// TestDamagedBytesAreFetchedAgain: the member's own copy is a convenience.
func TestDamagedBytesAreFetchedAgain(t *testing.T) {
	g := newGroup(t, 1)
	m := g.machines[0]
	m.memory.Confirmed = barrier.Pointer{Digest: "t:d0"}
	m.bytes["t:d0"] = "d0"
	failAt("bytes")(g, m)
	var calls []string
	c := &caller{Store: g.store, step: func(call string) error { calls = append(calls, call); return nil }}
	if _, err := g.member(m, c).Poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if m.running() != "d0" || !slices.Contains(calls, "get") {
		t.Errorf("it serves %q after the calls %v", m.running(), calls)
	}
}

// hanging is a way to a store that answers nobody from a moment on: calls end when their time is up.
type hanging struct {
	barrier.Store
	hangs atomic.Bool
	looks atomic.Int64 // that did
}

func (h *hanging) Look(ctx context.Context, m barrier.MemberID) (barrier.View, error) {
	if h.hangs.Load() {
		h.looks.Add(1)
		<-ctx.Done()
		return barrier.View{}, ctx.Err()
	}
	return h.Store.Look(ctx, m)
}

// A store that hangs makes a member that is left alone as late as one call, not as one for each of its acts.
func TestGuessDoesNotWaitForAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 1)
		way := &hanging{Store: g.store}
		m := run(g.member(g.machines[0], g.direct(), func(o *barrier.MemberOptions) { o.Store = way }).Run)
		coordinator := g.coordinate(g.direct())
		time.Sleep(15 * time.Second)
		g.machines[0].mu.Lock()
		g.machines[0].sick = "no origin"
		g.machines[0].mu.Unlock()
		g.propose("d1", time.Minute)
		synctest.Wait()
		g.serve("d1")
		way.hangs.Store(true)
		row, err := g.store.Current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := coordinator.end(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(row.Rollout.RevertDue().Sub(row.Now) + barrier.DefaultTiming.CallTimeout + 310*time.Millisecond)
		synctest.Wait()
		g.serve("d0")
		if way.looks.Load() == 0 {
			t.Error("nobody looked")
		}
		endAll(t, m)
	})
}
