package node_test

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/internal/durable"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

// TestDeadman: with the control plane away for the whole window every node goes back by itself, after D and grace and not
// before, from its own disk; and when it is back all agree.
func TestDeadman(t *testing.T) {
	inCluster(t, 3, sealed, func(c *cluster, nodes []*member) {
		for _, m := range nodes {
			m.prober.set(false, "not yet")
		}
		ro := c.propose(2, testWindow)
		c.onTrial(ro, nodes...)
		c.halt()
		for _, m := range nodes {
			m.cut(true)
		}
		row, err := c.store.Current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		due := row.Rollout.RevertDue()
		time.Sleep(time.Until(due) - 100*time.Millisecond) // virtual
		synctest.Wait()
		for _, m := range nodes {
			if m.host.serving() != 2 {
				t.Errorf("%s went back before D and grace", m.id)
			}
		}
		time.Sleep(time.Second) // virtual
		synctest.Wait()
		for _, m := range nodes {
			if m.host.serving() != 1 {
				t.Errorf("%s did not go back", m.id)
			}
			if got := m.saved().Rollout.Trial; got == nil || got.TakenBack != barrier.ByGuess {
				t.Errorf("%s remembers %+v", m.id, got)
			}
			m.cut(false)
		}
		c.ends(barrier.Reverted, "not confirmed in time")
		c.serves(1, nodes...)
		for _, m := range nodes {
			c.until("the next generation is installed", func() bool { return m.agent.Status().Generation == 3 })
			if m.agent.Status().Rollout.Flaps != 0 {
				t.Errorf("%s counts a flap", m.id)
			}
		}
	})
}

// TestGuessAndFlap: a node that is cut off through Confirm goes back, which is wrong, and goes forward when it is back.
func TestGuessAndFlap(t *testing.T) {
	inCluster(t, 2, sealed, func(c *cluster, nodes []*member) {
		m := nodes[0]
		nodes[1].prober.set(false, "not yet")
		ro := c.propose(2, testWindow)
		c.onTrial(ro, nodes...)
		c.until("its evidence stands", func() bool { return m.agent.Status().Rollout.Converged })
		nodes[1].prober.set(true, "")
		c.until("the other's evidence stands", func() bool { return nodes[1].agent.Status().Rollout.Converged })
		// The evidence of both is there; what comes after it this node does not learn.
		m.cut(true)
		c.ends(barrier.Confirmed, "")
		c.serves(2, nodes[1])
		c.until("it goes back", func() bool { return m.host.serving() == 1 })
		if s := m.saved(); s.Current != "slot-1-1" || s.Marks[c.s.key.ID()].Generation != 2 {
			t.Errorf("remembers %+v", s)
		}
		m.cut(false)
		c.serves(2, m)
		if s := m.agent.Status(); s.Rollout.Flaps != 1 || s.Generation != 2 {
			t.Errorf("after the guess: %+v", s)
		}
		if s := m.saved(); s.Current != "slot-1-2" || s.Trial != "" || s.Rollout.Flaps != 1 {
			t.Errorf("remembers %+v", s)
		}
		if got := m.host.versions(); !slices.Equal(got, []uint64{1, 2, 1, 2}) {
			t.Errorf("served %v", got)
		}
	})
}

// TestFullDiskGoesBack: a node that cannot write still leaves a trial.
func TestFullDiskGoesBack(t *testing.T) {
	var full atomic.Bool
	inCluster(t, 2, sealed, func(c *cluster, nodes []*member) {
		m := nodes[0]
		m.after = func(string, durable.Step) error {
			if full.Load() {
				return errors.New("no space left on device")
			}
			return nil
		}
		m.restart()
		c.serves(1, nodes...)
		nodes[1].prober.set(false, "not yet")
		ro := c.propose(2, testWindow)
		c.onTrial(ro, nodes...)
		full.Store(true)
		c.ends(barrier.Reverted, "")
		c.until("it goes back", func() bool { return m.host.serving() == 1 })
		full.Store(false)
		c.serves(1, nodes...)
		c.until("the next generation is installed", func() bool { return m.agent.Status().Generation == ro.Generation+1 })
	})
}

