package web

import (
	"fmt"
	"iter"
	"net/http"
	"net/netip"
	"net/textproto"
	"slices"
	"strings"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/edge/cookie"
	"github.com/guardyn-edge/guardyn/edge/http1"
	"github.com/guardyn-edge/guardyn/internal/fieldname"
	"github.com/guardyn-edge/guardyn/zone"
)

const (
	zoneHeader    = "X-Guardyn-Zone"
	versionHeader = "X-Guardyn-Version"
)

// maxLoops is how many nodes of this platform a request may have passed: a site whose origin is another
// site of the platform is one more, a site that is its own origin is endless.
const maxLoops = 4

// loopToken names this platform in CDN-Loop (RFC 8586).
const loopToken = "guardyn"

// maxChain bounds how many addresses of X-Forwarded-For are believed and passed on.
const maxChain = 32

// believe returns the client's address: the peer's, or, when the peer is a trusted proxy, the nearest address in
// X-Forwarded-For that is not one; and whether the peer is one. It keeps what it believed as the chain to send on, and the scheme that a
// trusted peer told.
func (x *exchange) believe() (client netip.Addr, trustedPeer bool) {
	x.chain = append(x.chain, x.peer)
	trusted := x.zone.TrustedProxies
	if trusted == nil || !trusted.Contains(x.peer) {
		return x.peer, false
	}
	client = x.peer
	for entry := range nearestFirst(x.r.Header["X-Forwarded-For"]) {
		a, ok := forwardedAddr(entry)
		if !ok || len(x.chain) == maxChain {
			break
		}
		x.chain = append(x.chain, a)
		client = a
		if !trusted.Contains(a) {
			break
		}
	}
	x.believeScheme()
	return client, true
}

// believeScheme takes the scheme that the client spoke from X-Forwarded-Proto. Where every proxy has added its own, as to
// X-Forwarded-For, that is the one as far from the end as the client is; else the last one, since what stands before is not the peer's.
func (x *exchange) believeScheme() {
	at, told := 0, ""
	for entry := range nearestFirst(x.r.Header["X-Forwarded-Proto"]) {
		if at++; at == 1 || at == len(x.chain)-1 {
			told = entry
		}
	}
	switch {
	case strings.EqualFold(told, "http"):
		x.scheme = "http"
	case strings.EqualFold(told, "https"):
		x.scheme = "https"
	}
}

// nearestFirst yields the elements of a list that each proxy appends to, the last one first; empty ones are none (RFC 9110 §5.6.1.2).
func nearestFirst(fields []string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, field := range slices.Backward(fields) {
			for found := true; found; {
				at := strings.LastIndexByte(field, ',')
				entry := textproto.TrimString(field[at+1:])
				if entry != "" && !yield(entry) {
					return
				}
				if found = at >= 0; found {
					field = field[:at]
				}
			}
		}
	}
}

// forwardedAddr reads one entry of X-Forwarded-For: an address, in some proxies' hands with a port.
func forwardedAddr(s string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(strings.Trim(s, "[]"))
	if err != nil {
		p, err := netip.ParseAddrPort(s)
		if err != nil {
			return netip.Addr{}, false
		}
		a = p.Addr()
	}
	return a.Unmap().WithZone(""), true
}

// cleanRequestHeader takes from r what rules and the origin must not see: hop-by-hop fields and whatever
// Connection lists (RFC 9110 §7.6.1), fields that are the node's to set, and names that a server which
// turns names into variables (RFC 3875 §4.1.18) takes for those. A client's address under other names passes only
// from a trusted peer; trailers, and the announcement of them, end here. Cookies, and a WebSocket handshake (RFC 6455 §4.1), the only
// upgrade that passes, are left in their one form.
func cleanRequestHeader(r *http.Request, trustedPeer bool) {
	h := r.Header
	connection := h["Connection"]
	upgrade := r.Method == http.MethodGet && r.ProtoAtLeast(1, 1) && r.ContentLength == 0 &&
		http1.Lists(connection, "upgrade") && http1.Lists(h["Upgrade"], "websocket") // of several the server may choose (RFC 9110 §7.8)
	trailers := http1.Lists(h["Te"], "trailers")
	dropHopByHop(h)
	r.Trailer = nil
	for name := range h {
		if fieldname.Reserved(name) || !trustedPeer && fieldname.AddressClaim(name) {
			delete(h, name)
		}
	}
	switch {
	case upgrade:
		h["Connection"], h["Upgrade"] = []string{"Upgrade"}, []string{"websocket"}
	case trailers:
		h["Te"] = []string{"trailers"}
	}
	if cookies, ok := h["Cookie"]; ok {
		h["Cookie"] = cookie.Normalize(cookies)
	}
}

// Receive does with a request of a zone with those settings what a node does before rules see it: it takes from the header what a client may
// not say or what ends at the node. peer is who connects, scheme what it speaks; who asks, and by which scheme, is what the peer tells when it is
// one of the trusted proxies. The error is of settings that no zone has.
func Receive(r *http.Request, s *zone.Settings, peer netip.Addr, scheme string) (client netip.Addr, spoken string, err error) {
	trusted, err := edge.CompilePrefixes(s.TrustedProxies)
	if err != nil {
		return netip.Addr{}, "", fmt.Errorf("trusted_proxies: %w", err)
	}
	x := exchange{r: r, zone: &edge.Zone{TrustedProxies: trusted}, peer: peer, scheme: scheme}
	client, trustedPeer := x.believe()
	cleanRequestHeader(r, trustedPeer)
	return client, x.scheme, nil
}

// dropHopByHop takes from h the fields that end at this hop, whatever Connection lists among them.
func dropHopByHop(h http.Header) {
	for _, v := range h["Connection"] {
		for name := range strings.SplitSeq(v, ",") {
			if name = textproto.TrimString(name); name != "" {
				h.Del(name)
			}
		}
	}
	for name := range h {
		if fieldname.HopByHop(name) {
			delete(h, name)
		}
	}
}

// safe reports whether a method asks for no effect (RFC 9110 §9.2.1).
func safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// loops counts this platform in the CDN-Loop fields of a request.
func loops(h http.Header) int {
	n := 0
	for _, v := range h["Cdn-Loop"] {
		for part := range strings.SplitSeq(v, ",") {
			if id, _, _ := strings.Cut(part, ";"); strings.EqualFold(strings.TrimSpace(id), loopToken) {
				n++
			}
		}
	}
	return n
}
