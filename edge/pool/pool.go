// Package pool chooses the origin of a request among a zone's pools and load balancers.
package pool

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/zone"
)

// Set is the compiled pools and load balancers of one zone. Its configuration is immutable; what choosing needs
// to know of origins is safe for concurrent use. A nil Set has no pools.
type Set struct {
	pools     map[string]*pool
	balancers map[string]*Balancer // by name
	wildcards map[string]*Balancer // by name less its "*."
	// states are the origins' states by what they are, for the next Compile.
	states map[identity]*originState
}

// Compile compiles z's pools and load balancers. Pools and origins that are unchanged since old (may be nil)
// keep what is known of them, shared with old: requests still running under it count, and an origin that is unhealthy
// or ejected stays so. m, which may be nil, takes notice of what becomes of the origins.
func Compile(z *zone.Zone, old *Set, m *Monitor) (*Set, error) {
	if len(z.Pools) == 0 && len(z.LoadBalancers) == 0 {
		return nil, nil
	}
	s := &Set{
		pools:     make(map[string]*pool, len(z.Pools)),
		balancers: make(map[string]*Balancer, len(z.LoadBalancers)),
		wildcards: make(map[string]*Balancer),
		states:    make(map[identity]*originState),
	}
	for name, config := range z.Pools {
		s.pools[name] = s.compilePool(z.ID, name, config, old, m)
	}
	var problems []error
	for host, config := range z.LoadBalancers {
		b := new(Balancer)
		find := func(name string) *pool {
			p := s.pools[name]
			if p == nil {
				problems = append(problems, fmt.Errorf("load balancer %s: pool %q does not exist in zone %s", host, name, z.Name))
			}
			return p
		}
		for _, name := range config.Pools {
			if p := find(name); p != nil {
				b.pools = append(b.pools, p)
			}
		}
		if config.Fallback != "" {
			b.fallback = find(config.Fallback)
		}
		if config.Sticky != nil {
			b.compileSticky(z.ID, config.Sticky)
		}
		if wild, ok := strings.CutPrefix(host.String(), "*."); ok {
			s.wildcards[wild] = b
		} else {
			s.balancers[host.String()] = b
		}
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return s, nil
}

func (s *Set) compilePool(id zone.ID, name string, config zone.Pool, old *Set, m *Monitor) *pool {
	shared := new(sharedPool)
	if old != nil {
		if p := old.pools[name]; p != nil {
			if p.monitor == m && reflect.DeepEqual(p.config, config) {
				for _, o := range p.origins {
					s.states[o.identity()] = o.state
				}
				return p
			}
			shared = p.shared
		}
	}
	p := &pool{
		config: config, policy: config.Policy, slowStart: time.Duration(config.SlowStart), outlier: newOutlier(config.OutlierDetection),
		monitor: m, shared: shared, origins: make([]*Origin, 0, len(config.Origins)),
	}
	for _, c := range config.Origins {
		if c.Enabled != nil && !*c.Enabled {
			continue
		}
		o := newOrigin(id, name, c)
		key := o.identity()
		state := s.states[key] // two origins of a pool may be one server
		if state == nil && old != nil {
			state = old.states[key]
		}
		if state == nil {
			state = new(originState)
		}
		s.states[key], o.state = state, state
		p.origins = append(p.origins, o)
	}
	p.seal()
	return p
}

func newOutlier(config *zone.OutlierDetection) outlier {
	if config == nil {
		config = new(zone.OutlierDetection)
	}
	e := config.Effective()
	return outlier{
		on: *e.Enabled, failures: e.ConsecutiveFailures, statuses: e.FailureStatus, base: time.Duration(e.BaseEjectionTime), percent: e.MaxEjectionPercent,
	}
}

// Checked is a pool whose origins are to be checked.
type Checked struct {
	Name string
	// Check has its defaults filled in.
	Check   zone.HealthCheck
	Origins []*Origin
}

// Checked returns the pools with a health check.
func (s *Set) Checked() []Checked {
	if s == nil {
		return nil
	}
	var list []Checked
	for name, p := range s.pools {
		if p.config.Health != nil {
			list = append(list, Checked{name, p.config.Health.Effective(), p.origins})
		}
	}
	return list
}

// Pool returns the origins of the pool of that name, nil when there is none. They must not be changed.
func (s *Set) Pool(name string) []*Origin {
	if s == nil || s.pools[name] == nil {
		return nil
	}
	return s.pools[name].origins
}

func (s *Set) each(f func(*Origin)) {
	if s == nil {
		return
	}
	for _, p := range s.pools {
		for _, o := range p.origins {
			f(o)
		}
	}
}
