package host_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/host"
)

// ended is how the newest rollout ended, or "".
func (w *world) ended() string {
	w.t.Helper()
	row, err := w.store.Current(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	if row.Rollout == nil {
		return ""
	}
	return fmt.Sprintf("%s: %s", row.Rollout.State, row.Rollout.Reason)
}

// swaps are the versions that a member's data path was told to run.
func (m *member) swaps() []string {
	var out []string
	for _, d := range m.rec.log() {
		if v, ok := strings.CutPrefix(d, "swap "); ok {
			v, _, _ = strings.Cut(v, " ")
			out = append(out, v)
		}
	}
	return out
}

// TestCoordinated: a change in the source is proposed once and run by all, and nothing starts anew that it does not touch.
func TestCoordinated(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.home.write(text(1, coordinated, "s", "x"))
		w.start()
		w.run(1, time.Minute, w.members...)
		w.home.write(text(2, coordinated, "s", "y"))
		w.run(2, time.Minute, w.members...)
		w.rest(time.Minute)
		var first, last time.Time
		for _, m := range w.members {
			equal(t, m.id, m.rec.log(), []string{"swap 1 +s +x", "swap 2 +y -x"})
			if at := m.rec.at; first.IsZero() || at.Before(first) {
				first = at
			}
			if m.rec.at.After(last) {
				last = m.rec.at
			}
			s := m.host.Status()
			if len(s.Degraded) > 0 || s.Rung != host.Coordinated || s.Source.Verb != "in step" || s.Rollout.Generation != 1 || !s.Rollout.Applied || s.Rollout.State != barrier.Committed {
				t.Errorf("%s: %+v, %+v", m.id, s, s.Rollout)
			}
		}
		if last.Sub(first) > poll {
			t.Errorf("the last swapped %s after the first", last.Sub(first))
		}
	})
}

// TestWindow: what connects is confirmed.
func TestWindow(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.home.write(text(1, windowed, "s"))
		w.start()
		w.run(1, time.Minute, w.members...)
		w.home.write(text(2, windowed, "s", "x"))
		w.run(2, time.Minute, w.members...)
		if s := w.members[0].host.Status(); !s.Rollout.ConfirmPending || s.Rollout.Confirmed.Version != 1 {
			t.Errorf("not on trial: %+v", s.Rollout)
		}
		w.rest(time.Minute)
		if got := w.ended(); got != "confirmed: " {
			t.Errorf("ended %s", got)
		}
		for _, m := range w.members {
			if s := m.host.Status(); s.Rollout.ConfirmPending || s.Rollout.Confirmed.Version != 2 || s.Rung != host.Window {
				t.Errorf("%s: %+v", m.id, s.Rollout)
			}
			equal(t, m.id, m.swaps(), []string{"1", "2"})
		}
	})
}

// TestWindowTakenBack: one member's session never connects, so nobody keeps the change; the source goes on holding it, and it is
// not tried again before it is saved again.
func TestWindowTakenBack(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.home.write(text(1, windowed, "s"))
		w.start()
		w.run(1, time.Minute, w.members...)
		sick := w.members[1]
		sick.rec.set(func(r *recorder) { r.sick["x"] = "connection refused" })
		w.home.write(text(2, windowed, "s", "x"))
		w.run(2, time.Minute, w.members...)
		w.rest(2 * time.Minute)
		w.run(1, 0, w.members...)
		if got := w.ended(); !strings.HasPrefix(got, "reverted: ") || !strings.Contains(got, "session x: connection refused") {
			t.Errorf("ended %s", got)
		}
		w.rest(10 * time.Minute)
		for _, m := range w.members {
			equal(t, m.id, m.rec.log(), []string{"swap 1 +s", "swap 2 +x", "swap 1 -x"})
			s := m.host.Status()
			if s.Source.Verb != "refused" || !strings.Contains(s.Source.Reason, "save it again") || len(s.Degraded) != 1 {
				t.Errorf("%s: %+v, degraded by %q", m.id, s.Source, s.Degraded)
			}
		}
		if got := sick.host.Resolved(); len(got) != 1 || got[barrier.Resolution{Outcome: barrier.Reverted, Reason: "failed"}]+got[barrier.Resolution{Outcome: barrier.Reverted, Reason: "deadline"}] != 1 {
			t.Errorf("ended %v", got)
		}
		sick.rec.set(func(r *recorder) { clear(r.sick) })
		w.home.write(text(3, windowed, "s", "x"))
		w.run(3, time.Minute, w.members...)
		w.rest(time.Minute)
		if got := w.ended(); got != "confirmed: " {
			t.Errorf("ended %s", got)
		}
	})
}

