package rrset

import (
	"bytes"
	"net/netip"
	"sort"

	"github.com/miekg/dns"
)

// Zone is one zone's compiled DNS data, immutable and safe for concurrent use. It holds no pointer for each
// name or record, so a platform of many zones costs the collector little.
type Zone struct {
	// nodes are the zone's names, empty non-terminals included, sorted by key; the first is the apex.
	nodes []node
	// sets are the RRsets of the nodes, each node's together, sorted by type.
	sets []set
	// data holds the keys and the packed RRsets.
	data []byte
	// origins are where the proxied nodes point.
	origins []Origin
	soa     Set
	// negativeTTL is that of the SOA in negative answers (RFC 2308 §5), in seconds.
	negativeTTL uint32
}

// none is the index of no node.
const none = -1

// node is one name of a zone.
type node struct {
	key     uint32 // offset in data
	sets    uint32 // index of the first set
	parent  int32
	barrier int32 // topmost node, this or above, that hides the zone's own data: a cut, or a DNAME above
	wild    int32 // the child "*"
	origin  int32 // index in origins, none when the name is not proxied
	setsLen uint16
	keyLen  uint8
	depth   uint8 // labels below the apex
	flags   uint8
}

const (
	flagCut   = 1 << iota // NS below the apex
	flagDNAME             // a DNAME record
)

type set struct {
	offset uint32
	length uint32
	rrtype uint16
	count  uint16
}

// Set is one RRset packed (RFC 1035 §3.2.1): Count records, whose owner is a compression pointer to offset
// 12, where a message has its question. Names in RDATA are not compressed. All have the set's lowest
// TTL (RFC 2181 §5.2). Data must not be changed.
type Set struct {
	Data  []byte
	Count int
}

// Origin is where the records of a proxied name point. Either Addresses or Target is set.
type Origin struct {
	// Addresses are the contents of the name's proxied A and AAAA records, in the order of the normal form.
	Addresses []netip.Addr
	// Target is the content of the name's proxied CNAME, a host name in normal form.
	Target string
}

// Kind is how a name stands to a zone.
type Kind uint8

// The kinds of match.
const (
	// NXDomain: neither the name nor a wildcard that covers it exists. Node is the closest encloser.
	NXDomain Kind = iota
	// Exact: Node is the name, perhaps an empty non-terminal.
	Exact
	// Wildcard: Node is the wildcard from which the name is synthesised (RFC 4592 §3.3).
	Wildcard
	// Referral: Node is the cut at or above the name, with an NS set.
	Referral
	// Redirect: Node, above the name, has a DNAME (RFC 6672 §2.2).
	Redirect
)

// Match is what a zone says of a name.
type Match struct {
	Kind Kind
	// At tells of a Referral that the name is the cut itself.
	At   bool
	Node int
}

// Match finds the name rel: in wire format, lower-case, less the apex and the root label; empty for the apex
// itself. It does not allocate.
func (z *Zone) Match(rel []byte) Match {
	at, found := z.find(rel)
	n := &z.nodes[at]
	if b := int(n.barrier); b != none {
		if z.nodes[b].flags&flagCut != 0 {
			return Match{Kind: Referral, Node: b, At: found && b == at}
		}
		return Match{Kind: Redirect, Node: b}
	}
	switch {
	case found:
		return Match{Kind: Exact, Node: at}
	case n.flags&flagDNAME != 0:
		return Match{Kind: Redirect, Node: at}
	case n.wild != none:
		return Match{Kind: Wildcard, Node: int(n.wild)}
	}
	return Match{Kind: NXDomain, Node: at}
}

// Lookup finds exactly the name rel, whatever cut is above it: how glue is found (RFC 1034 §4.2.1).
func (z *Zone) Lookup(rel []byte) (node int, ok bool) { return z.find(rel) }

