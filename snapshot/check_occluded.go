package snapshot

import "github.com/guardyn-edge/guardyn/zone"

// occluded judges records that no query is answered from, since a delegation or a DNAME at or above their name
// answers instead: a warning for each name, and a problem where HTTP was promised.
func (j *judge) occluded() {
	cuts, dnames := map[zone.Name]bool{}, map[zone.Name]bool{}
	glue := map[zone.Name]bool{}
	for i := range j.z.Records {
		switch r := &j.z.Records[i]; r.Type {
		case zone.TypeNS:
			if r.Name != j.z.Name {
				cuts[r.Name] = true
				glue[r.Target()] = true
			}
		case zone.TypeDNAME:
			dnames[r.Name] = true
		}
	}
	var warned zone.Name
	for i := range j.z.Records {
		r := &j.z.Records[i]
		if r.Type == zone.TypeDS && r.Name != j.z.Name && !cuts[r.Name] {
			j.warn(j.label(r), "ds_without_ns", "a DS record speaks of a delegation and there is no NS record beside it; add one or remove the DS (RFC 4035 §2.4)")
		}
		if len(cuts) == 0 && len(dnames) == 0 {
			continue
		}
		cut, dname := j.above(r, cuts, dnames)
		if cut.IsZero() && dname.IsZero() {
			continue
		}
		if !cut.IsZero() {
			address := r.Type == zone.TypeA || r.Type == zone.TypeAAAA
			switch {
			case r.Proxied:
				j.problem(j.label(r), "origin_missing", "the proxied name has no usable record: %s is delegated, so nobody is told this node's address; remove the NS records there, or the record", cut)
				continue
			case r.Name == cut && (r.Type == zone.TypeNS || r.Type == zone.TypeDS), address && glue[r.Name]:
				continue
			}
		}
		if r.Name == warned {
			continue
		}
		warned = r.Name
		if !cut.IsZero() {
			j.warn(j.label(r), "record_occluded", "%s is delegated, so this is never served (RFC 1034 §4.2.1); remove the NS records there, or the record", cut)
		} else {
			j.warn(j.label(r), "record_occluded", "the DNAME of %s answers for every name below it, so this is never served (RFC 6672 §2.4); remove one of the two", dname)
		}
	}
}

// above returns the highest cut at or above r, and the highest DNAME above it.
func (j *judge) above(r *zone.Record, cuts, dnames map[zone.Name]bool) (cut, dname zone.Name) {
	for n := r.Name; n.Under(j.z.Name); n = n.Parent() {
		if n != j.z.Name && cuts[n] {
			cut = n
		}
		if n != r.Name && dnames[n] {
			dname = n
		}
		if n == j.z.Name {
			break
		}
	}
	return cut, dname
}
