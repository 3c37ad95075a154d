package web

import (
	"net/http"
	"net/netip"
	"net/textproto"
	"strings"
)

// Names that belong to the node, by their prefix in lower case.
const (
	nodePrefix      = "x-guardyn-"
	forwardedPrefix = "x-forwarded-"
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
	if p := x.r.Header.Get("X-Forwarded-Proto"); p == "http" || p == "https" {
		x.scheme = p
	}
	client = x.peer
	listed := strings.Split(strings.Join(x.r.Header["X-Forwarded-For"], ","), ",")
	for i := len(listed) - 1; i >= 0 && len(x.chain) < maxChain; i-- {
		a, ok := forwardedAddr(strings.TrimSpace(listed[i]))
		if !ok {
			break
		}
		x.chain = append(x.chain, a)
		client = a
		if !trusted.Contains(a) {
			break
		}
	}
	return client, true
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
// from a trusted peer; trailers, and the announcement of them, end here. A WebSocket handshake (RFC 6455 §4.1), the only upgrade that passes, is left in its
// one form.
func cleanRequestHeader(r *http.Request, trustedPeer bool) {
	h := r.Header
	connection := h["Connection"]
	upgrade := r.Method == http.MethodGet && r.ProtoAtLeast(1, 1) && r.ContentLength == 0 &&
		isToken(connection, "upgrade") && len(h["Upgrade"]) == 1 && strings.EqualFold(h["Upgrade"][0], "websocket")
	trailers := isToken(h["Te"], "trailers")
	dropHopByHop(h)
	r.Trailer = nil
	for name := range h {
		if reserved(name) || !trustedPeer && addressClaim(name) {
			delete(h, name)
		}
	}
	if upgrade {
		h["Connection"], h["Upgrade"] = []string{"Upgrade"}, []string{"websocket"}
	}
	if trailers {
		h["Te"] = []string{"trailers"}
	}
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
		if endsHere(name) {
			delete(h, name)
		}
	}
}

// nodeField reports whether only the node may set a field on an answer.
func nodeField(name string) bool {
	return len(name) >= len(nodePrefix) && strings.EqualFold(name[:len(nodePrefix)], nodePrefix)
}

// endsHere reports whether a field of that canonical name is hop-by-hop.
func endsHere(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade", "Http2-Settings":
		return true
	}
	return false
}

// reserved reports whether name, or what a server may read it as, is the node's to set.
func reserved(name string) bool {
	switch name[0] {
	case 'X', 'x', 'F', 'f':
	case 'P', 'p':
		// Such a server takes it for the address of a proxy to use: the variable HTTP_PROXY.
		return strings.EqualFold(name, "Proxy")
	default:
		// Only an alias of a field that frames the message or names its host is of interest.
		return strings.ContainsFunc(name, aliasing) && framing(dashed(name))
	}
	folded := dashed(name)
	return strings.HasPrefix(folded, nodePrefix) || strings.HasPrefix(folded, forwardedPrefix) ||
		folded == "forwarded" || folded == "x-forwarded" || folded == "x-real-ip"
}

// addressClaim reports whether name, or what a server may read it as, is one under which other networks tell
// an origin who the client is. name is canonical.
func addressClaim(name string) bool {
	if strings.ContainsFunc(name, aliasing) {
		name = http.CanonicalHeaderKey(dashed(name))
	}
	switch name {
	case "Ali-Cdn-Real-Ip", "Cdn-Src-Ip", "Cf-Connecting-Ip", "Cf-Connecting-Ipv6", "Cf-Pseudo-Ipv4", "Client-Ip",
		"Fastly-Client-Ip", "Fly-Client-Ip", "Incap-Client-Ip", "Proxy-Client-Ip", "Remote-Addr", "True-Client-Ip",
		"Wl-Proxy-Client-Ip", "X-Appengine-User-Ip", "X-Azure-Clientip", "X-Azure-Socketip", "X-Client-Ip",
		"X-Cluster-Client-Ip", "X-Envoy-External-Address", "X-Original-Forwarded-For", "X-Originating-Ip",
		"X-Proxyuser-Ip", "X-Remote-Addr", "X-Remote-Ip":
		return true
	}
	return false
}

func framing(folded string) bool {
	switch folded {
	case "host", "content-length", "content-type", "transfer-encoding", "connection", "upgrade", "cdn-loop", "cookie", "authorization":
		return true
	}
	return false
}

// aliasing reports whether r is an octet of a name that some servers turn into the same as "-".
func aliasing(r rune) bool {
	return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
}

// dashed folds a name as such servers do: lower case, and "-" for all that is no letter or digit.
func dashed(name string) string {
	return strings.Map(func(r rune) rune {
		if aliasing(r) {
			return '-'
		}
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, name)
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
