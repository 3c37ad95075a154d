package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/snapshot"
)

// cohort is the agent as a member of the cohort sees it: the barrier's Host, Slots and Fetcher. Its methods are called
// by the member's goroutine.
type cohort struct {
	a   *Agent
	cfg RolloutConfig

	view   atomic.Pointer[barrier.View] // that was read last; the member looks beside a build, too
	missed atomic.Bool                  // the last look had no answer
	opened *candidate                   // that was verified last
	asked  barrier.Pointer              // that the agent was nudged for last
}

var (
	_ barrier.Host    = (*cohort)(nil)
	_ barrier.Slots   = (*cohort)(nil)
	_ barrier.Fetcher = (*cohort)(nil)
)

// candidate is a file of bytes, taken apart and verified.
type candidate struct {
	raw    []byte
	sealed seal.Sealed
	c      *seal.Candidate
	margin int
}

// held is the candidate of a rollout, compiled and not served.
type held struct {
	candidate
	pointer  barrier.Pointer
	epoch    uint64
	prepared Prepared
	kept     bool // on disk
}

// onHand begins what passes for the bytes of a snapshot that this process has verified: the rest is its digest. A file begins with a
// brace.
var onHand = []byte("on hand\n")

// look notes what the member reads, which its Host needs too.
type look struct {
	barrier.Voter
	c *cohort
}

func (l look) Look(ctx context.Context, m barrier.MemberID) (barrier.View, error) {
	v, err := l.Voter.Look(ctx, m)
	if err != nil {
		l.c.missed.Store(true)
		return v, err
	}
	l.c.view.Store(&v)
	if l.c.missed.Swap(false) {
		signal(l.c.a.wake) // what this node did alone is to be told now, not after the agent's pause
	}
	return v, nil
}

// voting returns the rollout that waits for votes, or nil.
func (c *cohort) voting() *barrier.Rollout {
	if v := c.view.Load(); v != nil && v.Rollout != nil && v.Rollout.Voting() {
		return v.Rollout
	}
	return nil
}

// Get implements barrier.Fetcher: the candidate that is voted on. What is decided comes to a node as to every other, by the agent's
// own poll; until then it is unavailable.
func (c *cohort) Get(ctx context.Context, d barrier.Digest) ([]byte, error) {
	if ro := c.voting(); ro != nil && ro.Digest == d {
		return c.fetch(ctx, d)
	}
	c.a.work.Lock()
	defer c.a.work.Unlock()
	p := barrier.Pointer{Digest: d}
	if v := c.view.Load(); v != nil && v.Committed.Digest == d {
		p = v.Committed
	}
	if c.asked != p {
		c.asked = p
		c.a.nudge()
	}
	if last := c.a.Status().LastError; last != nil && p.Version != 0 && last.Version == p.Version {
		return nil, fmt.Errorf("%w: this node refused it: %s", barrier.ErrNoArtefact, last.Message)
	}
	return nil, errors.New("this node has not installed it yet")
}

// fetch asks for the candidate that the open rollout carries, and does not look at it. What is malformed will not be better when it
// is fetched again.
func (c *cohort) fetch(ctx context.Context, d barrier.Digest) ([]byte, error) {
	c.a.work.Lock()
	unproven, provisional := c.a.unproven(), c.a.served.provisional()
	c.a.work.Unlock()
	switch {
	case unproven:
		return nil, errors.New("nothing proves yet that what this node has is live: it votes once it has installed something that is")
	case provisional:
		return nil, errors.New("the activation that confirms what this node serves has not come yet: without it there is nothing to go back to")
	}
	got, err := c.cfg.Source.Candidate(ctx, string(d))
	var r *seal.Refusal
	switch {
	case errors.As(err, &r):
		return nil, fmt.Errorf("%w: %w", barrier.ErrNoArtefact, err)
	case err != nil:
		return nil, err
	}
	return encodeCandidate(got)
}

// open verifies a file; the last one is remembered.
func (c *cohort) open(raw []byte) (*candidate, error) {
	if o := c.opened; o != nil && len(raw) > 0 && len(o.raw) == len(raw) && &o.raw[0] == &raw[0] {
		return o, nil
	}
	art, margin, err := decodeSlot(raw)
	if err != nil {
		return nil, err
	}
	c.a.work.Lock()
	defer c.a.work.Unlock()
	opened, err := seal.OpenCandidate(art.Sealed, c.a.cfg.Keys, c.a.served.snapshot())
	if err != nil {
		return nil, err
	}
	c.opened = &candidate{raw, art.Sealed, opened, margin}
	return c.opened, nil
}

// Digest implements barrier.Host.
func (c *cohort) Digest(raw []byte) (barrier.Digest, error) {
	if d, ok := bytes.CutPrefix(raw, onHand); ok {
		return barrier.Digest(d), nil
	}
	o, err := c.open(raw)
	if err != nil {
		return "", err
	}
	return barrier.Digest(nodeproto.CandidateDigest(o.c.Snapshot().ContentHash())), nil
}

// Classify implements barrier.Host: every snapshot that this build can compile it can take over while it serves.
func (c *cohort) Classify(context.Context, barrier.Pointer, []byte) (barrier.Class, error) {
	return barrier.Class{Name: "live-safe"}, nil
}

