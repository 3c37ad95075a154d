package node_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

// sealed is what all tests of rollouts share.
var sealed = sealery{}

// serves waits until a node serves a version, and takes part in rollouts as if it did.
func (c *cluster) serves(version uint64, nodes ...*member) {
	c.t.Helper()
	for _, m := range nodes {
		c.until(m.id+" serves it", func() bool {
			s := m.agent.Status()
			return s.Version == version && s.Trial == "" && s.Rollout.Applied && !s.Rollout.ConfirmPending && m.host.serving() == version
		})
	}
}

// onTrial waits until all serve a version on trial.
func (c *cluster) onTrial(ro barrier.Rollout, nodes ...*member) {
	c.t.Helper()
	for _, m := range nodes {
		c.until(m.id+" is on trial", func() bool {
			s := m.agent.Status()
			return s.Trial == string(ro.ID) && s.Generation == ro.Generation && s.Rollout.ConfirmPending
		})
	}
}

// ends waits until the newest rollout is in a final state, and checks which.
func (c *cluster) ends(want barrier.State, reason string) {
	c.t.Helper()
	c.until("the rollout is "+string(want), func() bool {
		row, err := c.store.Current(c.t.Context())
		return err == nil && !row.Rollout.Open()
	})
	if got := c.state(); got != want || !strings.Contains(c.reason(), reason) {
		c.t.Fatalf("%s because of %q, want %s because of %q", got, c.reason(), want, reason)
	}
}

// lastAck is what the node reported last.
func (m *member) lastAck() nodeproto.Ack {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.acks) == 0 {
		return nodeproto.Ack{}
	}
	return m.acks[len(m.acks)-1]
}

// saved is the state on disk.
type saved struct {
	Format                              int
	Marks                               seal.Marks
	Current, Previous, Trial, Candidate string
	Rollout                             barrier.Memory
}

func (m *member) saved() (s saved) {
	m.c.t.Helper()
	raw, err := os.ReadFile(filepath.Join(m.dir, "state.json"))
	if err != nil {
		m.c.t.Fatal(err)
	}
	if err := json.NewDecoder(strings.NewReader(string(raw))).Decode(&s); err != nil {
		m.c.t.Fatal(err)
	}
	return s
}

// files are those of snapshots.
func (m *member) files() []string {
	m.c.t.Helper()
	entries, err := os.ReadDir(m.dir)
	if err != nil {
		m.c.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if strings.Contains(e.Name(), "-") {
			names = append(names, e.Name())
		}
	}
	return names
}

// TestCoordinatedWithoutWindow: nobody serves the change before all have it, and then all do.
func TestCoordinatedWithoutWindow(t *testing.T) {
	inCluster(t, 3, sealed, func(c *cluster, nodes []*member) {
		c.propose(2, 0)
		c.serves(2, nodes...)
		for _, m := range nodes {
			if !slices.Equal(m.host.versions(), []uint64{1, 2}) || m.host.compiled() != 2 || m.fetches() != 1 {
				t.Errorf("served %v, compiled %d times, fetched %d times", m.host.versions(), m.host.compiled(), m.fetches())
			}
			if s := m.saved(); s.Current != "slot-1-2" || s.Previous != "slot-1-1" || s.Trial+s.Candidate != "" || s.Rollout.Confirmed.Generation != 2 {
				t.Errorf("remembers %+v", s)
			}
		}
		c.propose(3, 0)
		c.serves(3, nodes...)
		if got := nodes[0].files(); !slices.Equal(got, []string{"slot-1-2", "slot-1-3"}) {
			t.Errorf("files %v", got)
		}
	})
}