// TestFullDiskDoesNotTakePart: what cannot be kept is not acknowledged, and is no crash when it is tried again and again.
func TestFullDiskDoesNotTakePart(t *testing.T) {
	var full atomic.Bool
	inCluster(t, 1, sealed, func(c *cluster, nodes []*member) {
		m := nodes[0]
		m.after = func(name string, _ durable.Step) error {
			if full.Load() && strings.HasPrefix(name, "candidate-") {
				return errors.New("no space left on device")
			}
			return nil
		}
		m.restart()
		c.serves(1, m)
		full.Store(true)
		for range 4 {
			c.propose(2, testWindow)
			c.ends(barrier.Aborted, "no space left on device")
		}
		full.Store(false)
		c.propose(2, testWindow)
		c.ends(barrier.Confirmed, "")
		c.serves(2, m)
	})
}

// TestPollAndMemberRace: the agent's own poll and the member both bring what was decided; one compiles, one swaps.
func TestPollAndMemberRace(t *testing.T) {
	inCluster(t, 2, sealed, func(c *cluster, nodes []*member) {
		for _, m := range nodes {
			m.stop()
			m.interval, m.wait = time.Millisecond, 5*time.Second
			m.start()
		}
		c.serves(1, nodes...)
		for version := uint64(2); version < 12; version++ {
			window := time.Duration(0)
			if version%3 == 0 {
				window = testWindow
			}
			before := []int{nodes[0].host.compiled(), nodes[1].host.compiled()}
			c.propose(version, window)
			c.serves(version, nodes...)
			for i, m := range nodes {
				if n := m.host.compiled() - before[i]; n != 1 {
					t.Errorf("version %d was compiled %d times", version, n)
				}
			}
		}
		for _, m := range nodes {
			if got := m.host.versions(); !slices.Equal(got, []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}) || m.fetches() != 10 {
				t.Errorf("served %v, fetched %d", got, m.fetches())
			}
		}
	})
}

// TestSameContentAgain: a candidate whose content is what is served, under a new version, is a change like any other.
func TestSameContentAgain(t *testing.T) {
	inCluster(t, 2, sealed, func(c *cluster, nodes []*member) {
		for _, window := range []time.Duration{0, testWindow} {
			version := c.now().version + 1
			again := sealAs(c.s, 1, version)
			ro := c.proposeSealed(again, window)
			c.until("all serve it", func() bool {
				for _, m := range nodes {
					if s := m.agent.Status(); s.Version != version || s.Generation != ro.Generation || s.Trial != "" || !s.Rollout.Applied {
						return false
					}
				}
				return true
			})
		}
	})
}

// TestRolledBackTogether: a coordinated rollback to what is on disk still is under its own generation.
func TestRolledBackTogether(t *testing.T) {
	inCluster(t, 2, sealed, func(c *cluster, nodes []*member) {
		c.propose(2, 0)
		c.serves(2, nodes...)
		ro := c.propose(1, testWindow)
		c.ends(barrier.Confirmed, "")
		c.serves(1, nodes...)
		for _, m := range nodes {
			if s := m.agent.Status(); s.Generation != ro.Generation {
				t.Errorf("serves generation %d", s.Generation)
			}
		}
	})
}

