package web

import (
	"net/http"
	"strings"

	"github.com/guardyn-edge/guardyn/edge/http1"
)

// tooManyFields reports whether a header has more of them than a head by HTTP/1.1 may have.
func tooManyFields(h http.Header) bool {
	n := 0
	for _, values := range h {
		n += len(values)
	}
	return n > http1.MaxFields
}

// refusedHTTP2 judges what net/http lets pass of a request by HTTP/2 and what an origin that is spoken to by HTTP/1.1 may read
// otherwise. text is empty when there is nothing; else the request is answered 400.
func refusedHTTP2(r *http.Request) (text string) {
	if !http1.IsToken(r.Method) { // it would go on in the origin's request line (RFC 9110 §9.1)
		return "The method is malformed."
	}
	// RFC 9113 §8.3.1: :path is a path, and a Host beside :authority names the same host.
	if target := r.RequestURI; r.Method != http.MethodConnect && (target == "" || target[0] != '/') {
		return "The request target is malformed."
	}
	if hosts := r.Header["Host"]; len(hosts) > 1 || len(hosts) == 1 && !sameHost(hosts[0], r.Host) {
		return "The request has two hosts."
	}
	if lengths := r.Header["Content-Length"]; len(lengths) > 0 {
		// A stream that ended with its head has a ContentLength of 0.
		if n, ok := http1.ParseLength(lengths[0]); !ok || len(lengths) > 1 || n != r.ContentLength {
			return "The length of the request's body is malformed."
		}
	}
	for _, v := range r.Header["Expect"] {
		if !strings.EqualFold(v, "100-continue") {
			return "The expectation is not known." // RFC 9110 §10.1.1 leaves 417 to the server; the origin would get it
		}
	}
	for _, values := range r.Header {
		for _, v := range values {
			// RFC 9113 §8.2.1. An origin by HTTP/1.1 would take the value without it, which no rule has seen.
			if len(http1.Trim(v)) != len(v) {
				return "A field's value begins or ends with white space."
			}
		}
	}
	return ""
}
