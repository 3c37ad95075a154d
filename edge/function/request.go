package function

import (
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Request is what a function is asked.
type Request struct {
	Method string
	// Scheme is http or https, Host in normal form. Path is escaped, Query as well and without its "?".
	Scheme, Host, Path, Query string
	// Client is who asks.
	Client netip.Addr
	// Header has no fields that end at this hop or that are the node's.
	Header http.Header
	// Body is nil for none. Length is its length in bytes, negative when nobody knows. Interrupt ends a Read that waits; it may be
	// called from another goroutine, once, and after the call has ended not at all.
	Body      interface{ Read([]byte) (int, error) }
	Length    int64
	Interrupt func()
	// Attend, which may be nil, is called by the goroutine that calls the function, before it waits for something other than
	// the body and once it has taken a while: from then on the context tells that the client leaves.
	Attend func()
}

func sortedVariables(m map[string]string) []variable {
	out := make([]variable, 0, len(m))
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, variable{name, m[name]})
	}
	return out
}

// appendEnvironment appends the variables of RFC 3875 §4.1 and some that servers are known for, each ended by a zero byte, and returns
// where each begins. What the request says wins over the function's own. A field whose name has anything but letters, digits and "-" has no
// variable: two of them could be one. Nor has Proxy, in which programs see the address of a proxy to use. Protocol and port are those of the
// form that is forwarded, whatever the client spoke and named: an answer may be kept for others, by a key that has neither.
func appendEnvironment(b []byte, own []variable, r *Request) ([]byte, []uint32) {
	offsets := make([]uint32, 0, 20+len(own)+len(r.Header))
	add := func(name, value string) {
		offsets = append(offsets, uint32(len(b)))
		b = append(b, name...)
		b = append(b, '=')
		b = append(b, value...)
		b = append(b, 0)
	}
	path, err := url.PathUnescape(r.Path)
	if err != nil || strings.IndexByte(path, 0) >= 0 {
		path = r.Path
	}
	port := "80"
	if r.Scheme == "https" {
		port = "443"
	}
	add("GATEWAY_INTERFACE", "CGI/1.1")
	add("SERVER_SOFTWARE", "Guardyn")
	add("SERVER_PROTOCOL", "HTTP/1.1")
	add("SERVER_NAME", r.Host)
	add("SERVER_PORT", port)
	add("REQUEST_METHOD", r.Method)
	add("REQUEST_SCHEME", r.Scheme)
	if r.Query == "" {
		add("REQUEST_URI", r.Path)
	} else {
		add("REQUEST_URI", r.Path+"?"+r.Query)
	}
	add("SCRIPT_NAME", "")
	add("PATH_INFO", path)
	add("QUERY_STRING", r.Query)
	add("REMOTE_ADDR", r.Client.String())
	add("REMOTE_HOST", r.Client.String())
	if r.Scheme == "https" {
		add("HTTPS", "on")
	}
	if r.Body != nil && r.Length >= 0 {
		add("CONTENT_LENGTH", strconv.FormatInt(r.Length, 10))
	}
	if v := r.Header.Get("Content-Type"); v != "" {
		add("CONTENT_TYPE", v)
	}
	add("HTTP_HOST", r.Host)
	for name, values := range r.Header {
		if len(values) == 0 || name == "Host" || name == "Content-Type" || name == "Content-Length" || name == "Proxy" || !plainName(name) {
			continue
		}
		separator := ", "
		if name == "Cookie" {
			separator = "; " // RFC 9113 §8.2.3
		}
		offsets = append(offsets, uint32(len(b)))
		b = append(b, "HTTP_"...)
		for i := range len(name) {
			switch c := name[i]; {
			case c == '-':
				b = append(b, '_')
			case 'a' <= c && c <= 'z':
				b = append(b, c-'a'+'A')
			default:
				b = append(b, c)
			}
		}
		b = append(b, '=')
		for i, v := range values {
			if i > 0 {
				b = append(b, separator...)
			}
			b = append(b, strings.ReplaceAll(v, "\x00", "")...)
		}
		b = append(b, 0)
	}
	for _, v := range own {
		if !given(b, offsets, v.name) {
			add(v.name, v.value)
		}
	}
	return b, offsets
}

// given reports whether the request has set a variable, or would set it in another request: a function's own must not be taken for what
// a client said.
func given(b []byte, offsets []uint32, name string) bool {
	if strings.HasPrefix(name, "HTTP_") {
		return true
	}
	for _, at := range offsets {
		if rest, ok := strings.CutPrefix(string(b[at:min(len(b), int(at)+len(name)+1)]), name); ok && rest == "=" {
			return true
		}
	}
	return slices.Contains([]string{"AUTH_TYPE", "REMOTE_USER", "REMOTE_IDENT", "CONTENT_LENGTH", "CONTENT_TYPE", "HTTPS", "PATH_TRANSLATED"}, name)
}

func plainName(name string) bool {
	for i := range len(name) {
		if c := name[i]; c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return name != ""
}
