package ratelimit

import (
	"crypto/sha256"
	"encoding/binary"
	"sync/atomic"
	"time"
)

// Rate is how many requests a period admits. The zero Rate admits everything.
type Rate struct {
	interval int64 // between requests, nanoseconds
	ahead    int64 // how far a count may be ahead of now for a request to be admitted
	period   int64
}

// NewRate returns the rate of limit requests a period. A limit or period below 1 gives the zero Rate; intervals are
// at least a nanosecond, so that more than 1e9 a second are not told apart.
func NewRate(limit uint32, period time.Duration) Rate {
	if limit < 1 || period < 1 {
		return Rate{}
	}
	interval := max(int64(period)/int64(limit), 1)
	return Rate{interval: interval, ahead: interval * (int64(limit) - 1), period: int64(period)}
}

// admit returns the count after a request at now, or how long to wait for one to be admitted.
func (r Rate) admit(count, now int64) (next int64, wait time.Duration) {
	// No count is further ahead than this, but for a clock that was set back.
	count = min(max(count, now), now+r.ahead+r.interval)
	if over := count - now - r.ahead; over > 0 {
		return count, time.Duration(over)
	}
	return count + r.interval, 0
}

// Rule is what a Limiter counts by: a rate, and what tells its keys from those of others.
type Rule struct {
	Rate
	id   [16]byte
	zone uint32
}

// NewRule returns the rule that identity, which is the same as long as its counts shall last, names within a zone.
func NewRule(zone, identity string, limit uint32, period time.Duration) *Rule {
	r := &Rule{Rate: NewRate(limit, period)}
	whole := sha256.Sum256([]byte(zone + "\x00" + identity))
	copy(r.id[:], whole[:])
	of := sha256.Sum256([]byte(zone))
	r.zone = binary.BigEndian.Uint32(of[:])
	return r
}

// Meter is one count that is never given up. The zero Meter has counted nothing. It is safe for concurrent use.
// A clock that is set back costs a request no more than the wait between two.
type Meter struct{ count atomic.Int64 }

// Take counts a request at now and returns 0, or how long to wait for one to be admitted.
func (m *Meter) Take(r Rate, now time.Time) time.Duration {
	if r.interval == 0 {
		return 0
	}
	at := now.UnixNano()
	for {
		was := m.count.Load()
		next, wait := r.admit(was, at)
		if wait > 0 || m.count.CompareAndSwap(was, next) {
			return wait
		}
	}
}
