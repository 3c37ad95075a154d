package edge

import (
	"cmp"
	"hash/maphash"
	"slices"

	"github.com/guardyn-edge/guardyn/edge/rrset"
	"github.com/guardyn-edge/guardyn/zone"
)

// fanout is how many buckets an index has: a one-zone change copies the bucket heads (24 KiB) and one
// bucket, of 1,000 zones on a platform of a million.
const fanout = 1 << fanoutBits

const fanoutBits = 10

// index finds zones by apex. It is persistent: with returns a changed copy that shares the buckets it does
// not touch, so an index once made never changes.
type index struct {
	seed    maphash.Seed
	buckets *[fanout][]indexEntry
	n       int
}

// indexEntry is a zone under the hash of its apex. A bucket is sorted by hash.
type indexEntry struct {
	hash uint64
	zone *Zone
}

func bucketOf(hash uint64) int { return int(hash >> (64 - fanoutBits)) }

// with returns the index without the zones of removed and with those of added, which replace zones of the
// same apex. A removed zone that is not in the index is passed over.
func (x index) with(removed, added []*Zone) index {
	out := index{seed: x.seed, buckets: new([fanout][]indexEntry), n: x.n}
	if x.buckets == nil {
		out.seed = maphash.MakeSeed()
	} else {
		*out.buckets = *x.buckets
	}
	// A bucket is copied by its first change only.
	var copied [fanout]bool
	own := func(i, more int) {
		if !copied[i] {
			copied[i] = true
			old := out.buckets[i]
			out.buckets[i] = append(make([]indexEntry, 0, len(old)+more), old...)
		}
	}
	for _, z := range removed {
		h := maphash.String(out.seed, z.apex)
		i := bucketOf(h)
		at := slices.IndexFunc(out.buckets[i], func(e indexEntry) bool { return e.hash == h && e.zone == z })
		if at < 0 {
			continue
		}
		own(i, 0)
		out.buckets[i] = slices.Delete(out.buckets[i], at, at+1)
		out.n--
	}
	for _, z := range added {
		h := maphash.String(out.seed, z.apex)
		i := bucketOf(h)
		own(i, 1)
		b := out.buckets[i]
		at, _ := slices.BinarySearchFunc(b, h, func(e indexEntry, h uint64) int { return cmp.Compare(e.hash, h) })
		same := at
		for same < len(b) && b[same].hash == h && b[same].zone.apex != z.apex {
			same++
		}
		if same < len(b) && b[same].hash == h {
			b[same].zone = z
			continue
		}
		out.buckets[i] = slices.Insert(b, at, indexEntry{hash: h, zone: z})
		out.n++
	}
	return out
}

// find returns the zone with the longest apex at or above a lower-case name in wire format, and where the
// apex begins in it. The name must be well formed.
func (x *index) find(name []byte) (z *Zone, offset int) {
	if x.buckets == nil {
		return nil, 0
	}
	for at := 0; name[at] != 0; at += 1 + int(name[at]) {
		if z := x.get(name[at:]); z != nil {
			return z, at
		}
	}
	return nil, 0
}

// get returns the zone with exactly that apex.
func (x *index) get(apex []byte) *Zone {
	h := maphash.Bytes(x.seed, apex)
	b := x.buckets[bucketOf(h)]
	if len(b) == 0 {
		return nil
	}
	// Hashes are uniform, so the place of one is near its share of what the bucket spans.
	at := int((h << fanoutBits >> 32) * uint64(len(b)) >> 32)
	for at > 0 && b[at-1].hash >= h {
		at--
	}
	for at < len(b) && b[at].hash < h {
		at++
	}
	for ; at < len(b) && b[at].hash == h; at++ {
		if b[at].zone.apex == string(apex) {
			return b[at].zone
		}
	}
	return nil
}

// of returns the zone with z's name, nil when there is none.
func (x *index) of(z *zone.Zone) *Zone {
	if x.buckets == nil {
		return nil
	}
	var buf [rrset.MaxName]byte
	apex, ok := rrset.AppendWire(buf[:0], z.Name.String())
	if !ok {
		return nil
	}
	return x.get(apex)
}

// changed calls f for each zone that is in x or in old and not in both as the same value, with what each has
// under its apex. Buckets that both share are passed over.
func (x *index) changed(old *index, f func(before, after *Zone)) {
	var none [fanout][]indexEntry
	was, is := &none, &none
	if old.buckets != nil {
		was = old.buckets
	}
	if x.buckets != nil {
		is = x.buckets
	}
	if old.buckets != nil && x.buckets != nil && old.seed != x.seed { // no bucket is shared
		for i := range was {
			for _, e := range was[i] {
				if after := x.get([]byte(e.zone.apex)); after != e.zone {
					f(e.zone, after)
				}
			}
		}
		for i := range is {
			for _, e := range is[i] {
				if old.get([]byte(e.zone.apex)) == nil {
					f(nil, e.zone)
				}
			}
		}
		return
	}
	for i := range was {
		a, b := was[i], is[i]
		if len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) {
			continue
		}
		// Both are sorted by hash; of one hash there are few.
		for _, e := range a {
			if after := inBucket(b, e); after != e.zone {
				f(e.zone, after)
			}
		}
		for _, e := range b {
			if inBucket(a, e) == nil {
				f(nil, e.zone)
			}
		}
	}
}

// inBucket returns the zone of e's apex in b, nil when there is none.
func inBucket(b []indexEntry, e indexEntry) *Zone {
	at, _ := slices.BinarySearchFunc(b, e.hash, func(e indexEntry, h uint64) int { return cmp.Compare(e.hash, h) })
	for ; at < len(b) && b[at].hash == e.hash; at++ {
		if b[at].zone.apex == e.zone.apex {
			return b[at].zone
		}
	}
	return nil
}
