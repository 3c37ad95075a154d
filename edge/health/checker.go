// Package health checks the origins of pools for as long as the served view has them.
package health

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/edge/pool"
	"github.com/guardyn-edge/guardyn/zone"
)

const (
	// DefaultWorkers is how many checks are under way at once unless Config says otherwise. When more are due they
	// are late, not dropped.
	DefaultWorkers = 256

	// firstWithin is how soon an origin that is new, or checked in another way, is checked, unless its interval is shorter.
	firstWithin = time.Second
	// jitter is how much an interval varies, so that the nodes of a fleet do not ask in one instant.
	jitter = 0.1
)

// Config of a Checker. Only Client must be set.
type Config struct {
	Client *Client
	// Monitor takes notice of swaps; nil: none does.
	Monitor *pool.Monitor
	// Workers bounds the checks under way, default DefaultWorkers.
	Workers int
	// Logger takes each change of a verdict; nil: nothing is logged.
	Logger *slog.Logger
}

// Checker checks each origin of each pool with a health check, and tells the origin the verdict. What it knows
// of an origin survives a swap that does not change it. It is safe for concurrent use.
type Checker struct {
	config Config
	// check makes one check.
	check func(ctx context.Context, s *subject) error
	wake  chan struct{} // what is due first may have changed; one value

	made, failed atomic.Uint64
	latency      pool.Histogram

	mu      sync.Mutex
	entries map[pool.Key]*entry // of the view that is served
	due     schedule
}

// subject is an origin and how it is checked.
type subject struct {
	origin *pool.Origin
	check  zone.HealthCheck // with its defaults
	zone   string           // apex
	host   string           // asked for by HTTP
}

// entry is a subject with what its checks found out. Guarded by Checker.mu.
type entry struct {
	subject
	at      time.Time // of the next check, while none is under way
	place   int       // in the schedule, -1 while it is not there
	passes  int       // in a row
	fails   int       // in a row
	changed uint64    // rises with the way in which it is checked
}

// New returns a Checker that has nothing to check yet.
func New(c Config) *Checker {
	if c.Workers <= 0 {
		c.Workers = DefaultWorkers
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	h := &Checker{config: c, wake: make(chan struct{}, 1), entries: make(map[pool.Key]*entry)}
	h.check = func(ctx context.Context, s *subject) error {
		o := s.origin
		return c.Client.Check(ctx, &s.check, Target{Scheme: o.Scheme, Address: o.Address, Host: s.host, SNI: o.SNI})
	}
	return h
}

// Counts are what a Checker did since it was made, and has to do now.
type Counts struct {
	Made, Failed uint64
	Latency      pool.HistogramValues
	// Origins being checked.
	Origins int
}

// Counts returns what was counted.
func (h *Checker) Counts() Counts {
	h.mu.Lock()
	n := len(h.entries)
	h.mu.Unlock()
	return Counts{Made: h.made.Load(), Failed: h.failed.Load(), Latency: h.latency.Values(), Origins: n}
}

// Run makes checks when they are due until ctx ends, and returns when none is under way.
func (h *Checker) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	slots := make(chan struct{}, h.config.Workers)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		e, wait := h.next()
		if e == nil {
			if wait >= 0 {
				timer.Reset(wait)
			} else {
				timer.Stop()
			}
			select {
			case <-ctx.Done():
				return
			case <-h.wake:
			case <-timer.C:
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case slots <- struct{}{}:
		}
		running.Go(func() {
			defer func() { <-slots }()
			h.run(ctx, e)
		})
	}
}

// next takes what is due from the schedule. Without any it returns how long it is until something will be,
// negative when there is nothing.
func (h *Checker) next() (*entry, time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.due) == 0 {
		return nil, -1
	}
	if wait := time.Until(h.due[0].at); wait > 0 {
		return nil, wait
	}
	return heap.Pop(&h.due).(*entry), 0
}

