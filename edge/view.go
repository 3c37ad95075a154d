// Package edge compiles a verified snapshot into the immutable view that a node serves from, sharing with
// the view before it whatever did not change.
package edge

import (
	"sync/atomic"

	"github.com/gaissmai/bart"

	"github.com/guardyn-edge/guardyn/edge/cache"
	"github.com/guardyn-edge/guardyn/edge/function"
	"github.com/guardyn-edge/guardyn/edge/pool"
	"github.com/guardyn-edge/guardyn/edge/ratelimit"
	"github.com/guardyn-edge/guardyn/edge/rrset"
	"github.com/guardyn-edge/guardyn/edge/rules"
	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

// View is everything that serving reads, compiled from one snapshot. It is immutable and safe for
// concurrent use; only Compile makes one. A request or query takes the view once, from [Live], and uses it
// to its end.
type View struct {
	snapshot   *snapshot.Snapshot
	generation uint64
	epoch      uint64
	service    rrset.Addresses
	programs   *rules.Programs
	monitor    *pool.Monitor
	secrets    Secrets
	functions  *function.Engine
	index      index
}

// Live holds the view that is served. The zero Live holds none. It is safe for concurrent use.
type Live struct{ view atomic.Pointer[View] }

// Load returns the view to serve from, nil before the first Store.
func (l *Live) Load() *View { return l.view.Load() }

// Store makes v what every later Load returns. Users of the view before it keep it until they end.
func (l *Live) Store(v *View) { l.view.Store(v) }

// Version is the snapshot's version.
func (v *View) Version() uint64 { return v.snapshot.Meta().Version }

// Generation is that of the activation that v serves.
func (v *View) Generation() uint64 { return v.generation }

// Serial is that of every SOA: the generation, and 2^24 more for each epoch after the first, so that it rises
// (RFC 1982) over a recovery too, which may take the generation back.
func (v *View) Serial() uint32 {
	return uint32(v.generation + (max(v.epoch, 1)-1)<<24)
}

// ContentHash is the snapshot's: 64 lower-case hexadecimal digits.
func (v *View) ContentHash() string { return v.snapshot.ContentHash() }

// Snapshot returns what v was compiled from: what the next snapshot is parsed against.
func (v *View) Snapshot() *snapshot.Snapshot { return v.snapshot }

// Len is how many zones v holds.
func (v *View) Len() int { return v.index.n }

// Changed calls f for each zone that v does not share with old, with the zone of that apex in each; one of them
// is nil for a zone that only the other has. old may be nil. It costs what differs, and a pass over what a few
// thousandths of the zones are found by.
func (v *View) Changed(old *View, f func(before, after *Zone)) {
	var before index
	if old != nil {
		before = old.index
	}
	v.index.changed(&before, f)
}

// Service returns the node's own addresses, packed as answers of proxied names.
func (v *View) Service() *rrset.Addresses { return &v.service }

// ZoneFor returns the zone with the longest apex that name is at or below, nil when there is none. name is
// lower-case, A-labels, without the trailing dot. It does not allocate.
func (v *View) ZoneFor(name string) *Zone {
	var buf [rrset.MaxName]byte
	wire, ok := rrset.AppendWire(buf[:0], name)
	if !ok {
		return nil
	}
	z, _ := v.index.find(wire)
	return z
}

// Host returns the zone that serves HTTP for host: the same as ZoneFor.
func (v *View) Host(host string) *Zone { return v.ZoneFor(host) }

// ZoneForWire is ZoneFor for a lower-case name in wire format (RFC 1035 §3.1), the root label included.
// offset is where the zone's apex begins in name.
func (v *View) ZoneForWire(name []byte) (z *Zone, offset int) { return v.index.find(name) }

// Zone is one zone compiled. Its fields must not be changed. Views share the zones that did not change
// between them.
type Zone struct {
	// Config is the snapshot's value.
	Config *zone.Zone
	// Records is what DNS answers from.
	Records *rrset.Zone
	// Rules is nil when the zone has no rules and no lists.
	Rules *rules.Set
	// MaxBody is the ceiling request_body in bytes, Rate the ceiling request_rate.
	MaxBody int64
	Rate    ratelimit.Rate
	// Requests counts requests against the ceiling request_rate. Views share it for as long as they have the zone.
	Requests *ratelimit.Meter
	// Handling is how many requests are being handled. Views share it as they do Requests.
	Handling *atomic.Int64
	// Pools is nil when the zone has no pools.
	Pools *pool.Set
	// TrustedProxies holds the prefixes of the setting trusted_proxies; nil when there are none.
	TrustedProxies *bart.Lite
	// Cache is the zone's policy of the cache, before rules; nil when the zone's cache is turned off.
	Cache *cache.Policy
	// TLS holds certificates and the settings of connections over TLS.
	TLS TLS
	// Functions holds the zone's by name; nil when there are none.
	Functions map[string]*function.Function

	apex string // wire format
}

// Apex is the zone's name in wire format.
func (z *Zone) Apex() string { return z.apex }

// Origin is where the records of a proxied name point: what serves as its origin when no load balancer or
// rule says otherwise.
type Origin = rrset.Origin

// ProxiedOrigin returns the origin of a proxied name: of the record set with exactly that name, or else of
// the wildcard that covers it (RFC 4592). ok is false when the name is not proxied, does not exist or is
// delegated. name is as for [View.ZoneFor] and in the zone. It does not allocate.
func (z *Zone) ProxiedOrigin(name string) (o Origin, ok bool) {
	var buf [rrset.MaxName]byte
	wire, ok := rrset.AppendWire(buf[:0], name)
	if !ok || len(wire) < len(z.apex) {
		return Origin{}, false
	}
	at := len(wire) - len(z.apex)
	if string(wire[at:]) != z.apex {
		return Origin{}, false
	}
	m := z.Records.Match(wire[:at])
	if m.Kind != rrset.Exact && m.Kind != rrset.Wildcard {
		return Origin{}, false
	}
	return z.Records.Origin(m.Node)
}
