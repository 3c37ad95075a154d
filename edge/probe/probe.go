// Package probe judges whether what a node serves since its last swap works: it asks the node's own sockets, and the origins
// behind them, about what the change concerned.
package probe

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"strings"
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
	atOnce     = 16          // questions under way
	recheck    = time.Second // a judgement that is younger is given again
	maxDetail  = 900         // bytes
	shareLen   = 30          // samples of the share before
	shareEvery = 10 * time.Second
)

// Requests are what the node's HTTP server has answered since it started.
type Requests struct{ All, Failed uint64 } // Failed: with a status of 500 to 599

// Config is what a Prober asks. All but OriginRoots, Now must be set.
type Config struct {
	Live func() *edge.View
	// DNS and HTTP are what the node listens on, host:port; an unspecified host is asked on loopback.
	DNS, HTTP string
	Requests  func() Requests
	// AllowedOrigins are as for the data plane: an origin that it would not connect to is not asked here.
	AllowedOrigins []netip.Prefix
	OriginRoots    *x509.CertPool   // nil: the system's
	Now            func() time.Time // nil: time.Now
}

// Report is a judgement.
type Report struct {
	Converged bool
	Detail    string // what was seen, at most 900 bytes
}

// Prober judges one change at a time. It is safe for concurrent use.
type Prober struct {
	c      Config
	origin *originClient
	share  shares

	mu       sync.Mutex
	subjects subjects        // of the change
	failing  map[string]bool // hosts that failed before it
	healthy  []poolRef       // pools that had a healthy origin before it, less those that the change touches
	margin   int             // in hundredths of a percentage point
	base     Requests        // at the swap, this package's own questions taken off
	before   float64         // share of failures before the swap
	last     Report
	lastAt   time.Time

	own counter // of this package's questions over HTTP
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

// Prepare notes how what the change concerns does before it: which hosts fail anyway, which pools have a healthy origin. It is
// called while before is served; it may take seconds.
func (p *Prober) Prepare(ctx context.Context, before, after *snapshot.Snapshot) {
	subjects := subjectsOf(before, after)
	others := untouchedPools(before, after, subjects)
	failing := make(map[string]bool)
	for i, err := range p.each(ctx, len(subjects.known), func(ctx context.Context, i int) error { return p.askHost(ctx, subjects.known[i]) }) {
		if err != nil {
			failing[subjects.known[i]] = true
		}
	}
	var healthy []poolRef
	for i, err := range p.each(ctx, len(others), func(ctx context.Context, i int) error { return p.origin.check(ctx, others[i]) }) {
		if err == nil {
			healthy = append(healthy, others[i])
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.subjects, p.failing, p.healthy = subjects, failing, healthy
}

// Begin is called just before the swap to what Prepare was told of: failures are counted from now on. margin is by how much their share may
// rise, in hundredths of a percentage point.
func (p *Prober) Begin(margin int) {
	now := p.requests()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.margin, p.base, p.before = margin, now, p.share.until(now)
	p.last, p.lastAt = Report{}, time.Time{}
}

// Check judges what is served now. A judgement of less than a second ago is given again.
func (p *Prober) Check(ctx context.Context) Report {
	p.mu.Lock()
	if !p.lastAt.IsZero() && p.c.Now().Sub(p.lastAt) < recheck {
		defer p.mu.Unlock()
		return p.last
	}
	s, failing, healthy := p.subjects, p.failing, p.healthy
	margin, base, before := p.margin, p.base, p.before
	p.mu.Unlock()

	var j judgement
	j.add("zones", len(s.zones), p.each(ctx, len(s.zones), func(ctx context.Context, i int) error { return p.askZone(ctx, s.zones[i]) }))
	hosts := p.each(ctx, len(s.hosts), func(ctx context.Context, i int) error {
		err := p.askHost(ctx, s.hosts[i])
		if failing[s.hosts[i]] {
			return nil // it failed before the change too
		}
		return err
	})
	j.add("hosts", len(s.hosts), hosts)
	pools := append(append([]poolRef(nil), s.pools...), healthy...)
	j.add("pools", len(pools), p.each(ctx, len(pools), func(ctx context.Context, i int) error { return p.origin.check(ctx, pools[i]) }))
	j.compare(base, p.requests(), before, margin)
	r := j.report()
	if ctx.Err() != nil {
		return r
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last, p.lastAt = r, p.c.Now()
	return r
}

// each asks n questions, some at once, and returns their errors.
func (p *Prober) each(ctx context.Context, n int, ask func(ctx context.Context, i int) error) []error {
	errs := make([]error, n)
	var (
		running sync.WaitGroup
		slots   = make(chan struct{}, atOnce)
	)
	for i := range n {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			one, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			errs[i] = ask(one, i)
		})
	}
	running.Wait()
	return errs
}

// judgement collects what was seen.
type judgement struct {
	seen, failed []string
}

func (j *judgement) add(what string, n int, errs []error) {
	if n == 0 {
		return
	}
	good := n
	for _, err := range errs {
		if err != nil {
			good--
			j.failed = append(j.failed, err.Error())
		}
	}
	j.seen = append(j.seen, fmt.Sprintf("%s %d/%d", what, good, n))
}

// compare judges the share of failures since the swap.
func (j *judgement) compare(base, now Requests, before float64, margin int) {
	since := Requests{All: now.All - base.All, Failed: now.Failed - base.Failed}
	if since.All == 0 {
		return
	}
	share := since.share()
	j.seen = append(j.seen, fmt.Sprintf("5xx %.2f%% of %d, %.2f%% before", share*100, since.All, before*100))
	if since.All >= MinRequests && share > before+float64(margin)/10_000 {
		j.failed = append(j.failed, fmt.Sprintf("%.2f%% of %d requests since the swap were answered 5xx, %.2f%% before it: more than the margin of %.2f points",
			share*100, since.All, before*100, float64(margin)/100))
	}
}

func (j *judgement) report() Report {
	if len(j.failed) == 0 {
		if len(j.seen) == 0 {
			return Report{Converged: true, Detail: "nothing to ask: no zone, host or pool is concerned"}
		}
		return Report{Converged: true, Detail: strings.Join(j.seen, ", ")}
	}
	detail := strings.Join(j.failed, "; ")
	if len(detail) > maxDetail {
		detail = strings.ToValidUTF8(detail[:maxDetail], "") + fmt.Sprintf(" … %d failures in all", len(j.failed))
	}
	return Report{Detail: detail}
}

var errNoView = errors.New("the node serves nothing")
