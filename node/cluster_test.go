package node_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/memory"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

// settings of a rollout in a cluster of a test.
const (
	testWindow = 4 * time.Second
	testSoak   = 200 * time.Millisecond
	testGrace  = 2 * time.Second
)

// cluster is a control plane with a cohort: a real store and coordinator, and what the control plane signs when the store
// has decided.
type cluster struct {
	t     fataler
	made  sealery
	s     signer
	store *memory.Store

	mu          sync.Mutex
	live        activation
	provisional map[barrier.RolloutID]activation
	candidates  map[string]nodeproto.Candidate
	margin      int
	freshTrial  bool // a fresh answer on trial names the trial
	drained     map[string]bool
	settled     map[barrier.RolloutID]barrier.State
	changed     chan struct{} // closed when an activation was signed

	stop   func() // the coordinator
	halted chan struct{}
}

// fataler is a test, of either kind.
type fataler interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
	Error(...any)
	Context() context.Context
}

func newCluster(t testing.TB, made sealery) *cluster {
	c := &cluster{
		t: t, made: made, s: testSigner(1), store: memory.New(memory.Options{}), provisional: map[barrier.RolloutID]activation{},
		candidates: map[string]nodeproto.Candidate{}, drained: map[string]bool{}, settled: map[barrier.RolloutID]barrier.State{},
		changed: make(chan struct{}), margin: 100,
	}
	c.live = made.activate(c.s, 1, 1, 1, seal.KindApply)
	if _, err := c.store.AdoptBaseline(t.Context(), barrier.Pointer{Digest: digestOf(c.live.hash), Version: 1}); err != nil {
		t.Fatal(err)
	}
	return c
}

func digestOf(hash string) barrier.Digest { return barrier.Digest(nodeproto.CandidateDigest(hash)) }

// roster makes ids the cohort.
func (c *cluster) roster(ids ...string) {
	row, err := c.store.Current(context.Background())
	if err != nil {
		c.t.Fatal(err)
	}
	members := make([]barrier.MemberID, len(ids))
	for i, id := range ids {
		members[i] = barrier.MemberID(id)
	}
	if _, err := c.store.SetRoster(context.Background(), row.Roster.Revision, members); err != nil {
		c.t.Fatal(err)
	}
}

