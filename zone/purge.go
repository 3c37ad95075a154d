package zone

import "time"

// PurgeKind says what the values of a [Purge] name.
type PurgeKind string

const (
	// PurgeURL: absolute URLs, http or https, in the normal form that a node's cache key has: host in lower case without
	// port, path and query as they are forwarded. Both the scheme and the query are part of what is named.
	PurgeURL PurgeKind = "url"
	// PurgePrefix: host and the beginning of a path, such as www.example.com/img/, without scheme and query. Whatever begins
	// with these bytes is named, of both schemes and with every query.
	PurgePrefix PurgeKind = "prefix"
	// PurgeTag: tags that the origin gave its answers in Cache-Tag. They are compared byte by byte.
	PurgeTag PurgeKind = "tag"
	// PurgeAll: everything of the zone. It has no values.
	PurgeAll PurgeKind = "all"
)

// Purge says that what caches hold of one zone is out of date, whenever it was fetched up to now: what a node stored, and
// what an exchange brings that was begun before the node heard of it. Purges are in the order of their sequence, which is the
// platform's and counts from 1 without a gap.
type Purge struct {
	Sequence uint64    `json:"sequence"`
	Zone     ID        `json:"zone"`
	Kind     PurgeKind `json:"kind"`
	// Values in normal form, sorted, each once; none with PurgeAll.
	Values []string `json:"values,omitempty"`
	// At is when the control plane took it, to the microsecond, UTC. Nothing is decided by it.
	At time.Time `json:"at"`
}
