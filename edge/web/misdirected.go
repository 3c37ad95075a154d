package web

import (
	"net/http"
	"strings"

	"github.com/guardyn-edge/guardyn/zone"
)

// challengePath is where an authority asks over plain HTTP (RFC 8555 §8.3).
const challengePath = "/.well-known/acme-challenge/"

// overTLS judges a request over TLS under the view that it is answered from, which may be newer than that of the handshake: its
// host must be of the zone of the handshake's name and under the same certificate (RFC 9110 §15.5.20, RFC 9113 §9.1.1), and the
// connection such as the zone still wants. When it returns false the request is answered.
func (x *exchange) overTLS(host string) bool {
	state := x.r.TLS
	if state == nil {
		return true
	}
	x.w.hsts = x.zone.TLS.HSTS
	name := strings.ToLower(state.ServerName)
	x.rule.SNI, x.rule.TLSVersion = name, tlsVersion(state.Version)
	serves := x.zone.TLS.Host(host)
	ok := serves != nil && state.Version >= x.zone.TLS.MinVersion
	if ok && name != host {
		other, of := x.view.Certificate(name)
		ok = of == x.zone && other != nil && other.SameCertificate(serves)
	}
	if !ok {
		x.misdirected()
	}
	return ok
}

// misdirected answers a request that this connection cannot have and a new one may.
func (x *exchange) misdirected() {
	x.w.Header().Set("Connection", "close")
	x.fail(http.StatusMisdirectedRequest, "This host is not served on this connection.")
}

// toHTTPS redirects what came without TLS when the zone wants that. When it returns true the request is answered. The port is
// that of https: a node does not know where else its clients find it.
func (x *exchange) toHTTPS() bool {
	status, location := ToHTTPS(&x.zone.Config.Settings, x.scheme, x.rule.Host, x.rule.Path, x.rule.Query)
	if status == 0 {
		return false
	}
	x.redirected(status, location)
	return true
}

// ToHTTPS is what a request of a zone with those settings is redirected with, and where to, before rules see it; status 0: it is not.
func ToHTTPS(s *zone.Settings, scheme, host, path, query string) (status int, location string) {
	if !s.AlwaysHTTPS || scheme == "https" || strings.HasPrefix(path, challengePath) {
		return 0, ""
	}
	location = "https://" + host + path
	if query != "" {
		location += "?" + query
	}
	return http.StatusPermanentRedirect, location
}
