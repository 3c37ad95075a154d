package barrier_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// hostile is a machine's Host with one method that misbehaves.
type hostile struct {
	barrier.Host
	panics string        // the method that panics
	hangs  string        // the method that does not return, whatever its context says
	free   chan struct{} // lets it go at the end of the test

	mu   sync.Mutex
	on   bool
	slow bool // Prepare goes on until its context ends
}

func hosted(h *hostile) func(*barrier.MemberOptions) {
	return func(o *barrier.MemberOptions) { o.Host = h }
}

func (h *hostile) setSlow(slow bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.slow = slow
}

func (h *hostile) set(on bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.on = on
}

func (h *hostile) meet(method string) {
	h.mu.Lock()
	on := h.on
	h.mu.Unlock()
	if on && h.panics == method {
		panic("poison")
	}
	if on && h.hangs == method {
		<-h.free
	}
}

func (h *hostile) Digest(b []byte) (barrier.Digest, error) {
	h.meet("Digest")
	return h.Host.Digest(b)
}

func (h *hostile) Classify(ctx context.Context, p barrier.Pointer, b []byte) (barrier.Class, error) {
	h.meet("Classify")
	return h.Host.Classify(ctx, p, b)
}

func (h *hostile) Prepare(ctx context.Context, p barrier.Pointer, b []byte) (barrier.Prepared, error) {
	h.meet("Prepare")
	h.mu.Lock()
	slow := h.slow
	h.mu.Unlock()
	if slow {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	prepared, err := h.Host.Prepare(ctx, p, b)
	if err != nil {
		return nil, err
	}
	return hostilePrepared{prepared, h}, nil
}

func (h *hostile) Converged(ctx context.Context) (barrier.Health, error) {
	h.meet("Converged")
	return h.Host.Converged(ctx)
}

type hostilePrepared struct {
	barrier.Prepared
	h *hostile
}

func (p hostilePrepared) Swap(ctx context.Context) error {
	p.h.meet("Swap")
	return p.Prepared.Swap(ctx)
}

// A candidate on which the Host panics is refused, or its trial fails; the process lives and the old goes on being served.
func TestPanicsAreAnswers(t *testing.T) {
	for _, method := range []string{"Digest", "Classify", "Prepare", "Swap", "Converged"} {
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGroup(t, 2)
				host := &hostile{Host: g.machines[0], panics: method}
				all := []*process{run(g.member(g.machines[0], g.direct(), hosted(host)).Run), run(g.member(g.machines[1], g.direct()).Run), g.coordinate(g.direct())}
				time.Sleep(15 * time.Second)
				host.set(true)
				g.propose("d1", time.Minute)
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				row := g.row()
				if s := row.Rollout.State; s != barrier.Aborted && s != barrier.Reverted || !strings.Contains(row.Rollout.Reason, "panicked: poison") {
					t.Errorf("%s: %s", s, row.Rollout.Reason)
				}
				host.set(false)
				time.Sleep(2 * time.Minute)
				g.serve("d0")
				endAll(t, all...)
			})
		})
	}
}

// A Host that never says whether it has converged keeps no member on trial, and one that builds for ever keeps none from the next
// rollout.
func TestHostsThatHang(t *testing.T) {
	t.Run("in Converged", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := newGroup(t, 2)
			host := &hostile{Host: g.machines[0], hangs: "Converged", free: make(chan struct{})}
			host.set(true)
			all := []*process{run(g.member(g.machines[0], g.direct(), hosted(host)).Run), run(g.member(g.machines[1], g.direct()).Run), g.coordinate(g.direct())}
			time.Sleep(15 * time.Second)
			g.propose("d1", time.Minute)
			time.Sleep(90 * time.Second)
			synctest.Wait()
			g.is(barrier.Reverted)
			g.serve("d0")
			if reason := g.row().Rollout.Reason; !strings.Contains(reason, "the host does not say") {
				t.Error(reason)
			}
			close(host.free)
			endAll(t, all...)
		})
	})
	t.Run("in Prepare, for a rollout that is over", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := newGroup(t, 2)
			host := &hostile{Host: g.machines[0]}
			all := []*process{run(g.member(g.machines[0], g.direct(), hosted(host)).Run), run(g.member(g.machines[1], g.direct()).Run), g.coordinate(g.direct())}
			time.Sleep(15 * time.Second)
			host.setSlow(true)
			g.propose("d1", 0)
			time.Sleep(time.Second)
			if err := g.store.Abort(t.Context(), g.row().Rollout.Ref, barrier.ByOperator("ann"), "takes too long"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Second)
			synctest.Wait()
			host.setSlow(false)
			g.propose("d2", 0)
			time.Sleep(5 * time.Second)
			synctest.Wait()
			g.is(barrier.Committed)
			g.serve("d2")
			endAll(t, all...)
		})
	})
}

// slowDisk is Slots whose Save does not return while it is held.
type slowDisk struct {
	barrier.Slots
	mu   sync.Mutex
	hold chan struct{}
}

func (s *slowDisk) Save(ctx context.Context, m barrier.Memory) error {
	s.mu.Lock()
	hold := s.hold
	s.mu.Unlock()
	if hold != nil {
		<-hold
	}
	return s.Slots.Save(ctx, m)
}

// A disk that hangs when the deadman runs out, and the store away: the member goes back all the same.
func TestDiskThatHangsKeepsNoTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 2)
		disk := &slowDisk{Slots: g.machines[0]}
		var away atomic.Bool
		link := g.direct()
		link.step = func(string) error {
			if away.Load() {
				return errDown
			}
			return nil
		}
		all := []*process{run(g.member(g.machines[0], link, func(o *barrier.MemberOptions) { o.Slots = disk }).Run), run(g.member(g.machines[1], g.direct()).Run), g.coordinate(g.direct())}
		time.Sleep(15 * time.Second)
		g.propose("d1", time.Minute)
		synctest.Wait()
		g.serve("d1")
		hold := make(chan struct{})
		disk.mu.Lock()
		disk.hold = hold
		disk.mu.Unlock()
		away.Store(true)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if runs := g.machines[0].running(); runs != "d0" {
			t.Errorf("it runs %s", runs)
		}
		close(hold)
		endAll(t, all...)
	})
}
