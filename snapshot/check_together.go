package snapshot

import "github.com/guardyn-edge/guardyn/zone"

// checkTogether judges what no zone can be judged for by itself; zones are in order of id. Of two zones that
// want one name, the one with the greater id, which is the later one, is to blame; but a zone that is held as
// published never is, when the other is not.
func checkTogether(zones []*builtZone) {
	for i := 1; i < len(zones); i++ {
		if a, b := zones[i-1], zones[i]; a.entry.zone.ID == b.entry.zone.ID {
			b.problem("", "zone_id_duplicate", "another zone, %s, has the same id; one of them must go", a.entry.zone.Name)
		}
	}
	at := func(i int) *zone.Zone { return zones[i].entry.zone }
	for _, c := range clashes(len(zones), at) {
		first, later := at(c.first), zones[c.later]
		if later.held && !zones[c.first].held {
			first, later = at(c.later), zones[c.first]
		}
		if first.Name == later.entry.zone.Name {
			if c.host == first.Name {
				later.problem("", "host_duplicate", "another zone of this name is served already; a name belongs to one zone: delete one of the two")
			}
			continue // every other host of theirs follows from that
		}
		later.problem("host "+c.host.String(), "host_duplicate", "the host %s is served by zone %s too; a host belongs to one zone: remove it from one of the two", c.host, first.Name)
	}
	checkNesting(zones)
}

// checkNesting refuses a zone below one of another workspace which does not delegate it.
func checkNesting(zones []*builtZone) {
	byApex := make(map[zone.Name]int, len(zones))
	for i := len(zones) - 1; i >= 0; i-- {
		byApex[zones[i].entry.zone.Name] = i
	}
	for i, child := range zones {
		name := child.entry.zone.Name
		for p := name.Parent(); !p.IsZero(); p = p.Parent() {
			k, ok := byApex[p]
			if !ok {
				continue
			}
			parent := zones[k]
			if parent.workspace == child.workspace || parent.held && child.held || delegation(parent.entry.zone, name) {
				break
			}
			if k < i && !child.held || parent.held {
				child.problem("", "zone_not_delegated", "it lies below zone %s of another workspace, which does not delegate it; have NS records for %s added there", p, name)
			} else {
				parent.problem("", "zone_not_delegated", "zone %s of another workspace lies below it and was there before; add NS records for %s", name, name)
			}
			break // what is above is the parent's matter
		}
	}
}
