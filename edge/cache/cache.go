package cache

import (
	"hash/maphash"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
)

const (
	// DefaultMemory is how many octets a cache takes when its maker says nothing, MinMemory the least that makes sense.
	DefaultMemory = 256 << 20
	MinMemory     = 4 << 20
	// MaxObject is the most octets that one object has, whatever the memory; else it is a sixteenth of that.
	MaxObject = 64 << 20
	// maxVariants bounds the objects of one key that one pool or function answered when it was asked alike, maxObjects all of a key; the oldest makes room.
	maxVariants = 16
	maxObjects  = 64
	// passFor is how long requests for a key whose answer could not be stored go to the origin each by itself.
	passFor = 2 * time.Minute
)

// Cache holds objects in memory, at most as many octets as it was made for: keys, fields, bodies, what the store takes for each and
// the answers that are on their way into it. Which objects stay is W-TinyLFU's choice, so that those which are asked for once push no
// others out. It is safe for concurrent use.
type Cache struct {
	seed      maphash.Seed
	objects   *otter.Cache[uint64, *entry]
	maxObject int64
	maxFills  int64 // octets of answers on their way
	fills     atomic.Int64
	flights   [flightShards]flightShard
	purges    purges
	sweeping  sync.WaitGroup
	counters  counters
}

// Close waits until what was purged is out of memory.
func (c *Cache) Close() { c.sweeping.Wait() }

// entry is what is stored under one key. It is replaced, not changed.
type entry struct {
	key      Key
	variants []*Object // newest first
	pass     time.Time // until when requests do not wait for one another
	weight   uint32
	used     atomic.Bool // served since it was stored
}

// entryOverhead is what an entry takes beside its key and objects.
const entryOverhead = 300

// New returns an empty cache of at most memory octets, MinMemory at least; 0 takes DefaultMemory.
func New(memory int64) *Cache {
	if memory == 0 {
		memory = DefaultMemory
	}
	memory = max(memory, MinMemory)
	c := &Cache{seed: maphash.MakeSeed(), maxObject: min(memory/16, MaxObject), maxFills: memory / 8}
	for i := range c.flights {
		c.flights[i].m = make(map[flightKey]*Flight)
	}
	c.purges.init()
	c.objects = otter.Must(&otter.Options[uint64, *entry]{
		MaximumWeight: uint64(memory - c.maxFills),
		// An estimate of how many keys there will be, from which on it counts who is asked for how often.
		InitialCapacity: int(memory / (8 << 10)),
		Weigher:         func(_ uint64, e *entry) uint32 { return e.weight },
		// Who writes makes room, so that the bound holds when the write is done and nobody has to be waited for.
		Executor: func(f func()) { f() },
		OnAtomicDeletion: func(e otter.DeletionEvent[uint64, *entry]) {
			if e.Cause == otter.CauseOverflow {
				c.counters.evicted(e.Value)
			}
		},
	})
	return c
}

// Outcome is what looking for an object came to.
type Outcome uint8

// The outcomes.
const (
	// Missing: there is nothing under the key, or what there is was stored under another policy.
	Missing Outcome = iota
	// Unselected: there is something, but for other values of the fields in Vary.
	Unselected
	// Unshared: there is something, but not for requests with Authorization.
	Unshared
	// Passing: the answer could not be stored a moment ago.
	Passing
	// Fresh and Stale: there is an object.
	Fresh
	Stale
)

// Found is what Lookup found.
type Found struct {
	Outcome Outcome
	Object  *Object
	hash    uint64
	variant uint64
	// since is how far purges were carried out before it was looked for.
	since purged
}

// Lookup looks for what is stored under a key for a request of method GET or HEAD. It does not allocate when it finds something.
func (c *Cache) Lookup(k *Key, p *Policy, a *Asked, now time.Time) Found {
	f := Found{hash: c.hash(k), variant: c.source(p), since: c.purges.now()}
	e, ok := c.objects.GetIfPresent(f.hash)
	if !ok || e.key != *k {
		return f
	}
	for _, o := range e.variants {
		if o.policy != p && *o.policy != *p || o.purged.Load() {
			continue
		}
		if !o.Matches(a.Header) || a.Authorized && !o.shared {
			f.variant = c.variant(p, o, a.Header)
			if f.Outcome = Unselected; o.Matches(a.Header) {
				f.Outcome = Unshared
			}
			continue
		}
		if !e.used.Load() {
			e.used.Store(true)
		}
		f.variant = c.variant(p, o, a.Header)
		f.Object = o
		if o.TTL(now) > 0 {
			f.Outcome = Fresh
			return f
		}
		f.Outcome = Stale
		return f
	}
	if now.Before(e.pass) {
		f.Outcome = Passing
	}
	return f
}

// source tells apart what requests of one key wait for, by who answers them.
func (c *Cache) source(p *Policy) uint64 {
	if p.Pool == "" && p.Function == "" && p.Sent == 0 {
		return 0
	}
	var sum maphash.Hash
	sum.SetSeed(c.seed)
	p.sum(&sum)
	return sum.Sum64()
}

func (p *Policy) sum(sum *maphash.Hash) {
	for _, s := range [...]string{p.Pool, p.Function, p.Program} {
		sum.WriteString(s)
		sum.WriteByte(0)
	}
	maphash.WriteComparable(sum, p.Sent)
}

// variant is the same by the fields that select, too.
func (c *Cache) variant(p *Policy, o *Object, h http.Header) uint64 {
	if len(o.vary) == 0 {
		return c.source(p)
	}
	var sum maphash.Hash
	sum.SetSeed(c.seed)
	p.sum(&sum)
	for i := range o.vary {
		sum.WriteString(o.vary[i].name)
		sum.WriteByte(0)
		sum.WriteString(selecting(o.vary[i].name, h))
		sum.WriteByte(0)
	}
	return sum.Sum64()
}

