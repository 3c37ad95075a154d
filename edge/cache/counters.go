package cache

import "sync/atomic"

// counters only rise.
type counters struct {
	Hits, StaleHits, Misses, Expired, Revalidated, Bypassed atomic.Uint64
	Collapsed, Released, TimedOut                           atomic.Uint64
	Stored, NotStored                                       atomic.Uint64
	Evicted, Rejected                                       atomic.Uint64
	Purges, Purged, Invalidations                           atomic.Uint64
}

func (c *counters) evicted(e *entry) {
	if len(e.variants) == 0 {
		return
	}
	if e.used.Load() {
		c.Evicted.Add(1)
	} else {
		c.Rejected.Add(1)
	}
}

// Kind of a request, as it is counted.
type Kind uint8

// The kinds.
const (
	Hit      Kind = iota // served fresh
	StaleHit             // served stale
	Miss                 // nothing that could be served
	Expire               // something stale, which was asked for again
	Bypass               // not the cache's business, by rule or by what it is
)

// Count counts a request.
func (c *Cache) Count(k Kind) {
	switch k {
	case Hit:
		c.counters.Hits.Add(1)
	case StaleHit:
		c.counters.StaleHits.Add(1)
	case Miss:
		c.counters.Misses.Add(1)
	case Expire:
		c.counters.Expired.Add(1)
	case Bypass:
		c.counters.Bypassed.Add(1)
	}
}

// Stats are what a cache counted since it was made, and what is in it now.
type Stats struct {
	// Of requests: served fresh, served stale, without anything to serve, with something that had to be validated, of them those whose
	// origin said that it had not changed, and those that the cache had no part in.
	Hits, StaleHits, Misses, Expired, Revalidated, Bypassed uint64
	// Collapsed waited for another's answer; of them Released went on since it could not be shared, TimedOut since it took too long.
	Collapsed, Released, TimedOut uint64
	// Stored and NotStored are answers. Evicted objects made room after they had been served, Rejected ones before they ever were.
	Stored, NotStored, Evicted, Rejected uint64
	// Purges that were carried out, Purged objects, and keys that unsafe methods made invalid.
	Purges, Purged, Invalidations uint64
	// Objects counts keys. Bytes are all that is stored and FillBytes what is on its way, Limit the most that both may be.
	Objects                 int
	Bytes, FillBytes, Limit int64
}

// Stats returns the cache's counts.
func (c *Cache) Stats() Stats {
	n := &c.counters
	return Stats{
		Hits: n.Hits.Load(), StaleHits: n.StaleHits.Load(), Misses: n.Misses.Load(), Expired: n.Expired.Load(),
		Revalidated: n.Revalidated.Load(), Bypassed: n.Bypassed.Load(),
		Collapsed: n.Collapsed.Load(), Released: n.Released.Load(), TimedOut: n.TimedOut.Load(),
		Stored: n.Stored.Load(), NotStored: n.NotStored.Load(), Evicted: n.Evicted.Load(), Rejected: n.Rejected.Load(),
		Purges: n.Purges.Load(), Purged: n.Purged.Load(), Invalidations: n.Invalidations.Load(),
		Objects: c.objects.EstimatedSize(), Bytes: int64(c.objects.WeightedSize()), FillBytes: c.fills.Load(),
		Limit: int64(c.objects.GetMaximum()) + c.maxFills,
	}
}
