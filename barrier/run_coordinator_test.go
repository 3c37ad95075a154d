package barrier_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// recorded is a way to the store that writes down which calls were made.
func (g *group) recorded() (*caller, *[]string) {
	calls := new([]string)
	return &caller{Store: g.store, step: func(call string) error {
		if !strings.HasSuffix(call, " done") {
			*calls = append(*calls, call)
		}
		return nil
	}}, calls
}

func (g *group) coordinator(c *caller) *barrier.Coordinator {
	return barrier.NewCoordinator(barrier.CoordinatorOptions{Store: c, Leases: c, Logger: g.quiet})
}

func TestRenewsBeforeItLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 1)
		c, calls := g.recorded()
		first, second := g.coordinator(c), g.coordinator(g.direct())
		look := func(who *barrier.Coordinator) {
			t.Helper()
			if _, err := who.Look(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		look(first)
		if want := []string{"acquire", "current", "claim", "renew", "current"}; !slices.Equal(*calls, want) {
			t.Errorf("calls %v, want %v", *calls, want)
		}
		time.Sleep(11 * time.Second)
		look(second)
		*calls = nil
		look(first)
		if want := []string{"renew", "acquire"}; !slices.Equal(*calls, want) {
			t.Errorf("deposed, it calls %v, want %v", *calls, want)
		}
		if row := g.row(); row.Claim != 2 {
			t.Errorf("the claim is %d", row.Claim)
		}
	})
}

func TestStepsDownBeforeALaterClaim(t *testing.T) {
	g := newGroup(t, 1)
	c, calls := g.recorded()
	first := g.coordinator(c)
	if _, err := first.Look(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := g.store.Claim(t.Context(), 9); err != nil {
		t.Fatal(err)
	}
	*calls = nil
	if _, err := first.Look(t.Context()); err != nil || len(*calls) < 2 || (*calls)[1] != "current" || slices.Contains(*calls, "claim") {
		t.Errorf("%v; calls %v", err, *calls)
	}
	if row := g.row(); row.Claim != 9 {
		t.Errorf("the claim is %d", row.Claim)
	}
}

// committedAfter returns how long it takes from now until the rollout is committed.
func (g *group) committedAfter() time.Duration {
	g.t.Helper()
	began := time.Now()
	for range 10_000 {
		if g.row().Rollout.State == barrier.Committed {
			return time.Since(began)
		}
		time.Sleep(10 * time.Millisecond)
	}
	g.t.Fatal("never committed")
	return 0
}

func TestSuccessorWaitsOutLeaseAndLockDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 1)
		dead := g.coordinator(g.direct())
		if _, err := dead.Look(t.Context()); err != nil { // and never again
			t.Fatal(err)
		}
		m, second := run(g.member(g.machines[0], g.direct()).Run), g.coordinate(g.direct())
		synctest.Wait()
		g.propose("d1", 0)
		if after := g.committedAfter(); after < 20*time.Second || after > 22*time.Second {
			t.Errorf("committed after %v, want a lease of 10 s, a lock delay of 10 s, and a poll", after)
		}
		endAll(t, m, second)
	})
}

func TestGracefulStopGivesTheLeaseBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 1)
		c, calls := g.recorded()
		m, first := run(g.member(g.machines[0], g.direct()).Run), g.coordinate(c)
		synctest.Wait()
		endAll(t, first)
		if !slices.Contains(*calls, "release") {
			t.Fatalf("calls %v", *calls)
		}
		second := g.coordinate(g.direct())
		synctest.Wait()
		if row := g.row(); row.Claim != 2 {
			t.Errorf("the claim is %d: the successor waits for the lease", row.Claim)
		}
		g.propose("d1", 0)
		if after := g.committedAfter(); after > 10*time.Second+50*time.Millisecond {
			t.Errorf("committed after %v, want the lock delay alone", after)
		}
		endAll(t, m, second)
	})
}

