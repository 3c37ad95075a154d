package rrset

import (
	"encoding/binary"
	"net/netip"
	"strconv"
	"strings"

	"github.com/miekg/dns"

	"github.com/guardyn-edge/guardyn/zone"
)

// headerLen is the length of a packed record less its RDATA, with the owner as a compression pointer.
const headerLen = 12

// appendHeader appends all of a packed record that is before its RDATA, class IN.
func appendHeader(dst []byte, rrtype uint16, ttl uint32, rdlength int) []byte {
	dst = append(dst, 0xc0, 12)
	dst = binary.BigEndian.AppendUint16(dst, rrtype)
	dst = binary.BigEndian.AppendUint16(dst, dns.ClassINET)
	dst = binary.BigEndian.AppendUint32(dst, ttl)
	return binary.BigEndian.AppendUint16(dst, uint16(rdlength))
}

// appendRDATA appends a record's RDATA without compression. The types that zones have most of are packed
// here, the others, and whatever of those is not plain, by the DNS library.
func (c *Compiler) appendRDATA(dst []byte, r *zone.Record) ([]byte, error) {
	switch uint16(r.Type) {
	case dns.TypeA:
		if a, err := netip.ParseAddr(r.Content); err == nil && a.Is4() {
			b := a.As4()
			return append(dst, b[:]...), nil
		}
	case dns.TypeAAAA:
		if a, err := netip.ParseAddr(r.Content); err == nil && a.Is6() && a.Zone() == "" {
			b := a.As16()
			return append(dst, b[:]...), nil
		}
	case dns.TypeNS, dns.TypeCNAME, dns.TypePTR, dns.TypeDNAME:
		if plainName(r.Content) {
			if wire, ok := AppendWire(dst, r.Content); ok {
				return wire, nil
			}
		}
	case dns.TypeTXT:
		if strings.IndexByte(r.Content, '\\') < 0 {
			return appendStrings(dst, r.Content), nil
		}
	case dns.TypeMX:
		preference, target, _ := strings.Cut(r.Content, " ")
		if n, err := strconv.ParseUint(preference, 10, 16); err == nil && plainName(target) {
			if wire, ok := AppendWire(binary.BigEndian.AppendUint16(dst, uint16(n)), target); ok {
				return wire, nil
			}
		}
	}
	rr, err := r.RR()
	if err != nil {
		return dst, err
	}
	return c.appendPacked(dst, rr)
}

// appendStrings appends s as character-strings (RFC 1035 §3.3.14) of up to 255 octets, one at least.
func appendStrings(dst []byte, s string) []byte {
	for {
		n := min(len(s), 255)
		dst = append(append(dst, byte(n)), s[:n]...)
		if s = s[n:]; s == "" {
			return dst
		}
	}
}

// plainName reports whether AppendWire packs a name that is written in its normal form.
func plainName(s string) bool {
	return s != "." && strings.IndexByte(s, '\\') < 0 && strings.IndexByte(s, ' ') < 0
}

// appendPacked appends the RDATA of rr as the DNS library packs it.
func (c *Compiler) appendPacked(dst []byte, rr dns.RR) ([]byte, error) {
	rr.Header().Name = "."
	if n := dns.Len(rr) + 16; len(c.pack) < n {
		c.pack = make([]byte, n)
	}
	n, err := dns.PackRR(rr, c.pack, 0, nil, false)
	if err != nil {
		return dst, err
	}
	// The root as owner is one octet where a pointer has two.
	return append(dst, c.pack[headerLen-1:n]...), nil
}
