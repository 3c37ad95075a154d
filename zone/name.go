package zone

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/net/idna"
)

// Name is a domain name in normal form: absolute, lower-case, A-labels (IDNA2008), without the trailing
// dot, at most 253 octets in labels of at most 63 (RFC 1035 §2.3.4). The root is not a Name; the zero Name
// is "no name". Only ParseName and its siblings make one, so a Name that is not zero is always in normal
// form.
type Name struct{ s string }

// String returns the text form, "" for the zero Name.
func (n Name) String() string { return n.s }

// IsZero reports whether n is the zero Name.
func (n Name) IsZero() bool { return n.s == "" }

// Compare orders names by their text.
func (n Name) Compare(m Name) int { return strings.Compare(n.s, m.s) }

// ParseName folds a host or domain name (case, one trailing dot, U-labels) to its normal form. Labels may
// hold letters, digits, hyphens, underscores and, for delegations of RFC 2317, slashes; the first label
// may be "*". A name whose last label is all digits is refused: it is an address or a slip.
func ParseName(s string) (Name, error) {
	if normalName(s) {
		return Name{s}, nil
	}
	t, err := foldName(s)
	if err == nil && allDigits(t[strings.LastIndexByte(t, '.')+1:]) {
		err = errors.New("the last label is all digits: that is an address or a name that misses its end")
	}
	if err == nil && t == "*" {
		err = errors.New("a wildcard needs a name to stand under")
	}
	if err != nil {
		return Name{}, fmt.Errorf("name %s: %w", quote(s), err)
	}
	return Name{t}, nil
}

// ParseNameIn reads a name as people write it inside a zone: "@" is the apex, a trailing dot or a suffix
// equal to the zone makes it absolute, anything else is relative to the zone. A name outside the zone is
// an error.
func ParseNameIn(zone Name, s string) (Name, error) {
	if s == "@" {
		return zone, nil
	}
	if normalName(s) && (Name{s}).Under(zone) {
		return Name{s}, nil
	}
	t, err := foldName(s)
	if err != nil {
		return Name{}, fmt.Errorf("name %s: %w", quote(s), err)
	}
	n := Name{t}
	if n.Under(zone) {
		return n, nil
	}
	if strings.HasSuffix(s, ".") {
		return Name{}, fmt.Errorf("name %s is outside the zone %s", quote(s), zone)
	}
	if len(t)+1+len(zone.s) > maxName {
		return Name{}, fmt.Errorf("name %s: in the zone %s it is longer than %d octets", quote(s), zone, maxName)
	}
	return Name{t + "." + zone.s}, nil
}

// MustName is ParseName for constants and tests; it panics on an error.
func MustName(s string) Name {
	n, err := ParseName(s)
	if err != nil {
		panic(err)
	}
	return n
}

// Under reports whether n is parent or below it.
func (n Name) Under(parent Name) bool {
	if parent.s == "" || !strings.HasSuffix(n.s, parent.s) {
		return false
	}
	d := len(n.s) - len(parent.s)
	return d == 0 || n.s[d-1] == '.'
}

// Parent returns the name less its first label, the zero Name for a single label.
func (n Name) Parent() Name {
	_, p, _ := strings.Cut(n.s, ".")
	return Name{p}
}

// IsWildcard reports whether the first label is "*".
func (n Name) IsWildcard() bool { return strings.HasPrefix(n.s, "*.") }

// In prints n as people write it inside zone: "@" for the apex, relative below it, absolute with the
// trailing dot elsewhere. ParseNameIn reads it back.
func (n Name) In(zone Name) string {
	switch {
	case n == zone:
		return "@"
	case n.Under(zone):
		rel := n.s[:len(n.s)-len(zone.s)-1]
		if (Name{rel}).Under(zone) {
			return n.s + "." // www.example.com.example.com: the short form would read as absolute
		}
		return rel
	default:
		return n.s + "."
	}
}

// MarshalText returns the text form.
func (n Name) MarshalText() ([]byte, error) { return []byte(n.s), nil }

