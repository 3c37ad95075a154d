package node_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

// TestProvisionalThatIsNotTheTrials: the store's word alone has nothing served, and no activation but the trial's own
// has anything served on trial. The node withdraws, all go back, and what was wrong was served by nobody.
func TestProvisionalThatIsNotTheTrials(t *testing.T) {
	const other = barrier.RolloutID("0190f6a0-0000-7000-8000-0000000000ff")
	for _, row := range []struct {
		name, reason string
		gives        func(c *cluster, ro barrier.Rollout) *seal.Artefact
	}{
		{"none", "offers no activation", func(*cluster, barrier.Rollout) *seal.Artefact { return nil }},
		{"forged", "activation is refused", func(c *cluster, ro barrier.Rollout) *seal.Artefact {
			return c.made.activateFor(stranger, 2, ro.Generation, seal.KindProvisional, ro.ID, sealed.seal(c.s, 2))
		}},
		{"of another rollout", "is of rollout", func(c *cluster, ro barrier.Rollout) *seal.Artefact {
			return c.made.activateFor(c.s, 2, ro.Generation, seal.KindProvisional, other, sealed.seal(c.s, 2))
		}},
		{"of another generation", "the cohort decided for generation 2", func(c *cluster, ro barrier.Rollout) *seal.Artefact {
			return c.made.activateFor(c.s, 2, ro.Generation+1, seal.KindProvisional, ro.ID, sealed.seal(c.s, 2))
		}},
		{"of another payload", "another payload", func(c *cluster, ro barrier.Rollout) *seal.Artefact {
			art := c.made.activateFor(c.s, 7, ro.Generation, seal.KindProvisional, ro.ID, sealed.seal(c.s, 7))
			art.Sealed = sealed.seal(c.s, 2)
			art.PayloadBLAKE3 = ""
			return art
		}},
		{"an artefact of another version", "the cohort decided for", func(c *cluster, ro barrier.Rollout) *seal.Artefact {
			return c.made.activateFor(c.s, 7, ro.Generation, seal.KindProvisional, ro.ID, sealed.seal(c.s, 7))
		}},
		{"not provisional", "is of kind apply", func(c *cluster, ro barrier.Rollout) *seal.Artefact {
			return c.made.activateFor(c.s, 2, ro.Generation, seal.KindApply, ro.ID, sealed.seal(c.s, 2))
		}},
	} {
		for _, held := range []bool{false, true} {
			t.Run(row.name+map[bool]string{true: ", without its bytes"}[held], func(t *testing.T) {
				inCluster(t, 2, sealed, func(c *cluster, nodes []*member) {
					m := nodes[1]
					m.answers(func(p nodeproto.Poll) (nodeproto.Answer, error, bool) {
						row0, err := c.store.Current(t.Context())
						if err != nil || p.Trial == "" || row0.Rollout == nil {
							return nodeproto.Answer{}, err, false
						}
						art := row.gives(c, *row0.Rollout)
						if art != nil && held {
							art.Payload = nil
						}
						return nodeproto.Answer{Artefact: art, Held: held && art != nil}, nil, true
					})
					ro := c.propose(2, testWindow)
					c.ends(barrier.Reverted, "")
					if !held && !strings.Contains(c.reason(), row.reason) {
						t.Errorf("reverted because of %q, want %q", c.reason(), row.reason)
					}
					m.answers(nil)
					c.serves(1, nodes...)
					c.until("the next generation is installed", func() bool { return m.agent.Status().Generation == ro.Generation+1 })
					for _, v := range m.host.versions() {
						if v != 1 {
							t.Errorf("served %v", m.host.versions())
						}
					}
				})
			})
		}
	}
}

// TestProvisionalReplayed: what was signed for a trial that is over, or for somebody else's, is served by nobody who is
// offered it by the agent's own poll.
func TestProvisionalReplayed(t *testing.T) {
	inCluster(t, 2, sealed, func(c *cluster, nodes []*member) {
		nodes[1].prober.set(false, "502")
		ro := c.propose(2, testWindow)
		c.onTrial(ro, nodes...)
		c.ends(barrier.Reverted, "node-1")
		c.serves(1, nodes...)
		c.mu.Lock()
		replayed := c.provisional[ro.ID]
		c.mu.Unlock()
		// Of a trial that this node never was on, and higher than all that it knows.
		aborted := c.made.activateFor(c.s, 9, ro.Generation+5, seal.KindProvisional, "0190f6a0-0000-7000-8000-0000000000ee", sealed.seal(c.s, 9))
		m := nodes[0]
		before := len(m.host.versions())
		for name, art := range map[string]*seal.Artefact{"of a trial that was reverted": replayed.Artefact, "of one that was aborted": aborted} {
			var offered atomic.Int64
			m.answers(func(p nodeproto.Poll) (nodeproto.Answer, error, bool) {
				return nodeproto.Answer{Artefact: art}, nil, offered.Add(1) == 1
			})
			c.until(name+" is refused", func() bool {
				ack := m.lastAck()
				return offered.Load() > 1 && ack.Error != nil && ack.Error.Version == art.Version
			})
			if got := m.lastAck().Error.Code; got != "not_on_trial" {
				t.Errorf("%s: refused with %s", name, got)
			}
		}
		if len(m.host.versions()) != before {
			t.Errorf("served %v", m.host.versions())
		}
	})
}

// TestDirectOfferDuringATrial: what is live for everybody, of a higher generation, ends the trial on a node.
func TestDirectOfferDuringATrial(t *testing.T) {
	inCluster(t, 2, sealed, func(c *cluster, nodes []*member) {
		for _, m := range nodes {
			m.prober.set(false, "not yet")
		}
		ro := c.propose(2, testWindow)
		c.onTrial(ro, nodes...)
		direct := c.made.activateFor(c.s, 6, ro.Generation+1, seal.KindApply, "", sealed.seal(c.s, 6))
		m := nodes[0]
		m.answers(func(p nodeproto.Poll) (nodeproto.Answer, error, bool) {
			return nodeproto.Answer{Artefact: direct}, nil, p.Generation == ro.Generation
		})
		c.until("it serves the direct one", func() bool { return m.agent.Status().Version == 6 })
		if s := m.saved(); s.Current != "slot-1-3" || s.Previous != "slot-1-1" || s.Trial != "" {
			t.Errorf("remembers %+v", s)
		}
		if h := m.agent.Status(); h.Trial != "" {
			t.Errorf("says that it is on trial: %+v", h)
		}
		c.ends(barrier.Reverted, "")
		if m.agent.Status().Version != 6 {
			t.Errorf("took back what is live for everybody: serves %v", m.host.versions())
		}
	})
}

// TestReplayDuringATrial: what the node goes back to is no news while it is on trial.
func TestReplayDuringATrial(t *testing.T) {
	inCluster(t, 1, sealed, func(c *cluster, nodes []*member) {
		m := nodes[0]
		m.prober.set(false, "not yet")
		ro := c.propose(2, testWindow)
		c.onTrial(ro, m)
		old := c.now().Artefact
		var refused atomic.Bool
		m.answers(func(p nodeproto.Poll) (nodeproto.Answer, error, bool) {
			if p.Rejected == nodeproto.Fingerprint(old) {
				refused.Store(true)
			}
			return nodeproto.Answer{Artefact: old}, nil, !refused.Load()
		})
		c.until("the replay is refused", refused.Load)
		m.prober.set(true, "")
		c.ends(barrier.Confirmed, "")
		c.serves(2, m)
		if !slices.Equal(m.host.versions(), []uint64{1, 2}) {
			t.Errorf("served %v", m.host.versions())
		}
	})
}
