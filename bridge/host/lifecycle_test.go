package host_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier/memory"
	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/host"
	"github.com/guardyn-edge/guardyn/bridge/source"
)

// TestLifecycle is the table of docs/guide/bridge.md: what is observed, before the first activation and after it, on every rung.
func TestLifecycle(t *testing.T) {
	const all = "rollout: coordinated, members: [node-a], deadline: 30s"
	first := map[host.Rung]string{
		host.Standalone: text(1, "", "s"), host.Refuse: text(1, "rollout: refuse", "s"),
		host.Coordinated: text(1, all, "s"), host.Window: text(1, all+", confirm_window: 60s, soak: 5s", "s"),
	}
	other := map[host.Rung]string{
		host.Standalone: text(2, "", "s", "x"), host.Refuse: text(2, "rollout: refuse", "s", "x"),
		host.Coordinated: text(2, all, "s", "x"), host.Window: text(2, all+", confirm_window: 60s, soak: 5s", "s", "x"),
	}
	const invalid = "version: 3\nsessions: [{}]\n"
	rungs := []host.Rung{host.Standalone, host.Refuse, host.Coordinated, host.Window}
	clustered := []host.Rung{host.Refuse, host.Coordinated, host.Window}
	for _, tt := range []struct {
		name    string
		rungs   []host.Rung
		before  bool // the first activation
		initial bool
		observe func(m *member, rung host.Rung)
		phase   host.Phase
		version uint64
		deeds   string
		says    string // degraded by
		exits   error
	}{
		{"valid, before", rungs, true, false, func(m *member, r host.Rung) { m.home.write(first[r]) }, host.Active, 1, "swap 1 +s", "", nil},
		{"missing, before", rungs, true, false, func(*member, host.Rung) {}, host.Idle, 0, "", "the source has no document", nil},
		{"missing, before; may create", rungs, true, true, func(*member, host.Rung) {}, host.Active, 1, "swap 1 +s", "", nil},
		{"read error, before", rungs, true, true, func(m *member, _ host.Rung) { m.home.fail(errors.New("no route")) }, host.Idle, 0, "", "no route", nil},
		{"invalid, before", rungs, true, true, func(m *member, _ host.Rung) { m.home.write(invalid) }, host.Idle, 0, "", "sessions.0.id", nil},

		{"valid and the same, after", rungs, false, false, func(m *member, r host.Rung) { m.home.write(strings.Replace(first[r], "version: 1", "version: 7", 1)) }, host.Active, 7, "swap 1 +s", "", nil},
		{"valid and another, after", []host.Rung{host.Standalone, host.Coordinated, host.Window}, false, false, func(m *member, r host.Rung) { m.home.write(other[r]) }, host.Active, 2, "swap 1 +s, swap 2 +x", "", nil},
		{"valid and another, after; refused", []host.Rung{host.Refuse}, false, false, func(m *member, r host.Rung) { m.home.write(other[r]) }, host.Active, 1, "swap 1 +s", "stop every member and then start them all", nil},
		{"another mode, after", []host.Rung{host.Standalone}, false, false, func(m *member, _ host.Rung) { m.home.write(other[host.Refuse]) }, host.Active, 1, "swap 1 +s", "does not become a member of a cohort", nil},
		{"another mode, after; refused", clustered, false, false, func(m *member, _ host.Rung) { m.home.write(other[host.Standalone]) }, host.Active, 1, "swap 1 +s", "bridge.deployment_mode", nil},
		{"missing, after", []host.Rung{host.Standalone}, false, true, func(m *member, _ host.Rung) { m.home.remove() }, host.Idle, 0, "swap 1 +s, drain, stop", "the document is gone from the source", nil},
		{"missing, after; exits", clustered, false, true, func(m *member, _ host.Rung) { m.home.remove() }, host.Stopping, 0, "swap 1 +s, drain, stop", "", host.ErrReplace},
		{"read error, after", rungs, false, false, func(m *member, _ host.Rung) { m.home.fail(errors.New("no route")) }, host.Active, 1, "swap 1 +s", "no route", nil},
		{"invalid, after", rungs, false, false, func(m *member, _ host.Rung) { m.home.write(invalid) }, host.Active, 1, "swap 1 +s", "sessions.0.id", nil},
	} {
		for _, rung := range tt.rungs {
			t.Run(tt.name+", "+string(rung), func(t *testing.T) {
				inWorld(t, 1, func(w *world) {
					m := w.members[0]
					if tt.initial {
						m.cfg.Initial = []byte(strings.Replace(first[rung], "version: 1", "version: 40", 1))
					}
					if !tt.before {
						m.home.write(first[rung])
					}
					if tt.before {
						tt.observe(m, rung)
					}
					m.start()
					w.rest(10 * time.Second)
					if !tt.before {
						if s := m.host.Status(); s.Version != 1 || s.Rung != rung || !s.Ready {
							t.Fatalf("did not start: %+v", s)
						}
						tt.observe(m, rung)
						w.rest(time.Minute)
					}
					s := m.host.Status()
					if s.Phase != tt.phase || s.Version != tt.version || s.Ready != (tt.phase == host.Active) {
						t.Errorf("is %s, ready %v, runs version %d; want %s, %d", s.Phase, s.Ready, s.Version, tt.phase, tt.version)
					}
					if got := strings.Join(m.rec.log(), ", "); got != tt.deeds {
						t.Errorf("did %q, want %q", got, tt.deeds)
					}
					if got := strings.Join(s.Degraded, "\n"); tt.exits == nil && (!strings.Contains(got, tt.says) || (got == "") != (tt.says == "")) {
						t.Errorf("degraded by %q, want %q", got, tt.says)
					}
					select {
					case err := <-m.ended:
						m.ended <- err
						if tt.exits == nil || !errors.Is(err, tt.exits) {
							t.Errorf("ended with %v, want %v", err, tt.exits)
						}
					default:
						if tt.exits != nil {
							t.Error("did not end")
						}
					}
				})
			})
		}
	}
}

