package web

import (
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
	"time"
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
	for _, name := range hopByHop {
		delete(h, name)
	}
}

// dropNodeFields takes from h the fields that only the node may set on an answer.
func dropNodeFields(h http.Header) {
	for name := range h {
		if strings.HasPrefix(strings.ToLower(name), nodePrefix) {
			delete(h, name)
		}
	}
}

var hopByHop = [...]string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade", "Http2-Settings",
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

// rewriteRequest makes the request that the origin gets. It runs after hop-by-hop fields are gone, so
// nothing that a client lists in Connection touches what it sets.
func rewriteRequest(p *httputil.ProxyRequest) {
	x, out := exchangeOf(p.In), p.Out
	t := x.target
	// Opaque is sent as it is: the path in the form that rules saw.
	out.URL = &url.URL{Scheme: string(t.scheme), Host: t.key, Opaque: x.rule.Path, RawQuery: x.rule.Query}
	out.Host = t.hostHeader
	h := out.Header
	var chainBuf, forwardedBuf [128]byte
	chain, forwarded := chainBuf[:0], forwardedBuf[:0]
	for i := len(x.chain) - 1; i >= 0; i-- {
		if len(chain) > 0 {
			chain = append(chain, ", "...)
			forwarded = append(forwarded, ", "...)
		}
		chain = x.chain[i].AppendTo(chain)
		if forwarded = append(forwarded, "for="...); x.chain[i].Is4() {
			forwarded = x.chain[i].AppendTo(forwarded)
		} else {
			forwarded = append(append(x.chain[i].AppendTo(append(forwarded, `"[`...)), ']'), '"')
		}
	}
	forwarded = append(append(append(forwarded, ";host="...), quotedHost(x.rule.Host)...), ";proto="+x.scheme...)
	values := [...]string{string(chain), x.rule.Host, x.scheme, string(forwarded), x.rule.Client.String(), x.rule.Zone}
	for i, name := range [...]string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "Forwarded", "X-Real-Ip", zoneHeader} {
		h[name] = values[i : i+1 : i+1]
	}
	h["Cdn-Loop"] = append(h["Cdn-Loop"], loopToken)
	if !safe(out.Method) {
		// Under these names net/http takes a request without a body for one that it may send twice. Names
		// are sent as they are written here.
		for _, name := range [...]string{"Idempotency-Key", "X-Idempotency-Key"} {
			if v, ok := h[name]; ok {
				delete(h, name)
				h[strings.ToLower(name)] = v
			}
		}
	}
}

// safe reports whether a method asks for no effect (RFC 9110 §9.2.1).
func safe(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// quotedHost writes a host as a value of Forwarded (RFC 7239 §4).
func quotedHost(host string) string {
	if strings.HasPrefix(host, "[") {
		return strconv.Quote(host)
	}
	return host
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

// cleanTrailer takes from a response what must not be said after its body: fields that frame a message or are
// the node's, or that Connection listed. h holds trailers under their names behind prefix: the announced ones under none, the others,
// among the header's fields, under [http.TrailerPrefix].
func cleanTrailer(h http.Header, prefix string, connection []string) {
	for key := range h {
		if name, ok := strings.CutPrefix(key, prefix); ok && (!settable(http.CanonicalHeaderKey(name)) || isToken(connection, name)) {
			delete(h, key)
		}
	}
}

// modifyResponse prepares what the origin answered: fields that are the node's go, and rules of the response
// phases run.
func modifyResponse(res *http.Response) error {
	x := exchangeOf(res.Request)
	x.result.Status, x.result.Latency = res.StatusCode, time.Since(x.sent)
	cleanTrailer(res.Trailer, "", x.connection)
	h := res.Header
	if res.StatusCode == http.StatusSwitchingProtocols {
		// The proxy removes nothing from this one.
		upgrade := h["Upgrade"]
		switching := isToken(h["Connection"], "upgrade")
		dropHopByHop(h)
		if switching && len(upgrade) > 0 {
			h["Connection"], h["Upgrade"] = []string{"Upgrade"}, upgrade[:1]
		}
	}
	dropNodeFields(h)
	if res.StatusCode != http.StatusSwitchingProtocols && res.Body != nil && res.Body != http.NoBody {
		x.answered = answerBody{res.Body, x}
		res.Body = &x.answered
	}
	s := x.server
	for i := range s.phases {
		if p := &s.phases[i]; p.response != nil && !x.skipped[p.name] {
			p.response(x, p.name, h)
		}
	}
	if x.sticky != "" {
		h["Set-Cookie"] = append(h["Set-Cookie"], x.sticky)
	}
	return nil
}