// TestWindowConfirmed: served on trial under a provisional activation, and then for good under the confirmed one.
func TestWindowConfirmed(t *testing.T) {
	inCluster(t, 3, sealed, func(c *cluster, nodes []*member) {
		for _, m := range nodes {
			m.prober.set(false, "warming up")
		}
		ro := c.propose(2, testWindow)
		c.onTrial(ro, nodes...)
		c.until("the trial is acknowledged", func() bool { return nodes[0].lastAck().Generation == 2 })
		for _, m := range nodes {
			if s := m.saved(); s.Current != "slot-1-1" || s.Trial != "trial-1-2" || s.Candidate != "" || s.Format != 2 ||
				s.Marks[c.s.key.ID()].Kind != seal.KindProvisional || s.Rollout.Trial == nil {
				t.Errorf("on trial it remembers %+v", s)
			}
			if got := m.files(); !slices.Equal(got, []string{"slot-1-1", "trial-1-2"}) {
				t.Errorf("on trial it keeps %v", got)
			}
			act, _, err := seal.VerifyActivation(m.lastAck().Activation, c.s.trust())
			if err != nil || act.Kind != seal.KindProvisional || act.Rollout != string(ro.ID) {
				t.Errorf("acknowledged with %+v, %v", act, err)
			}
			m.prober.set(true, "all zones answer")
		}
		c.ends(barrier.Confirmed, "")
		c.serves(2, nodes...)
		for _, m := range nodes {
			if s := m.saved(); s.Current != "slot-1-2" || s.Previous != "slot-1-1" || s.Trial+s.Candidate != "" ||
				s.Marks[c.s.key.ID()].Kind != seal.KindConfirmed || s.Rollout.Trial != nil || s.Rollout.Confirmed.Generation != 2 {
				t.Errorf("confirmed it remembers %+v", s)
			}
			if got := m.files(); !slices.Equal(got, []string{"slot-1-1", "slot-1-2"}) {
				t.Errorf("confirmed it keeps %v", got)
			}
			if !slices.Equal(m.host.versions(), []uint64{1, 2}) || m.host.compiled() != 2 || m.fetches() != 1 {
				t.Errorf("served %v, compiled %d times, fetched %d times", m.host.versions(), m.host.compiled(), m.fetches())
			}
			if !slices.Equal(m.prober.trials(), []string{"1 to 2, margin 100"}) {
				t.Errorf("probed %v", m.prober.trials())
			}
			for _, p := range m.asked() {
				if p.Generation < ro.Generation && p.Trial != "" && p.Held == "" {
					t.Errorf("asks for the trial and for its bytes: %+v", p)
				}
			}
		}
		// The confirmed one is on disk, and whole.
		nodes[0].cut(true)
		nodes[0].restart()
		if s := nodes[0].agent.Status(); s.Version != 2 || s.Trial != "" {
			t.Errorf("boots version %d", s.Version)
		}
	})
}

// TestWindowReverted: one node that does not converge takes all back, to what they served and under the next generation.
func TestWindowReverted(t *testing.T) {
	inCluster(t, 3, sealed, func(c *cluster, nodes []*member) {
		nodes[1].prober.set(false, "www.example.test answers 502")
		ro := c.propose(2, testWindow)
		c.onTrial(ro, nodes...)
		c.ends(barrier.Reverted, "node-1")
		c.serves(1, nodes...)
		for _, m := range nodes {
			c.until("the next generation is installed", func() bool { return m.agent.Status().Generation == 3 })
			if s := m.saved(); s.Current != "slot-1-3" || s.Trial+s.Candidate != "" || s.Rollout.Trial != nil || s.Rollout.Highest != 2 {
				t.Errorf("remembers %+v", s)
			}
			if got := m.files(); !slices.Equal(got, []string{"slot-1-1", "slot-1-3"}) {
				t.Errorf("keeps %v", got)
			}
		}
		// It can be tried again.
		nodes[1].prober.set(true, "")
		if again := c.propose(2, testWindow); again.Generation != 4 {
			t.Errorf("proposed again as generation %d", again.Generation)
		}
		c.ends(barrier.Confirmed, "")
		c.serves(2, nodes...)
	})
}