// UnmarshalText folds as ParseName does; no text is the zero Name.
func (n *Name) UnmarshalText(b []byte) error {
	if len(b) == 0 {
		*n = Name{}
		return nil
	}
	m, err := ParseName(string(b))
	if err != nil {
		return err
	}
	*n = m
	return nil
}

// MarshalJSONTo writes the text form as a JSON string.
func (n Name) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteToken(jsontext.String(n.s))
}

// UnmarshalJSONFrom reads a JSON string as UnmarshalText does.
func (n *Name) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	s, err := readString(dec)
	if err != nil {
		return err
	}
	if s == "" {
		*n = Name{}
		return nil
	}
	m, err := ParseName(s)
	if err != nil {
		return err
	}
	*n = m
	return nil
}

const (
	maxName  = 253
	maxLabel = 63
)

// normalName reports whether s is in normal form already, without looking into A-labels: a name that has
// one takes the slow way.
func normalName(s string) bool {
	if len(s) == 0 || len(s) > maxName {
		return false
	}
	start, digits := 0, true
	for i := 0; ; i++ {
		if i == len(s) || s[i] == '.' {
			n := i - start
			if n == 0 || n > maxLabel || strings.HasPrefix(s[start:i], "xn--") {
				return false
			}
			if i == len(s) {
				return !digits
			}
			start, digits = i+1, true
			continue
		}
		c := s[i]
		switch {
		case 'a' <= c && c <= 'z' || c == '-' || c == '_' || c == '/':
			digits = false
		case '0' <= c && c <= '9':
		case c == '*' && i == 0 && len(s) > 1 && s[1] == '.':
		default:
			return false
		}
	}
}

// foldName folds s to the text of a name; it may be a lone "*" or end in digits, which is for the caller
// to judge.
func foldName(s string) (string, error) {
	if s == "" {
		return "", errors.New("it is empty")
	}
	if !utf8.ValidString(s) {
		return "", errors.New("not valid UTF-8")
	}
	t := strings.TrimSuffix(s, ".")
	if t == "" {
		return "", errors.New("the root has no name here")
	}
	ascii := true
	for i := range len(t) {
		if t[i] >= 0x80 {
			ascii = false
			break
		}
	}
	if ascii {
		t = strings.ToLower(t)
	} else {
		u, err := idnaProfile().ToASCII(t)
		if err != nil {
			return "", fmt.Errorf("not a name by IDNA2008: %w", inert(err))
		}
		t = strings.TrimSuffix(u, ".") // U+3002 at the end
	}
	if len(t) > maxName {
		return "", fmt.Errorf("it has %d octets, the most is %d", len(t), maxName)
	}
	for i, label := range strings.Split(t, ".") {
		if err := checkLabel(label, i == 0, ascii); err != nil {
			return "", err
		}
	}
	return t, nil
}

func checkLabel(label string, first, ascii bool) error {
	switch {
	case label == "":
		return errors.New("a label is empty (two dots, or one at the start)")
	case len(label) > maxLabel:
		return fmt.Errorf("label %s has %d octets, the most is %d", quote(label), len(label), maxLabel)
	case label == "*" && first:
		return nil
	}
	for i := range len(label) {
		c := label[i]
		switch {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
		case c == '/' && ascii:
		case c == '*':
			return fmt.Errorf("label %s: * may only be the whole first label", quote(label))
		default:
			return fmt.Errorf("label %s: %s is not a letter, digit, hyphen or underscore", quote(label), quote(string(rune(c))))
		}
	}
	if strings.HasPrefix(label, "xn--") {
		if a, err := idnaProfile().ToASCII(label); err != nil || a != label {
			return fmt.Errorf("label %s is not a valid A-label (RFC 5890 §2.3.2.1)", quote(label))
		}
	}
	return nil
}

func idnaProfile() *idna.Profile {
	return idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false),
		idna.ValidateLabels(true), idna.CheckJoiners(true), idna.BidiRule())
}

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
