package web

import (
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/guardyn-edge/guardyn/edge/http1"
	"github.com/guardyn-edge/guardyn/zone"
)

// serveHTTP2 serves a stream.
func (s *Server) serveHTTP2(w http.ResponseWriter, r *http.Request) {
	stream := newStreamWriter(w, s.config.WriteStall)
	defer stream.end()
	s.serve(stream, r, nil)
}

// serve answers a request, whose connection is nil when others share it.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, conn *http1.Conn) {
	admitted := false
	select {
	case s.requests <- struct{}{}:
		admitted = true
		defer func() { <-s.requests }()
	default:
	}
	start := s.config.Now()
	x := s.exchange(w, r, conn)
	defer func() {
		s.finish(x, start)
		s.recycle(x)
	}()
	x.handle(start, admitted)
	if stream, ok := w.(*streamWriter); ok {
		stream.finish()
	}
	x.ended = true
}

// handle answers the request, which came at start.
func (x *exchange) handle(start time.Time, admitted bool) {
	s, r := x.server, x.r
	if !admitted {
		x.busy()
		return
	}
	if x.view = s.config.View(); x.view == nil {
		x.w.Header().Set("Retry-After", "5")
		x.fail(http.StatusServiceUnavailable, "This node has no configuration yet.")
		return
	}
	if r.ProtoMajor > 1 {
		if tooManyFields(r.Header) {
			x.fail(http.StatusRequestHeaderFieldsTooLarge, "The request has too many fields.")
			return
		}
		if text := refusedHTTP2(r); text != "" {
			x.fail(http.StatusBadRequest, text)
			return
		}
	}
	switch {
	case r.URL.Host != "" && x.w.conn != nil && (r.URL.User != nil || !sameHost(r.URL.Host, x.w.conn.HostField())):
		x.fail(http.StatusMisdirectedRequest, "The request target and the Host header name different hosts.")
		return
	case r.Method == http.MethodConnect || r.Method == http.MethodTrace:
		x.fail(http.StatusMethodNotAllowed, "This method is not served.")
		return
	case r.URL.User != nil:
		x.fail(http.StatusBadRequest, "the request target is malformed")
		return
	}
	x.scheme = "http"
	if r.TLS != nil {
		x.scheme = "https"
	}
	switch r.URL.Scheme {
	case "", x.scheme:
	case "http", "https":
		x.fail(http.StatusMisdirectedRequest, "The scheme of the request target is not that of this connection.")
		return
	default:
		x.fail(http.StatusBadRequest, "The scheme of the request target is not served.")
		return
	}
	host, err := zone.NormalizeHost(r.Host)
	if err != nil {
		x.fail(http.StatusBadRequest, err.Error())
		return
	}
	if r.RequestURI == "*" && r.Method == http.MethodOptions { // RFC 9110 §9.3.7: of the node, which takes any method but two
		x.w.Header().Set("Content-Length", "0")
		x.w.WriteHeader(http.StatusOK)
		return
	}
	path, query, err := zone.NormalizeTarget(r.RequestURI)
	if err != nil {
		x.fail(http.StatusBadRequest, err.Error())
		return
	}
	if x.zone = x.view.Host(host); x.zone == nil {
		if r.TLS != nil {
			x.misdirected() // what the handshake was for is served, and another name
			return
		}
		x.fail(http.StatusNotFound, "No site is served at this host.")
		return
	}
	if x.zone.Config.Settings.VersionHeader {
		x.w.version = strconv.FormatUint(x.view.Version(), 10)
	}
	defer x.leave()
	if !x.enter() {
		return
	}
	if !x.overTLS(host) {
		return
	}
	if !x.withinRate(start) {
		return
	}
	if loops(r.Header) >= maxLoops {
		x.fail(http.StatusLoopDetected, "The site is its own server.")
		return
	}
	x.rule.Host, x.rule.Path, x.rule.Query = host, path, query
	x.receive(start)
	if x.toHTTPS() {
		return
	}
	if !x.limitBody(x.zone.MaxBody) {
		return
	}
	defer x.closeCache()
	if !x.run(s.phases) {
		x.produce()
	}
	x.endCache()
}

// run passes the request through phases. true: it is answered.
func (x *exchange) run(phases []phase) bool {
	for i := range phases {
		p := &phases[i]
		if p.request != nil && (p.always || x.zone.Rules != nil && !x.skipped[p.name]) && p.request(x, p.name) {
			return true
		}
	}
	return false
}

// peerOf is the address that the connection comes from, the zero Addr when that is none.
func (x *exchange) peerOf() netip.Addr {
	if x.w.conn != nil {
		return x.w.conn.Peer()
	}
	a, err := netip.ParseAddrPort(x.r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return a.Addr().Unmap().WithZone("")
}

// sameHost reports whether two authorities are of one host, whatever their ports.
func sameHost(a, b string) bool {
	x, err := zone.NormalizeHost(a)
	if err != nil {
		return false
	}
	y, err := zone.NormalizeHost(b)
	return err == nil && x == y
}

// receive learns who asks, takes from the head what a client may not say or what ends at this node, and decides whether the request
// is traced.
func (x *exchange) receive(start time.Time) {
	r, z := x.r, x.zone.Config
	x.peer = x.peerOf()
	client, trustedPeer := x.believe()
	cleanRequestHeader(r, trustedPeer)
	x.rule.Method, x.rule.Scheme, x.rule.Header = r.Method, x.scheme, r.Header
	x.rule.Client, x.rule.Zone = client, z.Name.String()
	switch {
	case r.ProtoMajor == 2:
		x.rule.Version = "2"
	case r.ProtoMinor == 0:
		x.rule.Version = "1.0"
	default:
		x.rule.Version = "1.1"
	}
	x.follow(trustedPeer, start)
}
