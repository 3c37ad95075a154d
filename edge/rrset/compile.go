package rrset

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/miekg/dns"

	"github.com/guardyn-edge/guardyn/zone"
)

// Compiler compiles zones one after another and keeps its scratch space between them. The zero value works.
// It is not safe for concurrent use.
type Compiler struct {
	keys    []byte
	entries []entry
	open    []int32 // the node that was added last and its ancestors, from the apex
	nodes   []node
	sets    []set
	data    []byte
	origins []Origin
	pack    []byte
}

// entry is one record in the order of the tree.
type entry struct {
	record   *zone.Record
	key      uint32 // offset in keys
	keyLen   uint8
	position int32 // in the zone's records
}

// Compile compiles z's records, which are in normal form. An error names the record.
func Compile(z *zone.Zone) (*Zone, error) { return new(Compiler).Compile(z) }

// Compile is as the function of that name. The zone it returns shares nothing with c.
func (c *Compiler) Compile(z *zone.Zone) (*Zone, error) {
	if err := c.sort(z); err != nil {
		return nil, err
	}
	c.open, c.nodes, c.sets, c.data, c.origins = c.open[:0], c.nodes[:0], c.sets[:0], c.data[:0], nil
	c.addNode(nil, nil)
	start := len(c.data)
	negativeTTL, err := c.packSOA(z)
	if err != nil {
		return nil, err
	}
	c.addSet(dns.TypeSOA, 1, start, len(c.data))

	for rest := c.entries; len(rest) > 0; {
		key := c.entryKey(&rest[0])
		n := 1
		for n < len(rest) && bytes.Equal(c.entryKey(&rest[n]), key) {
			n++
		}
		if err := c.addName(key, rest[:n]); err != nil {
			return nil, err
		}
		rest = rest[n:]
	}
	if len(c.data) > math.MaxInt32 {
		return nil, errors.New("its records are larger than 2 GiB")
	}
	slices.SortFunc(c.sets[:c.nodes[0].setsLen], func(a, b set) int { return cmp.Compare(a.rrtype, b.rrtype) })
	out := &Zone{
		nodes: slices.Clone(c.nodes), sets: slices.Clone(c.sets), data: slices.Clone(c.data),
		origins: slices.Clip(c.origins), negativeTTL: negativeTTL,
	}
	out.soa, _ = out.Set(0, dns.TypeSOA)
	return out, nil
}

// sort fills entries with z's records in the order of the tree, and by type within a name.
func (c *Compiler) sort(z *zone.Zone) error {
	apex := z.Name.String()
	c.keys, c.entries = c.keys[:0], c.entries[:0]
	for i := range z.Records {
		r := &z.Records[i]
		name := r.Name.String()
		if name != apex {
			var ok bool
			if name, ok = strings.CutSuffix(name, "."+apex); !ok || strings.ContainsAny(name, "\x00\x01") {
				return fmt.Errorf("record %s %s: the name is not in the zone", r.Name, r.Type)
			}
		} else {
			name = ""
		}
		at := len(c.keys)
		c.keys = appendTextKey(c.keys, name)
		if len(c.keys)-at > MaxName {
			return fmt.Errorf("record %s %s: the name is too long", r.Name, r.Type)
		}
		c.entries = append(c.entries, entry{record: r, key: uint32(at), keyLen: uint8(len(c.keys) - at), position: int32(i)})
	}
	slices.SortFunc(c.entries, func(a, b entry) int {
		return cmp.Or(bytes.Compare(c.entryKey(&a), c.entryKey(&b)), cmp.Compare(a.record.Type, b.record.Type),
			cmp.Compare(a.position, b.position))
	})
	return nil
}

func (c *Compiler) entryKey(e *entry) []byte { return c.keys[e.key:][:e.keyLen] }

// addName adds a name with all of its records, and the empty non-terminals above it that are not there yet.
func (c *Compiler) addName(key []byte, entries []entry) error {
	if len(key) > 0 {
		for !bytes.HasPrefix(key, c.nodeKey(c.open[len(c.open)-1])) {
			c.open = c.open[:len(c.open)-1]
		}
		for {
			above := int(c.nodes[c.open[len(c.open)-1]].keyLen)
			end := above + bytes.IndexByte(key[above:], 0) + 1
			if end == len(key) {
				break
			}
			c.addNode(key[:end], nil)
		}
		c.addNode(key, entries)
	} else if slices.ContainsFunc(entries, func(e entry) bool { return uint16(e.record.Type) == dns.TypeDNAME }) {
		c.nodes[0].flags |= flagDNAME
	}
	at := c.open[len(c.open)-1]
	proxied := slices.ContainsFunc(entries, func(e entry) bool { return e.record.Proxied })
	if proxied {
		if err := c.addOrigin(at, entries); err != nil {
			return err
		}
	}
	for len(entries) > 0 {
		rrtype := entries[0].record.Type
		n := 1
		for n < len(entries) && entries[n].record.Type == rrtype {
			n++
		}
		if !proxied || !proxiable(uint16(rrtype)) {
			if err := c.packSet(uint16(rrtype), entries[:n]); err != nil {
				return err
			}
		}
		entries = entries[n:]
	}
	return nil
}

