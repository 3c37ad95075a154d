// Package pool chooses the origin of a request among a zone's pools and load balancers.
package pool

import (
	"net/netip"

	"github.com/guardyn-edge/guardyn/zone"
)

// Set is the compiled pools and load balancers of one zone. Its configuration is immutable; the counters
// that choosing needs are safe for concurrent use. A nil Set has no pools.
type Set struct{}

// Compile compiles z's pools and load balancers. Pools and origins that are unchanged since old (may be nil)
// keep their counters, shared with old, so that requests still running under it count.
func Compile(z *zone.Zone, old *Set) (*Set, error) { return &Set{}, nil }

// Pick chooses an origin for a host by its load balancer: the entry of that name, else the wildcard one
// level above. It returns nil when host has no load balancer.
func (s *Set) Pick(host string, client netip.Addr) *Origin { return nil }

// PickPool chooses an origin of the pool of that name, nil when there is none.
func (s *Set) PickPool(name string, client netip.Addr) *Origin { return nil }

// Origin is one server of a pool.
type Origin struct{}