// TestOneCannotBuild: nobody runs it.
func TestOneCannotBuild(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.home.write(text(1, coordinated, "s"))
		w.start()
		w.run(1, time.Minute, w.members...)
		w.members[2].rec.set(func(r *recorder) { r.fails["prepare"] = errors.New("x.cred is not there") })
		w.home.write(text(2, coordinated, "s", "x"))
		w.rest(5 * time.Minute)
		if got := w.ended(); !strings.HasPrefix(got, "aborted: ") || !strings.Contains(got, "x.cred is not there") {
			t.Errorf("ended %s", got)
		}
		for _, m := range w.members {
			equal(t, m.id, m.swaps(), []string{"1"})
		}
	})
}

// TestOneIsAway: the deadline passes, and nobody runs it.
func TestOneIsAway(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.home.write(text(1, coordinated, "s"))
		w.start()
		w.run(1, time.Minute, w.members...)
		if err := w.members[2].end(); err != nil {
			t.Fatal(err)
		}
		w.home.write(text(2, coordinated, "s", "x"))
		w.rest(5 * time.Minute)
		if got := w.ended(); !strings.HasPrefix(got, "aborted: ") || !strings.Contains(got, "node-c") {
			t.Errorf("ended %s", got)
		}
		w.members[2].start() // and runs what is committed, not what the source holds
		w.run(1, time.Minute, w.members[2])
		w.home.write(text(3, coordinated, "s", "x"))
		w.run(3, time.Minute, w.members...)
		equal(t, "the one that was away", w.members[2].swaps(), []string{"1", "3"})
	})
}

// TestJoiner: a member that starts boots what it has confirmed and follows what is committed; what is proposed or on trial it does not
// run.
func TestJoiner(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.home.write(text(1, windowed, "s"))
		w.start()
		w.run(1, time.Minute, w.members...)
		away := w.members[2]
		w.home.write(text(2, windowed, "s", "x"))
		w.run(2, time.Minute, w.members...)
		if err := away.end(); err != nil { // in the window: the trial has failed
			t.Fatal(err)
		}
		away.start()
		w.run(1, time.Minute, away)
		w.rest(2 * time.Minute)
		if got := w.ended(); !strings.HasPrefix(got, "reverted: ") {
			t.Errorf("ended %s", got)
		}
		w.run(1, 0, w.members...)
		equal(t, "who restarted", away.swaps(), []string{"1"})
		// A machine that was never there before, with an empty disk.
		if err := away.end(); err != nil {
			t.Fatal(err)
		}
		away.dir = t.TempDir()
		w.home.write(text(3, windowed, "s", "y"))
		w.rest(2 * time.Second) // proposed, and nobody is there to vote for node-c
		away.start()
		w.run(1, 10*time.Second, away)
		equal(t, "who joined", away.swaps(), []string{"1"})
	})
}