// TestInitial: what is there always wins, and who has run a document does not create another.
func TestInitial(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		m := w.members[0]
		m.cfg.Initial = []byte(text(40, "", "initial"))
		m.home.write(text(5, "", "there"))
		m.start()
		w.run(5, time.Minute, m)
		m.home.remove()
		w.rest(time.Minute)
		if s := m.host.Status(); s.Phase != host.Idle {
			t.Errorf("is %s after the document was taken away", s.Phase)
		}
		m.home.write(text(1, "", "again"))
		w.run(1, time.Minute, m)
		equal(t, "did", m.rec.log(), []string{"swap 5 +there", "drain", "stop", "swap 1 +again"})
	})
	inWorld(t, 1, func(w *world) { // it cannot be created yet
		m := w.members[0]
		m.cfg.Initial = []byte(text(40, "", "initial"))
		m.start()
		m.home.fail(errors.New("read only"))
		w.rest(5 * time.Second)
		m.home.fail(nil)
		w.run(1, time.Minute, m)
	})
}

// TestInitialAfterDeletion: a cohort that has run a document does not get the initial one when members start anew, whether they remember it or not.
func TestInitialAfterDeletion(t *testing.T) {
	const coordinated = "rollout: coordinated, members: [node-a, node-b], deadline: 30s"
	inWorld(t, 2, func(w *world) {
		for _, m := range w.members {
			m.cfg.Initial = []byte(text(40, coordinated, "s"))
			m.start()
		}
		w.run(1, time.Minute, w.members...)
		for _, m := range w.members {
			m.home.remove()
		}
		w.rest(time.Minute)
		for _, m := range w.members {
			if err := m.end(); !errors.Is(err, host.ErrReplace) {
				t.Errorf("ended with %v", err)
			}
		}
		w.members[1].dir = t.TempDir() // it remembers nothing
		for _, m := range w.members {
			m.start()
		}
		w.rest(time.Minute)
		for i, m := range w.members {
			s := m.host.Status()
			if s.Phase != host.Idle || !strings.Contains(strings.Join(s.Degraded, "\n"), "the initial one is not created") {
				t.Errorf("member %d is %s, degraded by %q", i, s.Phase, s.Degraded)
			}
			if _, err := m.home.Read(t.Context()); !errors.Is(err, source.ErrMissing) {
				t.Errorf("member %d: the source says %v", i, err)
			}
		}
		for _, m := range w.members {
			m.home.write(text(1, coordinated, "s"))
		}
		w.run(1, time.Minute, w.members...)
	})
	inWorld(t, 2, func(w *world) { // files of their own: who comes late has had none yet
		for i, m := range w.members {
			m.cfg.Initial = []byte(text(40, coordinated, "s"))
			m.home = &home{}
			m.start()
			w.run(1, time.Minute, w.members[:i+1]...)
		}
		late := w.members[1]
		late.home.remove()
		w.rest(time.Minute)
		if err := late.end(); !errors.Is(err, host.ErrReplace) {
			t.Errorf("ended with %v", err)
		}
		late.start()
		w.rest(time.Minute)
		if s := late.host.Status(); s.Phase != host.Idle {
			t.Errorf("is %s after its document was taken away", s.Phase)
		}
	})
}

