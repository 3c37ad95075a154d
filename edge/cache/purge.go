package cache

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/maypok86/otter/v2"

	"github.com/guardyn-edge/guardyn/zone"
)

const (
	// maxRemembered bounds the purges of one zone that answers on their way are held against; maxRememberedBytes those of all zones,
	// by what they name. An answer that was begun before what is remembered is not stored.
	maxRemembered      = 64
	maxRememberedBytes = 8 << 20
)

// purges are what the control plane has said to be out of date.
type purges struct {
	// done is the sequence of the last purge that is carried out: no object that it names is in the store any more.
	done atomic.Uint64
	// one holds a purge, or a batch of them, at a time.
	one sync.Mutex
	// mu is held to read while an answer is judged and stored, so that a purge, which holds it to write, finds every answer that was
	// judged before it.
	mu    sync.RWMutex
	zones map[zone.Name]*remembered
	bytes int // of all zones' purges
	// floor: what was begun before this sequence is not stored, nor what was begun in another era.
	floor uint64
	era   atomic.Uint64
}

// purged is how far purges were carried out at some time.
type purged struct{ sequence, era uint64 }

func (p *purges) now() purged { return purged{p.done.Load(), p.era.Load()} }

// remembered are the last purges of a zone, in the order of their sequence.
type remembered struct {
	purges    []zone.Purge
	forgotten uint64 // sequence of the last one that is not among them
}

func (p *purges) init() { p.zones = make(map[zone.Name]*remembered) }

// Purge carries purges out, which are in the order of their sequence. When it returns nothing that they name is served, and no answer
// that was asked for before is stored. One that was carried out already is passed over. It takes a pass over all that is stored; the
// memory is free a little later.
func (c *Cache) Purge(ps []zone.Purge) {
	c.purges.one.Lock()
	defer c.purges.one.Unlock()
	done := c.purges.done.Load()
	ps = slices.DeleteFunc(slices.Clone(ps), func(p zone.Purge) bool { return p.Sequence <= done })
	if len(ps) == 0 {
		return
	}
	c.purges.remember(ps)
	named := make(map[zone.Name]*matcher)
	for i := range ps {
		m := named[ps[i].Zone]
		if m == nil {
			m = new(matcher)
			named[ps[i].Zone] = m
		}
		m.add(&ps[i])
	}
	c.spoilNamed(named)
	c.mark(func(k *Key, o *Object) bool {
		m := named[k.Apex]
		return m != nil && m.names(k, o)
	})
	c.spoilNamed(named) // those begun meanwhile, with an object that is gone by now
	c.counters.Purges.Add(uint64(len(ps)))
	c.purges.done.Store(ps[len(ps)-1].Sequence)
}

// mark keeps stored objects from being served, and then takes them out.
func (c *Cache) mark(named func(*Key, *Object) bool) {
	var hashes []uint64
	for hash, e := range c.objects.All() {
		some := false
		for _, o := range e.variants {
			if named(&e.key, o) && !o.purged.Swap(true) {
				some = true
				c.counters.Purged.Add(1)
			}
		}
		if some {
			hashes = append(hashes, hash)
		}
	}
	if len(hashes) == 0 {
		return
	}
	c.sweeping.Go(func() {
		for _, hash := range hashes {
			c.objects.ComputeIfPresent(hash, func(e *entry) (*entry, otter.ComputeOp) {
				return e.without(func(o *Object) bool { return o.purged.Load() })
			})
		}
	})
}

// spoilNamed keeps requests from joining flights that purges may name.
func (c *Cache) spoilNamed(named map[zone.Name]*matcher) {
	c.spoilAll(func(f *Flight) bool {
		m := named[f.key.Apex]
		return m != nil && m.mayName(f)
	})
}

// Floor drops everything that is stored or on its way: the purges up to sequence are lost, or are another control plane's.
func (c *Cache) Floor(sequence uint64) {
	c.purges.one.Lock()
	defer c.purges.one.Unlock()
	c.purges.mu.Lock()
	c.purges.floor = sequence
	c.purges.era.Add(1)
	clear(c.purges.zones)
	c.purges.bytes = 0
	c.purges.mu.Unlock()
	c.spoilAll(func(*Flight) bool { return true })
	c.mark(func(*Key, *Object) bool { return true })
	c.spoilAll(func(*Flight) bool { return true })
	c.purges.done.Store(sequence)
}

// remember keeps purges for the answers that are on their way.
func (p *purges) remember(ps []zone.Purge) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range ps {
		r := p.zones[ps[i].Zone]
		if r == nil {
			r = &remembered{forgotten: p.floor}
			p.zones[ps[i].Zone] = r
		}
		if len(r.purges) == maxRemembered {
			r.forgotten = r.purges[0].Sequence
			p.bytes -= weight(&r.purges[0])
			r.purges = append(r.purges[:0], r.purges[1:]...)
		}
		r.purges = append(r.purges, ps[i])
		p.bytes += weight(&ps[i])
		for name, other := range p.zones { // any, of other zones first
			if p.bytes <= maxRememberedBytes {
				break
			}
			if other != r || len(p.zones) == 1 {
				p.forget(name, other)
			}
		}
	}
}

// weight is how many bytes a purge takes, roughly.
func weight(p *zone.Purge) int {
	n := 256
	for _, v := range p.Values {
		n += 16 + len(v)
	}
	return n
}

func (p *purges) forget(name zone.Name, r *remembered) {
	for i := range r.purges {
		p.bytes -= weight(&r.purges[i])
	}
	p.floor = max(p.floor, r.purges[len(r.purges)-1].Sequence)
	delete(p.zones, name)
}

// admit stores o unless a purge since it was asked for names it, or may have. It returns why it is not stored, empty when it is.
func (p *purges) admit(c *Cache, k Key, o *Object, since purged) (why string) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if since.sequence < p.floor || since.era != p.era.Load() {
		return ReasonOvertaken
	}
	if r := p.zones[k.Apex]; r != nil {
		if since.sequence < r.forgotten {
			return ReasonOvertaken
		}
		var m matcher
		for i := len(r.purges) - 1; i >= 0 && r.purges[i].Sequence > since.sequence; i-- {
			m.add(&r.purges[i])
		}
		if m.names(&k, o) {
			return ReasonOvertaken
		}
	}
	return c.put(k, o)
}

// replace puts o in the place of old, which a HEAD request brought up to date, unless it was purged meanwhile. What is selected by other
// fields goes, as with put.
func (p *purges) replace(k *Key, o, old *Object, c *Cache) (stored bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	c.objects.ComputeIfPresent(c.hash(k), func(e *entry) (*entry, otter.ComputeOp) {
		at := slices.Index(e.variants, old)
		if at < 0 {
			return nil, otter.CancelOp
		}
		n := &entry{key: e.key}
		for i, other := range e.variants {
			switch {
			case i == at:
				n.variants = append(n.variants, o)
			case sameAnswerer(other, o) && !sameFields(other, o):
				other.purged.Store(true)
			default:
				n.variants = append(n.variants, other)
			}
		}
		stored = true
		n.used.Store(true)
		return n.weighed(), otter.WriteOp
	})
	return stored
}
