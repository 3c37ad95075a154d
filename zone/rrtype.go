package zone

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/miekg/dns"
)

// RRType is a DNS resource record type by number (IANA "Resource Record (RR) TYPEs"). Its text form is
// the mnemonic, or TYPEn (RFC 3597 §5) where this build knows none.
type RRType uint16

// Types that code here and in the rooms above names.
const (
	TypeA     = RRType(dns.TypeA)
	TypeNS    = RRType(dns.TypeNS)
	TypeCNAME = RRType(dns.TypeCNAME)
	TypeSOA   = RRType(dns.TypeSOA)
	TypePTR   = RRType(dns.TypePTR)
	TypeMX    = RRType(dns.TypeMX)
	TypeTXT   = RRType(dns.TypeTXT)
	TypeAAAA  = RRType(dns.TypeAAAA)
	TypeSRV   = RRType(dns.TypeSRV)
	TypeDNAME = RRType(dns.TypeDNAME)
	TypeDS    = RRType(dns.TypeDS)
	TypeSPF   = RRType(dns.TypeSPF)
	TypeHTTPS = RRType(dns.TypeHTTPS)
	TypeSVCB  = RRType(dns.TypeSVCB)
	TypeAVC   = RRType(dns.TypeAVC)
	TypeCAA   = RRType(dns.TypeCAA)
)

// ParseRRType reads a mnemonic or TYPEn, in any case. It does not judge whether a zone may hold the type;
// [RRType.Storable] does.
func ParseRRType(s string) (RRType, error) {
	if t, ok := dns.StringToType[s]; ok && mnemonic(t) {
		return RRType(t), nil
	}
	up := strings.ToUpper(s)
	if t, ok := dns.StringToType[up]; ok && mnemonic(t) {
		return RRType(t), nil
	}
	if digits, ok := strings.CutPrefix(up, "TYPE"); ok {
		if n, err := strconv.ParseUint(digits, 10, 16); err == nil {
			return RRType(n), nil
		}
	}
	return 0, fmt.Errorf("record type %s is not known: write a mnemonic such as A or TXT, or TYPE with its number (RFC 3597 §5)", quote(s))
}

// mnemonic tells the names of types from the library's words for numbers that have none.
func mnemonic(t uint16) bool { return t != dns.TypeNone && t != dns.TypeReserved }

// String returns the text form.
func (t RRType) String() string {
	if s, ok := dns.TypeToString[uint16(t)]; ok && mnemonic(uint16(t)) {
		return s
	}
	return "TYPE" + strconv.Itoa(int(t))
}

// Storable says why a zone may not hold records of type t, nil when it may: types of queries and messages
// (RFC 6895 §3.1), types that the server makes itself (SOA, signatures and denial of existence), and NULL.
func (t RRType) Storable() error {
	switch uint16(t) {
	case dns.TypeSOA:
		return errors.New("the SOA record is made by the server: set soa.mname, soa.rname, soa.refresh, soa.retry, soa.expire, soa.minimum and soa.ttl in the zone's settings")
	case dns.TypeRRSIG, dns.TypeNSEC, dns.TypeNSEC3, dns.TypeNSEC3PARAM, dns.TypeSIG, dns.TypeNXT:
		return fmt.Errorf("%s records are made by the server when it signs a zone; leave them out", t)
	case dns.TypeNULL:
		return errors.New("NULL records are not allowed in zone data (RFC 1035 §3.3.10)")
	case dns.TypeNone, dns.TypeOPT, dns.TypeReserved:
		return fmt.Errorf("%s is not a type of data", t)
	}
	if t >= 128 && t <= 255 {
		return fmt.Errorf("%s is a type of queries or messages, not of data (RFC 6895 §3.1)", t)
	}
	return nil
}

// MarshalText returns the text form.
func (t RRType) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads as ParseRRType does.
func (t *RRType) UnmarshalText(b []byte) error { return unmarshal(t, string(b), ParseRRType) }

// MarshalJSONTo writes the text form as a JSON string.
func (t RRType) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteToken(jsontext.String(t.String()))
}

// UnmarshalJSONFrom reads a JSON string as ParseRRType does.
func (t *RRType) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	return unmarshalFrom(t, dec, ParseRRType)
}