// TestStandaloneFailures: what cannot be built or taken over is told, and the last good one runs.
func TestStandaloneFailures(t *testing.T) {
	for _, deed := range []string{"prepare", "swap"} {
		t.Run(deed, func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				m := w.members[0]
				m.home.write(text(1, "", "s"))
				m.start()
				w.run(1, time.Minute, m)
				m.rec.set(func(r *recorder) { r.fails[deed] = errors.New("plant.cred is not there") })
				m.home.write(text(2, "", "s", "x"))
				w.rest(10 * time.Second)
				s := m.host.Status()
				if s.Version != 1 || !s.Ready || !strings.Contains(strings.Join(s.Degraded, "\n"), "plant.cred is not there") {
					t.Errorf("runs version %d, degraded by %q", s.Version, s.Degraded)
				}
				m.rec.set(func(r *recorder) { clear(r.fails) })
				m.home.write(text(3, "", "s", "x"))
				w.run(3, time.Minute, m)
			})
		})
	}
	t.Run("the first", func(t *testing.T) {
		inWorld(t, 1, func(w *world) {
			m := w.members[0]
			m.home.write(text(1, "", "s"))
			m.start(func(r *recorder) { r.fails["prepare"] = errors.New("plant.cred is not there") })
			w.rest(10 * time.Second)
			if s := m.host.Status(); s.Phase != host.Idle || !strings.Contains(strings.Join(s.Degraded, "\n"), "plant.cred is not there") {
				t.Errorf("is %s, degraded by %q", s.Phase, s.Degraded)
			}
			m.rec.set(func(r *recorder) { clear(r.fails) }) // the file has come: the document is tried again
			w.run(1, 5*time.Second, m)
		})
	})
}

// TestUncertainTeardown: a process that may still hold a session ends, so that its successor finds it free.
func TestUncertainTeardown(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		m := w.members[0]
		m.home.write(text(1, "", "s"))
		m.start()
		w.run(1, time.Minute, m)
		m.rec.set(func(r *recorder) { r.fails["stop"] = errors.New("a connection does not close") })
		m.home.remove()
		w.rest(time.Minute)
		if err := m.end(); !errors.Is(err, host.ErrReplace) || !strings.Contains(err.Error(), "does not close") {
			t.Errorf("ended with %v", err)
		}
	})
}

// TestShutdown: draining takes drain_timeout at most, and all of it shutdown_timeout.
func TestShutdown(t *testing.T) {
	for _, tt := range []struct {
		name  string
		hangs []string
		takes time.Duration
		fails bool
	}{
		{"all at once", nil, 0, false},
		{"what is in flight does not drain", []string{"drain"}, 20 * time.Second, false},
		{"nothing ends", []string{"drain", "stop"}, 50 * time.Second, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, 1, func(w *world) {
				m := w.members[0]
				m.home.write("version: 1\nbridge: {drain_timeout: 20s, shutdown_timeout: 50s}\n")
				m.start()
				w.run(1, time.Minute, m)
				m.rec.set(func(r *recorder) {
					for _, deed := range tt.hangs {
						r.fails[deed] = errHangs
					}
				})
				began := time.Now()
				err := m.end()
				if took := time.Since(began); took != tt.takes || (err != nil) != tt.fails {
					t.Errorf("took %s, %v; want %s", took, err, tt.takes)
				}
			})
		})
	}
}

