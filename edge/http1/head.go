package http1

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
)

// headScan finds the end of a head among octets that arrive in parts.
type headScan struct {
	skip   int // octets of an empty line before
	line   int // where the current line begins
	at     int // what was looked at
	fields int // that were seen
}

// scan returns the length of the head that b begins with, with the empty line behind it and the one that may be before it, or 0 when
// more must come. b has what it had at the last call, and more. status is with what the head is refused, 0 for not at all.
func (s *headScan) scan(b []byte) (n, status int) {
	for {
		i := bytes.IndexByte(b[s.at:], '\n')
		if i < 0 {
			s.at = len(b)
			return 0, 0
		}
		end := s.at + i
		if end == s.line || b[end-1] != '\r' {
			return 0, http.StatusBadRequest
		}
		if end+1 > MaxHead {
			return 0, http.StatusRequestHeaderFieldsTooLarge
		}
		switch line := b[s.line : end-1]; {
		case len(line) == 0 && s.line == 0:
			s.skip = end + 1 // RFC 9112 §2.2: of a client that ends a body with one
		case len(line) == 0 && s.line == s.skip, bytes.IndexByte(line, '\r') >= 0:
			return 0, http.StatusBadRequest
		case len(line) == 0:
			return end + 1, 0
		case s.line > s.skip && badLine(line):
			return 0, http.StatusBadRequest
		case s.line > s.skip:
			if s.fields++; s.fields > MaxFields {
				return 0, http.StatusRequestHeaderFieldsTooLarge
			}
		}
		s.line, s.at = end+1, end+1
	}
}

// badLine reports whether a line cannot be a field's, as far as that is to be seen before the head's end.
func badLine(line []byte) bool {
	colon := bytes.IndexByte(line, ':')
	return colon <= 0 || line[colon-1] == ' ' || line[colon-1] == '\t' || line[0] == ' ' || line[0] == '\t'
}

// parse reads a whole head as headScan found it. It returns with what it is refused, 0 for not at all.
func (c *Conn) parse(head string) (status int) {
	line, rest, _ := strings.Cut(head, "\r\n")
	r := &c.request
	if status := c.parseRequestLine(line); status != 0 {
		return status
	}
	if status := c.parseFields(rest); status != 0 {
		return status
	}
	if c.host == "" && len(r.Header["Host"]) == 0 && r.ProtoMinor > 0 {
		return http.StatusBadRequest
	}
	delete(r.Header, "Host")
	r.Host = c.host
	if r.URL.Host != "" {
		r.Host = r.URL.Host // RFC 9112 §3.2.2
	}
	return c.frame()
}

// parseRequestLine reads RFC 9112 §3.
func (c *Conn) parseRequestLine(line string) (status int) {
	method, rest, found := strings.Cut(line, " ")
	at := strings.LastIndexByte(rest, ' ')
	if !found || at < 0 || !IsToken(method) {
		return http.StatusBadRequest
	}
	target, version := rest[:at], rest[at+1:]
	if len(version) != len("HTTP/1.1") || version[:5] != "HTTP/" || !isDigit(version[5]) || version[6] != '.' || !isDigit(version[7]) {
		return http.StatusBadRequest
	}
	if version[5] != '1' {
		return http.StatusHTTPVersionNotSupported
	}
	if target == "" {
		return http.StatusBadRequest
	}
	for i := range len(target) {
		if c := target[i]; c <= ' ' || c == 0x7f {
			return http.StatusBadRequest
		}
	}
	r := &c.request
	*r = c.server.base
	r.Method, r.RequestURI, r.Proto, r.ProtoMajor, r.ProtoMinor = method, target, version, 1, int(version[7]-'0')
	r.Header, r.RemoteAddr, r.TLS = c.header, c.remote, c.tls
	r.URL = noURL
	if target[0] != '/' && target != "*" && method != http.MethodConnect {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			return http.StatusBadRequest
		}
		r.URL = u
	}
	return 0
}

// noURL is that of a target which is a path, or none: [http.Request.RequestURI] has it. Nothing changes it.
var noURL = &url.URL{}

// parseFields reads field lines (RFC 9112 §5) up to the empty line that s ends with.
func (c *Conn) parseFields(s string) (status int) {
	c.host = ""
	values := make([]string, strings.Count(s, "\n")-1)
	for i := range values {
		line, rest, _ := strings.Cut(s, "\r\n")
		s = rest
		colon := strings.IndexByte(line, ':')
		if colon <= 0 || !IsToken(line[:colon]) {
			return http.StatusBadRequest
		}
		name, value := http.CanonicalHeaderKey(line[:colon]), Trim(line[colon+1:])
		for j := range len(value) {
			if b := value[j]; b < ' ' && b != '\t' || b == 0x7f {
				return http.StatusBadRequest
			}
		}
		if before, ok := c.header[name]; ok {
			if name == "Host" {
				return http.StatusBadRequest
			}
			c.header[name] = append(before, value)
			continue
		}
		if name == "Host" {
			if !isHost(value) {
				return http.StatusBadRequest
			}
			c.host = value
		}
		values[i] = value
		c.header[name] = values[i : i+1 : i+1]
	}
	return 0
}

// frame reads what the fields say of the body's length (RFC 9112 §6) and of the connection (§9).
func (c *Conn) frame() (status int) {
	r, h := &c.request, c.header
	c.body.none()
	r.Body = http.NoBody
	lengths, encodings := h["Content-Length"], h["Transfer-Encoding"]
	switch {
	case len(encodings) > 0:
		if len(encodings) > 1 || len(lengths) > 0 || r.ProtoMinor == 0 || !EqualFold(encodings[0], "chunked") {
			return http.StatusBadRequest
		}
		if t := h["Trailer"]; Lists(t, "Content-Length") || Lists(t, "Transfer-Encoding") || Lists(t, "Trailer") { // RFC 9110 §6.5.1
			return http.StatusBadRequest
		}
		delete(h, "Transfer-Encoding")
		r.ContentLength, r.TransferEncoding, r.Body = -1, chunked, &c.body
		c.body.begin(bodyChunkSize, 0)
	case len(lengths) > 0:
		n, ok := ParseLength(lengths[0])
		if !ok || len(lengths) > 1 {
			return http.StatusBadRequest
		}
		if r.ContentLength = n; n > 0 {
			r.Body = &c.body
			c.body.begin(bodyCounted, n)
		}
	}
	c.closes = r.ProtoMinor == 0
	if connection := h["Connection"]; len(connection) > 0 {
		c.closes = Lists(connection, "close") || c.closes && !Lists(connection, "keep-alive")
	}
	r.Close = c.closes
	if expect := h["Expect"]; len(expect) > 0 && r.ProtoMinor > 0 {
		if len(expect) > 1 || !EqualFold(expect[0], "100-continue") {
			return http.StatusExpectationFailed
		}
		c.body.expects = c.body.state != bodyEnded
	}
	return 0
}

var chunked = []string{"chunked"}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// hostBytes are those of a host and port (RFC 3986 §3.2.2).
var hostBytes = func() (t [256]bool) {
	for c := range t {
		b := byte(c)
		t[c] = 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || isDigit(b) || strings.IndexByte("-._~%!$&'()*+,;=:[]", b) >= 0
	}
	return t
}()

// isHost reports whether s may be a host, which is not to say that it is one.
func isHost(s string) bool {
	for i := range len(s) {
		if !hostBytes[s[i]] {
			return false
		}
	}
	return true
}
