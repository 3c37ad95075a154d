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
		if !j.leadsHere(host) {
			j.warn("load balancer "+host.In(j.z.Name), "balancer_unreached", "it has no proxied record, so DNS sends nobody to nodes for %s; add one, unless clients learn the nodes' addresses elsewhere", host)
		}
	}
}

// leadsHere reports whether DNS may send who asks for host to a node: by a proxied record, by an alias of one, or by what is not
// this zone's to know. A wildcard stands for every name below it.
func (j *judge) leadsHere(host zone.Name) bool {
	if host.IsWildcard() {
		parent := host.Parent()
		return slices.ContainsFunc(j.z.Records, func(r zone.Record) bool {
			below := r.Name != parent && r.Name.Under(parent)
			return below && (r.Proxied || r.Type == zone.TypeCNAME || r.Type == zone.TypeDNAME || r.Type == zone.TypeNS)
		})
	}
	for range maxChain {
		if !host.Under(j.z.Name) || j.delegated(host) {
			return true
		}
		rs := j.lookup(host)
		if slices.ContainsFunc(rs, func(r zone.Record) bool { return r.Proxied }) {
			return true
		}
		alias := slices.IndexFunc(rs, func(r zone.Record) bool { return r.Type == zone.TypeCNAME })
		if alias < 0 {
			return j.renamed(host)
		}
		host = rs[alias].Target()
	}
	return false
}

// renamed reports whether a DNAME above n answers for it.
func (j *judge) renamed(n zone.Name) bool {
	for p := n.Parent(); p.Under(j.z.Name); p = p.Parent() {
		if slices.ContainsFunc(j.exact(p), func(r zone.Record) bool { return r.Type == zone.TypeDNAME }) {
			return true
		}
	}
	return false
}

// ceilings tells what the zone has more of than its plan allows. What its functions have is told of each.
func (j *judge) ceilings() {
	for _, e := range j.z.Exceeded() {
		if e.Function == "" {
			j.problem("", "ceiling_exceeded", "the plan allows %s %s and the zone has %s; remove some or ask for a larger plan", e.Limit, e.What, e.Have)
		}
	}
}
