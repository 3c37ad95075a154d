package http1

import "strings"

// ParseLength reads a Content-Length of at most 18 digits.
func ParseLength(s string) (n int64, ok bool) {
	if len(s) == 0 || len(s) > 18 {
		return 0, false
	}
	for i := range len(s) {
		if !isDigit(s[i]) {
			return 0, false
		}
		n = n*10 + int64(s[i]-'0')
	}
	return n, true
}

// tokenBytes are those of a token (RFC 9110 §5.6.2).
var tokenBytes = func() (t [256]bool) {
	for c := range t {
		b := byte(c)
		t[c] = 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || isDigit(b) || strings.IndexByte("!#$%&'*+-.^_`|~", b) >= 0
	}
	return t
}()

// IsToken reports whether s is one.
func IsToken(s string) bool {
	for i := range len(s) {
		if !tokenBytes[s[i]] {
			return false
		}
	}
	return s != ""
}

// Trim takes SP and HTAB from both ends.
func Trim(s string) string {
	for len(s) > 0 && (s[0] == ' ' || s[0] == '\t') {
		s = s[1:]
	}
	for len(s) > 0 && (s[len(s)-1] == ' ' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}

// EqualFold compares with a word of ASCII, as strings.EqualFold does not: other letters fold to some of its own.
func EqualFold(s, word string) bool { return len(s) == len(word) && strings.EqualFold(s, word) }

// Lists reports whether one of the comma-separated lists has a token, in any case.
func Lists(values []string, token string) bool {
	for _, v := range values {
		if v == token {
			return true
		}
		for part := range strings.SplitSeq(v, ",") {
			if EqualFold(Trim(part), token) {
				return true
			}
		}
	}
	return false
}
