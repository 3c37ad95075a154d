package web

import (
	"net/http"
	"strconv"
	"strings"
)

// How the length of a request's body is told.
const (
	noBody      int64 = -1
	chunkedBody int64 = -2
)

// appendRequest appends the head of the request that the origin gets (RFC 9112 §3). body is its body's length in
// octets, noBody or chunkedBody. Hop-by-hop fields are gone from the client's by now, so nothing that a client lists
// in Connection touches what is set here.
func (x *exchange) appendRequest(b []byte, body int64) []byte {
	r := x.r
	b = append(append(append(b, r.Method...), ' '), x.rule.Path...)
	if x.rule.Query != "" {
		b = append(append(b, '?'), x.rule.Query...)
	}
	b = append(append(append(b, " HTTP/1.1\r\nHost: "...), x.target.hostHeader...), "\r\n"...)
	for name, values := range r.Header {
		if ownField(name) {
			continue
		}
		for _, v := range values {
			b = appendField(b, name, v)
		}
	}
	if len(r.Header["Te"]) > 0 {
		b = append(b, "Connection: TE\r\n"...) // RFC 9110 §10.1.4
	}
	b = append(x.appendChain(append(b, "X-Forwarded-For: "...)), "\r\nX-Forwarded-Host: "...)
	b = append(append(b, x.rule.Host...), "\r\nX-Forwarded-Proto: "...)
	b = append(append(b, x.scheme...), "\r\nForwarded: "...)
	b = append(x.appendForwarded(b), "\r\nX-Real-Ip: "...)
	b = append(x.rule.Client.AppendTo(b), "\r\n"+zoneHeader+": "...)
	b = append(append(b, x.rule.Zone...), "\r\nCdn-Loop: "+loopToken+"\r\n"...)
	switch {
	case body == chunkedBody:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	case body > 0 || body == 0 || meansBody(r.Method):
		b = append(strconv.AppendInt(append(b, "Content-Length: "...), max(body, 0), 10), "\r\n"...)
	}
	return append(b, "\r\n"...)
}

// ownField reports whether appendRequest writes the field itself.
func ownField(name string) bool {
	switch name {
	case "Host", "Content-Length", "Transfer-Encoding", "Trailer":
		return true
	}
	return false
}

// meansBody reports whether a method is expected to have a body (RFC 9110 §8.6).
func meansBody(method string) bool {
	return method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch
}

// appendField appends a field line. A value that would end the line, which neither a client nor a rule can have
// brought here, is left out.
func appendField(b []byte, name, value string) []byte {
	if strings.IndexByte(value, '\n') >= 0 || strings.IndexByte(value, '\r') >= 0 {
		return b
	}
	return append(append(append(append(b, name...), ": "...), value...), "\r\n"...)
}

// appendChain appends the value of X-Forwarded-For.
func (x *exchange) appendChain(b []byte) []byte {
	for i := len(x.chain) - 1; i >= 0; i-- {
		b = x.chain[i].AppendTo(b)
		if i > 0 {
			b = append(b, ", "...)
		}
	}
	return b
}

// appendForwarded appends the value of Forwarded (RFC 7239 §4).
func (x *exchange) appendForwarded(b []byte) []byte {
	for i := len(x.chain) - 1; i >= 0; i-- {
		if b = append(b, "for="...); x.chain[i].Is4() {
			b = x.chain[i].AppendTo(b)
		} else {
			b = append(x.chain[i].AppendTo(append(b, `"[`...)), `]"`...)
		}
		if i > 0 {
			b = append(b, ", "...)
		}
	}
	b = append(b, ";host="...)
	if strings.HasPrefix(x.rule.Host, "[") {
		b = strconv.AppendQuote(b, x.rule.Host)
	} else {
		b = append(b, x.rule.Host...)
	}
	return append(append(b, ";proto="...), x.scheme...)
}

// originHeader is the header of the request that the origin gets by HTTP/2, under the same names.
func (x *exchange) originHeader() http.Header {
	h := make(http.Header, len(x.r.Header)+8)
	for name, values := range x.r.Header {
		if !ownField(name) {
			h[name] = values
		}
	}
	for _, f := range [...]field{
		{"X-Forwarded-For", string(x.appendChain(nil))},
		{"X-Forwarded-Host", x.rule.Host},
		{"X-Forwarded-Proto", x.scheme},
		{"Forwarded", string(x.appendForwarded(nil))},
		{"X-Real-Ip", x.rule.Client.String()},
		{zoneHeader, x.rule.Zone},
	} {
		h[f.name] = []string{f.value}
	}
	h["Cdn-Loop"] = append(h["Cdn-Loop"][:len(h["Cdn-Loop"]):len(h["Cdn-Loop"])], loopToken)
	return h
}
