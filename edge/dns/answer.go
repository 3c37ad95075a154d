package dns

import (
	"bytes"
	"encoding/binary"
	"slices"

	mdns "github.com/miekg/dns"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/edge/rrset"
)

// maxChain is how many CNAME records one answer follows.
const maxChain = 8

// refusedANY answers ANY at a name with data, to be kept for an hour (RFC 8482 §4.2).
var refusedANY = rrset.Set{Count: 1, Data: []byte("\xc0\x0c" + "\x00\x0d" + "\x00\x01" + "\x00\x00\x0e\x10" + "\x00\x09" + "\x07RFC8482" + "\x00")}

// responder answers queries, one at a time. It keeps its buffers from one to the next and does not
// allocate.
type responder struct {
	query   query
	message message
	nsid    []byte

	// name is the one that is looked up, at offset owner of the message: the question's, then the targets of
	// the chain.
	name    []byte
	nameBuf [rrset.MaxName]byte
	owner   int
	// chain are the offsets of the targets so far.
	chain []int
	buf   [maxChain]int
	// dnames are the DNAMEs that the answer has.
	dnames   []dnameOf
	dnameBuf [maxChain]dnameOf

	// zone and node tell which name was answered, for response-rate limiting: a flood of names that do not
	// exist, or of one wildcard, is one name.
	zone *edge.Zone
	node int
}

// dnameOf is the DNAME record of a zone's node.
type dnameOf struct {
	zone *edge.Zone
	node int
}

// resolve answers the question from one view: the algorithm of RFC 1034 §4.3.2 with RFC 4592 §3.3 and RFC 6672
// §3.2. ANY matches a CNAME that the zone has, and goes on from one that a DNAME makes. AA speaks of the first name of the answer (RFC 1035 §4.1.1); only a referral does not set it.
func (r *responder) resolve(v *edge.View) {
	r.name, r.owner, r.chain = r.query.name, headerLen, r.buf[:0]
	clear(r.dnames) // of zones that may be gone
	r.dnames = r.dnameBuf[:0]
	r.zone, r.node = nil, -1
	for {
		z, offset := r.zoneFor(v)
		if z == nil {
			if len(r.chain) == 0 {
				r.message.rcode = mdns.RcodeRefused
			}
			return
		}
		match := z.Records.Match(r.name[:offset])
		if r.zone == nil {
			r.zone = z
			if match.Kind != rrset.NXDomain {
				r.node = match.Node
			}
		}
		var target int
		switch match.Kind {
		case rrset.NXDomain:
			r.message.authoritative = true
			r.message.rcode = mdns.RcodeNameError
			r.addSOA(v, z, offset)
		case rrset.Referral:
			if !match.At || r.query.qtype != mdns.TypeDS {
				r.refer(v, z, match.Node, offset)
				return
			}
			target = r.answer(v, z, match.Node, offset)
		case rrset.Redirect:
			target = r.redirect(z, match.Node, offset)
		default:
			target = r.answer(v, z, match.Node, offset)
		}
		if target == 0 || r.message.truncated || !r.follow(target) {
			return
		}
	}
}

// zoneFor returns the zone that answers for the name and where its apex begins in it. DS belongs to the
// parent's side of a cut (RFC 4035 §3.1.4.1), when the platform holds that and it has the cut.
func (r *responder) zoneFor(v *edge.View) (z *edge.Zone, offset int) {
	z, offset = v.ZoneForWire(r.name)
	if z == nil || offset != 0 || r.query.qtype != mdns.TypeDS {
		return z, offset
	}
	label := 1 + int(r.name[0])
	parent, at := v.ZoneForWire(r.name[label:])
	if parent == nil {
		return z, offset
	}
	if m := parent.Records.Match(r.name[:label+at]); m.Kind != rrset.Referral || !m.At {
		return z, offset
	}
	return parent, label + at
}

// answer adds what a node has for the question. It returns the offset of the target of a CNAME that has
// to be followed, else 0.
func (r *responder) answer(v *edge.View, z *edge.Zone, node, offset int) (target int) {
	r.message.authoritative = true
	qtype, records := r.query.qtype, z.Records
	set, ok := records.Set(node, qtype)
	switch {
	case ok && qtype == mdns.TypeSOA:
		r.addSerial(v, answerSection, set, r.owner)
		return 0
	case ok:
		at := len(r.message.buf)
		if skip, names := targetOffset(qtype); r.message.addSet(answerSection, set, r.owner) && names {
			r.addTargets(v, z, at, set.Count, skip)
		}
		return 0
	case records.Proxied(node):
		set, ok = v.Service().Set(qtype)
	default:
		if set, ok = records.Set(node, mdns.TypeCNAME); ok && qtype != mdns.TypeCNAME {
			at := len(r.message.buf) + recordOverhead(r.owner, r.message.buf)
			if r.message.addSet(answerSection, set, r.owner) && qtype != mdns.TypeANY {
				return at
			}
			return 0
		}
	}
	if !ok && qtype == mdns.TypeANY && !records.Empty(node) {
		set, ok = refusedANY, true
	}
	if ok {
		r.message.addSet(answerSection, set, r.owner)
		return 0
	}
	r.addSOA(v, z, offset)
	return 0
}

