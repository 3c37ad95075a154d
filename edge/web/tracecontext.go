package web

import (
	"net/http"
	"strings"

	"github.com/guardyn-edge/guardyn/edge/http1"
)

// The fields of W3C Trace Context, as net/http has their names.
const (
	traceparentField = "Traceparent"
	tracestateField  = "Tracestate"
)

const (
	traceparentLen = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	// maxTracestate is how many octets of tracestate are passed on (§3.3.1.5): longer ones lose members. maxStateMembers is
	// how many there may be, longStateMember what makes one the first to go.
	maxTracestate   = 512
	maxStateMembers = 32
	longStateMember = 128
)

// Flags of traceparent (§3.2.2.5); the second is of Level 2.
const (
	flagSampled = 1 << iota
	flagRandom
)

// traceContext is what a traceparent says: the trace, the caller's span in it, and flags.
type traceContext struct {
	trace  [16]byte
	parent [8]byte
	flags  byte
}

// parseTraceparent reads the values of traceparent (W3C Trace Context §3.2, §4.3): of version 00 in its one form, of a later
// one what this version knows of it.
func parseTraceparent(values []string) (c traceContext, ok bool) {
	if len(values) != 1 || len(values[0]) < traceparentLen {
		return c, false
	}
	s := values[0]
	var version, flags [1]byte
	ok = s[2] == '-' && s[35] == '-' && s[52] == '-' &&
		unhex(version[:], s[:2]) && unhex(c.trace[:], s[3:35]) && unhex(c.parent[:], s[36:52]) && unhex(flags[:], s[53:55]) &&
		version[0] != 0xff && c.trace != [16]byte{} && c.parent != [8]byte{} &&
		(len(s) == traceparentLen || version[0] != 0 && s[traceparentLen] == '-')
	c.flags = flags[0]
	return c, ok
}

// unhex reads digits, lower-case alone, two for each octet of dst.
func unhex(dst []byte, digits string) bool {
	for i := range dst {
		high, low := hexDigit(digits[2*i]), hexDigit(digits[2*i+1])
		if high > 15 || low > 15 {
			return false
		}
		dst[i] = high<<4 | low
	}
	return true
}

func hexDigit(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	}
	return 16
}

// String prints the traceparent of version 00. Flags that this version does not know are 0.
func (c traceContext) String() string {
	b := append(make([]byte, 0, traceparentLen), "00-"...)
	b = append(appendHex(b, c.trace[:]), '-')
	b = append(appendHex(b, c.parent[:]), '-')
	return string(appendHex(b, []byte{c.flags & (flagSampled | flagRandom)}))
}

func appendHex(b, octets []byte) []byte {
	const digits = "0123456789abcdef"
	for _, o := range octets {
		b = append(b, digits[o>>4], digits[o&15])
	}
	return b
}

// readTraceContext leaves in h what may be passed on of a trace context, and returns the caller's. One that is malformed is
// dropped; a tracestate that cannot be read goes alone (§3.3.1), and one without a traceparent means nothing.
func readTraceContext(h http.Header) (c traceContext, ok bool) {
	if values, is := h[traceparentField]; is {
		if c, ok = parseTraceparent(values); !ok {
			delete(h, traceparentField)
		}
	}
	if values, is := h[tracestateField]; is {
		var kept []string
		if ok {
			kept = keptTracestate(values)
		}
		if kept == nil {
			delete(h, tracestateField)
		} else {
			h[tracestateField] = kept
		}
	}
	return c, ok
}

// keptTracestate returns what is passed on of tracestate: values itself when that fits, nil when it is malformed or empty.
func keptTracestate(values []string) []string {
	members, size := 0, -1
	for _, v := range values {
		size += len(v) + 1
		for part := range strings.SplitSeq(v, ",") {
			part = http1.Trim(part)
			if part == "" {
				continue
			}
			if members++; members > maxStateMembers || !isStateMember(part) {
				return nil
			}
		}
	}
	switch {
	case members == 0:
		return nil
	case size <= maxTracestate:
		return values
	}
	list := make([]string, 0, members)
	size = -1
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			if part = http1.Trim(part); part != "" {
				list = append(list, part)
				size += len(part) + 1
			}
		}
	}
	// From the end, since the newest stand in front; long ones first (§3.3.1.5).
	for _, longer := range []int{longStateMember, 0} {
		for i := len(list) - 1; i >= 0 && size > maxTracestate; i-- {
			if len(list[i]) > longer {
				size -= len(list[i]) + 1
				list = append(list[:i], list[i+1:]...)
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	return []string{strings.Join(list, ",")}
}

// isStateMember reports whether s is key=value as §3.3.1.3 has them, in the wider form of Level 2.
func isStateMember(s string) bool {
	key, value, found := strings.Cut(s, "=")
	if !found || key == "" || len(key) > 256 || value == "" || len(value) > 256 {
		return false
	}
	for i := range len(key) {
		switch c := key[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		case i > 0 && (c == '_' || c == '-' || c == '*' || c == '/' || c == '@'):
		default:
			return false
		}
	}
	for i := range len(value) {
		if c := value[i]; c < ' ' || c > '~' || c == '=' {
			return false
		}
	}
	return true
}
