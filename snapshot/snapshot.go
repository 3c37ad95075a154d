package snapshot

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/zeebo/blake3"

	"github.com/guardyn-edge/guardyn/zone"
)

// Format is the wire format that this build writes and the only one that it reads.
const Format = 2

// Meta is what a snapshot says of its own making. It is outside the content hash. Text that is not valid
// UTF-8 has its bad bytes replaced; CreatedAt is kept in UTC.
type Meta struct {
	Version       uint64 // at most 2^53-1
	ParentVersion uint64 // 0: none
	CreatedAt     time.Time
	CreatedBy     string
	Message       string
}

func (m Meta) clean() Meta {
	m.CreatedAt = m.CreatedAt.UTC().Round(0)
	m.CreatedBy = strings.ToValidUTF8(m.CreatedBy, "\uFFFD")
	m.Message = strings.ToValidUTF8(m.Message, "\uFFFD")
	return m
}

// Snapshot is immutable and safe for concurrent use. Only Build and Parse make one.
type Snapshot struct {
	meta    Meta
	content *content
}

// content is what the hash covers; snapshots that differ in their meta alone share it.
type content struct {
	// zones are in order of id. Contents share the entries that are the same in both, so that a snapshot beside the one before
	// it costs a pointer a zone.
	zones []*entry
	hash  string
	// delta is the difference to the content with hash deltaTo, when Parse has learnt it. It holds values of
	// that content's zones that are gone, never the content itself: no chain of old snapshots builds up.
	delta   Delta
	deltaTo string
}

// entry is a zone with the digest and length of its canonical bytes. It does not change once it is in a content.
type entry struct {
	zone   *zone.Zone
	digest [32]byte
	size   int
}

func newEntry(z *zone.Zone, canonical []byte) *entry {
	return &entry{zone: z, digest: blake3.Sum256(canonical), size: len(canonical)}
}

func (e *entry) same(o *entry) bool { return e.size == o.size && e.digest == o.digest }

// find returns the index of a zone's entry, false when there is none.
func (c *content) find(id zone.ID) (int, bool) {
	return slices.BinarySearchFunc(c.zones, id, func(e *entry, id zone.ID) int { return cmp.Compare(e.zone.ID, id) })
}

// WithMeta returns the same content under another meta: what apply rebuilds with once it has a version.
func (s *Snapshot) WithMeta(m Meta) *Snapshot { return &Snapshot{meta: m.clean(), content: s.content} }

// Meta returns what the snapshot says of its making.
func (s *Snapshot) Meta() Meta { return s.meta }

// ContentHash is the lower-case hex of the BLAKE3-256 of the canonical bytes of the zones.
func (s *Snapshot) ContentHash() string { return s.content.hash }

// Len is how many zones there are.
func (s *Snapshot) Len() int { return len(s.content.zones) }

// Zone returns a zone by id, nil when there is none. The caller must not change it.
func (s *Snapshot) Zone(id zone.ID) *zone.Zone {
	if i, ok := s.content.find(id); ok {
		return s.content.zones[i].zone
	}
	return nil
}

// Zones iterates in order of id.
func (s *Snapshot) Zones() iter.Seq[*zone.Zone] {
	return func(yield func(*zone.Zone) bool) {
		for i := range s.content.zones {
			if !yield(s.content.zones[i].zone) {
				return
			}
		}
	}
}
