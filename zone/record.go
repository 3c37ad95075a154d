package zone

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
)

// DefaultTTL is what TTL "auto" (0 in an edit) resolves to, in seconds.
const DefaultTTL uint32 = 300

// MaxTTL is the largest TTL in seconds that a record may have (RFC 2181 §8).
const MaxTTL uint32 = 1<<31 - 1

// Record is one resource record of class IN.
type Record struct {
	Name Name   `json:"name"`
	Type RRType `json:"type"`
	// Content is the RDATA in its one printed form: addresses as RFC 5952, names absolute, lower-case and
	// without the trailing dot, TXT as its byte string (see ParseContent), unknown types as RFC 3597 §5.
	Content string `json:"content"`
	// TTL in seconds, at most MaxTTL. Its normal form is 0 where it is DefaultTTL ("auto"), so that an
	// absent one and one that is written out are the same value and the same bytes. Serve and show
	// [Record.EffectiveTTL], never this field.
	TTL uint32 `json:"ttl,omitzero"`
	// Proxied names answer with the node's own addresses and send HTTP through the node. A, AAAA and
	// CNAME only.
	Proxied bool `json:"proxied,omitzero"`
}

// EffectiveTTL returns the TTL in seconds that is served: 1 to MaxTTL.
func (r Record) EffectiveTTL() uint32 {
	if r.TTL == 0 {
		return DefaultTTL
	}
	return r.TTL
}

// ParseRecord reads one record as people write it (name by ParseNameIn, type by mnemonic or TYPEn, content
// by ParseContent, ttl 0 for auto) and returns it in normal form. As a target "@" is the zone, and a name of one
// label needs its trailing dot: "mail" could mean mail in the zone as well as the top-level domain. The error joins
// all that is wrong.
func ParseRecord(zone Name, name, rrtype, content string, ttl uint32, proxied bool) (Record, error) {
	n, nerr := ParseNameIn(zone, name)
	t, terr := ParseRRType(rrtype)
	r := Record{Name: n, Type: t, TTL: ttl, Proxied: proxied}
	if terr != nil {
		return Record{}, errors.Join(nerr, terr)
	}
	var cerr error
	r.Content, cerr = parseContent(t, content, nameBase{at: zone.s, strict: true})
	if err := errors.Join(nerr, cerr, r.settle()); err != nil {
		return Record{}, err
	}
	return r, nil
}

// Normalize returns r in normal form for zone, or all that is wrong with it, joined.
func (r Record) Normalize(zone Name) (Record, error) {
	var nerr error
	switch {
	case r.Name.IsZero():
		nerr = errors.New("the name is missing")
	case !r.Name.Under(zone):
		nerr = fmt.Errorf("name %s is outside the zone %s", quote(r.Name.s), zone)
	}
	c, cerr := ParseContent(r.Type, r.Content)
	r.Content = c
	if terr := r.settle(); nerr != nil || cerr != nil || terr != nil {
		return Record{}, errors.Join(nerr, cerr, terr)
	}
	return r, nil
}

// settle judges and folds what is neither name nor content.
func (r *Record) settle() error {
	var errs []error
	if r.TTL > MaxTTL {
		errs = append(errs, fmt.Errorf("ttl %d is over %d seconds (RFC 2181 §8)", r.TTL, MaxTTL))
	}
	if r.TTL == DefaultTTL {
		r.TTL = 0
	}
	if r.Proxied && r.Type != TypeA && r.Type != TypeAAAA && r.Type != TypeCNAME {
		errs = append(errs, fmt.Errorf("a %s record cannot be proxied: only A, AAAA and CNAME can", r.Type))
	}
	return errors.Join(errs...)
}

// Compare orders records by name, type, content, proxied, ttl: the order of the normal form.
func (r Record) Compare(o Record) int {
	if c := strings.Compare(r.Name.s, o.Name.s); c != 0 {
		return c
	}
	if c := cmp.Compare(r.Type, o.Type); c != 0 {
		return c
	}
	if c := strings.Compare(r.Content, o.Content); c != 0 {
		return c
	}
	if r.Proxied != o.Proxied {
		if r.Proxied {
			return 1
		}
		return -1
	}
	return cmp.Compare(r.EffectiveTTL(), o.EffectiveTTL())
}

// Target returns the name that a CNAME, NS, MX, SRV, PTR or DNAME record points at, else the zero Name. It
// reads the normal form; the root, and a target that is no [Name], give the zero Name.
func (r Record) Target() Name {
	s := r.Content
	switch r.Type {
	case TypeCNAME, TypeNS, TypePTR, TypeDNAME:
	case TypeMX, TypeSRV:
		s = s[strings.LastIndexByte(s, ' ')+1:]
	default:
		return Name{}
	}
	if s == "." || strings.IndexByte(s, '\\') >= 0 {
		return Name{}
	}
	return Name{s}
}
