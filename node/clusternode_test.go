package node_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/internal/durable"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/node"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/snapshot"
)

// member is one node of the cluster, with its disk and its way to the control plane.
type member struct {
	c    *cluster
	id   string
	dir  string
	host *host
	keys seal.TrustedKeys

	interval, wait time.Duration
	after          func(string, durable.Step) error
	prober         *prober
	skew           atomic.Int64 // of the node's clock, nanoseconds

	mu      sync.Mutex
	away    bool // the control plane, to this node
	acks    []nodeproto.Ack
	polls   []nodeproto.Poll
	fetched int
	onPoll  func(nodeproto.Poll) (nodeproto.Answer, error, bool)
	onFetch func() (nodeproto.Candidate, error, bool)

	store *durable.Dir
	agent *node.Agent
	stop  func()
}

// prober is a judge that a test tells what to say.
type prober struct {
	mu     sync.Mutex
	health barrier.Health
	begun  []string
}

func (p *prober) Begin(before, after *snapshot.Snapshot, margin int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun = append(p.begun, fmt.Sprintf("%d to %d, margin %d", before.Meta().Version, after.Meta().Version, margin))
}

func (p *prober) Check(context.Context) barrier.Health {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.health
}

func (p *prober) set(converged bool, detail string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.health = barrier.Health{Converged: converged, Detail: detail}
}

func (c *cluster) node(dir string, n int) *member {
	m := &member{c: c, id: fmt.Sprintf("node-%d", n), dir: dir, host: &host{}, keys: c.s.trust(), prober: &prober{}}
	m.prober.set(true, "all is well")
	return m
}

// start runs a process of the node.
func (m *member) start() {
	m.c.t.Helper()
	var err error
	if m.store, err = durable.Open(m.dir); err != nil {
		m.c.t.Fatal(err)
	}
	if m.after != nil {
		m.store.AfterStep(m.after)
	}
	m.host = &host{prepare: m.host.prepare, onSwap: m.host.onSwap}
	m.agent, err = node.New(node.Config{
		Source: m, Host: m.host, Keys: m.keys, Dir: m.store, Interval: cmp.Or(m.interval, 100*time.Millisecond), Wait: m.wait,
		Jitter: func() float64 { return 0 }, Now: func() time.Time { return time.Now().Add(time.Duration(m.skew.Load())) },
	})
	if err != nil {
		m.c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := m.agent.Boot(ctx); err != nil {
		m.c.t.Fatal(err)
	}
	var parts sync.WaitGroup
	parts.Go(func() { _ = m.agent.Run(ctx) })
	parts.Go(func() {
		if err := m.agent.RunRollouts(ctx, node.RolloutConfig{
			Store: voter{m.c.store, m}, Source: m, Prober: m.prober,
			Timing: barrier.Timing{Poll: 50 * time.Millisecond, CallTimeout: 500 * time.Millisecond},
		}); err != nil {
			m.c.t.Error(err)
		}
	})
	m.stop = func() {
		cancel()
		parts.Wait()
		_ = m.store.Close()
	}
}

func (m *member) restart() {
	m.stop()
	m.start()
}

// cut takes the control plane away from this node, or gives it back.
func (m *member) cut(away bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away = away
}

var errAway = errors.New("connection refused")

func (m *member) reach() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return errAway
	}
	return nil
}

func (m *member) Poll(ctx context.Context, p nodeproto.Poll) (nodeproto.Answer, error) {
	m.mu.Lock()
	m.polls = append(m.polls, p)
	answers := m.onPoll
	m.mu.Unlock()
	if err := m.reach(); err != nil {
		return nodeproto.Answer{}, err
	}
	if answers != nil {
		if a, err, mine := answers(p); mine {
			return a, err
		}
	}
	return m.c.poll(ctx, m.id, p)
}

func (m *member) Ack(_ context.Context, a nodeproto.Ack) error {
	if err := m.reach(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.acks = append(m.acks, a)
	return nil
}

func (m *member) Self(context.Context) (nodeproto.Self, error) {
	if err := m.reach(); err != nil {
		return nodeproto.Self{}, err
	}
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	return nodeproto.Self{ID: m.id, Name: m.id, Cohort: !m.c.drained[m.id]}, nil
}

func (m *member) Candidate(ctx context.Context, digest string) (nodeproto.Candidate, error) {
	if err := m.reach(); err != nil {
		return nodeproto.Candidate{}, err
	}
	m.mu.Lock()
	m.fetched++
	gives := m.onFetch
	m.mu.Unlock()
	if gives != nil {
		if c, err, mine := gives(); mine {
			return c, err
		}
	}
	v, err := m.c.store.Look(ctx, barrier.MemberID(m.id))
	if err != nil {
		return nodeproto.Candidate{}, err
	}
	m.c.mu.Lock()
	defer m.c.mu.Unlock()
	if v.Rollout == nil || !v.Rollout.Open() || string(v.Rollout.Digest) != digest || !v.InEpoch {
		return nodeproto.Candidate{}, barrier.ErrNoArtefact
	}
	return m.c.candidates[digest], nil
}

// voter is the store over the node's way to it.
type voter struct {
	barrier.Voter
	m *member
}

func (v voter) Look(ctx context.Context, id barrier.MemberID) (barrier.View, error) {
	if err := v.m.reach(); err != nil {
		return barrier.View{}, err
	}
	return v.Voter.Look(ctx, id)
}

func (v voter) Join(ctx context.Context, id barrier.MemberID, boot barrier.BootID, incarnation uint64) (barrier.Registration, error) {
	if err := v.m.reach(); err != nil {
		return barrier.Registration{}, err
	}
	return v.Voter.Join(ctx, id, boot, incarnation)
}

func (v voter) Ack(ctx context.Context, r barrier.Ref, id barrier.MemberID, boot barrier.BootID, build string) error {
	return errors.Join(v.m.reach(), v.Voter.Ack(ctx, r, id, boot, build))
}

func (v voter) Revert(ctx context.Context, r barrier.Ref, by barrier.Authority, reason string) error {
	if err := v.m.reach(); err != nil {
		return err
	}
	return v.Voter.Revert(ctx, r, by, reason)
}

func (v voter) Converge(ctx context.Context, r barrier.Ref, id barrier.MemberID, boot barrier.BootID, detail string) error {
	if err := v.m.reach(); err != nil {
		return err
	}
	return v.Voter.Converge(ctx, r, id, boot, detail)
}

// snapshotOfDisk is what the node's directory holds, and putDisk puts it back.
func (m *member) snapshotOfDisk() map[string][]byte {
	m.c.t.Helper()
	files := map[string][]byte{}
	entries, err := os.ReadDir(m.dir)
	if err != nil {
		m.c.t.Fatal(err)
	}
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(m.dir, e.Name())); err != nil {
			m.c.t.Fatal(err)
		}
	}
	return files
}

func (m *member) putDisk(files map[string][]byte) {
	m.c.t.Helper()
	if err := os.RemoveAll(m.dir); err != nil {
		m.c.t.Fatal(err)
	}
	if err := os.Mkdir(m.dir, 0o700); err != nil {
		m.c.t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(m.dir, name), content, 0o600); err != nil {
			m.c.t.Fatal(err)
		}
	}
}

// fetches is how often the node asked for a candidate.
func (m *member) fetches() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.fetched
}

// asked are the node's polls so far.
func (m *member) asked() []nodeproto.Poll {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.polls)
}

// answers has f answer the node's polls, when it says so; nil: the control plane.
func (m *member) answers(f func(nodeproto.Poll) (nodeproto.Answer, error, bool)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.onPoll = f
}

func (p *prober) trials() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.begun)
}
