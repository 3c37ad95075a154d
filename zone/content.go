package zone

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// MaxRDATA is the most octets that the RDATA of one record may have on the wire (RFC 1035 §3.2.1).
const MaxRDATA = 65535

// ParseContent returns the normal form of RDATA text of type t. Names in it that have no trailing dot are
// absolute. The error joins all that is wrong with the content, positions counted in bytes from 1.
//
// Addresses print as RFC 5952, numbers without leading zeros, names as [Name] does (the root as "."), a
// name that holds other octets than a Name may with those escaped (RFC 1035 §5.1). Any type may be written
// as \# LENGTH HEX (RFC 3597 §5); a known type is read to its own form.
//
// TXT, SPF and AVC are one byte string: printable ASCII stands for itself, except \" and \\; every other
// octet is \DDD. Text that starts with a quote is read as RFC 1035 §5.1 character-strings, which are
// joined; all other text is one string, spaces included, with the same escapes.
func ParseContent(t RRType, content string) (string, error) {
	return parseContent(t, content, nameBase{})
}

// nameBase tells what names in RDATA are read against.
type nameBase struct {
	// at is what "@" stands for; "" for nothing.
	at string
	// origin is what names without a trailing dot are relative to, without its own; "" is the root.
	origin string
	// strict refuses a name of one label without a trailing dot: whoever writes "mail" rarely means the
	// top-level domain of that name.
	strict bool
}

// parseContent is ParseContent with names read against in.
func parseContent(t RRType, content string, in nameBase) (string, error) {
	if err := t.Storable(); err != nil {
		return "", err
	}
	s, err := parseRDATA(t, content, in)
	if err != nil {
		return "", fmt.Errorf("%s content %s: %w", t, quote(content), err)
	}
	return s, nil
}

func parseRDATA(t RRType, content string, in nameBase) (string, error) {
	if isGeneric(content) {
		return parseGeneric(t, content)
	}
	switch t {
	case TypeA:
		return parseA(content)
	case TypeAAAA:
		return parseAAAA(content)
	case TypeTXT, TypeSPF, TypeAVC:
		return parseByteString(content)
	}
	if content == "" {
		return "", errors.New("it is empty")
	}
	switch t {
	case TypeCNAME, TypeNS, TypePTR, TypeDNAME:
		return parseNumbersAndTarget(content, in)
	case TypeMX:
		return parseNumbersAndTarget(content, in, "preference")
	case TypeSRV:
		return parseNumbersAndTarget(content, in, "priority", "weight", "port")
	case TypeCAA:
		return parseCAA(content)
	default:
		return parseByLibrary(t, content, in)
	}
}

func parseA(s string) (string, error) {
	a, err := netip.ParseAddr(strings.TrimSpace(s))
	switch {
	case err != nil:
		return "", errors.New("not an IPv4 address such as 192.0.2.1 (four numbers 0 to 255, without leading zeros)")
	case !a.Is4():
		return "", errors.New("this is an IPv6 address; its record type is AAAA")
	}
	return printAddr(a, s), nil
}

func parseAAAA(s string) (string, error) {
	a, err := netip.ParseAddr(strings.TrimSpace(s))
	switch {
	case err != nil:
		return "", errors.New("not an IPv6 address such as 2001:db8::1")
	case a.Is4():
		return "", errors.New("this is an IPv4 address; its record type is A")
	case a.Zone() != "":
		return "", errors.New("a record cannot hold an address with a zone (%)")
	}
	return printAddr(a, s), nil
}

// printAddr prints a, and gives back s when that is how it prints.
func printAddr(a netip.Addr, s string) string {
	var buf [64]byte
	if b := a.AppendTo(buf[:0]); string(b) != s {
		return string(b)
	}
	return s
}

// parseNumbersAndTarget reads 16-bit numbers, one for each of fields, and a name.
func parseNumbersAndTarget(content string, in nameBase, fields ...string) (string, error) {
	words := strings.Fields(content)
	if in.origin == "" && normalNumbersAndTarget(content, len(fields)) && in.admits(words[len(words)-1]) == nil {
		return content, nil
	}
	if len(words) != len(fields)+1 {
		want := strings.Join(append(fields, "target"), " ")
		return "", fmt.Errorf("it has %d fields; write %s", len(words), want)
	}
	var errs []error
	var b strings.Builder
	for i, field := range fields {
		n, err := parseNumber(words[i], field, 0, 65535)
		if err != nil {
			errs = append(errs, err)
		}
		b.WriteString(strconv.FormatUint(n, 10))
		b.WriteByte(' ')
	}
	target, err := foldTarget(words[len(fields)], in)
	if err != nil {
		errs = append(errs, err)
	}
	b.WriteString(target)
	return b.String(), errors.Join(errs...)
}

// normalNumbersAndTarget reports whether s is n 16-bit numbers and a name, all in normal form.
func normalNumbersAndTarget(s string, n int) bool {
	for range n {
		v, i := 0, 0
		for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
			if v = v*10 + int(s[i]-'0'); v > 65535 {
				return false
			}
		}
		if i == 0 || i > 1 && s[0] == '0' || i == len(s) || s[i] != ' ' {
			return false
		}
		s = s[i+1:]
	}
	return s == "." || normalName(s)
}
