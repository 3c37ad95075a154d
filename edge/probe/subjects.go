package probe

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

// subjects are what a change concerns.
type subjects struct {
	zones []string  // apexes of zones that are new or different
	hosts []string  // host names that answer by HTTP and are new or may answer otherwise
	known []string  // of these, those that were there before
	pools []poolRef // new or different
}

// poolRef is a pool as a zone has it.
type poolRef struct {
	zone zone.ID
	apex string
	name string
	pool zone.Pool
}

func (r poolRef) String() string { return "pool " + r.name + " of " + r.apex }

// subjectsOf compares two snapshots; before may be nil.
func subjectsOf(before, after *snapshot.Snapshot) subjects {
	var s subjects
	for _, z := range after.Delta(before).Changed {
		var old *zone.Zone
		if before != nil {
			old = before.Zone(z.ID)
		}
		s.zones = append(s.zones, z.Name.String())
		were := hostsOf(old)
		for _, h := range hostsOf(z) {
			if !changed(old, z, h) {
				continue
			}
			s.hosts = append(s.hosts, h)
			if _, there := slices.BinarySearch(were, h); there {
				s.known = append(s.known, h)
			}
		}
		for name, p := range z.Pools {
			if old == nil || !reflect.DeepEqual(old.Pools[name], p) {
				s.pools = append(s.pools, poolRef{z.ID, z.Name.String(), name, p})
			}
		}
	}
	slices.Sort(s.zones)
	slices.Sort(s.hosts)
	slices.Sort(s.known)
	sortPools(s.pools)
	s.zones, s.hosts = s.zones[:min(len(s.zones), MaxZones)], s.hosts[:min(len(s.hosts), MaxHosts)]
	s.known, s.pools = s.known[:min(len(s.known), MaxHosts)], s.pools[:min(len(s.pools), MaxPools)]
	return s
}

// untouchedPools are the pools of before that after still has and s does not name.
func untouchedPools(before, after *snapshot.Snapshot, s subjects) []poolRef {
	if before == nil {
		return nil
	}
	var refs []poolRef
	for z := range before.Zones() {
		now := after.Zone(z.ID)
		if now == nil {
			continue
		}
		for name, p := range z.Pools {
			if q, ok := now.Pools[name]; ok && (z == now || reflect.DeepEqual(p, q)) {
				refs = append(refs, poolRef{z.ID, z.Name.String(), name, p})
			}
		}
	}
	sortPools(refs)
	return refs[:min(len(refs), max(MaxPools-len(s.pools), 0))]
}

func sortPools(refs []poolRef) {
	slices.SortFunc(refs, func(a, b poolRef) int {
		return cmp.Or(cmp.Compare(a.apex, b.apex), cmp.Compare(a.name, b.name))
	})
}

// hostsOf returns the host names of a zone that HTTP is answered for, sorted: proxied names and those of load balancers, without
// wildcards and other names that no client asks for.
func hostsOf(z *zone.Zone) []string {
	if z == nil {
		return nil
	}
	var hosts []string
	for i := range z.Records {
		if r := &z.Records[i]; r.Proxied && isHost(r.Name) {
			hosts = append(hosts, r.Name.String())
		}
	}
	for name := range z.LoadBalancers {
		if isHost(name) {
			hosts = append(hosts, name.String())
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// isHost tells whether a URL can have the name.
func isHost(name zone.Name) bool {
	return !name.IsWildcard() && !strings.ContainsFunc(name.String(), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
	})
}

// changed tells whether host may be answered otherwise: its records differ, or anything of the zone but records does.
func changed(old, z *zone.Zone, host string) bool {
	if old == nil {
		return true
	}
	a, b := *old, *z
	a.Records, b.Records = nil, nil
	if !reflect.DeepEqual(a, b) {
		return true
	}
	return !reflect.DeepEqual(recordsOf(old, host), recordsOf(z, host))
}

func recordsOf(z *zone.Zone, host string) []zone.Record {
	var rs []zone.Record
	for i := range z.Records {
		if z.Records[i].Name.String() == host {
			rs = append(rs, z.Records[i])
		}
	}
	return rs
}