// TestPut: any member takes the change, and what must not roll is refused before it is saved.
func TestPut(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.home.write(text(1, coordinated, "s"))
		w.start()
		w.run(1, time.Minute, w.members...)
		put := func(m *member, text string, version uint64, o host.PutOptions) (host.Outcome, error) {
			o.IfVersion = &version
			return m.host.Put(w.t.Context(), []byte(text), o)
		}
		var refused *host.RefusedError
		_, err := put(w.members[1], text(1, strings.Replace(coordinated, ", node-c", "", 1), "s"), 1, host.PutOptions{})
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), "bridge.cluster.members") || !strings.Contains(err.Error(), "another --cohort") {
			t.Errorf("another roster: %v", err)
		}
		if got, _ := w.home.Read(w.t.Context()); got.Version != 1 || w.ended() != "" {
			t.Errorf("something was saved: version %d, %s", got.Version, w.ended())
		}
		out, err := put(w.members[1], text(1, coordinated, "s", "x"), 1, host.PutOptions{})
		if err != nil || out.Version != 2 || out.Verb != "underway" || out.Rollout == nil || out.Rollout.Generation != 1 {
			t.Fatalf("saved: %+v, %v", out, err)
		}
		var open *barrier.OpenError
		if _, err := put(w.members[0], text(1, coordinated, "s", "y"), 2, host.PutOptions{}); !errors.As(err, &open) {
			t.Errorf("while it is open: %v", err)
		}
		w.run(2, time.Minute, w.members...)
		// For the cohort's replacement it is saved, and nobody runs or proposes it.
		next := strings.Replace(text(2, coordinated, "s", "z"), ", node-c", "", 1)
		out, err = put(w.members[2], next, 2, host.PutOptions{ForReplacement: true})
		if err != nil || out.Version != 3 {
			t.Fatalf("for the replacement: %+v, %v", out, err)
		}
		w.rest(10 * time.Minute)
		w.run(2, 0, w.members...)
		if s := w.members[0].host.Status(); s.Source.Verb != "refused" || !strings.Contains(s.Source.Reason, "bridge.cluster.members") {
			t.Errorf("the source is %+v", s.Source)
		}
		// The cohort is replaced: every member is stopped and started with another cohort's store and a new disk.
		for _, m := range w.members {
			if err := m.end(); err != nil {
				t.Error(err)
			}
		}
		other := newStore()
		for _, m := range w.members[:2] {
			m.dir = t.TempDir()
			m.cfg.Rollouts.Store, m.cfg.Rollouts.Leases, m.cfg.Rollouts.Artefacts = other, other, other
			m.start()
		}
		w.run(3, time.Minute, w.members[:2]...)
	})
}

// TestOwnFiles: every member has a source of its own; the one that was changed proposes, the others fetch, and are not taken to want the old
// back.
func TestOwnFiles(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		for _, m := range w.members {
			m.home = &home{}
			m.cfg.Initial = []byte(text(1, coordinated, "s")) // it was missing first, and is no news for that
		}
		w.start()
		w.run(1, time.Minute, w.members...)
		w.members[0].home.write(text(2, coordinated, "s", "x"))
		w.run(2, time.Minute, w.members...)
		w.rest(2 * poll)
		late := w.members[1]
		if s := late.host.Status(); s.Source.Verb != "behind" || s.Source.Reason != "it is version 1, and version 2 is committed" {
			t.Errorf("who is late: %+v", s.Source)
		} else if len(s.Degraded) > 0 || s.Source.Pending {
			t.Errorf("who is late, and runs what it should, is degraded by %q, pending %v", s.Degraded, s.Source.Pending)
		}
		if err := late.end(); err != nil {
			t.Fatal(err)
		}
		late.start()
		w.run(2, time.Minute, late)
		w.rest(5 * time.Minute)
		equal(t, "who is late", late.swaps(), []string{"2"})
		// The same number for something else is nobody's.
		late.home.write(text(2, coordinated, "s", "z"))
		w.rest(time.Minute)
		if s := late.host.Status(); s.Source.Verb != "refused" || !strings.Contains(s.Source.Reason, "higher version") {
			t.Errorf("the same version twice: %+v", s.Source)
		}
		late.home.write(text(3, coordinated, "s", "z"))
		w.run(3, time.Minute, w.members...)
	})
}

// TestRecreated: in a source that all share, a lower version is news and not age.
func TestRecreated(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.home.write(text(9, coordinated, "s"))
		w.start()
		w.run(9, time.Minute, w.members...)
		w.home.write(text(1, coordinated, "s", "x"))
		w.run(1, time.Minute, w.members...)
	})
}

