package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/internal/durable"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/node"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

// TestTrust: in whatever order the control plane publishes, somebody on the way replays, re-orders, forges and
// equivocates, keys come, go and are stolen, and the disk is damaged or lost, a node installs exactly what the
// rules let it install, its marks are what they should be, and it goes on serving. In the end, once the operator has
// dropped what was stolen, it serves what is live.
func TestTrust(t *testing.T) {
	root, made := inMemory(t), sealery{}
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(root, "")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		rapid.SyncTest(rt, func(rt *rapid.T) {
			m := newTrustMachine(dir, made)
			defer m.stop()
			m.start(rt)
			rt.Repeat(rapid.StateMachineActions(m))
			m.recover(rt)
		})
	})
}

// inMemory is a directory for some ten thousand fsyncs, on a disk that is none where there is one.
func inMemory(t *testing.T) string {
	t.Helper()
	const shm = "/dev/shm"
	if dir, err := os.MkdirTemp(shm, "guardyn-trust-"); err == nil {
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		return dir
	}
	return t.TempDir()
}

// sealery keeps sealed snapshots, by key and version: making them is slow.
type sealery map[string]seal.Sealed

func (y sealery) seal(s signer, version uint64) seal.Sealed {
	id := fmt.Sprintf("%s %d", s.key.ID(), version)
	if sealed, ok := y[id]; ok {
		return sealed
	}
	y[id] = sealAs(s, version, version)
	return y[id]
}

// activation is a real artefact and what it claims.
type activation struct {
	claim
	*seal.Artefact
	by signer
}

func (y sealery) activate(s signer, version, epoch, generation uint64, kind seal.ActivationKind) activation {
	sealed := y.seal(s, version)
	signed, err := seal.Activate(s.key, sealed, seal.Activation{
		Platform: platform, Epoch: epoch, Generation: generation, Kind: kind, ParentGeneration: generation - 1,
		IssuedAt: time.Unix(int64(generation), 0),
	})
	if err != nil {
		panic(err)
	}
	sealed.PayloadBLAKE3 = "" // does not travel
	return activation{
		claim{s.key.ID(), epoch, generation, version, sealed.ContentHash, kind}, &seal.Artefact{Sealed: sealed, Activation: signed}, s,
	}
}

// The keys that may be trusted; a stranger's never is.
const keys = 4

var stranger = testSigner(99)

// trustMachine is a node with its disk, its operator, its control plane, and somebody between the two.
type trustMachine struct {
	dir   string
	made  sealery
	rules rules

	// The control plane.
	signer   signer
	epoch    uint64
	history  []activation // the last one is live
	versions uint64       // published so far
	stolen   map[seal.KeyID]bool

	// The process under test.
	trusted []signer
	store   *durable.Dir
	agent   *node.Agent
	host    *host
	wire    *wire
	ask     nodeproto.Poll // that waits for its answer
	end     context.CancelFunc
	ended   chan struct{}
}

// wire hands each poll to the machine and waits for what it answers.
type wire struct {
	asks    chan nodeproto.Poll
	answers chan reply
}

type reply struct {
	nodeproto.Answer
	err error
}

func (w *wire) Poll(ctx context.Context, p nodeproto.Poll) (nodeproto.Answer, error) {
	select {
	case w.asks <- p:
	case <-ctx.Done():
		return nodeproto.Answer{}, ctx.Err()
	}
	select {
	case r := <-w.answers:
		return r.Answer, r.err
	case <-ctx.Done():
		return nodeproto.Answer{}, ctx.Err()
	}
}

func (w *wire) Ack(context.Context, nodeproto.Ack) error { return nil }

func newTrustMachine(dir string, made sealery) *trustMachine {
	m := &trustMachine{dir: dir, made: made, signer: testSigner(1), epoch: 1, stolen: map[seal.KeyID]bool{}, trusted: []signer{testSigner(1), testSigner(2)}}
	m.rules.marks = map[seal.KeyID]claim{}
	m.publish(1, seal.KindApply)
	return m
}

