package zone

import (
	"errors"
	"fmt"
	"strings"
)

// A character-string holds at most 255 octets (RFC 1035 §3.3).
const maxCharString = 255

// parseByteString reads the content of TXT-like types and prints its normal form: see [ParseContent].
func parseByteString(s string) (string, error) {
	if normalByteString(s) {
		return s, nil
	}
	octets, err := readByteString(s)
	if err != nil {
		return "", err
	}
	if n := wireByteString(len(octets)); n > MaxRDATA {
		return "", fmt.Errorf("it takes %d octets on the wire, the most is %d", n, MaxRDATA)
	}
	return string(appendEscaped(nil, octets)), nil
}

// normalByteString reports whether s is plain text in normal form. Text with escapes takes the slow way.
func normalByteString(s string) bool {
	if wireByteString(len(s)) > MaxRDATA {
		return false
	}
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// wireByteString returns how many octets a byte string of n octets takes as character-strings.
func wireByteString(n int) int { return n + max(1, (n+maxCharString-1)/maxCharString) }

// readByteString returns the octets that s stands for, or all of its bad escapes.
func readByteString(s string) ([]byte, error) {
	if strings.HasPrefix(strings.TrimLeft(s, " \t\r\n"), `"`) {
		return readCharStrings(s)
	}
	var errs []error
	octets := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		c, n, why := unescape(s[i:])
		if why != "" {
			errs = append(errs, fmt.Errorf("at character %d: %s", i+1, why))
		}
		octets = append(octets, c)
		i += n
	}
	return octets, errors.Join(errs...)
}

// readCharStrings reads quoted and bare character-strings with white space between and joins them.
func readCharStrings(s string) ([]byte, error) {
	var errs []error
	octets := make([]byte, 0, len(s))
	opened := -1 // where the quote that is open stands
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == '"':
			if opened < 0 {
				opened = i
			} else {
				opened = -1
			}
			i++
		case opened < 0 && (c == ' ' || c == '\t' || c == '\r' || c == '\n'):
			i++
		default:
			o, n, why := unescape(s[i:])
			if why != "" {
				errs = append(errs, fmt.Errorf("at character %d: %s", i+1, why))
			}
			octets = append(octets, o)
			i += n
		}
	}
	if opened >= 0 {
		errs = append(errs, fmt.Errorf("at character %d: the quote is not closed", opened+1))
	}
	return octets, errors.Join(errs...)
}

// unescape reads one octet at the start of s, which is not empty: itself, \X or \DDD (RFC 1035 §5.1). It
// returns how many bytes that took, and why it is wrong when it is.
func unescape(s string) (octet byte, n int, why string) {
	if s[0] != '\\' {
		return s[0], 1, ""
	}
	if len(s) == 1 {
		return 0, 1, `the backslash at the end escapes nothing: write \\ for a backslash`
	}
	if !digit(s[1]) {
		return s[1], 2, ""
	}
	n = 2
	for n < 4 && n < len(s) && digit(s[n]) {
		n++
	}
	if n < 4 {
		return 0, n, s[:n] + ` is not three digits: write \DDD, or \\ for a backslash`
	}
	v := int(s[1]-'0')*100 + int(s[2]-'0')*10 + int(s[3]-'0')
	if v > 255 {
		return 0, 4, s[:4] + ` is over \255, the largest octet`
	}
	return byte(v), 4, ""
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// appendEscaped prints octets as the normal form of a byte string.
func appendEscaped(b, octets []byte) []byte {
	for _, c := range octets {
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ' || c > '~':
			b = append(b, '\\', '0'+c/100, '0'+c/10%10, '0'+c%10)
		default:
			b = append(b, c)
		}
	}
	return b
}

// charStrings cuts octets into character-strings, each escaped as the DNS library holds it; no octets are
// one empty string.
func charStrings(octets []byte) []string {
	if len(octets) == 0 {
		return []string{""}
	}
	out := make([]string, 0, wireByteString(len(octets))-len(octets))
	for len(octets) > 0 {
		n := min(len(octets), maxCharString)
		out = append(out, string(appendEscaped(nil, octets[:n])))
		octets = octets[n:]
	}
	return out
}