// TestCandidateRefused: whatever is wrong with the bytes, the node says no, nobody swaps, and the next rollout goes through.
func TestCandidateRefused(t *testing.T) {
	y := sealery{}
	good := func(version uint64) nodeproto.Candidate {
		return nodeproto.Candidate{Sealed: y.seal(testSigner(1), version), Margin: 100}
	}
	for _, row := range []struct {
		name, reason string
		gives        func() (nodeproto.Candidate, error)
		prepare      func(*seal.Candidate) error
	}{
		{name: "not there", reason: "no artefact", gives: func() (nodeproto.Candidate, error) { return nodeproto.Candidate{}, barrier.ErrNoArtefact }},
		{name: "flipped bit", reason: "does not verify", gives: func() (nodeproto.Candidate, error) {
			c := good(2)
			c.Payload = slices.Clone(c.Payload)
			c.Payload[20] ^= 1
			return c, nil
		}},
		{name: "unsigned", reason: "no mode in which an unsigned snapshot is accepted", gives: func() (nodeproto.Candidate, error) {
			c := good(2)
			c.Signature = ""
			return c, nil
		}},
		{name: "a key that is not trusted", reason: "not trusted here", gives: func() (nodeproto.Candidate, error) {
			return nodeproto.Candidate{Sealed: y.seal(stranger, 2)}, nil
		}},
		{name: "another content", reason: "the bytes have the digest", gives: func() (nodeproto.Candidate, error) { return good(5), nil }},
		{name: "another version", reason: "is version 9, the rollout's is version 2", gives: func() (nodeproto.Candidate, error) {
			return nodeproto.Candidate{Sealed: sealAs(testSigner(1), 2, 9)}, nil
		}},
		{name: "does not compile", reason: "zone example.test: no", prepare: func(c *seal.Candidate) error {
			if c.Snapshot().Meta().Version == 2 {
				return errors.New("zone example.test: no")
			}
			return nil
		}},
		{name: "panics in the compiler", reason: "compiling the snapshot panicked", prepare: func(c *seal.Candidate) error {
			if c.Snapshot().Meta().Version == 2 {
				panic("index out of range")
			}
			return nil
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			inCluster(t, 2, sealed, func(c *cluster, nodes []*member) {
				m := nodes[1]
				m.host.prepare = row.prepare
				if row.gives != nil {
					m.onFetch = func() (nodeproto.Candidate, error, bool) {
						given, err := row.gives()
						return given, err, true
					}
				}
				c.propose(2, testWindow)
				c.ends(barrier.Aborted, row.reason)
				for _, m := range nodes {
					c.until("the candidate is forgotten", func() bool {
						return slices.Equal(m.files(), []string{"slot-1-1"}) && m.saved().Candidate == ""
					})
				}
				m.mu.Lock()
				m.onFetch = nil
				m.mu.Unlock()
				c.propose(3, testWindow)
				c.ends(barrier.Confirmed, "")
				c.serves(3, nodes...)
				for _, m := range nodes {
					if !slices.Equal(m.host.versions(), []uint64{1, 3}) || slices.Contains(m.files(), "candidate-2") {
						t.Errorf("served %v, keeps %v", m.host.versions(), m.files())
					}
				}
			})
		})
	}
}

// TestCandidateThatCannotBeFetchedYet is asked for again.
func TestCandidateThatCannotBeFetchedYet(t *testing.T) {
	inCluster(t, 2, sealed, func(c *cluster, nodes []*member) {
		m, failures := nodes[0], 3
		m.onFetch = func() (nodeproto.Candidate, error, bool) {
			failures--
			return nodeproto.Candidate{}, errAway, failures >= 0
		}
		c.propose(2, 0)
		c.serves(2, nodes...)
		if m.fetches() != 4 {
			t.Errorf("fetched %d times", m.fetches())
		}
	})
}

// TestRestartInTheWindow: a new process boots what is confirmed, and the trial has failed.
func TestRestartInTheWindow(t *testing.T) {
	inCluster(t, 2, sealed, func(c *cluster, nodes []*member) {
		for _, m := range nodes {
			m.prober.set(false, "not yet")
		}
		ro := c.propose(2, testWindow)
		c.onTrial(ro, nodes...)
		nodes[0].restart()
		if got := nodes[0].host.versions(); !slices.Equal(got, []uint64{1}) {
			t.Errorf("a restart in the window served %v", got)
		}
		c.ends(barrier.Reverted, "restart")
		c.serves(1, nodes...)
	})
}