// TestPutStandalone: saved only if it will run.
func TestPutStandalone(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		m := w.members[0]
		m.home.write(text(7, "", "s"))
		m.start()
		w.run(7, time.Minute, m)
		put := func(text string, version uint64) (host.Outcome, error) {
			return m.host.Put(w.t.Context(), []byte(text), host.PutOptions{IfVersion: &version})
		}
		var invalid *document.Error
		if _, err := put("sessions: [{}]", 7); !errors.As(err, &invalid) {
			t.Errorf("invalid: %v", err)
		}
		var refused *host.RefusedError
		if _, err := put(text(7, "rollout: refuse", "s"), 7); !errors.As(err, &refused) || refused.Change.Class != document.Replacement {
			t.Errorf("another mode: %v", err)
		}
		if _, err := put(text(7, "", "s", "x"), 6); !errors.Is(err, source.ErrVersion) {
			t.Errorf("another version: %v", err)
		}
		m.rec.set(func(r *recorder) { r.fails["prepare"] = errors.New("plant.cred is not there") })
		if _, err := put(text(7, "", "s", "x"), 7); !errors.As(err, &refused) || !strings.Contains(err.Error(), "plant.cred") {
			t.Errorf("what cannot be built: %v", err)
		}
		m.rec.set(func(r *recorder) { clear(r.fails) })
		if got, _ := m.home.Read(w.t.Context()); got.Version != 7 {
			t.Errorf("something was saved: version %d", got.Version)
		}
		out, err := put(text(7, "", "s", "x"), 7)
		if err != nil || out.Version != 8 || out.Verb != "reload" || out.Reason != "" || strings.Join(out.Change.Sessions.Start, " ") != "x" {
			t.Errorf("saved: %+v, %v", out, err)
		}
		w.run(8, 0, m)
		if _, err := m.host.Put(w.t.Context(), []byte(text(7, "", "s")), host.PutOptions{Create: true}); !errors.Is(err, source.ErrExists) {
			t.Errorf("created over another: %v", err)
		}
		m.home.remove()
		w.rest(5 * time.Second)
		if out, err := m.host.Put(w.t.Context(), []byte(text(7, "", "s")), host.PutOptions{Create: true}); err != nil || out.Version != 1 || out.Verb != "activate" {
			t.Errorf("created: %+v, %v", out, err)
		}
		w.run(1, 0, m)
	})
}

// TestRefuse: nothing is taken over, what is for the next cohort can be saved, and a member that starts anew runs it.
func TestRefuse(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		m := w.members[0]
		m.cfg.Rollouts = nil
		m.home.write(text(7, "rollout: refuse", "s"))
		m.start()
		w.run(7, time.Minute, m)
		seven, next := uint64(7), []byte(text(7, "rollout: refuse", "s", "x"))
		var refused *host.RefusedError
		if _, err := m.host.Put(w.t.Context(), next, host.PutOptions{IfVersion: &seven}); !errors.As(err, &refused) || !strings.Contains(err.Error(), "stop every member") {
			t.Errorf("saved: %v", err)
		}
		out, err := m.host.Put(w.t.Context(), next, host.PutOptions{IfVersion: &seven, ForReplacement: true})
		if err != nil || out.Version != 8 || out.Verb != "refuse" || !strings.Contains(out.Reason, "sessions.x") {
			t.Errorf("for the next cohort: %+v, %v", out, err)
		}
		w.rest(time.Minute)
		w.run(7, 0, m)
		if err := m.end(); err != nil {
			t.Error(err)
		}
		m.start()
		w.run(8, time.Minute, m)
	})
}

// TestNew: what is missing is told before anything runs.
func TestNew(t *testing.T) {
	ports := func() *host.Rollouts {
		s := memory.New(memory.Options{})
		return &host.Rollouts{Store: s, Leases: s, Artefacts: s, Slots: nil}
	}
	for name, cfg := range map[string]host.Config{
		"no source": {Runner: newRecorder()}, "no runner": {Source: &home{}}, "no slots": {Source: &home{}, Runner: newRecorder(), Rollouts: ports()},
	} {
		if _, err := host.New(cfg); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