// run makes one check of e, which is not in the schedule, and puts it back.
func (h *Checker) run(ctx context.Context, e *entry) {
	h.mu.Lock()
	if h.entries[e.origin.Key()] != e {
		h.mu.Unlock()
		return
	}
	s, changed := e.subject, e.changed
	h.mu.Unlock()
	begun := time.Now()
	interval, timeout := time.Duration(s.check.Interval), time.Duration(s.check.Timeout)
	one, cancel := context.WithTimeoutCause(ctx, timeout, errNoAnswer)
	err := h.check(one, &s)
	if err != nil && context.Cause(one) == errNoAnswer {
		err = errors.New("no answer within " + timeout.String())
	}
	cancel()
	if ctx.Err() != nil {
		return // what ended with the node says nothing
	}
	h.made.Add(1)
	if err != nil {
		h.failed.Add(1)
	}
	h.latency.Observe(time.Since(begun))

	h.mu.Lock()
	defer h.mu.Unlock()
	if h.entries[e.origin.Key()] != e {
		return
	}
	if e.changed == changed {
		h.judge(e, err)
		e.at = begun.Add(time.Duration(float64(interval) * (1 + jitter*(2*rand.Float64()-1))))
	}
	heap.Push(&h.due, e)
	h.signal()
}

var errNoAnswer = errors.New("no answer in time")

// judge takes the result of a check into account. The first one decides by itself: an origin that does not
// work is to be out before it has failed three times, and one that was never checked takes traffic anyway.
func (h *Checker) judge(e *entry, err error) {
	verdict := e.origin.Health()
	is := verdict
	if err == nil {
		e.passes, e.fails = e.passes+1, 0
		if verdict == pool.Unchecked || e.passes >= e.check.HealthyThreshold {
			is = pool.Healthy
		}
	} else {
		e.passes, e.fails = 0, e.fails+1
		if verdict == pool.Unchecked || e.fails >= e.check.UnhealthyThreshold {
			is = pool.Unhealthy
		}
	}
	reason := ""
	if err != nil {
		reason = err.Error()
	}
	if is != verdict || is == pool.Unhealthy && err != nil {
		e.origin.SetHealth(is, reason)
	}
	if is == verdict || is == pool.Healthy && verdict == pool.Unchecked {
		return
	}
	log := h.config.Logger.With("zone", e.zone, "pool", e.origin.Pool, "origin", e.origin.Name)
	if is == pool.Unhealthy {
		log.Warn("an origin is unhealthy", "error", reason)
	} else {
		log.Info("an origin is healthy again")
	}
}

func (h *Checker) signal() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// Swapped tells that after is served in the place of before, nil for nothing. It costs what differs.
func (h *Checker) Swapped(before, after *edge.View) {
	h.mu.Lock()
	defer h.mu.Unlock()
	after.Changed(before, func(was, is *edge.Zone) {
		var from, to *pool.Set
		if was != nil {
			from = was.Pools
		}
		if is != nil {
			to = is.Pools
		}
		if from == to {
			return
		}
		h.swapZone(from, is)
		h.config.Monitor.Swapped(from, to)
	})
	h.signal()
}

// swapZone checks what z has from now on, nil for nothing, and no more what only from had.
func (h *Checker) swapZone(from *pool.Set, z *edge.Zone) {
	kept := make(map[pool.Key]bool)
	if z != nil {
		for _, p := range z.Pools.Checked() {
			host := hostOf(z.Config, p.Name)
			for _, o := range p.Origins {
				if !kept[o.Key()] { // two origins may be one server
					kept[o.Key()] = true
					h.enter(subject{origin: o, check: p.Check, zone: z.Config.Name.String(), host: cmp.Or(o.HostHeader, host)})
				}
			}
		}
	}
	for _, p := range from.Checked() {
		for _, o := range p.Origins {
			e := h.entries[o.Key()]
			if e == nil || kept[o.Key()] {
				continue
			}
			delete(h.entries, o.Key())
			if e.place >= 0 {
				heap.Remove(&h.due, e.place)
			}
			o.SetHealth(pool.Unchecked, "")
		}
	}
}

// enter checks s from now on. What was found out stands when s is checked as before.
func (h *Checker) enter(s subject) {
	e := h.entries[s.origin.Key()]
	if e == nil {
		e = &entry{subject: s, place: -1, at: soon(s.check)}
		h.entries[s.origin.Key()] = e
		heap.Push(&h.due, e)
		return
	}
	same := s.host == e.host && sameCheck(s.check, e.check)
	e.subject = s
	if same {
		return
	}
	e.changed++
	e.passes, e.fails = 0, 0
	e.at = soon(s.check)
	if e.place >= 0 {
		heap.Fix(&h.due, e.place)
	}
}

func soon(c zone.HealthCheck) time.Time {
	return time.Now().Add(rand.N(min(firstWithin, time.Duration(c.Interval))))
}
