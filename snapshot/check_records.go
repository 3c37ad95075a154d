package snapshot

import (
	"net/netip"
	"slices"

	"github.com/guardyn-edge/guardyn/internal/originguard"
	"github.com/guardyn-edge/guardyn/zone"
)

// maxChain bounds how many CNAMEs of a zone are followed from a proxied name.
const maxChain = 16

// records judges every name of the zone. Records are in normal form, so those of a name, and of a type
// within it, stand together.
func (j *judge) records() {
	rs := j.z.Records
	for start := 0; start < len(rs); {
		end := start + 1
		for end < len(rs) && rs[end].Name == rs[start].Name {
			end++
		}
		j.name(rs[start:end])
		start = end
	}
}

func (j *judge) label(r *zone.Record) string {
	return "record " + r.Name.In(j.z.Name) + " " + r.Type.String()
}

func (j *judge) name(rs []zone.Record) {
	cnames := 0
	for i := range rs {
		if rs[i].Type == zone.TypeCNAME {
			cnames++
		}
	}
	for i := range rs {
		r := &rs[i]
		if i == 0 || r.Type != rs[i-1].Type {
			j.rrset(rs, i, cnames)
		}
		switch r.Type {
		case zone.TypeNS:
			if t := r.Target(); j.isAlias(t) {
				j.problem(j.label(r), "ns_target_cname", "the name server %s is a CNAME in this zone; point the NS record at a name with addresses (RFC 2181 §10.3)", t)
			}
		case zone.TypeMX, zone.TypeSRV:
			if t := r.Target(); j.isAlias(t) {
				j.warn(j.label(r), "target_cname", "the target %s is a CNAME; point the record at a name with addresses (RFC 2181 §10.3)", t)
			}
		}
		if r.Proxied {
			j.proxied(r)
		}
	}
}

// rrset judges the RRset that starts at rs[i]; rs is all of the name.
func (j *judge) rrset(rs []zone.Record, i, cnames int) {
	r := &rs[i]
	if r.Type == zone.TypeCNAME {
		switch {
		case r.Name == j.z.Name:
			j.problem(j.label(r), "cname_apex", "a CNAME cannot stand at the apex, beside the zone's SOA and NS records (RFC 1034 §3.6.2); use A and AAAA records, proxied or not")
		case cnames > 1:
			j.problem(j.label(r), "cname_multiple", "the name has %d CNAME records and may have one (RFC 2181 §10.1); remove the others", cnames)
		}
		if len(rs) > cnames {
			j.problem(j.label(r), "cname_conflict", "a CNAME cannot stand beside other records of its name (RFC 1034 §3.6.2); remove it or them")
		}
	}
	low, differ := r.EffectiveTTL(), false
	for k := i + 1; k < len(rs) && rs[k].Type == r.Type; k++ {
		differ = differ || rs[k].EffectiveTTL() != r.EffectiveTTL()
		low = min(low, rs[k].EffectiveTTL())
	}
	if differ {
		j.warn(j.label(r), "ttl_differs", "the records of this name and type have several TTLs; the lowest, %d, is served for all of them (RFC 2181 §5.2)", low)
	}
}

// proxied judges the origin that a proxied record gives its name.
func (j *judge) proxied(r *zone.Record) {
	if _, ok := balancerFor(j.z, r.Name); ok {
		return // its pools are the origin
	}
	if _, ok := j.z.Pools[zone.DefaultPool]; ok {
		j.usedPools[zone.DefaultPool] = true
		return
	}
	switch r.Type {
	case zone.TypeA, zone.TypeAAAA:
		addr, err := netip.ParseAddr(r.Content)
		if err == nil {
			err = originguard.Check(addr, j.in.AllowedOrigins)
		}
		if err != nil {
			j.problem(j.label(r), "origin_refused", "%v", err)
		}
	case zone.TypeCNAME:
		if j.routed() {
			return
		}
		if why := j.deadEnd(r); why != "" {
			j.problem(j.label(r), "origin_missing", "the proxied name has no usable record: %s; add an A or AAAA record there, or a load balancer for %s", why, r.Name)
		}
	}
}

