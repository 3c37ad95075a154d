// Package probe judges whether what a node serves since its last swap works: it asks the node's own sockets, and the origins
// behind them, about what the change concerned.
package probe

import (
	"context"
	"crypto/x509"
	"net/netip"
	"sync"
	"time"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/snapshot"
)

// Bounds of one judgement.
const (
	// MaxZones, MaxHosts and MaxPools are how many of each are asked; of more, those that come first by name.
	MaxZones = 200
	MaxHosts = 200
	MaxPools = 500
	// MinRequests is how many requests since the swap it takes to compare shares of failures.
	MinRequests = 100

	timeout    = time.Second // of one question
	atOnce     = 64          // questions under way
	recheck    = time.Second // a judgement that is younger is given again
	tooOld     = 15 * time.Second
	maxDetail  = 900 // bytes
	shareLen   = 30  // samples of the share before
	shareEvery = 10 * time.Second
)

// Requests are what the node's HTTP server has answered since it started.
type Requests struct{ All, Failed uint64 } // Failed: with a status of 500 to 599

// Config is what a Prober asks. All but HTTPS, OriginRoots and Now must be set.
type Config struct {
	Live func() *edge.View
	// DNS and HTTP are what the node listens on, host:port; an unspecified host is asked on loopback.
	DNS, HTTP string
	// HTTPS is the same for TLS; empty: certificates are not looked at.
	HTTPS    string
	Requests func() Requests
	// AllowedOrigins are as for the data plane: an origin that it would not connect to is not asked here.
	AllowedOrigins []netip.Prefix
	OriginRoots    *x509.CertPool   // nil: the system's
	Now            func() time.Time // nil: time.Now
}

// Report is a judgement.
type Report struct {
	Converged bool
	Detail    string // what was seen, at most 900 bytes and a count of what was left out
}

// Prober judges one change at a time. It is safe for concurrent use.
type Prober struct {
	c      Config
	origin *originClient
	share  shares
	own    counter

	checking sync.Mutex // one judgement at a time

	mu    sync.Mutex
	next  *change // that Prepare was told of
	trial *trial  // that Begin was told of
}

// New returns a Prober that has nothing to judge yet.
func New(c Config) *Prober {
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Prober{c: c, origin: newOriginClient(c.AllowedOrigins, c.OriginRoots)}
}

// Run samples the share of failures that later ones are compared with, over the last five minutes, until ctx ends.
func (p *Prober) Run(ctx context.Context) {
	tick := time.NewTicker(shareEvery)
	defer tick.Stop()
	for {
		p.share.add(p.requests())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// change is from one content to another, with how things were before it.
type change struct {
	before, after string // content hashes
	subjects
	failing map[string]bool // hosts that failed before it
	healthy []poolRef       // pools that had a healthy origin before it, less those that the change touches
}

// Prepare notes how what the change concerns does before it: which hosts fail anyway, which pools have a healthy origin. It is
// called while before is served (nil: nothing), and takes seconds when much is concerned; what was not asked when ctx ends is taken for
// a host that works and for a pool that does not.
func (p *Prober) Prepare(ctx context.Context, before, after *snapshot.Snapshot) {
	ch := newChange(before, after)
	others := untouchedPools(before, after, ch.subjects)
	ch.failing = make(map[string]bool)
	for i, err := range each(ctx, len(ch.known), func(ctx context.Context, i int) error { return p.askHost(ctx, ch.known[i]) }) {
		if err != nil && !unasked(err) {
			ch.failing[ch.known[i]] = true
		}
	}
	for i, err := range each(ctx, len(others), func(ctx context.Context, i int) error { return p.askPool(ctx, others[i]) }) {
		if err == nil {
			ch.healthy = append(ch.healthy, others[i])
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = ch
}

func newChange(before, after *snapshot.Snapshot) *change {
	ch := &change{after: after.ContentHash(), subjects: subjectsOf(before, after)}
	if before != nil {
		ch.before = before.ContentHash()
	}
	return ch
}

func (ch *change) is(before, after *snapshot.Snapshot) bool {
	had := ""
	if before != nil {
		had = before.ContentHash()
	}
	return ch != nil && ch.before == had && ch.after == after.ContentHash()
}

// Begin is called just before the swap from before (nil: nothing) to after: failures are counted from now on. margin is by how much
// their share may rise, in hundredths of a percentage point. Of a change that Prepare was not told of last, all that it concerns must
// work, however it did before, and no other pool is looked at.
func (p *Prober) Begin(before, after *snapshot.Snapshot, margin int) {
	now := p.requests()
	p.mu.Lock()
	defer p.mu.Unlock()
	ch := p.next
	if !ch.is(before, after) {
		ch = newChange(before, after)
	}
	p.next = nil
	p.trial = &trial{questions: p.questions(ch), margin: margin, base: now, before: p.share.until(now)}
}

// Check judges what is served since Begin; nothing has converged before its first call. A judgement of less than a second ago is
// given again. What there was no time for before ctx ended is as the judgement before found it.
func (p *Prober) Check(ctx context.Context) Report {
	p.checking.Lock()
	defer p.checking.Unlock()
	p.mu.Lock()
	t := p.trial
	p.mu.Unlock()
	if t == nil {
		return Report{Detail: "nothing was swapped in that could be judged"}
	}
	if !t.judgedAt.IsZero() && p.c.Now().Sub(t.judgedAt) < recheck {
		return t.judged
	}
	t.ask(ctx, p.c.Now)
	r, whole := t.judge(p.requests(), p.c.Now())
	if whole {
		t.judged, t.judgedAt = r, p.c.Now()
	}
	return r
}