// recordOverhead is the length of what is before the RDATA of a record with its owner at an offset.
func recordOverhead(owner int, buf []byte) int {
	if owner > maxPointer {
		return nameLen(buf[owner:]) + 10
	}
	return 12
}

// redirect answers a name below a DNAME (RFC 6672 §3.2): the DNAME and the CNAME that follows from it, whose
// target it returns the offset of.
func (r *responder) redirect(z *edge.Zone, node, offset int) (target int) {
	r.message.authoritative = true
	set, ok := z.Records.Set(node, mdns.TypeDNAME)
	if !ok {
		return 0
	}
	below := r.suffix(offset, z.Records.Depth(node))
	if r.owner+below > maxPointer {
		r.message.truncated = true
		return 0
	}
	if !r.redirected(z, node) && !r.message.addSet(answerSection, set, r.owner+below) {
		return 0
	}
	dname := set.Data
	to := dname[12:][:binary.BigEndian.Uint16(dname[10:])]
	n := below + len(to)
	if n > rrset.MaxName {
		r.message.rcode = mdns.RcodeYXDomain
		return 0
	}
	var cname [12 + rrset.MaxName]byte
	record := append(cname[:0], 0xc0, 12, 0, byte(mdns.TypeCNAME), 0, byte(mdns.ClassINET))
	record = append(record, dname[6:10]...)
	record = binary.BigEndian.AppendUint16(record, uint16(n))
	record = append(append(record, r.name[:below]...), to...)
	at := len(r.message.buf) + recordOverhead(r.owner, r.message.buf)
	if !r.message.addSet(answerSection, rrset.Set{Data: record, Count: 1}, r.owner) {
		return 0
	}
	if r.query.qtype == mdns.TypeCNAME {
		return 0
	}
	return at
}

// redirected notes that the answer has the DNAME of a node, and reports whether it had it before: a chain may come by it
// again, and an RRset is in an answer once (RFC 2181 §5).
func (r *responder) redirected(z *edge.Zone, node int) bool {
	d := dnameOf{z, node}
	if slices.Contains(r.dnames, d) {
		return true
	}
	r.dnames = append(r.dnames, d)
	return false
}

// follow makes the name at an offset of the message the one to look up. It reports false when the chain
// is long enough or has been there before.
func (r *responder) follow(target int) bool {
	name := r.message.buf[target : target+nameLen(r.message.buf[target:])]
	if target > maxPointer || len(r.chain) == maxChain-1 || bytes.Equal(name, r.query.name) {
		return false
	}
	for _, at := range r.chain {
		if bytes.HasPrefix(r.message.buf[at:], name) {
			return false
		}
	}
	r.chain = append(r.chain, target)
	r.name = append(r.nameBuf[:0], name...)
	r.owner = target
	return true
}

// refer adds the NS set of a cut and the addresses of its servers that the zone knows (RFC 1034 §4.3.2
// step 3b).
func (r *responder) refer(v *edge.View, z *edge.Zone, node, offset int) {
	set, ok := z.Records.Set(node, mdns.TypeNS)
	if !ok {
		return
	}
	at := len(r.message.buf)
	owner := r.owner + r.suffix(offset, z.Records.Depth(node))
	if r.message.addSet(authoritySection, set, owner) {
		r.addGlue(v, z, at, owner, set.Count)
	}
}

// suffix is where, in the name that is looked up, its ancestor of a depth below the apex begins.
func (r *responder) suffix(offset, depth int) int {
	labels := 0
	for at := 0; at < offset; at += 1 + int(r.name[at]) {
		labels++
	}
	at := 0
	for ; labels > depth; labels-- {
		at += 1 + int(r.name[at])
	}
	return at
}

// addSOA adds the SOA of a negative answer (RFC 2308 §3), with the TTL that it is to be kept for.
func (r *responder) addSOA(v *edge.View, z *edge.Zone, offset int) {
	soa := z.Records.SOA()
	if r.addSerial(v, authoritySection, soa, r.owner+offset) {
		// Counted from the end, it is where it is in soa.Data, whatever form the owner has.
		ttl := r.message.buf[len(r.message.buf)-len(soa.Data)+6:]
		binary.BigEndian.PutUint32(ttl, z.Records.NegativeTTL())
	}
}

// addSerial adds a SOA with the view's serial.
func (r *responder) addSerial(v *edge.View, s section, soa rrset.Set, owner int) bool {
	if !r.message.addSet(s, soa, owner) {
		return false
	}
	rrset.SetSerial(r.message.buf, v.Serial())
	return true
}