// TestDrainedInTheMiddle: a node that is told that it has left the cohort ends its trial first, and then takes no part.
func TestDrainedInTheMiddle(t *testing.T) {
	inCluster(t, 2, sealed, func(c *cluster, nodes []*member) {
		m := nodes[0]
		nodes[1].prober.set(false, "not yet")
		ro := c.propose(2, testWindow)
		c.onTrial(ro, nodes...)
		c.mu.Lock()
		c.drained[m.id] = true
		c.mu.Unlock()
		time.Sleep(time.Second) // virtual: it is told
		synctest.Wait()
		if s := m.agent.Status(); !s.Cohort || s.Trial == "" {
			t.Fatalf("left in the middle of a trial: %+v", s)
		}
		nodes[1].prober.set(true, "")
		c.ends(barrier.Confirmed, "")
		c.until("it has left", func() bool { s := m.agent.Status(); return !s.Cohort && s.Version == 2 && s.Trial == "" })
		c.roster(nodes[1].id)
		// The cohort goes on without it; it follows as every node does.
		c.propose(3, 0)
		c.serves(3, nodes[1])
		c.until("it follows", func() bool { return m.agent.Status().Version == 3 })
		if m.fetches() != 1 {
			t.Errorf("fetched %d candidates", m.fetches())
		}
		// And back.
		c.mu.Lock()
		delete(c.drained, m.id)
		c.mu.Unlock()
		c.roster(nodes[0].id, nodes[1].id)
		c.serves(3, nodes...)
		c.propose(4, testWindow)
		c.ends(barrier.Confirmed, "")
		c.serves(4, nodes...)
	})
}

// TestUnprovenNodeDoesNotVote: a node that cannot tell a replay from what is live says nothing, and installs nothing that the
// cohort decides, before its own poll has proven something.
func TestUnprovenNodeDoesNotVote(t *testing.T) {
	inCluster(t, 2, sealed, func(c *cluster, nodes []*member) {
		m := nodes[0]
		m.stop()
		if err := os.WriteFile(filepath.Join(m.dir, "state.json"), []byte("garbage"), 0o600); err != nil {
			t.Fatal(err)
		}
		m.answers(func(nodeproto.Poll) (nodeproto.Answer, error, bool) { return nodeproto.Answer{}, errAway, true })
		m.start()
		c.until("it runs what is committed", func() bool { return m.agent.Status().Rollout.Applied })
		c.propose(2, 0)
		c.until("the other has voted", func() bool { return nodes[1].agent.Status().Rollout.Acked })
		time.Sleep(2 * time.Second) // virtual
		synctest.Wait()
		if s := m.agent.Status().Rollout; s.Acked || s.Nacked || m.fetches() != 0 {
			t.Fatalf("voted without proof: %+v", s)
		}
		m.answers(nil)
		c.serves(2, nodes...)
	})
}

// TestActivationThatIsLate: an answer that was lost, and a control plane that does not know of the decision yet, do not fail the cohort.
func TestActivationThatIsLate(t *testing.T) {
	for _, window := range []time.Duration{0, testWindow} {
		inCluster(t, 2, sealed, func(c *cluster, nodes []*member) {
			var asked atomic.Int64
			nodes[1].answers(func(p nodeproto.Poll) (nodeproto.Answer, error, bool) {
				if p.Held == "" || p.Generation != 1 {
					return nodeproto.Answer{}, nil, false
				}
				switch n := asked.Add(1); {
				case n <= 2:
					return nodeproto.Answer{}, errAway, true
				default:
					return nodeproto.Answer{Version: 1}, nil, n <= 4
				}
			})
			c.propose(2, window)
			c.serves(2, nodes...)
			if got := c.state(); got == barrier.Reverted || asked.Load() < 5 {
				t.Errorf("%s after %d polls", got, asked.Load())
			}
		})
	}
}
