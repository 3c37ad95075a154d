package zone

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"
)

// ParseObjectName reads the name of a list, pool, origin or function: [a-z0-9][a-z0-9_-]{0,62}.
func ParseObjectName(s string) (string, error) {
	ok := s != "" && len(s) <= 63 && s[0] != '_' && s[0] != '-'
	for i := 0; ok && i < len(s); i++ {
		c := s[i]
		ok = 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '_' || c == '-'
	}
	if !ok {
		return "", fmt.Errorf("name %s: use a-z, 0-9, _ and -, a letter or digit first, at most 63", quote(s))
	}
	return s, nil
}

// ParseID reads a UUID in its 36-character text form and folds its case.
func ParseID(s string) (ID, error) {
	ok := len(s) == 36
	for i := 0; ok && i < len(s); i++ {
		c := s[i] | 0x20
		switch i {
		case 8, 13, 18, 23:
			ok = s[i] == '-'
		default:
			ok = digit(s[i]) || 'a' <= c && c <= 'f'
		}
	}
	if !ok {
		return "", fmt.Errorf("zone id %s is not a UUID (RFC 9562 §4)", quote(s))
	}
	return ID(strings.ToLower(s)), nil
}

// ParsePrefix reads an address or a prefix; a bare address becomes a host prefix, a mapped one IPv4, and
// bits beyond the length are zero.
func ParsePrefix(s string) (netip.Prefix, error) {
	bad := func() (netip.Prefix, error) {
		return netip.Prefix{}, fmt.Errorf("%s is not an address or a prefix such as 192.0.2.0/24 or 2001:db8::/32", quote(s))
	}
	var p netip.Prefix
	if strings.IndexByte(s, '/') < 0 {
		a, err := netip.ParseAddr(s)
		if err != nil || a.Zone() != "" {
			return bad()
		}
		p = netip.PrefixFrom(a, a.BitLen())
	} else {
		q, err := netip.ParsePrefix(s)
		if err != nil {
			return bad()
		}
		p = q
	}
	if p.Addr().Is4In6() {
		if p.Bits() < 96 {
			return bad()
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked(), nil
}

// printPrefix prints a host prefix as its address and any other as itself.
func printPrefix(p netip.Prefix) string {
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}

func comparePrefix(a, b netip.Prefix) int {
	if c := a.Addr().Compare(b.Addr()); c != 0 {
		return c
	}
	return a.Bits() - b.Bits()
}

// normalPrefixes parses, sorts by address and takes out what is there twice.
func normalPrefixes(items []string, what string) ([]string, error) {
	var p problems
	parsed := make([]netip.Prefix, 0, len(items))
	for i, s := range items {
		q, err := ParsePrefix(s)
		if err != nil {
			p.in(fmt.Sprintf("%s %d", what, i+1), err)
			continue
		}
		parsed = append(parsed, q)
	}
	if err := p.err(); err != nil || len(items) == 0 {
		return nil, err
	}
	if !slices.IsSortedFunc(parsed, comparePrefix) {
		slices.SortFunc(parsed, comparePrefix)
	}
	parsed = slices.Compact(parsed)
	out := make([]string, len(parsed))
	for i, q := range parsed {
		out[i] = printPrefix(q)
	}
	return out, nil
}

// sortedUnique returns a sorted copy of s without duplicates, nil when empty.
func sortedUnique[T ~string](s []T) []T {
	if len(s) == 0 {
		return nil
	}
	out := slices.Clone(s)
	slices.Sort(out)
	return slices.Compact(out)
}

// checkText judges text that is stored and shown: valid UTF-8 of at most most bytes.
func checkText(s, what string, most int) error {
	switch {
	case !utf8.ValidString(s):
		return fmt.Errorf("%s is not valid UTF-8", what)
	case len(s) > most:
		return fmt.Errorf("%s has %d bytes, the most is %d", what, len(s), most)
	}
	return nil
}

// inRange judges a number that is zero for its default.
func inRange[T ~int | ~int64 | ~uint32](p *problems, what string, v, least, most T, text func(T) string) {
	if v != 0 && (v < least || v > most) {
		p.addf("%s %s is not in the range from %s to %s", what, text(v), text(least), text(most))
	}
}

func decimal[T ~int | ~int64 | ~uint32](v T) string { return fmt.Sprintf("%d", v) }

func zeroDefault[T comparable](v *T, def T) {
	if *v == def {
		var zero T
		*v = zero
	}
}

// zeroTrue makes a pointer to true nil, what true reads as when it is absent.
func zeroTrue(v *bool) *bool {
	if v != nil && *v {
		return nil
	}
	return v
}
