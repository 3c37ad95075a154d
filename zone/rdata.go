package zone

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/miekg/dns"
)

// isGeneric reports whether s is written as RFC 3597 §5.
func isGeneric(s string) bool {
	return strings.HasPrefix(s, `\#`) && (len(s) == 2 || s[2] == ' ' || s[2] == '\t')
}

// parseGeneric reads \# LENGTH HEX (RFC 3597 §5).
func parseGeneric(t RRType, content string) (string, error) {
	words := strings.Fields(content)[1:]
	if len(words) == 0 {
		return "", errors.New(`write \# LENGTH HEX`)
	}
	n, err := parseNumber(words[0], "length", 0, MaxRDATA)
	if err != nil {
		return "", err
	}
	wire, err := hex.DecodeString(strings.Join(words[1:], ""))
	if err != nil {
		return "", errors.New("the octets are not pairs of hexadecimal digits")
	}
	if uint64(len(wire)) != n {
		return "", fmt.Errorf("the length says %d octets, there are %d", n, len(wire))
	}
	if !known(t) {
		return printGeneric(wire), nil
	}
	return printWire(t, wire)
}

func printGeneric(wire []byte) string {
	if len(wire) == 0 {
		return `\# 0`
	}
	return fmt.Sprintf(`\# %d %x`, len(wire), wire)
}

// known reports whether the library has a text form of t.
func known(t RRType) bool {
	_, ok := dns.TypeToRR[uint16(t)]
	return ok
}

// parseByLibrary reads RDATA of the types that have no reader of their own here.
func parseByLibrary(t RRType, content string, in nameBase) (string, error) {
	if !known(t) {
		return "", errors.New(`this type has no text form here: write \# LENGTH HEX (RFC 3597 §5)`)
	}
	text, err := plainRDATA(content, in.at)
	if err != nil {
		return "", err
	}
	if err := in.admitsNames(t, text); err != nil {
		return "", err
	}
	rr, err := readRR(t, text, in.origin)
	if err != nil {
		return "", err
	}
	wire, err := packRDATA(rr)
	if err != nil {
		return "", err
	}
	return printWire(t, wire)
}

// plainRDATA refuses what would not be RDATA of one record to the library, puts at for "@", and folds
// U-labels: a bare word that is not ASCII is a name.
func plainRDATA(s, at string) (string, error) {
	var b strings.Builder
	quoted, start := false, 0
	word := func(end int) error {
		if w := s[start:end]; w != "@" {
			if strings.IndexFunc(w, func(r rune) bool { return r >= 0x80 }) >= 0 && strings.IndexByte(w, '"') < 0 {
				n, err := foldName(w)
				if err != nil {
					return fmt.Errorf("name %s: %w", quote(w), err)
				}
				if strings.HasSuffix(w, ".") {
					n += "."
				}
				w = n
			}
			b.WriteString(w)
			return nil
		}
		if at == "" {
			return errors.New(`"@" means nothing here: write the name out`)
		}
		b.WriteString(dns.Fqdn(at))
		return nil
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c < ' ' && c != '\t' || c == 0x7f:
			return "", fmt.Errorf("at character %d: a control character; write it as \\%03d", i+1, c)
		case c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == ';':
			return "", fmt.Errorf("at character %d: an unquoted semicolon begins a comment, which a record cannot hold", i+1)
		case c == ' ' || c == '\t':
			if err := word(i); err != nil {
				return "", err
			}
			b.WriteByte(' ')
			start = i + 1
		}
	}
	if quoted {
		return "", errors.New("a quote is not closed")
	}
	if err := word(len(s)); err != nil {
		return "", err
	}
	return b.String(), nil
}

// readRR reads RDATA text by the library, names without a trailing dot being relative to origin, which is
// written without one.
func readRR(t RRType, text, origin string) (dns.RR, error) {
	p := dns.NewZoneParser(strings.NewReader(". 1 IN "+t.String()+" "+text+"\n"), origin+".", "")
	rr, ok := p.Next()
	if err := p.Err(); err != nil {
		return nil, plainError(err)
	}
	if !ok || rr.Header().Rrtype != uint16(t) {
		return nil, errors.New("it does not parse")
	}
	return rr, nil
}

// plainError puts an error of the library into words that mean something without its source line.
func plainError(err error) error {
	s := strings.TrimPrefix(inert(err).Error(), "dns: ")
	if i := strings.LastIndex(s, " at line: "); i >= 0 {
		s = s[:i]
	}
	return errors.New(strings.TrimSuffix(s, `: "\n"`))
}

// packRDATA returns the wire form of rr's RDATA.
func packRDATA(rr dns.RR) ([]byte, error) {
	const header = 1 + 10 // the root as owner, then type, class, TTL and length (RFC 1035 §3.2.1)
	rr.Header().Name = "."
	n := dns.Len(rr)
	if n-header > MaxRDATA {
		return nil, fmt.Errorf("it takes %d octets on the wire, the most is %d", n-header, MaxRDATA)
	}
	buf := make([]byte, n+64)
	end, err := dns.PackRR(rr, buf, 0, nil, false)
	if errors.Is(err, dns.ErrBuf) {
		return nil, errors.New("a part of it is too long")
	}
	if err != nil {
		return nil, plainError(err)
	}
	return buf[header:end], nil
}