// TestMissingBeforeItStarts: who took the document away wants nothing to run, what is on the disk included.
func TestMissingBeforeItStarts(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.home.write(text(1, coordinated, "s"))
		w.start()
		w.run(1, time.Minute, w.members...)
		w.home.remove()
		w.rest(10 * time.Second)
		for _, m := range w.members {
			if err := m.end(); !errors.Is(err, host.ErrReplace) {
				t.Errorf("%s ended with %v", m.id, err)
			}
			m.start()
		}
		w.rest(time.Minute)
		for _, m := range w.members {
			if s := m.host.Status(); s.Phase != host.Idle || len(m.rec.log()) > 0 {
				t.Errorf("%s is %s, did %q", m.id, s.Phase, m.rec.log())
			}
		}
		w.home.write(text(2, coordinated, "s", "x"))
		w.run(2, time.Minute, w.members...)
	})
}

// TestSourceAway: a member that starts while the source is away, or holds nonsense, runs what it has confirmed.
func TestSourceAway(t *testing.T) {
	for name, spoil := range map[string]func(*home){
		"away": func(h *home) { h.fail(errors.New("no route")) }, "nonsense": func(h *home) { h.write("version: [") },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, 3, func(w *world) {
				w.home.write(text(1, coordinated, "s"))
				w.start()
				w.run(1, time.Minute, w.members...)
				spoil(w.home)
				m := w.members[0]
				if err := m.end(); err != nil {
					t.Fatal(err)
				}
				m.start()
				w.run(1, time.Minute, m)
				if s := m.host.Status(); len(s.Degraded) != 1 || s.Rung != host.Coordinated {
					t.Errorf("degraded by %q, on rung %s", s.Degraded, s.Rung)
				}
				w.home.fail(nil)
				w.home.write(text(2, coordinated, "s", "x"))
				w.run(2, time.Minute, w.members...)
			})
		})
	}
}

// TestBaseline is what a deployment that names its first document gets.
func TestBaseline(t *testing.T) {
	first, other := text(1, coordinated, "s"), text(1, coordinated, "s", "x")
	digest := func(text string) document.Digest {
		d, err := document.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return d.Digest()
	}
	for _, tt := range []struct {
		name    string
		named   document.Digest
		before  func(w *world) // the member that is looked at starts
		outcome barrier.BaselineOutcome
		says    string
		runs    uint64
	}{
		{"none is named", "", func(*world) {}, barrier.BaselineSkipped, "the first document that a member found", 1},
		{"none is named, and there is one", "", func(w *world) { w.members[0].start(); w.run(1, time.Minute, w.members[0]) }, barrier.BaselineSkipped, "is committed", 1},
		{"adopted", digest(first), func(*world) {}, barrier.BaselineAdopted, "version 1", 1},
		{"verified", digest(first), func(w *world) { w.members[0].start(); w.run(1, time.Minute, w.members[0]) }, barrier.BaselineVerified, "version 1", 1},
		{"the source holds another", digest(other), func(*world) {}, barrier.BaselineFailed, "the source holds", 0},
		{"the cohort began with another", digest(other), func(w *world) {
			w.members[0].cfg.Baseline = ""
			w.members[0].start()
			w.run(1, time.Minute, w.members[0])
		}, barrier.BaselineFailed, "the cohort began with", 0},
		{"something was committed since", digest(first), func(w *world) {
			for _, m := range w.members {
				m.start()
			}
			w.run(1, time.Minute, w.members...)
			w.home.write(text(2, coordinated, "s", "y"))
			w.run(2, time.Minute, w.members...)
			if err := w.members[1].end(); err != nil {
				t.Error(err)
			}
		}, barrier.BaselineSuperseded, "was committed since", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, 3, func(w *world) {
				for _, m := range w.members {
					m.cfg.Baseline = tt.named
				}
				w.home.write(first)
				tt.before(w)
				m := w.members[1]
				m.start()
				if tt.runs > 0 {
					w.run(tt.runs, time.Minute, m)
					if r := m.host.Status().Rollout; r.BaselineOutcome != tt.outcome || !strings.Contains(r.BaselineReason, tt.says) {
						t.Errorf("baseline %s: %s; want %s: %s", r.BaselineOutcome, r.BaselineReason, tt.outcome, tt.says)
					}
					return
				}
				w.rest(time.Minute)
				s := m.host.Status()
				if s.Phase != host.Idle || !strings.Contains(strings.Join(s.Degraded, "\n"), "the deployment names") {
					t.Errorf("is %s, degraded by %q", s.Phase, s.Degraded)
				}
			})
		})
	}
}

