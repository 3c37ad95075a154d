package zone

import (
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

// RR returns r, which is in normal form, as a record of the DNS library, class IN, TTL as served. What its
// Pack gives is exactly r's RDATA; byte strings are cut into character-strings of 255 octets. Each call
// makes a new value that is the caller's.
func (r Record) RR() (dns.RR, error) {
	h := dns.RR_Header{Name: r.Name.s + ".", Rrtype: uint16(r.Type), Class: dns.ClassINET, Ttl: r.EffectiveTTL()}
	rr, err := r.rr(h)
	if err != nil {
		return nil, fmt.Errorf("record %s %s is not in normal form: %w", r.Name, r.Type, err)
	}
	return rr, nil
}

func (r Record) rr(h dns.RR_Header) (dns.RR, error) {
	if isGeneric(r.Content) {
		return r.genericRR(h)
	}
	switch r.Type {
	case TypeA, TypeAAAA:
		a, err := netip.ParseAddr(r.Content)
		if err != nil {
			return nil, err
		}
		if r.Type == TypeA {
			return &dns.A{Hdr: h, A: net.IP(a.AsSlice())}, nil
		}
		return &dns.AAAA{Hdr: h, AAAA: net.IP(a.AsSlice())}, nil
	case TypeCNAME:
		return &dns.CNAME{Hdr: h, Target: dns.Fqdn(r.Content)}, nil
	case TypeNS:
		return &dns.NS{Hdr: h, Ns: dns.Fqdn(r.Content)}, nil
	case TypePTR:
		return &dns.PTR{Hdr: h, Ptr: dns.Fqdn(r.Content)}, nil
	case TypeDNAME:
		return &dns.DNAME{Hdr: h, Target: dns.Fqdn(r.Content)}, nil
	case TypeMX:
		n, target, err := numbersAndTarget(r.Content, 1)
		return &dns.MX{Hdr: h, Preference: n[0], Mx: target}, err
	case TypeSRV:
		n, target, err := numbersAndTarget(r.Content, 3)
		return &dns.SRV{Hdr: h, Priority: n[0], Weight: n[1], Port: n[2], Target: target}, err
	case TypeTXT, TypeSPF, TypeAVC:
		octets, err := readByteString(r.Content)
		if err != nil {
			return nil, err
		}
		switch txt := charStrings(octets); r.Type {
		case TypeTXT:
			return &dns.TXT{Hdr: h, Txt: txt}, nil
		case TypeSPF:
			return &dns.SPF{Hdr: h, Txt: txt}, nil
		default:
			return &dns.AVC{Hdr: h, Txt: txt}, nil
		}
	default:
		rr, err := readRR(r.Type, r.Content, "")
		if err != nil {
			return nil, err
		}
		*rr.Header() = h
		return rr, nil
	}
}

// genericRR makes a record from content as RFC 3597 §5.
func (r Record) genericRR(h dns.RR_Header) (dns.RR, error) {
	words := strings.Fields(r.Content)
	wire, err := hex.DecodeString(strings.Join(words[min(2, len(words)):], ""))
	if err != nil {
		return nil, err
	}
	if !known(r.Type) {
		return &dns.RFC3597{Hdr: h, Rdata: hex.EncodeToString(wire)}, nil
	}
	rr, err := unpackRDATA(r.Type, wire)
	if err != nil {
		return nil, err
	}
	*rr.Header() = h
	return rr, nil
}

func numbersAndTarget(s string, count int) (n [3]uint16, target string, err error) {
	for i := range count {
		word, rest, _ := strings.Cut(s, " ")
		v, err := strconv.ParseUint(word, 10, 16)
		if err != nil {
			return n, "", err
		}
		n[i], s = uint16(v), rest
	}
	return n, dns.Fqdn(s), nil
}
