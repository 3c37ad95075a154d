package snapshot

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/guardyn-edge/guardyn/internal/originguard"
	"github.com/guardyn-edge/guardyn/zone"
)

// pools judges origins: at least one that is enabled, none at an address that nodes do not connect to. A
// host name is judged by the node, when it has resolved it.
func (j *judge) pools() {
	for _, name := range slices.Sorted(maps.Keys(j.z.Pools)) {
		p := j.z.Pools[name]
		if len(p.Origins) == 0 {
			j.problem("pool "+name, "pool_without_origin", "the pool has no enabled origin; add one or enable one")
		}
		for i := range p.Origins {
			o := &p.Origins[i]
			ap, err := netip.ParseAddrPort(o.Address)
			if err != nil {
				continue
			}
			if err := originguard.Check(ap.Addr(), j.in.AllowedOrigins); err != nil {
				j.problem("pool "+name, "origin_refused", "origin %s: %v", o.Name, err)
			}
		}
	}
}

func (j *judge) balancers() {
	for _, host := range slices.SortedFunc(maps.Keys(j.z.LoadBalancers), zone.Name.Compare) {
		b := j.z.LoadBalancers[host]
		named := b.Pools
		if b.Fallback != "" && !slices.Contains(named, b.Fallback) {
			named = append(slices.Clone(named), b.Fallback)
		}
		for _, p := range named {
			j.usedPools[p] = true
			if _, ok := j.z.Pools[p]; !ok {
				j.problem("load balancer "+host.In(j.z.Name), "pool_unknown", "it names pool %s, which this zone does not have; create the pool or name another", quote(p))
			}
		}
	}
}

// ceilings compares what the zone holds with what its plan allows.
func (j *judge) ceilings() {
	var have zone.Ceilings
	have.Records = len(j.z.Records)
	for _, rules := range j.z.Rulesets {
		have.Rules += len(rules)
	}
	have.Lists = len(j.z.Lists)
	for _, l := range j.z.Lists {
		have.ListItems += len(l.Items)
	}
	have.Pools = len(j.z.Pools)
	for _, p := range j.z.Pools {
		have.Origins += len(p.Origins)
	}
	have.LoadBalancers, have.TLSHosts, have.Functions = len(j.z.LoadBalancers), len(j.z.TLSHosts), len(j.z.Functions)
	limit := j.z.Ceilings.Effective()
	for _, c := range countCeilings(&have, &limit) {
		if c.a > c.b {
			j.problem("", "ceiling_exceeded", "the plan allows %d %s and the zone has %d; remove some or ask for a larger plan", c.b, c.name, c.a)
		}
	}
}