// TestManyCoordinatorsDecideOnce: any number may run, and they may come and go.
func TestManyCoordinatorsDecideOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 3)
		var all []*process
		for _, m := range g.machines {
			all = append(all, run(g.member(m, g.direct()).Run))
		}
		for range 4 {
			all = append(all, g.coordinate(g.direct()))
		}
		time.Sleep(15 * time.Second)
		for i, name := range []string{"d1", "d2", "d3"} {
			g.propose(name, time.Minute)
			time.Sleep(3 * time.Second)
			if i == 1 {
				endAll(t, all[3]) // perhaps the one that decides
			}
			time.Sleep(40 * time.Second)
			g.is(barrier.Confirmed)
			g.serve(name)
		}
		endAll(t, slices.Concat(all[:3], all[4:])...)
	})
}

// TestCoordinatorAtEveryFailure: each call of one rollout's coordinator fails once, before or after it took effect, and the rollout is
// decided all the same.
func TestCoordinatorAtEveryFailure(t *testing.T) {
	for _, window := range []time.Duration{0, time.Minute} {
		through := func(t *testing.T, at int) (calls []string) {
			synctest.Test(t, func(t *testing.T) {
				g := newGroup(t, 1)
				m := run(g.member(g.machines[0], g.direct()).Run)
				c := &caller{Store: g.store, step: func(call string) error {
					calls = append(calls, call)
					if len(calls)-1 == at {
						return errDown
					}
					return nil
				}}
				coordinator := g.coordinate(c)
				time.Sleep(time.Second)
				g.propose("d1", window)
				time.Sleep(30 * time.Second)
				g.serve("d1")
				g.is(map[bool]barrier.State{true: barrier.Confirmed, false: barrier.Committed}[window > 0])
				endAll(t, m, coordinator)
			})
			return calls
		}
		calls := through(t, -1)
		seen := map[string]int{}
		for at, call := range calls {
			if seen[call]++; seen[call] > 8 { // the looks of an idle coordinator are all the same
				continue
			}
			t.Run(call, func(t *testing.T) { through(t, at) })
		}
		for _, call := range []string{"acquire", "claim done", "commit", "commit done", "release"} {
			if seen[call] == 0 {
				t.Errorf("%s was never called", call)
			}
		}
	}
}

func TestLookTellsWhatFailed(t *testing.T) {
	for call, says := range map[string]string{
		"acquire": "acquire the lease: injected", "renew": "renew the lease: injected", "current": "read the row: injected",
		"commit": "commit generation 1 (r1): injected",
	} {
		t.Run(call, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGroup(t, 1)
				failing := false
				c := &caller{Store: g.store, step: func(s string) error {
					if failing && s == call {
						return errDown
					}
					return nil
				}}
				co := g.coordinator(c)
				member := g.member(g.machines[0], g.direct())
				if call != "acquire" {
					if _, err := co.Look(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				_, _ = member.Poll(t.Context())
				g.propose("d1", 0)
				_, _ = member.Poll(t.Context())
				time.Sleep(10 * time.Second)
				failing = true
				if _, err := co.Look(t.Context()); !errors.Is(err, errDown) || err.Error() != says {
					t.Errorf("error = %v, want %q", err, says)
				}
			})
		})
	}
}

