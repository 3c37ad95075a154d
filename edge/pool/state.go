package pool

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Health is what health checks found out about an origin.
type Health int

// The verdicts. An origin takes traffic unless it is Unhealthy.
const (
	Unchecked Health = iota // no check has ended yet, or none is made
	Healthy
	Unhealthy
)

// String is the verdict as the API and metrics have it.
func (h Health) String() string {
	switch h {
	case Healthy:
		return "healthy"
	case Unhealthy:
		return "unhealthy"
	default:
		return "unchecked"
	}
}

// What keeps an origin from its full share.
const (
	unhealthy uint32 = 1 << iota
	ejected
	ramping // in its slow start
)

// maxReason bounds in bytes what is kept of an error.
const maxReason = 200

// maxEjectionTime bounds how long an origin is ejected at once, unless its base time is longer.
const maxEjectionTime = 5 * time.Minute

// originState is what a node learns about an origin while it serves.
type originState struct {
	inflight atomic.Int64
	failures atomic.Int32 // in a row
	// impaired holds flags; 0: it takes its full share. Written with mu held, so that what is below agrees.
	impaired atomic.Uint32

	mu           sync.Mutex
	health       Health
	reason       string    // why it is unhealthy, or was ejected last
	since        time.Time // when it became unhealthy or ejected, whichever came first
	ejectedFor   time.Duration
	ejectedUntil time.Time
	ejections    int       // that count for the length of the next
	rampFrom     time.Time // while ramping

	retired bool // no view that is served has it; guarded by Monitor.mu
}

// SetHealth records a verdict of o's health checks and, for Unhealthy, why. Coming back from Unhealthy begins
// the pool's slow start.
func (o *Origin) SetHealth(h Health, reason string) {
	s := o.state
	s.mu.Lock()
	defer s.mu.Unlock()
	was, now := s.health, time.Now()
	s.health = h
	if h == Unhealthy {
		s.reason = clip(reason)
	}
	switch {
	case h == was:
		return
	case h == Unhealthy:
		s.set(unhealthy, now)
	case was == Unhealthy:
		s.clear(unhealthy)
		if h == Healthy {
			s.ramp(o.pool, now)
		}
	}
	o.pool.monitor.note(o)
}

// Health is the newest verdict of o's health checks.
func (o *Origin) Health() Health {
	o.state.mu.Lock()
	defer o.state.mu.Unlock()
	return o.state.health
}

// Usable reports whether o is to get requests: it is neither unhealthy nor ejected.
func (o *Origin) Usable() bool {
	flags := o.state.impaired.Load()
	if flags&ejected != 0 {
		flags, _ = o.refresh(time.Now())
	}
	return flags&(unhealthy|ejected) == 0
}

// set raises flags. The caller holds mu, as for clear and ramp.
func (s *originState) set(flags uint32, now time.Time) {
	if s.impaired.Load()&(unhealthy|ejected) == 0 {
		s.since = now
	}
	s.impaired.Store(s.impaired.Load()&^ramping | flags)
}

func (s *originState) clear(flags uint32) { s.impaired.Store(s.impaired.Load() &^ flags) }

// ramp begins the slow start of an origin that is usable again.
func (s *originState) ramp(p *pool, now time.Time) {
	if p.slowStart > 0 && s.impaired.Load()&(unhealthy|ejected) == 0 {
		s.rampFrom = now
		s.impaired.Store(s.impaired.Load() | ramping)
	}
}

// refresh ends what has had its time, and returns what is left and the share of its weight that o takes, in
// thousandths.
func (o *Origin) refresh(now time.Time) (flags uint32, share int64) {
	s := o.state
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.impaired.Load()
	if before&ejected != 0 && !now.Before(s.ejectedUntil) {
		s.clear(ejected)
		s.failures.Store(0)
		s.ramp(o.pool, s.ejectedUntil)
	}
	share = full
	if s.impaired.Load()&ramping != 0 {
		elapsed, all := now.Sub(s.rampFrom), o.pool.slowStart
		if elapsed >= all {
			s.clear(ramping)
		} else {
			share = max(leastShare, full*int64(elapsed)/int64(all))
		}
	}
	flags = s.impaired.Load()
	if flags != before {
		o.pool.monitor.note(o)
	}
	return flags, share
}

// full is the share of an origin in thousandths that takes all of its weight, leastShare of one whose slow
// start has just begun.
const (
	full       = 1000
	leastShare = 100
)

// outlier is zone.OutlierDetection with its defaults.
type outlier struct {
	on       bool
	failures int
	statuses []int // of an origin's answer that are failures
	base     time.Duration
	percent  int
}

// fails reports whether a result says that its origin does not work.
func (d *outlier) fails(kind Kind, status int) bool {
	switch kind {
	case NoAnswer, TimedOut:
		return true
	case ServerError, GatewayError:
		return slices.Contains(d.statuses, status)
	default:
		return false
	}
}

// eject takes o out of its pool for a while, unless that would be too many or the last.
func (p *pool) eject(o *Origin, r Result) {
	p.shared.ejecting.Lock()
	defer p.shared.ejecting.Unlock()
	now := time.Now()
	out, others := 0, false
	for _, other := range p.origins {
		flags := other.state.impaired.Load()
		if flags&ejected != 0 {
			flags, _ = other.refresh(now)
		}
		switch {
		case flags&ejected != 0:
			out++
		case other.state != o.state && flags&unhealthy == 0:
			others = true
		}
	}
	s := o.state
	if !others || out+1 > max(1, len(p.origins)*p.outlier.percent/100) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.impaired.Load()&ejected != 0 {
		return
	}
	// Each base time that passed since the last ejection ended makes up for one.
	if s.ejections > 0 {
		s.ejections = max(0, s.ejections-int(now.Sub(s.ejectedUntil)/p.outlier.base))
	}
	s.ejections++
	s.ejectedFor = min(p.outlier.base*time.Duration(s.ejections), max(maxEjectionTime, p.outlier.base))
	s.ejectedUntil = now.Add(s.ejectedFor)
	if s.impaired.Load()&unhealthy == 0 {
		s.reason = clip(r.reason())
	}
	s.set(ejected, now)
	p.monitor.ejected()
	p.monitor.note(o)
}

// clip bounds what is kept of an error, on one line.
func clip(reason string) string {
	return strings.ToValidUTF8(reason[:min(len(reason), maxReason)], "")
}
