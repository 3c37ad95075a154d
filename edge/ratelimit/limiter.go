package ratelimit

import (
	"hash/maphash"
	"net/netip"
	"sync"
	"time"
)

// DefaultEntries of a Limiter: 12 MiB, of which memory is taken as it is used.
const DefaultEntries = 1 << 19

const (
	ways   = 8    // entries of a set
	shards = 1024 // locks
)

// entry is the count of one key.
type entry struct {
	hash  uint64 // 0: free
	count int64  // when it will be forgotten, nanoseconds
	// period in seconds, and the zone, by a hash.
	period, zone uint32
}

type set [ways]entry

// Limiter holds counts by rule and key. It is safe for concurrent use and outlives the views whose rules it counts
// for.
type Limiter struct {
	seed maphash.Seed
	base time.Time
	n    uint64 // sets

	made  sync.Once
	sets  []set
	locks [shards]sync.Mutex
}

// New returns a limiter of at most entries counts, rounded down to sets of 8 and at least one set; 0 or less reads
// as DefaultEntries. It takes memory with the first count. now is the time of no later count.
func New(entries int, now time.Time) *Limiter {
	if entries <= 0 {
		entries = DefaultEntries
	}
	return &Limiter{seed: maphash.MakeSeed(), base: now, n: uint64(max(entries/ways, 1))}
}

// Take counts a request for key at now and returns 0, or how long to wait for one to be admitted; it is not counted then.
func (l *Limiter) Take(r *Rule, key string, now time.Time) time.Duration {
	var h maphash.Hash
	h.SetSeed(l.seed)
	h.Write(r.id[:])
	h.WriteString(key)
	return l.take(r, h.Sum64(), now)
}

// TakeAddr is Take with the address as the key: an IPv6 address counts as its /64, since that is what one client has.
func (l *Limiter) TakeAddr(r *Rule, a netip.Addr, now time.Time) time.Duration {
	a = a.Unmap()
	key := a.As16()
	if a.Is6() {
		clear(key[8:])
	}
	var h maphash.Hash
	h.SetSeed(l.seed)
	h.Write(r.id[:])
	h.Write(key[:])
	return l.take(r, h.Sum64(), now)
}

func (l *Limiter) take(r *Rule, hash uint64, now time.Time) time.Duration {
	if r.interval == 0 {
		return 0
	}
	l.made.Do(func() { l.sets = make([]set, l.n) })
	if hash == 0 {
		hash = 1
	}
	at := now.Sub(l.base).Nanoseconds()
	i := hash % l.n
	lock := &l.locks[i%shards]
	lock.Lock()
	defer lock.Unlock()
	s := &l.sets[i]
	e := s.find(hash)
	if e == nil {
		e = s.room(at)
		*e = entry{hash: hash, period: uint32(max(r.period/int64(time.Second), 1)), zone: r.zone}
	}
	next, wait := r.admit(e.count, at)
	e.count = next
	return wait
}

func (s *set) find(hash uint64) *entry {
	for i := range s {
		if s[i].hash == hash {
			return &s[i]
		}
	}
	return nil
}

// room returns the entry that a new key takes: one that is free or whose count is forgotten, or else that of the
// zone with most entries which used least of its limit.
func (s *set) room(now int64) *entry {
	var held [ways]int
	most := 0
	for i := range s {
		if s[i].count <= now {
			return &s[i]
		}
		for j := range s {
			if s[j].zone == s[i].zone {
				held[i]++
			}
		}
		most = max(most, held[i])
	}
	var out *entry
	var least float64
	for i := range s {
		if held[i] < most {
			continue
		}
		// The share that is used: how far ahead the count is, of a period.
		if used := float64(s[i].count-now) / float64(s[i].period); out == nil || used < least {
			out, least = &s[i], used
		}
	}
	return out
}