// coordinate decides until ctx ends, and signs at once what was decided.
func (c *cluster) coordinate(ctx context.Context) {
	coordinator := barrier.NewCoordinator(barrier.CoordinatorOptions{
		Store: c.store, Leases: c.store, Lease: 90 * time.Millisecond, Poll: 20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	var parts sync.WaitGroup
	parts.Go(func() { coordinator.Run(ctx) })
	parts.Go(func() {
		for range c.store.Watch(ctx, barrier.TopicHead) {
			c.settle()
		}
	})
	parts.Wait()
}

// begin has a coordinator decide until halt.
func (c *cluster) begin() {
	var ctx context.Context
	ctx, c.stop = context.WithCancel(context.Background())
	c.halted = make(chan struct{})
	go func() { defer close(c.halted); c.coordinate(ctx) }()
}

// halt ends the coordinator.
func (c *cluster) halt() {
	c.stop()
	<-c.halted
}

// propose puts a version to the cohort.
func (c *cluster) propose(version uint64, window time.Duration) barrier.Rollout {
	c.t.Helper()
	ro, err := c.tryPropose(version, window)
	if err != nil {
		c.t.Fatal(err)
	}
	return ro
}

func (c *cluster) tryPropose(version uint64, window time.Duration) (barrier.Rollout, error) {
	return c.tryProposeSealed(c.made.seal(c.s, version), window)
}

func (c *cluster) proposeSealed(s seal.Sealed, window time.Duration) barrier.Rollout {
	c.t.Helper()
	ro, err := c.tryProposeSealed(s, window)
	if err != nil {
		c.t.Fatal(err)
	}
	return ro
}

func (c *cluster) tryProposeSealed(sealed seal.Sealed, window time.Duration) (barrier.Rollout, error) {
	c.settle()
	c.mu.Lock()
	c.candidates[nodeproto.CandidateDigest(sealed.ContentHash)] = nodeproto.Candidate{Sealed: sealed, Margin: c.margin}
	after := c.live.generation
	c.mu.Unlock()
	row, err := c.store.Current(context.Background())
	if err != nil {
		return barrier.Rollout{}, err
	}
	p := barrier.Proposal{
		ID: barrier.RolloutID(uuid.NewString()), Proposer: "test", Digest: digestOf(sealed.ContentHash), Version: sealed.Version,
		RosterRevision: row.Roster.Revision, Seen: row.Generation, After: after, Deadline: 20 * time.Second, Window: window,
	}
	if window > 0 {
		p.Soak, p.Grace, p.EvidenceTTL = testSoak, testGrace, time.Second
	}
	return c.store.Propose(context.Background(), p)
}

// settle signs what was decided since.
func (c *cluster) settle() {
	row, err := c.store.Current(context.Background())
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	ro := row.Rollout
	if ro == nil || c.settled[ro.ID] == ro.State {
		return
	}
	c.settled[ro.ID] = ro.State
	sealed := c.candidates[string(ro.Digest)].Sealed
	switch {
	case ro.OnTrial():
		c.provisional[ro.ID] = c.sign(sealed, ro.Generation, seal.KindProvisional, ro.ID)
	case ro.State == barrier.Committed:
		c.live = c.sign(sealed, ro.Generation, seal.KindApply, ro.ID)
	case ro.State == barrier.Confirmed:
		c.live = c.sign(sealed, ro.Generation, seal.KindConfirmed, ro.ID)
	case ro.State == barrier.Reverted:
		c.live = c.sign(c.live.Sealed, ro.Generation+1, seal.KindReverted, ro.ID)
	default:
		return
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

// sign activates s.
func (c *cluster) sign(s seal.Sealed, generation uint64, kind seal.ActivationKind, rollout barrier.RolloutID) activation {
	act := seal.Activation{
		Platform: platform, Epoch: 1, Generation: generation, Kind: kind, ParentGeneration: generation - 1,
		Rollout: string(rollout), IssuedAt: time.Unix(int64(generation), 0),
	}
	signed, err := seal.Activate(c.s.key, s, act)
	if err != nil {
		panic(err)
	}
	s.PayloadBLAKE3 = ""
	return activation{
		claim{c.s.key.ID(), 1, generation, s.Version, s.ContentHash, kind}, &seal.Artefact{Sealed: s, Activation: signed}, c.s,
	}
}

// poll answers as the control plane does.
func (c *cluster) poll(ctx context.Context, id string, p nodeproto.Poll) (nodeproto.Answer, error) {
	held := time.NewTimer(p.Wait)
	defer held.Stop()
	for {
		c.settle()
		row, err := c.store.Look(ctx, barrier.MemberID(id))
		if err != nil {
			return nodeproto.Answer{}, err
		}
		c.mu.Lock()
		answer, wait, err := c.answer(row, p)
		changed := c.changed
		c.mu.Unlock()
		if !wait || p.Wait == 0 {
			return answer, err
		}
		select {
		case <-changed:
		case <-held.C:
			return answer, err
		case <-ctx.Done():
			return nodeproto.Answer{}, ctx.Err()
		}
	}
}

func (c *cluster) answer(row barrier.View, p nodeproto.Poll) (_ nodeproto.Answer, wait bool, _ error) {
	answer := nodeproto.Answer{Version: c.live.version}
	if p.Nonce != "" {
		answer.Freshness = c.s.fresh(p.Nonce, c.live.Artefact)
	}
	offer := func(a activation) (nodeproto.Answer, bool, error) {
		art := *a.Artefact
		if nodeproto.Fingerprint(&art) == p.Rejected {
			answer.Skipped = true
			return answer, false, nil
		}
		if p.Held != "" && c.payloadHash(art.Sealed) == p.Held {
			answer.Held, art.Payload = true, nil
		}
		answer.Artefact, answer.Version = &art, a.version
		return answer, false, nil
	}
	if ro := row.Rollout; ro != nil && p.Trial == string(ro.ID) && row.InEpoch {
		trial, signed := c.provisional[ro.ID]
		switch {
		case ro.OnTrial() && signed && p.Generation < ro.Generation:
			return offer(trial)
		case ro.OnTrial() && p.Generation == ro.Generation:
			if p.Nonce != "" && c.freshTrial {
				answer.Freshness = c.s.fresh(p.Nonce, trial.Artefact)
			}
			return answer, true, nil
		case ro.State == barrier.Confirmed && p.Generation == ro.Generation:
			return offer(c.live)
		}
	}
	switch live := c.live.generation; {
	case p.Generation > live:
		return nodeproto.Answer{}, false, fmt.Errorf("%w: generation %d, live is %d", nodeproto.ErrAhead, p.Generation, live)
	case p.Generation == live:
		return answer, true, nil
	}
	return offer(c.live)
}

func (c *cluster) payloadHash(s seal.Sealed) string {
	v, err := seal.OpenCandidate(s, c.s.trust(), nil)
	if err != nil {
		return ""
	}
	return v.PayloadBLAKE3()
}

// now is what is live.
func (c *cluster) now() activation {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.live
}

// until waits, in virtual time, for something that is to come within a minute.
func (c *cluster) until(what string, is func() bool) {
	c.t.Helper()
	for range 6000 {
		synctest.Wait()
		if is() {
			return
		}
		time.Sleep(10 * time.Millisecond) // virtual
	}
	row, _ := c.store.Current(context.Background())
	c.t.Fatalf("never: %s; rollout %+v, seats %+v", what, row.Rollout, row.Seats)
}

// state is that of the newest rollout.
func (c *cluster) state() barrier.State {
	row, err := c.store.Current(context.Background())
	if err != nil || row.Rollout == nil {
		return ""
	}
	return row.Rollout.State
}

func (c *cluster) reason() string {
	row, err := c.store.Current(context.Background())
	if err != nil || row.Rollout == nil {
		return ""
	}
	return row.Rollout.Reason
}

// in runs f in a bubble of virtual time with a cluster of n nodes that serve version 1, and ends them after it.
func inCluster(t *testing.T, n int, made sealery, f func(c *cluster, nodes []*member)) {
	t.Helper()
	dirs := make([]string, n)
	root := inMemory(t)
	for i := range dirs {
		dirs[i] = fmt.Sprintf("%s/%d", root, i)
	}
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, made)
		c.begin()
		var nodes []*member
		var ids []string
		for i, dir := range dirs {
			nodes = append(nodes, c.node(dir, i))
			ids = append(ids, nodes[i].id)
		}
		c.roster(ids...)
		for _, m := range nodes {
			m.start()
		}
		defer func() {
			for _, m := range nodes {
				m.stop()
			}
			c.halt()
		}()
		c.until("all serve version 1 and take part", func() bool {
			for _, m := range nodes {
				if s := m.agent.Status(); s.Version != 1 || !s.Rollout.Applied {
					return false
				}
			}
			return true
		})
		f(c, nodes)
	})
}
