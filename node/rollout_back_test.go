package node_test

import (
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
)

// TestGoingBackIsReported: what a node serves after a trial it says, though there is nothing new to poll for.
func TestGoingBackIsReported(t *testing.T) {
	inCluster(t, 1, sealed, func(c *cluster, nodes []*member) {
		m := nodes[0]
		m.prober.set(false, "not yet")
		ro := c.propose(2, testWindow)
		c.onTrial(ro, m)
		m.answers(func(nodeproto.Poll) (nodeproto.Answer, error, bool) { return nodeproto.Answer{}, errAway, true })
		if err := c.store.Revert(t.Context(), ro.Ref, barrier.ByOperator("test"), "enough"); err != nil {
			t.Fatal(err)
		}
		c.until("it says so", func() bool { a := m.lastAck(); return a.Generation == 1 && a.Version == 1 && a.Error == nil })
	})
}

// TestAnswerThatWasUnderWay: what a poll from before the trial brings when the node is on trial is neither installed nor refused.
func TestAnswerThatWasUnderWay(t *testing.T) {
	inCluster(t, 1, sealed, func(c *cluster, nodes []*member) {
		m := nodes[0]
		old := c.now().Artefact
		var asked, late atomic.Bool
		m.answers(func(p nodeproto.Poll) (nodeproto.Answer, error, bool) {
			if p.Trial != "" || asked.Swap(true) {
				return nodeproto.Answer{}, nil, false
			}
			for m.host.serving() != 2 {
				time.Sleep(10 * time.Millisecond) // virtual
			}
			late.Store(true)
			return nodeproto.Answer{Artefact: old}, nil, true
		})
		c.until("it asks", asked.Load)
		ro := c.propose(2, testWindow)
		c.onTrial(ro, m)
		c.until("the answer has come", late.Load)
		c.ends(barrier.Confirmed, "")
		c.serves(2, m)
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, a := range m.acks {
			if a.Error != nil {
				t.Errorf("reports %+v", a.Error)
			}
		}
	})
}

// TestGuessIsReportedAtOnce: what a node did while it was alone it says when the control plane is back, not after the pause between
// its polls.
func TestGuessIsReportedAtOnce(t *testing.T) {
	inCluster(t, 2, sealed, func(c *cluster, nodes []*member) {
		m := nodes[0]
		m.interval = 10 * time.Minute
		m.restart()
		c.serves(1, m)
		c.until("it takes part", func() bool { return m.agent.Status().Cohort })
		for _, m := range nodes {
			m.prober.set(false, "not yet")
		}
		ro := c.propose(2, testWindow)
		c.onTrial(ro, nodes...)
		c.halt()
		for _, m := range nodes {
			m.cut(true)
		}
		c.until("it goes back", func() bool { return m.host.serving() == 1 })
		time.Sleep(10 * time.Second) // virtual; the agent's pause is a minute
		m.answers(func(nodeproto.Poll) (nodeproto.Answer, error, bool) { return nodeproto.Answer{}, errAway, true })
		m.cut(false)
		time.Sleep(time.Second) // virtual
		synctest.Wait()
		if a := m.lastAck(); a.Generation != 1 || a.Version != 1 {
			t.Errorf("after a second it has said %+v", a)
		}
	})
}

// TestDamagedTrialIsFetchedAgain: the bytes of the trial are damaged on disk when its confirmation comes without them.
func TestDamagedTrialIsFetchedAgain(t *testing.T) {
	inCluster(t, 1, sealed, func(c *cluster, nodes []*member) {
		m := nodes[0]
		m.prober.set(false, "not yet")
		ro := c.propose(2, testWindow)
		c.onTrial(ro, m)
		name := filepath.Join(m.dir, "trial-1-2")
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		raw[len(raw)-5] ^= 0x10
		if err := os.WriteFile(name, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		m.prober.set(true, "")
		c.ends(barrier.Confirmed, "")
		c.serves(2, m)
		m.restart()
		if got := m.host.versions(); !slices.Equal(got, []uint64{2}) {
			t.Errorf("boots %v", got)
		}
	})
}