// publish makes the control plane activate a version, which the node does not know of yet.
func (m *trustMachine) publish(version uint64, kind seal.ActivationKind) {
	generation := uint64(1)
	if len(m.history) > 0 {
		generation = m.live().generation + 1
	}
	m.versions = max(m.versions, version)
	m.history = append(m.history, m.made.activate(m.signer, version, m.epoch, generation, kind))
}

func (m *trustMachine) live() activation { return m.history[len(m.history)-1] }

// start runs a new process with the keys that are trusted now.
func (m *trustMachine) start(rt *rapid.T) {
	m.rules.trusted = nil
	var public []seal.PublicKey
	for _, s := range m.trusted {
		m.rules.trusted = append(m.rules.trusted, s.key.ID())
		public = append(public, s.key.Public())
	}
	trust, err := seal.Trust(public...)
	if err != nil {
		rt.Fatal(err)
	}
	may := m.rules.start()
	if m.store, err = durable.Open(m.dir); err != nil {
		rt.Fatal(err)
	}
	m.host, m.wire = &host{}, &wire{asks: make(chan nodeproto.Poll), answers: make(chan reply)}
	m.agent, err = node.New(node.Config{
		Source: m.wire, Host: m.host, Keys: trust, Dir: m.store, Jitter: func() float64 { return 0 },
	})
	if (err == nil) != may {
		rt.Fatalf("a new process starts: %v, the rules say %v", err, may)
	}
	if err != nil {
		// What the error says to do.
		m.stop()
		m.loseDisk(rt)
		m.start(rt)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.end, m.ended = cancel, make(chan struct{})
	if _, err := m.agent.Boot(ctx); err != nil {
		rt.Fatal(err)
	}
	go func() { defer close(m.ended); _ = m.agent.Run(ctx) }()
	m.ask = <-m.wire.asks
}

func (m *trustMachine) stop() {
	if m.end != nil {
		m.end()
		<-m.ended
		m.end = nil
	}
	if m.store != nil {
		_ = m.store.Close()
		m.store = nil
	}
}

func (m *trustMachine) restart(rt *rapid.T) {
	m.stop()
	m.start(rt)
}

// deliver answers the poll that waits and returns once the next one does.
func (m *trustMachine) deliver(r reply) {
	if a := r.Artefact; a != nil && nodeproto.Fingerprint(a) == m.ask.Rejected {
		r.Artefact, r.Skipped = nil, true
	}
	m.wire.answers <- r
	m.ask = <-m.wire.asks
}

// offer delivers an artefact, with a fresh answer when proof is not nil.
func (m *trustMachine) offer(a activation, genuine bool, proof *activation) {
	r := reply{Answer: nodeproto.Answer{Artefact: a.Artefact, Version: a.Version}}
	var named *claim
	if proof != nil && m.ask.Nonce != "" {
		r.Freshness = proof.by.fresh(m.ask.Nonce, proof.Artefact)
		if m.rules.trusts(proof.key) {
			named = &proof.claim
		}
	}
	m.rules.offer(a.claim, genuine, named)
	m.deliver(r)
}

// Check compares the node with the rules; it runs after each action.
func (m *trustMachine) Check(rt *rapid.T) {
	var want claim
	if m.rules.served != nil {
		want = *m.rules.served
	}
	got := m.agent.Status()
	if got.Epoch != want.epoch || got.Generation != want.generation || got.Version != want.version || got.ContentHash != want.hash ||
		m.host.serving() != want.version {
		rt.Fatalf("serves version %d, says epoch %d generation %d version %d; the rules say epoch %d generation %d version %d; last error %+v",
			m.host.serving(), got.Epoch, got.Generation, got.Version, want.epoch, want.generation, want.version, got.LastError)
	}
	if m.ask.Epoch != want.epoch || m.ask.Generation != want.generation || m.ask.Have != want.version {
		rt.Fatalf("polls with %+v", m.ask)
	}
	if m.rules.needsProof() && m.ask.Nonce == "" {
		rt.Fatal("no nonce, although only a fresh answer proves anything")
	}
	if m.rules.damaged {
		return
	}
	for k, mark := range m.savedMarks(rt) {
		if w := m.rules.marks[k]; mark != (seal.Mark{Epoch: w.epoch, Generation: w.generation, ContentHash: w.hash, Kind: w.kind}) {
			rt.Fatalf("the mark of key %s is %+v, want %+v", k, mark, w)
		}
	}
}

// savedMarks is what a new process would remember.
func (m *trustMachine) savedMarks(rt *rapid.T) seal.Marks {
	raw, err := os.ReadFile(filepath.Join(m.dir, "state.json"))
	if errors.Is(err, os.ErrNotExist) && len(m.rules.marks) == 0 {
		return nil
	}
	if err != nil {
		rt.Fatal(err)
	}
	var s struct{ Marks seal.Marks }
	if err := json.NewDecoder(strings.NewReader(string(raw))).Decode(&s); err != nil && !errors.Is(err, io.EOF) {
		rt.Fatal(err)
	}
	if len(s.Marks) != len(m.rules.marks) {
		rt.Fatalf("marks of keys %v are saved, want those of %v", s.Marks, m.rules.marks)
	}
	return s.Marks
}

// recover is what an operator does in the end: drop what was stolen, publish. Whatever happened, the node serves it.
func (m *trustMachine) recover(rt *rapid.T) {
	m.trusted = slices.DeleteFunc(m.trusted, func(s signer) bool { return m.stolen[s.key.ID()] })
	if !m.trustsNow(m.signer) {
		m.trusted = append(m.trusted, m.signer)
	}
	m.restart(rt)
	m.Apply(rt)
	if got, want := m.agent.Status(), m.live(); got.Generation != want.generation || got.Version != want.version || m.host.serving() != want.version {
		rt.Fatalf("serves version %d, generation %d in the end; version %d, generation %d is live", got.Version, got.Generation, want.version, want.generation)
	}
}

// activateFor is an artefact whose activation is of a rollout.
func (y sealery) activateFor(s signer, _, generation uint64, kind seal.ActivationKind, rollout barrier.RolloutID, sealed seal.Sealed) *seal.Artefact {
	sealed.KeyID = s.key.ID()
	act := seal.Activation{
		Platform: platform, Epoch: 1, Generation: generation, Kind: kind, ParentGeneration: generation - 1,
		Rollout: string(rollout), IssuedAt: time.Unix(int64(generation), 0),
	}
	signed, err := seal.Activate(s.key, sealed, act)
	if err != nil {
		panic(err)
	}
	if s.key.ID() != testSigner(1).key.ID() {
		sealed.KeyID = testSigner(1).key.ID() // only the activation is the stranger's
	}
	sealed.PayloadBLAKE3 = ""
	return &seal.Artefact{Sealed: sealed, Activation: signed}
}

// sealAs seals the content of one version under the number of another.
func sealAs(s signer, content, version uint64) seal.Sealed {
	name := zone.MustName("example.test")
	r, err := zone.ParseRecord(name, "@", "TXT", fmt.Sprintf("version %d", content), 0, false)
	if err != nil {
		panic(err)
	}
	z := &zone.Zone{ID: "0190f6a0-0000-7000-8000-000000000001", Name: name, Records: []zone.Record{r}}
	snap, _, err := snapshot.Build(snapshot.Input{Zones: []snapshot.ZoneInput{{Workspace: "w", Zone: z}}}, snapshot.Meta{Version: version})
	if err != nil {
		panic(err)
	}
	sealed, err := seal.Seal(s.key, snap)
	if err != nil {
		panic(err)
	}
	return sealed
}
