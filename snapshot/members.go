package snapshot

import "github.com/guardyn-edge/guardyn/zone"

// Member is what tells one zone's member of the zones object from another's, without its bytes.
type Member struct {
	ID     zone.ID
	Digest [32]byte // BLAKE3-256 of the zone's canonical bytes
	Size   int      // of the member in bytes: key, colon, canonical bytes
}

// The document is Head, the members of all zones in order with commas between them, and Tail.

// Tail ends every document.
const Tail = "}}"

// Head returns the document up to the first member of zones.
func (s *Snapshot) Head() []byte { return append(s.head(), '{') }

// Member describes the i-th zone's member, 0 ≤ i < Len.
func (s *Snapshot) Member(i int) Member {
	e := s.content.zones[i]
	return Member{ID: e.zone.ID, Digest: e.digest, Size: e.keyed()}
}

// AppendMembers appends the members from ≤ i < to with a comma before each but the document's first.
func (s *Snapshot) AppendMembers(b []byte, from, to int) []byte {
	for i := from; i < to; i++ {
		b, _ = appendZone(appendKey(b, i, string(s.content.zones[i].zone.ID)), s.content.zones[i].zone) // it had canonical bytes when its entry was made
	}
	return b
}
