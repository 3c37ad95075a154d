package node_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/internal/durable"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/node"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

const platform = "0190f6a0-0000-7000-8000-000000000000"

// signer makes real artefacts.
type signer struct{ key seal.SigningKey }

// testSigner derives its key from a fixed seed, so that the processes of one test share it.
func testSigner(n int) signer {
	k, err := seal.ParseSigningKey(fmt.Sprintf("%064x", n))
	if err != nil {
		panic(err)
	}
	return signer{k}
}

func (s signer) trust() seal.TrustedKeys {
	t, err := seal.Trust(s.key.Public())
	if err != nil {
		panic(err)
	}
	return t
}

// artefact seals a platform of one zone whose content follows version, activated under generation.
func (s signer) artefact(version, generation uint64) *seal.Artefact {
	name := zone.MustName("example.test")
	z := &zone.Zone{ID: "0190f6a0-0000-7000-8000-000000000001", Name: name}
	r, err := zone.ParseRecord(name, "@", "TXT", fmt.Sprintf("version %d", version), 0, false)
	if err != nil {
		panic(err)
	}
	z.Records = []zone.Record{r}
	snap, _, err := snapshot.Build(snapshot.Input{Zones: []snapshot.ZoneInput{{Workspace: "w", Zone: z}}, Now: time.Unix(0, 0)},
		snapshot.Meta{Version: version, CreatedAt: time.Unix(0, 0)})
	if err != nil {
		panic(err)
	}
	sealed, err := seal.Seal(s.key, snap)
	if err != nil {
		panic(err)
	}
	signed, err := seal.Activate(s.key, sealed, seal.Activation{
		Platform: platform, Epoch: 1, Generation: generation, Kind: seal.KindApply,
		ParentGeneration: generation - 1, IssuedAt: time.Unix(int64(generation), 0),
	})
	if err != nil {
		panic(err)
	}
	sealed.PayloadBLAKE3 = "" // does not travel
	return &seal.Artefact{Sealed: sealed, Activation: signed}
}

// fresh answers a nonce with what a names.
func (s signer) fresh(nonce string, a *seal.Artefact) string {
	act, _, err := seal.VerifyActivation(a.Activation, s.trust())
	if err != nil {
		panic(err)
	}
	h, err := seal.SignFreshness(s.key, seal.FreshnessStatement{
		Nonce: nonce, Epoch: act.Epoch, Generation: act.Generation, ContentHash: act.ContentHash, IssuedAt: time.Unix(0, 0),
	})
	if err != nil {
		panic(err)
	}
	return h
}

// source is a control plane that a test scripts: each poll goes to the next answer, and after the last one
// the agent's run ends.
type source struct {
	answers []func(nodeproto.Poll) (nodeproto.Answer, error)
	end     context.CancelFunc
	polls   []nodeproto.Poll
	at      []time.Time
	acks    []nodeproto.Ack
	ackErr  error
	onAck   func(nodeproto.Ack)
	// interval between polls, default one second: for tests inside a bubble of virtual time.
	interval time.Duration
}

func (s *source) Poll(_ context.Context, p nodeproto.Poll) (nodeproto.Answer, error) {
	s.polls = append(s.polls, p)
	s.at = append(s.at, time.Now())
	n := len(s.polls)
	if n > len(s.answers) {
		s.end()
		return nodeproto.Answer{}, context.Canceled
	}
	return s.answers[n-1](p)
}

func (s *source) Ack(_ context.Context, a nodeproto.Ack) error {
	if s.ackErr != nil {
		return s.ackErr
	}
	s.acks = append(s.acks, a)
	if s.onAck != nil {
		s.onAck(a)
	}
	return nil
}

// lastAck is what the agent reported last.
func (s *source) lastAck(t *testing.T) nodeproto.Ack {
	t.Helper()
	if len(s.acks) == 0 {
		t.Fatal("no acknowledgement")
	}
	return s.acks[len(s.acks)-1]
}

func offers(s signer, a *seal.Artefact) func(nodeproto.Poll) (nodeproto.Answer, error) {
	return func(p nodeproto.Poll) (nodeproto.Answer, error) {
		ans := nodeproto.Answer{Artefact: a, Version: a.Version}
		if p.Nonce != "" {
			ans.Freshness = s.fresh(p.Nonce, a)
		}
		if p.Rejected == nodeproto.Fingerprint(a) {
			ans.Artefact, ans.Skipped = nil, true
		}
		return ans, nil
	}
}

func fails(nodeproto.Poll) (nodeproto.Answer, error) {
	return nodeproto.Answer{}, errors.New("connection refused")
}

// host records what was swapped in.
type host struct {
	mu         sync.Mutex // guards the next three while a process runs
	prepared   int
	served     []uint64
	generation uint64 // of the last
	prepare    func(*seal.Candidate) error
	onSwap     func()
}

func (h *host) Prepare(_ context.Context, c *seal.Candidate, _, generation uint64) (node.Prepared, error) {
	h.mu.Lock()
	h.prepared++
	h.mu.Unlock()
	if h.prepare != nil {
		if err := h.prepare(c); err != nil {
			return nil, err
		}
	}
	return prepared{h, c.Snapshot().Meta().Version, generation}, nil
}

type prepared struct {
	h                   *host
	version, generation uint64
}

func (p prepared) Swap() {
	p.h.mu.Lock()
	p.h.served = append(p.h.served, p.version)
	p.h.generation = p.generation
	p.h.mu.Unlock()
	if p.h.onSwap != nil {
		p.h.onSwap()
	}
}

// serving is the version that h serves, 0 for none.
func (h *host) serving() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.served) == 0 {
		return 0
	}
	return h.served[len(h.served)-1]
}

// run boots an agent on the directory and lets it poll through the answers.
func run(t *testing.T, path string, keys seal.TrustedKeys, h *host, src *source) *node.Agent {
	t.Helper()
	d, err := durable.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	return runIn(t, d, keys, h, src)
}

func runIn(t *testing.T, d *durable.Dir, keys seal.TrustedKeys, h *host, src *source) *node.Agent {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	src.end = cancel
	a, err := node.New(node.Config{
		Source: src, Host: h, Keys: keys, Dir: d, Interval: cmp.Or(src.interval, time.Second), Jitter: func() float64 { return 0 },
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Boot(ctx); err != nil {
		t.Fatal(err)
	}
	if err := a.Run(ctx); err != nil {
		t.Fatal(err)
	}
	return a
}

// versions are what h has served, and compiled is how often it compiled.
func (h *host) versions() []uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.served)
}

func (h *host) compiled() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.prepared
}
