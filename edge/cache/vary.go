package cache

import (
	"net/http"
	"slices"
	"strings"
)

// maxVary bounds how many fields an answer may be selected by; one that names more is not stored.
const maxVary = 16

// varied is a field that an answer was selected by, with its value in the request (RFC 9111 §4.1).
type varied struct{ name, value string }

// selectedBy reads Vary. ok is false for an answer that no later request can be known to select: "*", a field whose value the
// node makes for each client, or too many fields. An answer with a coding is selected by Accept-Encoding though it forgot to say so.
func selectedBy(h http.Header) (names []string, ok bool) {
	for _, v := range h["Vary"] {
		for part := range strings.SplitSeq(v, ",") {
			name := http.CanonicalHeaderKey(strings.Trim(part, " \t"))
			switch name {
			case "":
			case "*", "X-Forwarded-For", "Forwarded", "X-Real-Ip", "Cdn-Loop":
				return nil, false
			case "Host", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Guardyn-Zone":
				// Of the key.
			default:
				names = append(names, name)
			}
		}
	}
	if len(h["Content-Encoding"]) > 0 {
		names = append(names, "Accept-Encoding")
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names, len(names) <= maxVary
}

// valuesOf are the values by which a request selects.
func valuesOf(names []string, h http.Header) []varied {
	if len(names) == 0 {
		return nil
	}
	out := make([]varied, len(names))
	for i, name := range names {
		out[i] = varied{name, strings.Clone(selecting(name, h))}
	}
	return out
}

// selecting is a request's value of a field, as far as it matters: lines joined, no white space beside commas (RFC 9111 §4.1), and of
// Accept-Encoding the codings that are accepted. It does not allocate for a field of one line without such white space.
func selecting(name string, h http.Header) string {
	values := h[name]
	if len(values) == 0 {
		if name == "Accept-Encoding" {
			return codings[0]
		}
		return "\x00" // other than an empty value
	}
	if name == "Accept-Encoding" {
		if n, ok := acceptedCodings(values); ok {
			return codings[n]
		}
	}
	v := values[0]
	if len(values) > 1 {
		v = strings.Join(values, ",")
	}
	if !strings.Contains(v, ", ") && !strings.Contains(v, " ,") && !strings.Contains(v, "\t") {
		return v
	}
	parts := strings.Split(v, ",")
	for i := range parts {
		parts[i] = strings.Trim(parts[i], " \t")
	}
	return strings.Join(parts, ",")
}

// Matches reports whether a request with that header selects o.
func (o *Object) Matches(h http.Header) bool {
	for i := range o.vary {
		if v := &o.vary[i]; selecting(v.name, h) != v.value {
			return false
		}
	}
	return true
}

// codings are the sets of content codings that matter, by their bits.
var codings = func() (sets [16]string) {
	for n := range sets {
		var names []string
		for bit, name := range [...]string{"br", "deflate", "gzip", "zstd"} {
			if n&(1<<bit) != 0 {
				names = append(names, name)
			}
		}
		sets[n] = strings.Join(names, ",")
	}
	return sets
}()

// acceptedCodings reads Accept-Encoding (RFC 9110 §12.5.3) as a set. ok is false for one that asks for more than a set can say: an
// asterisk, or identity refused.
func acceptedCodings(values []string) (set int, ok bool) {
	for _, v := range values {
		for v != "" {
			var part string
			part, v, _ = strings.Cut(v, ",")
			name, parameters, _ := strings.Cut(part, ";")
			name = strings.Trim(name, " \t")
			accepted := !refused(parameters)
			bit := -1
			switch {
			case strings.EqualFold(name, "br"):
				bit = 0
			case strings.EqualFold(name, "deflate"):
				bit = 1
			case strings.EqualFold(name, "gzip") || strings.EqualFold(name, "x-gzip"):
				bit = 2
			case strings.EqualFold(name, "zstd"):
				bit = 3
			case name == "*", strings.EqualFold(name, "identity") && !accepted:
				return 0, false
			}
			if bit >= 0 && accepted {
				set |= 1 << bit
			}
		}
	}
	return set, true
}

// refused reports a weight of zero (RFC 9110 §12.4.2).
func refused(parameters string) bool {
	p := strings.Trim(parameters, " \t")
	if len(p) < 3 || p[0]|0x20 != 'q' || p[1] != '=' {
		return false
	}
	return strings.Trim(p[2:], "0.") == ""
}