// Prepare implements barrier.Host: nothing for what is served already, what was served for the way back from a trial, and else
// the candidate, compiled.
func (c *cohort) Prepare(ctx context.Context, p barrier.Pointer, raw []byte) (barrier.Prepared, error) {
	a := c.a
	a.work.Lock()
	defer a.work.Unlock()
	if a.serves(p) {
		return &standing{c, p}, nil
	}
	if h := a.home; h != nil && h.stands(p) {
		// Not counted as an attempt to load: it was served before, and a full disk must not keep a node on trial.
		act := h.Activation()
		back, err := a.compile(ctx, h.Candidate(), act.Epoch, act.Generation)
		if err != nil {
			return nil, err
		}
		return &wayBack{c, p, h, back}, nil
	}
	o, err := c.candidate(ctx, p, raw)
	if err != nil {
		return nil, err
	}
	if v := o.c.Snapshot().Meta().Version; v != p.Version {
		return nil, fmt.Errorf("the candidate is version %d, the rollout's is version %d", v, p.Version)
	}
	epoch := a.epoch()
	prepared, err := a.prepare(ctx, o.c, epoch, p.Generation)
	if err != nil {
		return nil, err
	}
	h := &held{candidate: *o, pointer: p, epoch: epoch, prepared: prepared}
	a.held, c.opened = h, nil
	c.lookBefore(ctx, h)
	return &built{c, h}, nil
}

// lookBefore has the prober see how what is to be on trial does while the old is served. The lock is held, and given up meanwhile.
func (c *cohort) lookBefore(ctx context.Context, h *held) {
	p, ok := c.cfg.Prober.(Preparer)
	if ro := c.voting(); !ok || ro == nil || ro.Window == 0 {
		return
	}
	before, after := c.a.served.snapshot(), h.c.Snapshot()
	c.a.work.Unlock()
	defer c.a.work.Lock()
	ctx, cancel := context.WithTimeout(ctx, maxLookBefore)
	defer cancel()
	p.Prepare(ctx, before, after)
}

// maxLookBefore bounds by how much looking at things before a change delays a vote.
const maxLookBefore = 10 * time.Second

// candidate verifies raw. When raw stands for something that the node serves under another generation, the rollout carries the same
// content again, sealed anew perhaps. The lock is held, and given up meanwhile.
func (c *cohort) candidate(ctx context.Context, p barrier.Pointer, raw []byte) (*candidate, error) {
	c.a.work.Unlock()
	defer c.a.work.Lock()
	if !bytes.HasPrefix(raw, onHand) {
		return c.open(raw)
	}
	if ro := c.voting(); ro == nil || ro.Pointer() != p {
		return nil, errors.New("what this node serves has changed")
	}
	raw, err := c.fetch(ctx, p.Digest)
	if err != nil {
		return nil, err
	}
	o, err := c.open(raw)
	if err != nil {
		return nil, err
	}
	if got := nodeproto.CandidateDigest(o.c.Snapshot().ContentHash()); got != string(p.Digest) {
		return nil, fmt.Errorf("the bytes have the digest %s, not %s", got, p.Digest)
	}
	return o, nil
}

// stands tells whether i is what p points to, or a later activation of it.
func (i *installed) stands(p barrier.Pointer) bool {
	act := i.Activation()
	return names(p, act.Version, act.ContentHash) &&
		(act.Generation == p.Generation || act.Generation > p.Generation && !i.provisional())
}

// serves tells whether p is what is served. The lock is held.
func (a *Agent) serves(p barrier.Pointer) bool { return a.served != nil && a.served.stands(p) }

// epoch is that of the platform as far as the node knows.
func (a *Agent) epoch() uint64 {
	if mark, ok := a.state.Marks.Highest(a.cfg.Keys); ok {
		return mark.Epoch
	}
	return 1
}

// running is what the host serves, as the barrier names it.
func (a *Agent) running() barrier.Pointer {
	if a.served == nil {
		return barrier.Pointer{}
	}
	m := a.state.Rollout
	if a.serves(m.Confirmed) {
		return m.Confirmed
	}
	act := a.served.Activation()
	return barrier.Pointer{
		Generation: act.Generation, Version: act.Version, Digest: barrier.Digest(nodeproto.CandidateDigest(act.ContentHash)),
	}
}

// Converged implements barrier.Host.
func (c *cohort) Converged(ctx context.Context) (barrier.Health, error) {
	c.a.work.Lock()
	onTrial := c.a.served.provisional()
	c.a.work.Unlock()
	if !onTrial {
		return barrier.Health{Detail: "the trial is not what this node serves: something newer went live"}, nil
	}
	if c.cfg.Prober == nil {
		return barrier.Health{Converged: true, Detail: "nothing is probed"}, nil
	}
	// The member gives up after CallTimeout, which fails the trial of the whole cohort. A prober that is slow for once still
	// says in time what it knows.
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timing.CallTimeout*3/4)
	defer cancel()
	return c.cfg.Prober.Check(ctx), nil
}

// begin tells the prober of a trial.
func (c *cohort) begin(margin int) func(before, after *snapshot.Snapshot) {
	return func(before, after *snapshot.Snapshot) {
		if c.cfg.Prober != nil {
			c.cfg.Prober.Begin(before, after, margin)
		}
	}
}
