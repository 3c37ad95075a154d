package snapshot

import (
	"cmp"

	"github.com/guardyn-edge/guardyn/zone"
)

// Delta tells which zones of s are new or differ from prev's, and which of prev's are gone. Both are in
// order of id; the caller must not change them.
type Delta struct {
	Changed []*zone.Zone
	Removed []*zone.Zone // prev's values
}

// Delta compares s with prev by the digests of their zones. It is O(1) when s was parsed against a snapshot
// with prev's content hash, else it walks both. prev nil: everything is changed.
func (s *Snapshot) Delta(prev *Snapshot) Delta {
	if prev != nil && s.content.deltaTo == prev.content.hash {
		return s.content.delta
	}
	return s.walk(prev)
}

func (s *Snapshot) walk(prev *Snapshot) Delta {
	var d Delta
	s.merge(prev, func(old, new *entry) {
		switch {
		case new == nil:
			d.Removed = append(d.Removed, old.zone)
		case old == nil || !old.same(new):
			d.Changed = append(d.Changed, new.zone)
		}
	})
	return d
}

// merge visits the zones of prev (may be nil) and s in order of id, those of one id together.
func (s *Snapshot) merge(prev *Snapshot, visit func(old, new *entry)) {
	var a []*entry
	if prev != nil {
		a = prev.content.zones
	}
	b := s.content.zones
	for len(a) > 0 || len(b) > 0 {
		var c int
		switch {
		case len(a) == 0:
			c = 1
		case len(b) == 0:
			c = -1
		default:
			c = cmp.Compare(a[0].zone.ID, b[0].zone.ID)
		}
		var old, new *entry
		if c <= 0 {
			old, a = a[0], a[1:]
		}
		if c >= 0 {
			new, b = b[0], b[1:]
		}
		visit(old, new)
	}
}
