package zone

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/miekg/dns"
)

// foldTarget folds a name that stands in RDATA. It may be the root, and may hold octets that a [Name] may
// not, written with escapes (RFC 1035 §5.1), as in mailboxes: first\.last.example.com.
func foldTarget(s string, in nameBase) (string, error) {
	if s == "@" {
		if in.at == "" {
			return "", errors.New(`"@" means nothing here: write the name out`)
		}
		return in.at, nil
	}
	if err := in.admits(s); err != nil {
		return "", err
	}
	if in.origin != "" && !dns.IsFqdn(s) {
		s += "." + in.origin
	}
	switch {
	case normalName(s) || s == ".":
		return s, nil
	case strings.IndexByte(s, '\\') < 0:
		n, err := ParseName(s)
		return n.s, err
	}
	labels, err := unescapeLabels(s)
	if err != nil {
		return "", fmt.Errorf("name %s: %w", quote(s), err)
	}
	t := printLabels(labels)
	if strings.IndexByte(t, '\\') < 0 { // the escapes were of octets that a Name may hold
		n, err := ParseName(t)
		return n.s, err
	}
	return t, nil
}

// admits refuses a name that is likely to mean another than it says.
func (in nameBase) admits(s string) error {
	if !in.strict || dns.IsFqdn(s) || s == "@" {
		return nil
	}
	if labels, err := unescapeLabels(s); err != nil || len(labels) != 1 {
		return nil // what is wrong with it is found where it is read
	}
	return fmt.Errorf("target %s has no dot: write %s for the name in the zone, or %s for the top-level domain",
		quote(s), quote(s+"."+in.at+"."), quote(s+"."))
}

// bareBase is the origin by which bareNames tells names without a trailing dot from others. RFC 6761 §6.4.
const bareBase = "bare.invalid"

// admitsNames is admits for every name in the RDATA of a type that the library reads.
func (in nameBase) admitsNames(t RRType, text string) error {
	if !in.strict {
		return nil
	}
	rr, err := readRR(t, text, bareBase)
	if err != nil {
		return nil
	}
	var errs []error
	eachName(reflect.ValueOf(rr).Elem(), func(name string) string {
		if bare, found := strings.CutSuffix(name, "."+bareBase+"."); found {
			errs = append(errs, in.admits(bare))
		}
		return name
	})
	return errors.Join(errs...)
}

// WrittenContent returns content, which is in normal form, so that ParseRecord reads it back: a name of one label
// has its trailing dot.
func WrittenContent(t RRType, content string) string {
	if _, err := parseContent(t, content, nameBase{at: bareBase, strict: true}); err == nil {
		return content
	}
	switch t {
	case TypeCNAME, TypeNS, TypePTR, TypeDNAME, TypeMX, TypeSRV:
		return content + "."
	}
	rr, err := readRR(t, content, "")
	if err != nil {
		return content
	}
	return strings.TrimPrefix(rr.String(), rr.Header().String())
}

// unescapeLabels splits a name with escapes into its labels' octets, lower-case. A dot at the end is
// dropped.
func unescapeLabels(s string) ([]string, error) {
	var labels []string
	var label []byte
	octets := 1 // the root's
	end := func() error {
		if len(label) == 0 {
			return errors.New("a label is empty")
		}
		if len(label) > maxLabel {
			return fmt.Errorf("a label has %d octets, the most is %d", len(label), maxLabel)
		}
		octets += 1 + len(label)
		labels = append(labels, string(label))
		label = label[:0]
		return nil
	}
	for i := 0; i < len(s); {
		if s[i] == '.' {
			if err := end(); err != nil {
				return nil, err
			}
			i++
			continue
		}
		c, n, why := unescape(s[i:])
		if why != "" {
			return nil, fmt.Errorf("at character %d: %s", i+1, why)
		}
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		label = append(label, c)
		i += n
	}
	if len(label) > 0 {
		if err := end(); err != nil {
			return nil, err
		}
	}
	if octets > 255 {
		return nil, fmt.Errorf("it has %d octets on the wire, the most is 255", octets)
	}
	return labels, nil
}

// printLabels prints labels as a name without the trailing dot, every octet that a [Name] may not hold
// escaped.
func printLabels(labels []string) string {
	var b strings.Builder
	for i, label := range labels {
		if i > 0 {
			b.WriteByte('.')
		}
		for j := range len(label) {
			c := label[j]
			switch {
			case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_', c == '/':
				b.WriteByte(c)
			case c == '*' && i == 0 && len(label) == 1 && len(labels) > 1:
				b.WriteByte(c)
			case c > ' ' && c < 0x7f && c != '#': // \# begins RDATA as RFC 3597 §5
				b.WriteByte('\\')
				b.WriteByte(c)
			default:
				fmt.Fprintf(&b, `\%03d`, c)
			}
		}
	}
	return b.String()
}
