package web

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strconv"

	"github.com/guardyn-edge/guardyn/zone"
)

// ServeHTTP implements http.Handler for the connections of the server's own listener.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	admitted := false
	select {
	case s.requests <- struct{}{}:
		admitted = true
		defer func() { <-s.requests }()
	default:
	}
	conn := connOf(r.Context())
	mismatch := conn != nil && conn.take()
	start := s.config.Now()
	x := &exchange{server: s, r: r, rec: recorder{ResponseWriter: w, conn: conn}}
	x.w = &x.rec
	defer s.finish(x, start)
	if !admitted {
		s.counters.shed.Add(1)
		x.w.Header().Set("Retry-After", "1")
		x.fail(http.StatusServiceUnavailable, "This node is busy.")
		return
	}
	if x.view = s.config.View(); x.view == nil {
		x.w.Header().Set("Retry-After", "5")
		x.fail(http.StatusServiceUnavailable, "This node has no configuration yet.")
		return
	}
	switch {
	case mismatch:
		x.fail(http.StatusMisdirectedRequest, "The request target and the Host header name different hosts.")
		return
	case r.Method == http.MethodConnect || r.Method == http.MethodTrace:
		x.fail(http.StatusMethodNotAllowed, "This method is not served.")
		return
	case r.URL.User != nil:
		x.fail(http.StatusBadRequest, errTarget.Error())
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
	host, err := NormalizeHost(r.Host)
	if err != nil {
		x.fail(http.StatusBadRequest, err.Error())
		return
	}
	path, query, err := NormalizeTarget(r.RequestURI)
	if err != nil {
		x.fail(http.StatusBadRequest, err.Error())
		return
	}
	if x.zone = x.view.Host(host); x.zone == nil {
		x.fail(http.StatusNotFound, "No site is served at this host.")
		return
	}
	if x.zone.Config.Settings.VersionHeader {
		x.w.version = strconv.FormatUint(x.view.Version(), 10)
	}
	if loops(r.Header) >= maxLoops {
		x.fail(http.StatusLoopDetected, "The site is its own server.")
		return
	}
	x.rule.Host, x.rule.Path, x.rule.Query = host, path, query
	x.receive()
	if limit := int64(x.zone.Config.Ceilings.Effective().RequestBody); !x.limitBody(limit) {
		return
	}
	for i := range s.phases {
		if p := &s.phases[i]; p.request != nil && !x.skipped[p.name] && p.request(x, p.name) {
			return
		}
	}
	if !x.chooseTarget() {
		return
	}
	x.forward()
}

// receive learns who asks, and takes from the head what a client may not say or what ends at this node.
func (x *exchange) receive() {
	r, z := x.r, x.zone.Config
	if a, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		x.peer = a.Addr().Unmap().WithZone("")
	}
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
}

// chooseTarget decides which origin serves, in the order that the package comment tells. When it returns false
// the request is answered.
func (x *exchange) chooseTarget() bool {
	z, client, host := x.zone, x.rule.Client, x.rule.Host
	o := z.Pools.PickPool(x.pool, client)
	if x.pool != "" && o == nil {
		x.fail(http.StatusServiceUnavailable, "The site has no server for this request.")
		return false
	}
	if o == nil {
		o = z.Pools.Pick(host, client)
	}
	record, proxied := z.ProxiedOrigin(host)
	if o == nil && proxied {
		o = z.Pools.PickPool(zone.DefaultPool, client)
	}
	if o != nil {
		x.target = poolTarget(z.Config, o, host)
		return true
	}
	if !proxied {
		x.fail(http.StatusNotFound, "No site is served at this host.")
		return false
	}
	x.target = recordTarget(z.Config, record, host)
	return true
}

// forward sends the request to its target and the answer back.
func (x *exchange) forward() {
	if o := x.target.origin; o != nil {
		o.Begin()
		defer o.End()
	}
	if x.body != nil {
		x.r.Body = x.body
		defer x.body.stop()
	}
	defer x.endCut() // the proxy panics then, as net/http asks of a handler that cannot end its answer
	ctx := context.WithValue(x.r.Context(), exchangeKey{}, x)
	x.server.proxy.ServeHTTP(x.w, x.r.WithContext(ctx))
	cleanTrailer(x.w.Header(), http.TrailerPrefix, x.connection)
}

// originFailed answers for an origin that did not.
func originFailed(_ http.ResponseWriter, r *http.Request, err error) {
	x := exchangeOf(r)
	x.originErr = err
	if x.body != nil {
		var tooLarge *http.MaxBytesError
		switch {
		case errors.As(x.body.failure(), &tooLarge):
			x.failBody(http.StatusRequestEntityTooLarge, bodyTooLarge)
			return
		case x.body.stalled.Load():
			x.failBody(http.StatusRequestTimeout, "The request's body did not arrive in time.")
			return
		case x.w.conn != nil && x.w.conn.refused.Load():
			x.failBody(http.StatusBadRequest, "The request's body is malformed.")
			return
		}
	}
	if r.Context().Err() != nil {
		// Without an answer net/http would write an empty 200.
		x.w.status = statusClientGone
		panic(http.ErrAbortHandler)
	}
	x.server.counters.originErrors.Add(1)
	if timedOut(err) {
		x.fail(http.StatusGatewayTimeout, "The site's server did not answer in time.")
		return
	}
	x.fail(http.StatusBadGateway, "The site's server could not be reached.")
}

func timedOut(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout() || errors.Is(err, context.DeadlineExceeded)
}
