package zone

// DefaultTTL is what TTL "auto" (0 in an edit) resolves to, in seconds.
const DefaultTTL uint32 = 300

// MaxTTL is the largest TTL in seconds that a record may have (RFC 2181 §8).
const MaxTTL uint32 = 1<<31 - 1

// RRType is a DNS resource record type by number (IANA "Resource Record (RR) TYPEs"). Its text form is
// the mnemonic, or TYPEn (RFC 3597 §5) where this build knows none.
type RRType uint16

// Record is one resource record of class IN.
type Record struct {
	Name Name   `json:"name"`
	Type RRType `json:"type"`
	// Content is the RDATA in its one printed form: addresses as RFC 5952, names absolute, lower-case and
	// without the trailing dot, TXT as its byte string (see ParseContent), unknown types as RFC 3597 §5.
	Content string `json:"content"`
	// TTL in seconds, 1 to MaxTTL. DefaultTTL is left out of JSON; an absent or zero TTL reads as it.
	TTL uint32 `json:"ttl,omitzero"`
	// Proxied names answer with the node's own addresses and send HTTP through the node. A, AAAA and
	// CNAME only.
	Proxied bool `json:"proxied,omitzero"`
}