// TestConfirmationThatDoesNotCome: the store says that the trial is confirmed, and no activation does. It is served on, it is not
// booted, and nothing new is voted on: there would be nothing to go back to.
func TestConfirmationThatDoesNotCome(t *testing.T) {
	inCluster(t, 1, sealed, func(c *cluster, nodes []*member) {
		m := nodes[0]
		m.answers(func(p nodeproto.Poll) (nodeproto.Answer, error, bool) {
			return nodeproto.Answer{}, errAway, p.Generation == 2
		})
		c.propose(2, testWindow)
		c.ends(barrier.Confirmed, "")
		c.until("it remembers", func() bool { return m.saved().Rollout.Confirmed.Generation == 2 })
		if s := m.saved(); s.Current != "slot-1-1" || s.Trial != "trial-1-2" {
			t.Errorf("remembers %+v", s)
		}
		c.propose(3, testWindow)
		c.ends(barrier.Aborted, "no vote from node-0")
		// A new process boots what an activation says is live, and goes forward.
		m.stop()
		m.answers(nil)
		m.start()
		c.serves(2, m)
		if got := m.host.versions(); !slices.Equal(got, []uint64{1, 2}) {
			t.Errorf("served %v", got)
		}
	})
}

// TestFreshnessOnTrial: an answer is fresh that names the trial, or what the node goes back to.
func TestFreshnessOnTrial(t *testing.T) {
	for _, freshTrial := range []bool{false, true} {
		inCluster(t, 1, sealed, func(c *cluster, nodes []*member) {
			m := nodes[0]
			m.prober.set(false, "not yet")
			ro := c.propose(2, testWindow)
			c.onTrial(ro, m)
			c.mu.Lock()
			c.freshTrial = freshTrial
			c.mu.Unlock()
			var nonces atomic.Int64
			m.answers(func(p nodeproto.Poll) (nodeproto.Answer, error, bool) {
				if p.Nonce != "" {
					nonces.Add(1)
				}
				return nodeproto.Answer{}, nil, false
			})
			m.skew.Store(int64(61 * time.Minute))
			c.until("a statement is asked for", func() bool { return nonces.Load() > 0 })
			time.Sleep(time.Second) // virtual: ten polls
			synctest.Wait()
			if nonces.Load() > 1 || m.agent.Status().Trial == "" {
				t.Errorf("%d nonces on trial, which is named: %v", nonces.Load(), freshTrial)
			}
		})
	}
}

// TestAnotherProcessTakesOver: of two processes with one node's token the older one leaves its trial and takes no part any more; it
// goes on serving.
func TestAnotherProcessTakesOver(t *testing.T) {
	inCluster(t, 2, sealed, func(c *cluster, nodes []*member) {
		for _, m := range nodes {
			m.prober.set(false, "not yet")
		}
		ro := c.propose(2, testWindow)
		c.onTrial(ro, nodes...)
		m := nodes[0]
		v, err := c.store.Look(t.Context(), barrier.MemberID(m.id))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.store.Join(t.Context(), barrier.MemberID(m.id), "another", v.Registration.Incarnation); err != nil {
			t.Fatal(err)
		}
		c.ends(barrier.Reverted, "")
		c.until("it goes back, and takes no part", func() bool { return m.host.serving() == 1 && m.agent.Status().Rollout.Superseded })
		c.until("and follows on its own", func() bool { return m.agent.Status().Generation == ro.Generation+1 })
	})
}

// TestCrashingCandidate: a candidate that took the process down twice while it was compiled is refused, not tried again.
func TestCrashingCandidate(t *testing.T) {
	inCluster(t, 1, sealed, func(c *cluster, nodes []*member) {
		m := nodes[0]
		for range 2 {
			// A process that dies in the compiler leaves what is on disk then.
			stuck, release := make(chan struct{}), make(chan struct{})
			m.stop()
			m.host.prepare = func(cand *seal.Candidate) error {
				if cand.Snapshot().Meta().Version == 2 {
					close(stuck)
					<-release
					return errors.New("killed")
				}
				return nil
			}
			m.start()
			c.serves(1, m)
			c.propose(2, 0)
			<-stuck
			disk := m.snapshotOfDisk()
			close(release)
			m.stop()
			m.putDisk(disk)
			m.host.prepare = nil
			m.start()
			c.ends(barrier.Aborted, "")
		}
		c.serves(1, m)
		c.propose(2, 0)
		c.ends(barrier.Aborted, "ended this node 2 times")
		c.propose(3, 0)
		c.serves(3, m)
	})
}
