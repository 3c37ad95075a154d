package zone

import (
	"errors"
	"strings"
)

// The normal forms below are the only ones that rules, the cache key, purges and the origin see; each function is
// idempotent. Of a request an error means that it is answered 400.
var (
	errHost   = errors.New("the host is malformed")
	errTarget = errors.New("the request target is malformed")
	errEscape = errors.New("the request target has a % that two hexadecimal digits do not follow")
)

// NormalizeHost returns the host of an authority (RFC 3986 §3.2): without port and trailing dot, lower
// case, A-labels (IDNA2008). An address comes back as it is written there, IPv6 in brackets. User
// information, a wildcard and an empty host are errors.
func NormalizeHost(authority string) (string, error) {
	host := authority
	if strings.HasPrefix(host, "[") {
		end := strings.IndexByte(host, ']')
		if end < 0 || !validPort(host[end+1:]) {
			return "", errHost
		}
		for i := 1; i < end; i++ {
			if c := host[i]; !isHex(c) && c != ':' && c != '.' {
				return "", errHost
			}
		}
		return strings.ToLower(host[:end+1]), nil
	}
	if i := strings.IndexByte(host, ':'); i >= 0 {
		if !validPort(host[i:]) {
			return "", errHost
		}
		host = host[:i]
	}
	if plainHost(host) {
		return host, nil
	}
	// A name may hold what a host may not, such as the slash of RFC 2317.
	if strings.ContainsFunc(host, func(r rune) bool { return r < 0x80 && !hostByte(byte(r)) }) {
		return "", errHost
	}
	n, err := ParseName(host)
	if err != nil || n.IsWildcard() {
		return "", errHost
	}
	return n.String(), nil
}

// hostByte reports whether an ASCII octet may stand in a host.
func hostByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || digit(c) || c == '-' || c == '_' || c == '.'
}

// plainHost reports whether host is in normal form already, by what can be seen of it quickly.
func plainHost(host string) bool {
	if len(host) == 0 || len(host) > 253 || strings.Contains(host, "xn--") {
		return false
	}
	label := 0
	for i := range len(host) {
		switch c := host[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '_', c == '-':
			label++
		case c == '.' && label > 0 && i+1 < len(host):
			label = 0
		default:
			return false
		}
		if label > 63 {
			return false
		}
	}
	return true
}

// validPort accepts "", ":" and a colon with up to five digits that are a port.
func validPort(s string) bool {
	if s == "" {
		return true
	}
	if s[0] != ':' || len(s) > 6 {
		return false
	}
	port := 0
	for i := 1; i < len(s); i++ {
		if !digit(s[i]) {
			return false
		}
		port = port*10 + int(s[i]-'0')
	}
	return port <= 65535
}

// NormalizeTarget returns path and query of a request target in origin-form or absolute-form (RFC 9112 §3.2),
// escaped as they are forwarded.
//
// Path: dot segments removed (RFC 3986 §5.2.4), runs of "/" made one. Query: ";" escaped, since servers
// disagree on whether it parts parameters; an empty query is none. Both: escapes of unreserved characters
// decoded, others in upper case; bytes that RFC 3986 does not allow there escaped. A control character, a
// space, a "#", an escaped NUL, a bad escape, and a dot segment with parameters ("..;x", which some servers
// climb by) are errors.
func NormalizeTarget(target string) (path, query string, err error) {
	if !strings.HasPrefix(target, "/") {
		_, rest, found := strings.Cut(target, "://")
		if !found {
			return "", "", errTarget
		}
		switch i := strings.IndexAny(rest, "/?"); {
		case i < 0:
			target = "/"
		case rest[i] == '?':
			target = "/" + rest[i:]
		default:
			target = rest[i:]
		}
	}
	path, query, _ = strings.Cut(target, "?")
	if path, err = NormalizePath(path); err != nil {
		return "", "", err
	}
	if query, err = NormalizeQuery(query); err != nil {
		return "", "", err
	}
	return path, query, nil
}

