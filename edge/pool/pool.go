// Package pool chooses the origin of a request among a zone's pools and load balancers.
package pool

import (
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strings"

	"github.com/guardyn-edge/guardyn/zone"
)

// Set is the compiled pools and load balancers of one zone. Its configuration is immutable; the counters
// that choosing needs are safe for concurrent use. A nil Set has no pools.
type Set struct {
	pools     map[string]*pool
	balancers map[string][]*pool // by name
	wildcards map[string][]*pool // by name less its "*."
	// states are the origins' states by what they are, for the next Compile.
	states map[identity]*originState
}

// Compile compiles z's pools and load balancers. Pools and origins that are unchanged since old (may be nil)
// keep their counters, shared with old, so that requests still running under it count. Health checks and
// sticky cookies of z are carried by the snapshot and not acted on by this package: an origin that is
// enabled is taken to work.
func Compile(z *zone.Zone, old *Set) (*Set, error) {
	if len(z.Pools) == 0 && len(z.LoadBalancers) == 0 {
		return nil, nil
	}
	s := &Set{
		pools:     make(map[string]*pool, len(z.Pools)),
		balancers: make(map[string][]*pool, len(z.LoadBalancers)),
		wildcards: make(map[string][]*pool),
		states:    make(map[identity]*originState),
	}
	for name, config := range z.Pools {
		s.pools[name] = s.compilePool(name, config, old)
	}
	var problems []error
	for host, config := range z.LoadBalancers {
		names := config.Pools
		if config.Fallback != "" {
			names = append(names[:len(names):len(names)], config.Fallback)
		}
		ordered := make([]*pool, 0, len(names))
		for _, name := range names {
			p := s.pools[name]
			if p == nil {
				problems = append(problems, fmt.Errorf("load balancer %s: pool %q does not exist in zone %s", host, name, z.Name))
				continue
			}
			ordered = append(ordered, p)
		}
		if wild, ok := strings.CutPrefix(host.String(), "*."); ok {
			s.wildcards[wild] = ordered
		} else {
			s.balancers[host.String()] = ordered
		}
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return s, nil
}

func (s *Set) compilePool(name string, config zone.Pool, old *Set) *pool {
	if old != nil {
		if p := old.pools[name]; p != nil && reflect.DeepEqual(p.config, config) {
			for _, o := range p.origins {
				s.states[o.identity()] = o.state
			}
			return p
		}
	}
	origins := make([]*Origin, 0, len(config.Origins))
	for _, c := range config.Origins {
		if c.Enabled != nil && !*c.Enabled {
			continue
		}
		o := newOrigin(name, c)
		id := o.identity()
		state := s.states[id] // two origins of a pool may be one server
		if state == nil && old != nil {
			state = old.states[id]
		}
		if state == nil {
			state = new(originState)
		}
		s.states[id], o.state = state, state
		origins = append(origins, o)
	}
	return newPool(config, origins)
}

// Pick chooses an origin for a host in normal form by its load balancer: the one of exactly that name, else
// that of the nearest wildcard above it (as a DNS wildcard covers every depth, RFC 4592), then of its pools
// in order, then of its fallback. It returns nil when there is none.
func (s *Set) Pick(host string, client netip.Addr) *Origin {
	if s == nil {
		return nil
	}
	pools, ok := s.balancers[host]
	for parent := host; !ok && len(s.wildcards) > 0; {
		var below bool
		if _, parent, below = strings.Cut(parent, "."); !below {
			return nil
		}
		pools, ok = s.wildcards[parent]
	}
	for _, p := range pools {
		if o := p.pick(client); o != nil {
			return o
		}
	}
	return nil
}

// PickPool chooses an origin of the pool of that name, nil when there is none.
func (s *Set) PickPool(name string, client netip.Addr) *Origin {
	if s == nil {
		return nil
	}
	if p := s.pools[name]; p != nil {
		return p.pick(client)
	}
	return nil
}
