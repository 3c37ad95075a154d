package dns

import (
	"bytes"
	"encoding/binary"

	mdns "github.com/miekg/dns"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/edge/rrset"
)

// maxTargets is how many names of one RRset's records the additional section has addresses of: each is compared with
// those before it.
const maxTargets = 32

// addressTypes are the types of the additional section.
var addressTypes = [...]uint16{mdns.TypeA, mdns.TypeAAAA}

// targetOffset is where in the RDATA of a type the name is whose addresses its reader will want next: RFC 1035 §3.3.9
// and §3.3.11, RFC 2782, RFC 9460 §4.1.
func targetOffset(rrtype uint16) (offset int, ok bool) {
	switch rrtype {
	case mdns.TypeNS:
		return 0, true
	case mdns.TypeMX, mdns.TypeSVCB, mdns.TypeHTTPS:
		return 2, true
	case mdns.TypeSRV:
		return 6, true
	}
	return 0, false
}

// addTargets adds the addresses that the zone has for the names in an RRset, which is at an offset of the message under
// the owner that was looked up. What does not fit is left out, without TC (RFC 2181 §9).
func (r *responder) addTargets(v *edge.View, z *edge.Zone, at, count, skip int) {
	var before [maxTargets]int
	seen := before[:0]
	for range min(count, maxTargets) {
		rdata := at + recordOverhead(r.owner, r.message.buf)
		target := rdata + skip
		at = rdata + int(binary.BigEndian.Uint16(r.message.buf[rdata-2:]))
		if r.message.buf[target] == 0 {
			if r.query.qtype != mdns.TypeSVCB && r.query.qtype != mdns.TypeHTTPS {
				continue // there is no service (RFC 2782, RFC 7505)
			}
			target = r.owner // RFC 9460 §2.5
		}
		name := r.nameAt(target)
		if r.among(seen, name) {
			continue
		}
		seen = append(seen, target)
		node, ok := reachable(z, name, r.query.qtype == mdns.TypeNS)
		if !ok {
			continue
		}
		for _, rrtype := range addressTypes {
			if set, ok := addresses(v, z, node, rrtype); ok && !r.message.addOptional(additionalSection, set, target) {
				return
			}
		}
	}
}

// addGlue adds the addresses of a cut's servers, whose NS set is at an offset of the message. Those at or below the cut must
// all fit (RFC 9471 §3.1); of the others, as many as do (§3.2).
func (r *responder) addGlue(v *edge.View, z *edge.Zone, ns, owner, count int) {
	cut := r.message.buf[owner:]
	cut = cut[:nameLen(cut)]
	var lower [rrset.MaxName]byte
	if owner < r.query.end { // the question's case is the client's
		cut = lower[:copy(lower[:], r.query.name[owner-headerLen:])]
	}
	for _, inDomain := range [...]bool{true, false} {
		at := ns
		for range count {
			target := at + recordOverhead(owner, r.message.buf)
			name := r.message.buf[target : target+nameLen(r.message.buf[target:])]
			at = target + len(name)
			if _, ok := under(name, cut); ok != inDomain {
				continue
			}
			node, ok := reachable(z, name, true)
			if !ok {
				continue
			}
			for _, rrtype := range addressTypes {
				set, ok := addresses(v, z, node, rrtype)
				if !ok {
					continue
				}
				if inDomain && !r.message.addSet(additionalSection, set, target) {
					return
				}
				if !inDomain && !r.message.addOptional(additionalSection, set, target) {
					return
				}
			}
		}
	}
}

// nameAt is the name at an offset of the message, in lower case.
func (r *responder) nameAt(at int) []byte {
	if at == r.owner {
		return r.name
	}
	return r.message.buf[at : at+nameLen(r.message.buf[at:])]
}

// among reports whether a name is at one of the offsets.
func (r *responder) among(offsets []int, name []byte) bool {
	for _, at := range offsets {
		if bytes.Equal(r.nameAt(at), name) {
			return true
		}
	}
	return false
}

// reachable finds the node that has the addresses of a name: its own, or the wildcard's that covers it. What is below a cut
// counts as glue alone.
func reachable(z *edge.Zone, name []byte, glue bool) (node int, ok bool) {
	rel, ok := under(name, z.Apex())
	if !ok {
		return 0, false
	}
	m := z.Records.Match(rel)
	switch m.Kind {
	case rrset.Exact, rrset.Wildcard:
		return m.Node, true
	case rrset.Referral:
		if glue {
			return z.Records.Lookup(rel)
		}
	}
	return 0, false
}

// addresses is what a node answers for A or AAAA.
func addresses(v *edge.View, z *edge.Zone, node int, rrtype uint16) (rrset.Set, bool) {
	if z.Records.Proxied(node) {
		return v.Service().Set(rrtype)
	}
	return z.Records.Set(node, rrtype)
}

// under returns what of a name in wire format is before the apex that it is at or below.
func under[N string | []byte](name []byte, apex N) (rel []byte, ok bool) {
	at := 0
	for len(name)-at > len(apex) {
		at += 1 + int(name[at])
	}
	return name[:at], string(name[at:]) == string(apex)
}