// find returns the node of rel, or of its closest encloser.
func (z *Zone) find(rel []byte) (at int, found bool) {
	var buf [MaxName + 1]byte
	key := appendKey(buf[:0], rel)
	// The last node that is not after the name: the name itself, its closest encloser, or a node below that.
	lo, hi := 0, len(z.nodes)
	for lo+1 < hi {
		mid := int(uint(lo+hi) >> 1)
		if bytes.Compare(z.key(mid), key) <= 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	for !bytes.HasPrefix(key, z.key(lo)) {
		lo = int(z.nodes[lo].parent)
	}
	return lo, int(z.nodes[lo].keyLen) == len(key)
}

func (z *Zone) key(node int) []byte {
	n := &z.nodes[node]
	return z.data[n.key:][:n.keyLen]
}

// Set returns a node's RRset of a type. A proxied node has none of A, AAAA and CNAME.
func (z *Zone) Set(node int, rrtype uint16) (s Set, ok bool) {
	n := &z.nodes[node]
	sets := z.sets[n.sets:][:n.setsLen]
	i := 0
	if len(sets) > 16 {
		i = sort.Search(len(sets), func(i int) bool { return sets[i].rrtype >= rrtype })
	}
	for ; i < len(sets); i++ {
		if sets[i].rrtype == rrtype {
			return Set{Data: z.data[sets[i].offset:][:sets[i].length], Count: int(sets[i].count)}, true
		}
	}
	return Set{}, false
}

// Empty reports whether a node is an empty non-terminal (RFC 8020): it exists, without records.
func (z *Zone) Empty(node int) bool {
	n := &z.nodes[node]
	return node != 0 && n.setsLen == 0 && n.origin == none
}

// Depth is how many labels a node's name has below the apex.
func (z *Zone) Depth(node int) int { return int(z.nodes[node].depth) }

// Proxied reports whether a node answers with the node's own addresses.
func (z *Zone) Proxied(node int) bool { return z.nodes[node].origin != none }

// Origin returns where a proxied node points.
func (z *Zone) Origin(node int) (o Origin, ok bool) {
	if i := z.nodes[node].origin; i != none {
		return z.origins[i], true
	}
	return Origin{}, false
}

// SOA returns the zone's SOA with serial 0; [SetSerial] puts one into a copy.
func (z *Zone) SOA() Set { return z.soa }

// NegativeTTL is the TTL in seconds of the SOA in a negative answer: the lower of its own and its minimum
// field (RFC 2308 §5).
func (z *Zone) NegativeTTL() uint32 { return z.negativeTTL }

// SetSerial writes the serial into a packed SOA record, which its five numbers end.
func SetSerial(soa []byte, serial uint32) {
	b := soa[len(soa)-20:]
	b[0], b[1], b[2], b[3] = byte(serial>>24), byte(serial>>16), byte(serial>>8), byte(serial)
}

// Addresses are the RRsets that proxied names answer with.
type Addresses struct{ a, aaaa Set }

// Set returns the RRset of a type; there is one for A and AAAA, unless the node has no address of the family.
func (a *Addresses) Set(rrtype uint16) (s Set, ok bool) {
	switch rrtype {
	case dns.TypeA:
		return a.a, a.a.Count > 0
	case dns.TypeAAAA:
		return a.aaaa, a.aaaa.Count > 0
	}
	return Set{}, false
}

// ProxiedTTL is the TTL in seconds of a proxied name's addresses.
const ProxiedTTL = 300

// PackAddresses packs addresses by family, in their order.
func PackAddresses(addresses []netip.Addr) Addresses {
	var out Addresses
	for _, address := range addresses {
		address = address.Unmap()
		s, rrtype := &out.aaaa, dns.TypeAAAA
		if address.Is4() {
			s, rrtype = &out.a, dns.TypeA
		}
		s.Data = appendHeader(s.Data, rrtype, ProxiedTTL, address.BitLen()/8)
		s.Data = append(s.Data, address.AsSlice()...)
		s.Count++
	}
	return out
}