// NormalizePath returns a path, which begins with a slash, as it is forwarded.
func NormalizePath(path string) (string, error) {
	path, err := normalizeEscapes(path, pathBytes)
	if err != nil {
		return "", err
	}
	if err := judgeEscapedSeparators(path); err != nil {
		return "", err
	}
	if !strings.Contains(path, "//") && !strings.Contains(path, "/.") {
		return path, nil
	}
	out := make([]byte, 0, len(path))
	for i := 0; i < len(path); {
		// path[i] is the slash before a segment.
		end := len(path)
		if j := strings.IndexByte(path[i+1:], '/'); j >= 0 {
			end = i + 1 + j
		}
		last := end == len(path)
		switch segment := path[i+1 : end]; {
		case strings.HasPrefix(segment, "..;") || strings.HasPrefix(segment, ".;"):
			return "", errTarget
		case segment == "..":
			for len(out) > 0 {
				c := out[len(out)-1]
				out = out[:len(out)-1]
				if c == '/' {
					break
				}
			}
			if last {
				out = append(out, '/')
			}
		case segment == "." || segment == "":
			if last {
				out = append(out, '/')
			}
		default:
			out = append(out, path[i:end]...)
		}
		i = end
	}
	return string(out), nil
}

// judgeEscapedSeparators refuses a path that an origin which takes %2F or %5C for a slash (as nginx does before it looks for a file)
// would read as another one: with a segment of no octets, "." or ".." beside one. Rules would have seen other segments than it. Within
// a segment they stay, as in /projects/group%2Fname. path is in normal form otherwise.
func judgeEscapedSeparators(path string) error {
	if strings.IndexByte(path, '%') < 0 {
		return nil
	}
	escaped := false // whether the segment began behind an escaped separator
	for i, begun := 1, 1; i <= len(path); i++ {
		step, now := 1, false
		switch {
		case i == len(path) || path[i] == '/':
		case path[i] == '%' && (path[i+1:i+3] == "2F" || path[i+1:i+3] == "5C"):
			step, now = 3, true
		default:
			continue
		}
		segment, _, _ := strings.Cut(path[begun:i], ";")
		if (escaped || now) && (segment == "." || segment == ".." || segment == "" && !(escaped && i == len(path))) {
			return errTarget
		}
		escaped = now
		i += step - 1
		begun = i + 1
	}
	return nil
}

// NormalizeQuery returns a query, without its "?", as it is forwarded.
func NormalizeQuery(query string) (string, error) { return normalizeEscapes(query, queryBytes) }

// What becomes of a byte outside of escapes.
const (
	refuse byte = iota
	escape
	keep
	unreserved // keep, and decode its escape
)

var (
	pathBytes  = byteTable("!$&'()*+,;=:@/")
	queryBytes = byteTable("!$&'()*+,=:@/?")
)

func byteTable(kept string) *[256]byte {
	var t [256]byte
	for c := range t {
		b := byte(c)
		switch {
		case 'a' <= b && b <= 'z', 'A' <= b && b <= 'Z', '0' <= b && b <= '9', strings.IndexByte("-._~", b) >= 0:
			t[c] = unreserved
		case strings.IndexByte(kept, b) >= 0:
			t[c] = keep
		case b <= ' ' || b == 0x7f || b == '#':
			t[c] = refuse
		default:
			t[c] = escape
		}
	}
	return &t
}

func normalizeEscapes(s string, table *[256]byte) (string, error) {
	for i := 0; i < len(s); i++ {
		if table[s[i]] < keep {
			return rewriteEscapes(s, i, table)
		}
	}
	return s, nil
}

// rewriteEscapes does the work of normalizeEscapes from the first byte that may need it.
func rewriteEscapes(s string, from int, table *[256]byte) (string, error) {
	const hex = "0123456789ABCDEF"
	out := append(make([]byte, 0, len(s)+16), s[:from]...)
	for i := from; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '%':
			if i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2]) {
				return "", errEscape
			}
			c = unhex(s[i+1])<<4 | unhex(s[i+2])
			i += 2
			if c == 0 {
				return "", errTarget
			}
			if table[c] == unreserved {
				out = append(out, c)
				continue
			}
		case table[c] >= keep:
			out = append(out, c)
			continue
		case table[c] == refuse:
			return "", errTarget
		}
		out = append(out, '%', hex[c>>4], hex[c&15])
	}
	return string(out), nil
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

func unhex(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c <= 'F':
		return c - 'A' + 10
	default:
		return c - 'a' + 10
	}
}
