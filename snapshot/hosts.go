package snapshot

import (
	"slices"

	"github.com/guardyn-edge/guardyn/zone"
)

// hosts returns the host names that a zone serves, in order: its apex, its proxied names, and those of its
// load balancers and TLS hosts. No two zones may have one in common.
func hosts(z *zone.Zone) []zone.Name {
	names := make([]zone.Name, 1, 1+len(z.LoadBalancers)+len(z.TLSHosts)+4)
	names[0] = z.Name
	for i := range z.Records {
		if r := &z.Records[i]; r.Proxied && r.Name != names[len(names)-1] {
			names = append(names, r.Name)
		}
	}
	for n := range z.LoadBalancers {
		names = append(names, n)
	}
	for n := range z.TLSHosts {
		names = append(names, n)
	}
	slices.SortFunc(names, zone.Name.Compare)
	return slices.Compact(names)
}

// clash is a host name that two zones serve, by their index.
type clash struct {
	host         zone.Name
	first, later int
}

// clashes finds every host name that more than one of zones serves, first among those that precede others.
// Hosts lie within their zone (zone.Normalize sees to that), so only zones whose apexes are nested, or the
// same, are compared: the cost follows the number of zones, not of hosts.
func clashes(n int, at func(int) *zone.Zone) []clash {
	// next chains zones of one apex; almost always there is just one.
	byApex := make(map[zone.Name]int, n)
	next := make([]int32, n)
	for i := n - 1; i >= 0; i-- {
		next[i] = -1
		if j, ok := byApex[at(i).Name]; ok {
			next[i] = int32(j)
		}
		byApex[at(i).Name] = i
	}
	var found []clash
	cache := map[int][]zone.Name{}
	of := func(i int) []zone.Name {
		h, ok := cache[i]
		if !ok {
			h = hosts(at(i))
			cache[i] = h
		}
		return h
	}
	compare := func(i, j int) {
		if i > j {
			i, j = j, i
		}
		a, b := of(i), of(j)
		for x, y := 0, 0; x < len(a) && y < len(b); {
			switch c := a[x].Compare(b[y]); {
			case c < 0:
				x++
			case c > 0:
				y++
			default:
				found = append(found, clash{a[x], i, j})
				x++
				y++
			}
		}
	}
	for i := range n {
		for j := next[i]; j >= 0; j = next[j] {
			compare(i, int(j))
		}
		for p := at(i).Name.Parent(); !p.IsZero(); p = p.Parent() {
			j, ok := byApex[p]
			for ; ok && j >= 0; j = int(next[j]) {
				compare(i, j)
			}
		}
	}
	return found
}