// TestAnotherRoster: a member whose document has another roster than its cohort stays out, and says so.
func TestAnotherRoster(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		m := w.members[1]
		m.home = &home{}
		m.home.write(text(1, strings.Replace(coordinated, ", node-c", "", 1), "s"))
		w.home.write(text(1, coordinated, "s"))
		w.members[0].start()
		w.run(1, time.Minute, w.members[0])
		m.start()
		w.rest(time.Minute)
		s := m.host.Status()
		if s.Phase != host.Idle || !strings.Contains(strings.Join(s.Degraded, "\n"), "cohort bridge has the roster node-a, node-b, node-c") {
			t.Errorf("is %s, degraded by %q", s.Phase, s.Degraded)
		}
		m.home.write(text(2, coordinated, "s"))
		w.run(2, time.Minute, m)
	})
}

// TestAnotherStore: a member that is given another store than its cohort's runs what it has confirmed, and says so.
func TestAnotherStore(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.home.write(text(1, coordinated, "s"))
		w.start()
		w.run(1, time.Minute, w.members...)
		m, other := w.members[0], newStore()
		if err := m.end(); err != nil {
			t.Fatal(err)
		}
		m.cfg.Rollouts.Store, m.cfg.Rollouts.Leases, m.cfg.Rollouts.Artefacts = other, other, other
		m.start()
		w.run(1, time.Minute, m)
		w.home.write(text(2, coordinated, "s", "x"))
		w.rest(10 * time.Second)
		w.run(1, 0, m)
		if s := m.host.Status(); !s.Ready || !strings.Contains(s.Rollout.Diverged, "it is another store") || s.Source.Reason != "the rollout store has nothing committed for this cohort" {
			t.Errorf("is %s, diverged %q, its source is %+v", s.Phase, s.Rollout.Diverged, s.Source)
		}
	})
}

// TestTwoProcesses: of two with one member id, the older ends.
func TestTwoProcesses(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.home.write(text(1, coordinated, "s"))
		w.start()
		w.run(1, time.Minute, w.members...)
		twin := w.machine("node-a")
		twin.start()
		w.run(1, time.Minute, twin)
		if err := <-w.members[0].ended; !errors.Is(err, barrier.ErrSuperseded) {
			t.Errorf("the older ended with %v", err)
		}
		w.members[0].host = nil
		equal(t, "the older", w.members[0].rec.log(), []string{"swap 1 +s", "drain", "stop"})
		_ = twin.end()
	})
}

// TestShutdownOnTrial: a member that ends in the window drains, stops, and leaves nothing built.
func TestShutdownOnTrial(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.home.write(text(1, windowed, "s"))
		w.start()
		w.run(1, time.Minute, w.members...)
		w.home.write(text(2, windowed, "s", "x"))
		w.run(2, time.Minute, w.members...)
		m := w.members[0]
		if err := m.end(); err != nil {
			t.Error(err)
		}
		if got := m.rec.log(); !slices.Equal(got[len(got)-2:], []string{"drain", "stop"}) {
			t.Errorf("did %q", got)
		}
		if s := m.host.Status(); s.Ready || s.Phase != host.Stopping {
			t.Errorf("is %s, ready %v", s.Phase, s.Ready)
		}
	})
}