// routed reports whether rules may give any host of the zone another origin.
func (j *judge) routed() bool {
	for _, rules := range j.z.Rulesets {
		for i := range rules {
			if a := rules[i].Action; a == zone.ActionRoute || a == zone.ActionFunction {
				return true
			}
		}
	}
	return false
}

// deadEnd follows a proxied CNAME within the zone and says why it leads nowhere, "" when it leads to an
// address, to a name outside the zone, or below a delegation.
func (j *judge) deadEnd(r *zone.Record) string {
	for range maxChain {
		t := r.Target()
		if t.IsZero() {
			return "its target " + quote(r.Content) + " is no host name"
		}
		if !t.Under(j.z.Name) || j.delegated(t) {
			return ""
		}
		if _, ok := balancerFor(j.z, t); ok {
			return ""
		}
		rs := j.lookup(t)
		next := slices.IndexFunc(rs, func(r zone.Record) bool {
			return r.Type == zone.TypeA || r.Type == zone.TypeAAAA || r.Type == zone.TypeCNAME
		})
		if next < 0 {
			return t.String() + " has no address in this zone"
		}
		if rs[next].Type != zone.TypeCNAME {
			return ""
		}
		r = &rs[next]
	}
	return "its chain of CNAMEs is a loop or longer than 16"
}

// exact returns the records of a name.
func (j *judge) exact(n zone.Name) []zone.Record {
	rs := j.z.Records
	start, ok := slices.BinarySearchFunc(rs, n, func(r zone.Record, n zone.Name) int { return r.Name.Compare(n) })
	if !ok {
		return nil
	}
	end := start
	for end < len(rs) && rs[end].Name == n {
		end++
	}
	return rs[start:end]
}

// lookup returns what a question for n is answered from: its own records or the wildcard's of its closest
// encloser (RFC 4592 §3.3.1).
func (j *judge) lookup(n zone.Name) []zone.Record {
	if rs := j.exact(n); rs != nil || j.exists(n) {
		return rs
	}
	for p := n.Parent(); p.Under(j.z.Name); p = p.Parent() {
		if j.exists(p) {
			star, err := zone.ParseName("*." + p.String())
			if err != nil {
				return nil
			}
			return j.exact(star)
		}
	}
	return nil
}

// exists reports whether n has records or is an empty non-terminal.
func (j *judge) exists(n zone.Name) bool {
	if j.names == nil {
		j.names = map[zone.Name]bool{j.z.Name: true}
		for i := range j.z.Records {
			for p := j.z.Records[i].Name; p.Under(j.z.Name) && !j.names[p]; p = p.Parent() {
				j.names[p] = true
			}
		}
	}
	return j.names[n]
}

// delegated reports whether n is at or below a delegation of the zone.
func (j *judge) delegated(n zone.Name) bool { return delegation(j.z, n) }

// delegation reports whether z has NS records at n or between n and its own apex.
func delegation(z *zone.Zone, n zone.Name) bool {
	rs := z.Records
	for ; n != z.Name && n.Under(z.Name); n = n.Parent() {
		i, _ := slices.BinarySearchFunc(rs, n, func(r zone.Record, n zone.Name) int { return r.Name.Compare(n) })
		for ; i < len(rs) && rs[i].Name == n; i++ {
			if rs[i].Type == zone.TypeNS {
				return true
			}
		}
	}
	return false
}

// isAlias reports whether a question for n within the zone is answered by a CNAME.
func (j *judge) isAlias(n zone.Name) bool {
	if n.IsZero() || !n.Under(j.z.Name) || j.delegated(n) {
		return false
	}
	return slices.ContainsFunc(j.lookup(n), func(r zone.Record) bool { return r.Type == zone.TypeCNAME })
}

// balancerFor returns the load balancer of a host: its own or, without one, that of the wildcard above it.
func balancerFor(z *zone.Zone, host zone.Name) (zone.LoadBalancer, bool) {
	if len(z.LoadBalancers) == 0 {
		return zone.LoadBalancer{}, false
	}
	if b, ok := z.LoadBalancers[host]; ok {
		return b, true
	}
	for name, b := range z.LoadBalancers {
		if name.IsWildcard() && host != name.Parent() && host.Under(name.Parent()) {
			return b, true
		}
	}
	return zone.LoadBalancer{}, false
}