func unpackRDATA(t RRType, wire []byte) (dns.RR, error) {
	h := dns.RR_Header{Name: ".", Rrtype: uint16(t), Class: dns.ClassINET, Ttl: 1, Rdlength: uint16(len(wire))}
	rr, _, err := dns.UnpackRRWithHeader(h, wire, 0)
	if err != nil {
		return nil, fmt.Errorf("the octets are not RDATA of %s: %w", t, plainError(err))
	}
	// The library unpacks these as they are and packs them with escapes read.
	switch rr := rr.(type) {
	case *dns.CAA:
		rr.Value = string(appendEscaped(nil, []byte(rr.Value)))
	case *dns.URI:
		rr.Target = string(appendEscaped(nil, []byte(rr.Target)))
	}
	return rr, nil
}

// printWire prints the one text form of RDATA of a known type. Where the library's print does not read
// back to the same octets that form is RFC 3597's.
func printWire(t RRType, wire []byte) (string, error) {
	rr, err := unpackRDATA(t, wire)
	if err != nil {
		return "", err
	}
	// No pointers, nothing left over or left out: RDATA that stands by itself.
	if again, err := packRDATA(rr); err != nil || !bytes.Equal(again, wire) {
		return "", fmt.Errorf("the octets are not RDATA of %s", t)
	}
	if err := foldNames(rr); err != nil {
		return "", err
	}
	if s, ok := printOwn(rr); ok {
		return parseRDATA(t, s, nameBase{})
	}
	folded, err := packRDATA(rr)
	if err != nil {
		return "", err
	}
	text := withoutFinalDots(strings.TrimPrefix(rr.String(), rr.Header().String()))
	if back, err := readRR(t, text, ""); err == nil && text != "" {
		if w, err := packRDATA(back); err == nil && bytes.Equal(w, folded) {
			return text, nil
		}
	}
	return printGeneric(folded), nil
}

// printOwn prints the types that parseRDATA reads by itself.
func printOwn(rr dns.RR) (string, bool) {
	switch rr := rr.(type) {
	case *dns.A:
		return rr.A.String(), true
	case *dns.AAAA:
		return rr.String()[len(rr.Hdr.String()):], true
	case *dns.CNAME:
		return rr.Target, true
	case *dns.NS:
		return rr.Ns, true
	case *dns.PTR:
		return rr.Ptr, true
	case *dns.DNAME:
		return rr.Target, true
	case *dns.MX:
		return fmt.Sprintf("%d %s", rr.Preference, rr.Mx), true
	case *dns.SRV:
		return fmt.Sprintf("%d %d %d %s", rr.Priority, rr.Weight, rr.Port, rr.Target), true
	case *dns.TXT:
		return `"` + strings.Join(rr.Txt, `""`) + `"`, true
	case *dns.SPF:
		return `"` + strings.Join(rr.Txt, `""`) + `"`, true
	case *dns.AVC:
		return `"` + strings.Join(rr.Txt, `""`) + `"`, true
	case *dns.CAA:
		return fmt.Sprintf(`%d %s "%s"`, rr.Flag, rr.Tag, rr.Value), true
	}
	return "", false
}

// foldNames puts every domain name in rr's RDATA into normal form.
func foldNames(rr dns.RR) error {
	var errs []error
	eachName(reflect.ValueOf(rr).Elem(), func(name string) string {
		folded, err := foldWireName(name)
		errs = append(errs, err)
		return folded
	})
	return errors.Join(errs...)
}

// eachName puts what f returns in the place of every domain name in RDATA.
func eachName(v reflect.Value, f func(string) string) {
	for i := range v.NumField() {
		value, field := v.Field(i), v.Type().Field(i)
		if field.Anonymous && value.Kind() == reflect.Struct { // HTTPS is an SVCB
			eachName(value, f)
			continue
		}
		switch field.Tag.Get("dns") {
		case "domain-name", "cdomain-name", "ipsechost", "amtrelayhost":
		default:
			continue
		}
		if value.Kind() == reflect.String {
			value.SetString(f(value.String()))
			continue
		}
		for j := range value.Len() {
			value.Index(j).SetString(f(value.Index(j).String()))
		}
	}
}

// foldWireName folds a name as the library holds it; no name stays none.
func foldWireName(s string) (string, error) {
	if s == "." || s == "" {
		return s, nil
	}
	labels, err := unescapeLabels(s)
	if err != nil {
		return "", fmt.Errorf("name %s: %w", quote(s), err)
	}
	return printLabels(labels) + ".", nil
}

// withoutFinalDots takes the dot from the end of every bare word but ".", as the normal form prints names.
func withoutFinalDots(s string) string {
	var b strings.Builder
	quoted, start := false, 0
	for i := 0; i <= len(s); i++ {
		switch {
		case i == len(s) || !quoted && s[i] == ' ':
			word := s[start:i]
			if n := len(word) - 1; n > 0 && word[n] == '.' && word[n-1] != '\\' {
				word = word[:n]
			}
			b.WriteString(word)
			if i < len(s) {
				b.WriteByte(' ')
			}
			start = i + 1
		case s[i] == '\\':
			i++
		case s[i] == '"':
			quoted = !quoted
		}
	}
	return b.String()
}