func proxiable(rrtype uint16) bool {
	return rrtype == dns.TypeA || rrtype == dns.TypeAAAA || rrtype == dns.TypeCNAME
}

// addNode adds a node below the last open one. Nodes are added in the order of their keys.
func (c *Compiler) addNode(key []byte, entries []entry) {
	at := int32(len(c.nodes))
	n := node{
		key: uint32(len(c.data)), keyLen: uint8(len(key)), sets: uint32(len(c.sets)),
		parent: none, barrier: none, wild: none, origin: none,
	}
	c.data = append(c.data, key...)
	for i := range entries {
		switch uint16(entries[i].record.Type) {
		case dns.TypeNS:
			n.flags |= flagCut
		case dns.TypeDNAME:
			n.flags |= flagDNAME
		}
	}
	if at > 0 {
		n.parent = c.open[len(c.open)-1]
		parent := &c.nodes[n.parent]
		n.depth = parent.depth + 1
		switch {
		case parent.barrier != none:
			n.barrier = parent.barrier
		case parent.flags&flagDNAME != 0:
			n.barrier = n.parent
		case n.flags&flagCut != 0:
			n.barrier = at
		}
		if isWildcardKey(key) {
			parent.wild = at
		}
	}
	c.nodes = append(c.nodes, n)
	c.open = append(c.open, at)
}

func (c *Compiler) nodeKey(node int32) []byte {
	n := &c.nodes[node]
	return c.data[n.key:][:n.keyLen]
}

func (c *Compiler) addSet(rrtype uint16, count, start, end int) {
	c.sets = append(c.sets, set{rrtype: rrtype, count: uint16(count), offset: uint32(start), length: uint32(end - start)})
	c.nodes[c.open[len(c.open)-1]].setsLen++
}

// addOrigin keeps where the proxied records of a name point.
func (c *Compiler) addOrigin(node int32, entries []entry) error {
	var o Origin
	for i := range entries {
		r := entries[i].record
		if !r.Proxied {
			continue
		}
		if uint16(r.Type) == dns.TypeCNAME {
			o.Target = r.Content
			continue
		}
		address, err := netip.ParseAddr(r.Content)
		if err != nil {
			return recordError(r, err)
		}
		o.Addresses = append(o.Addresses, address)
	}
	o.Addresses = slices.Clip(o.Addresses)
	c.nodes[node].origin = int32(len(c.origins))
	c.origins = append(c.origins, o)
	return nil
}

// packSet packs records of one name and type under their lowest TTL.
func (c *Compiler) packSet(rrtype uint16, entries []entry) error {
	if rrtype == dns.TypeSOA {
		return recordError(entries[0].record, errors.New("a zone's SOA follows its settings"))
	}
	if len(entries) > math.MaxUint16 {
		return recordError(entries[0].record, errors.New("more than 65,535 records of one name and type"))
	}
	ttl := uint32(math.MaxUint32)
	for i := range entries {
		ttl = min(ttl, cmp.Or(entries[i].record.TTL, zone.DefaultTTL))
	}
	start, count := len(c.data), 0
	for i := range entries {
		r := entries[i].record
		if i > 0 && r.Content == entries[i-1].record.Content {
			continue // an RRset is a set (RFC 2181 §5)
		}
		count++
		at := len(c.data)
		c.data = appendHeader(c.data, rrtype, ttl, 0)
		var err error
		if c.data, err = c.appendRDATA(c.data, r); err != nil {
			return recordError(r, err)
		}
		n := len(c.data) - at - headerLen
		if n > math.MaxUint16 {
			return recordError(r, errors.New("the content is larger than 65,535 bytes"))
		}
		binary.BigEndian.PutUint16(c.data[at+headerLen-2:], uint16(n))
	}
	c.addSet(rrtype, count, start, len(c.data))
	return nil
}

// packSOA appends the SOA with serial 0 to data.
func (c *Compiler) packSOA(z *zone.Zone) (negativeTTL uint32, err error) {
	s := z.EffectiveSOA()
	at := len(c.data)
	c.data = appendHeader(c.data, dns.TypeSOA, s.TTL, 0)
	for _, name := range []string{s.MName.String(), s.RName.String()} {
		var ok bool
		if c.data, ok = appendTarget(c.data, name); !ok {
			return 0, fmt.Errorf("SOA: the name %q cannot be packed", name)
		}
	}
	for _, n := range []uint32{0, s.Refresh, s.Retry, s.Expire, s.Minimum} {
		c.data = binary.BigEndian.AppendUint32(c.data, n)
	}
	binary.BigEndian.PutUint16(c.data[at+headerLen-2:], uint16(len(c.data)-at-headerLen))
	return min(s.TTL, s.Minimum), nil
}

// appendTarget is AppendWire for a name that may be written with escapes, as one in RDATA may be.
func appendTarget(dst []byte, name string) (wire []byte, ok bool) {
	name = strings.TrimSuffix(name, ".")
	if strings.IndexByte(name, '\\') < 0 {
		return AppendWire(dst, name)
	}
	var buf [MaxName]byte
	n, err := dns.PackDomainName(name+".", buf[:], 0, nil, false)
	return append(dst, buf[:n]...), err == nil
}

func recordError(r *zone.Record, err error) error {
	return fmt.Errorf("record %s %s: %w", r.Name, r.Type, err)
}
