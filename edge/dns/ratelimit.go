package dns

import (
	"encoding/binary"
	"hash/maphash"
	"net/netip"
	"sync/atomic"
	"time"
)

const (
	// rateTableSize is how many (prefix, name) pairs the limiter knows at once: 512 KiB.
	rateTableSize = 1 << 16
	// rateWays is how many places a pair may have in the table.
	rateWays = 4
	// rateTicks is how many units of time the limiter has in a second.
	rateTicks = 100_000
	// rateBurst is how far, in ticks, a pair may be ahead of its rate.
	rateBurst = rateTicks
)

// rateLimiter is response-rate limiting: each pair of a client's prefix (/24 or /64) and a name may have
// so many answers a second, with one second's worth at once. The table is bounded; when its places for
// a pair are taken, the one that has been quiet for longest is forgotten. It is safe for concurrent use and
// does not lock.
//
// An entry is the upper 32 bits of the pair's hash over the time, in ticks modulo 2^32, until which its
// answers so far are worth at the rate (the generic cell rate algorithm).
type rateLimiter struct {
	seed    maphash.Seed
	start   time.Time
	cost    uint32 // of one answer, in ticks
	entries []atomic.Uint64
}

// newRateLimiter returns a limiter of perSecond answers, 1 to rateTicks.
func newRateLimiter(perSecond int, start time.Time) *rateLimiter {
	return &rateLimiter{
		seed: maphash.MakeSeed(), start: start,
		cost:    uint32(rateTicks / min(perSecond, rateTicks)),
		entries: make([]atomic.Uint64, rateTableSize),
	}
}

// rateName is the name that an answer counts under.
type rateName struct {
	apex string
	node int
	// class tells apart answers of no zone, by their rcode.
	class int
}

// allow counts one answer and reports whether it may be sent.
func (l *rateLimiter) allow(client netip.Addr, name rateName, now time.Time) bool {
	hash := l.hash(client, name)
	tag := hash >> 32
	tick := uint32(now.Sub(l.start) / (time.Second / rateTicks))
	base := uint32(hash) % (rateTableSize / rateWays) * rateWays
	for {
		place, old := l.place(base, tag, tick)
		at := tick
		if old>>32 == tag {
			at = due(uint32(old), tick)
			if at-tick >= rateBurst {
				return false
			}
		}
		if place.CompareAndSwap(old, tag<<32|uint64(at+l.cost)) {
			return true
		}
	}
}

// place returns the entry of tag among its places, or the one to forget for it.
func (l *rateLimiter) place(base uint32, tag uint64, tick uint32) (place *atomic.Uint64, value uint64) {
	var quiet *atomic.Uint64
	var quietValue uint64
	least := uint32(1<<32 - 1)
	for i := base; i < base+rateWays; i++ {
		e := &l.entries[i]
		v := e.Load()
		if v>>32 == tag {
			return e, v
		}
		if ahead := due(uint32(v), tick) - tick; ahead < least {
			least, quiet, quietValue = ahead, e, v
		}
	}
	return quiet, quietValue
}

// due is the later of now and the time that an entry holds. One further away than an entry can be is of an
// earlier round of the clock.
func due(at, tick uint32) uint32 {
	if at-tick > 2*rateBurst {
		return tick
	}
	return at
}

func (l *rateLimiter) hash(client netip.Addr, name rateName) uint64 {
	var b [8 + 8 + 8]byte
	if client.Is4() {
		a := client.As4()
		copy(b[:], a[:3])
		b[7] = 4
	} else {
		a := client.As16()
		copy(b[:], a[:8])
	}
	binary.LittleEndian.PutUint64(b[8:], uint64(name.node))
	binary.LittleEndian.PutUint64(b[16:], uint64(name.class))
	return maphash.Bytes(l.seed, b[:]) ^ maphash.String(l.seed, name.apex)*0x9e3779b97f4a7c15
}