func TestProposer(t *testing.T) {
	propose := func(g *group, s barrier.Proposing, artefact []byte) (barrier.Rollout, error) {
		return (barrier.Proposer{Store: s, Artefacts: &putter{g.store, g.machines[0].step}, Host: g.machines[0]}).Propose(context.Background(), artefact, barrier.Proposal{Proposer: "test"})
	}
	t.Run("makes what is left out", func(t *testing.T) {
		g := newGroup(t, 1)
		ro, err := propose(g, g.store, []byte("d1"))
		if err != nil || len(ro.ID) != 36 || ro.Digest != "t:d1" || ro.RosterRevision != 1 || ro.Generation != 1 {
			t.Errorf("%+v, %v", ro, err)
		}
	})
	t.Run("on a row that is out of date, the first one too", func(t *testing.T) {
		g := newGroup(t, 1)
		row := g.row()
		ro, err := propose(g, g.store, []byte("d1"))
		if err != nil {
			t.Fatal(err)
		}
		if err := g.store.Abort(t.Context(), ro.Ref, barrier.ByOperator("test"), "enough"); err != nil {
			t.Fatal(err)
		}
		by := barrier.Proposer{Store: g.store, Artefacts: g.store, Host: g.machines[0]}
		if _, err := by.ProposeOn(t.Context(), row, []byte("d1"), barrier.Proposal{Proposer: "test"}); !errors.Is(err, barrier.ErrStale) {
			t.Errorf("row of generation %d: %v", row.Generation, err)
		}
	})
	t.Run("repeats what may have happened", func(t *testing.T) {
		g := newGroup(t, 1)
		s := &forgetful{Proposing: g.store, answers: 1}
		ro, err := propose(g, s, []byte("d1"))
		if err != nil || ro.Generation != 1 || s.calls != 2 {
			t.Errorf("%+v, %v after %d calls", ro, err, s.calls)
		}
	})
	t.Run("gives up", func(t *testing.T) {
		g := newGroup(t, 1)
		s := &forgetful{Proposing: g.store, answers: 99}
		if _, err := propose(g, s, []byte("d1")); !errors.Is(err, errDown) || s.calls != 3 {
			t.Errorf("%v after %d calls", err, s.calls)
		}
	})
	t.Run("does not repeat a refusal", func(t *testing.T) {
		g := newGroup(t, 1)
		if _, err := propose(g, g.store, []byte("d1")); err != nil {
			t.Fatal(err)
		}
		s := &forgetful{Proposing: g.store}
		if _, err := propose(g, s, []byte("d2")); !errors.Is(err, barrier.ErrOpen) || s.calls != 1 {
			t.Errorf("%v after %d calls", err, s.calls)
		}
	})
	t.Run("refuses a class, before anything is written", func(t *testing.T) {
		g := newGroup(t, 1)
		g.machines[0].class = barrier.Class{Refused: true, Name: "refuse", Reason: "replace the members"}
		_, err := propose(g, g.store, []byte("d1"))
		var refused *barrier.RefusedError
		if !errors.As(err, &refused) || !errors.Is(err, barrier.ErrRefused) || refused.Class.Name != "refuse" {
			t.Errorf("%v", err)
		}
		if _, err := g.store.Get(t.Context(), "t:d1"); !errors.Is(err, barrier.ErrNoArtefact) || g.row().Rollout != nil {
			t.Errorf("written: %v", err)
		}
	})
	for _, call := range []string{"digest", "classify", "put"} {
		t.Run("tells that it cannot "+call, func(t *testing.T) {
			g := newGroup(t, 1)
			failAt(call)(g, g.machines[0])
			if _, err := propose(g, g.store, []byte("d1")); !errors.Is(err, errDown) || g.row().Rollout != nil {
				t.Error(err)
			}
		})
	}
	t.Run("tells that the row cannot be read", func(t *testing.T) {
		g := newGroup(t, 1)
		if _, err := propose(g, &forgetful{Proposing: g.store, blind: true}, []byte("d1")); !errors.Is(err, errDown) {
			t.Error(err)
		}
	})
	t.Run("too large", func(t *testing.T) {
		g := newGroup(t, 1)
		if _, err := propose(g, g.store, make([]byte, barrier.MaxArtefactBytes+1)); !errors.Is(err, barrier.ErrInvalid) {
			t.Error(err)
		}
	})
	t.Run("not valid", func(t *testing.T) {
		g := newGroup(t, 1)
		if _, err := (barrier.Proposer{Store: g.store, Artefacts: g.store, Host: g.machines[0]}).Propose(t.Context(), []byte("d1"), barrier.Proposal{}); !errors.Is(err, barrier.ErrInvalid) {
			t.Error(err)
		}
	})
}

// putter fails to put where its step does.
type putter struct {
	barrier.Artefacts
	step step
}

func (p *putter) Put(ctx context.Context, d barrier.Digest, b []byte) error {
	if err := p.step.at("put"); err != nil {
		return err
	}
	return p.Artefacts.Put(ctx, d, b)
}

// forgetful loses the answers of its first proposals.
type forgetful struct {
	barrier.Proposing
	answers, calls int
	blind          bool
}

func (f *forgetful) Current(ctx context.Context) (barrier.Row, error) {
	if f.blind {
		return barrier.Row{}, errDown
	}
	return f.Proposing.Current(ctx)
}

func (f *forgetful) Propose(ctx context.Context, p barrier.Proposal) (barrier.Rollout, error) {
	f.calls++
	ro, err := f.Proposing.Propose(ctx, p)
	if err == nil && f.calls <= f.answers {
		return barrier.Rollout{}, errDown
	}
	return ro, err
}
