package web

import (
	"net/http"
	"strings"
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
		other, zone := x.view.Certificate(name)
		ok = zone == x.zone && other != nil && other.SameCertificate(serves)
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
	if !x.zone.Config.Settings.AlwaysHTTPS || x.scheme == "https" || strings.HasPrefix(x.rule.Path, challengePath) {
		return false
	}
	location := "https://" + x.rule.Host + x.rule.Path
	if x.rule.Query != "" {
		location += "?" + x.rule.Query
	}
	x.redirected(http.StatusPermanentRedirect, location)
	return true
}