// put stores o under a key, in place of what is selected by the same values, and of all that is selected by other fields: what came before
// the origin began to tell requests apart by those is not to be served any more (RFC 9111 §4.1). An object of a later generation stays, and
// one by other fields that came later. It returns why o is not stored, empty when it is.
func (c *Cache) put(k Key, o *Object) (why string) {
	stored, hash := false, c.hash(&k)
	c.objects.Compute(hash, func(old *entry, found bool) (*entry, otter.ComputeOp) {
		stored = true
		e := &entry{key: k, variants: []*Object{o}}
		if !found || old.key != k {
			return e.weighed(), otter.WriteOp
		}
		e.used.Store(old.used.Load())
		e.key = old.key
		total, alike := o.size, 1
		var overtaken []*Object
		for _, other := range old.variants {
			same := sameAnswerer(other, o)
			if same && sameSelection(other, o) {
				if other.generation > o.generation {
					stored = false
					return nil, otter.CancelOp
				}
				continue
			}
			if other.purged.Load() {
				continue
			}
			if same && !sameFields(other, o) {
				if other.generation > o.generation || other.received.After(o.received) {
					stored = false
					return nil, otter.CancelOp
				}
				overtaken = append(overtaken, other)
				continue
			}
			if same {
				alike++
			}
			if total += other.size; (!same || alike <= maxVariants) && len(e.variants) < maxObjects && total <= 2*c.maxObject {
				e.variants = append(e.variants, other)
			}
		}
		for _, other := range overtaken {
			other.purged.Store(true) // for who has found it, and would serve it when the origin fails
		}
		return e.weighed(), otter.WriteOp
	})
	c.objects.CleanUp()
	if !stored {
		return ReasonOvertaken
	}
	if _, ok := c.objects.GetEntryQuietly(hash); !ok {
		return ReasonRoom
	}
	return ""
}

// sameAnswerer reports whether a and b came of the same pool or function, which rules had asked alike.
func sameAnswerer(a, b *Object) bool {
	return a.policy.Pool == b.policy.Pool && a.policy.Function == b.policy.Function && a.policy.Sent == b.policy.Sent
}

// sameFields reports whether a and b are selected by the same fields, whatever their values.
func sameFields(a, b *Object) bool {
	return slices.EqualFunc(a.vary, b.vary, func(v, w varied) bool { return v.name == w.name })
}

func (e *entry) weighed() *entry {
	n := int64(entryOverhead + e.key.Len())
	for _, o := range e.variants {
		n += o.size
	}
	e.weight = uint32(n)
	return e
}

func sameSelection(a, b *Object) bool {
	if len(a.vary) != len(b.vary) {
		return false
	}
	for i := range a.vary {
		if a.vary[i] != b.vary[i] {
			return false
		}
	}
	return true
}

// pass remembers that the answers of a key cannot be stored for now.
func (c *Cache) pass(k *Key, hash uint64, until time.Time) {
	c.objects.Compute(hash, func(old *entry, found bool) (*entry, otter.ComputeOp) {
		e := &entry{key: *k, pass: until}
		if found && old.key == *k {
			e.key, e.variants = old.key, old.variants
			e.used.Store(old.used.Load())
		}
		return e.weighed(), otter.WriteOp
	})
	c.objects.CleanUp()
}

// drop takes objects out for which f is true; nil means all of the key's.
func (c *Cache) drop(k *Key, hash uint64, f func(*Object) bool) {
	c.objects.ComputeIfPresent(hash, func(old *entry) (*entry, otter.ComputeOp) {
		if old.key != *k {
			return nil, otter.CancelOp
		}
		if f == nil {
			return nil, otter.InvalidateOp
		}
		return old.without(f)
	})
}

// without is an entry less the objects for which f is true.
func (e *entry) without(f func(*Object) bool) (*entry, otter.ComputeOp) {
	n := &entry{key: e.key, pass: e.pass}
	for _, o := range e.variants {
		if !f(o) {
			n.variants = append(n.variants, o)
		}
	}
	switch len(n.variants) {
	case len(e.variants):
		return nil, otter.CancelOp
	case 0:
		return nil, otter.InvalidateOp
	}
	n.used.Store(e.used.Load())
	return n.weighed(), otter.WriteOp
}

// Invalidate takes out what is stored under a key, and keeps what is on its way from being stored: an unsafe method had an effect there
// (RFC 9111 §4.4).
func (c *Cache) Invalidate(k *Key) {
	hash := c.hash(k)
	c.spoil(hash, func(f *Flight) bool { return f.key == *k })
	c.drop(k, hash, nil)
	c.counters.Invalidations.Add(1)
}

// Discard takes out one object, which an answer has overtaken.
func (c *Cache) Discard(k *Key, o *Object) {
	c.drop(k, c.hash(k), func(other *Object) bool { return other == o })
}

// Update brings the stored object up to what a HEAD request was answered (RFC 9111 §4.3.5), or takes it out when it is another
// representation by now.
func (c *Cache) Update(k *Key, o *Object, p *Policy, a *Asked, h *Head) {
	same := h.Status == o.Status && (len(h.Header["Content-Length"]) == 0 || first(h.Header["Content-Length"]) == o.length[0])
	if same {
		if n, why, ok := o.Refreshed(p, a, h); ok && why == "" && c.purges.replace(k, n, o, c) {
			return
		}
	}
	c.Discard(k, o)
}
