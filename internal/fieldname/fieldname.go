// Package fieldname tells by the name of an HTTP field whose it is: the connection's, the node's or anybody's.
package fieldname

import (
	"net/textproto"
	"strings"
)

// NodePrefix begins, in lower case, the names that are the node's own in both directions.
const NodePrefix = "x-guardyn-"

const forwardedPrefix = "x-forwarded-"

// HopByHop reports whether a field of that canonical name ends at the next hop whatever Connection lists (RFC 9110
// §7.6.1).
func HopByHop(name string) bool {
	switch name {
	case "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection", "Te", "Trailer",
		"Transfer-Encoding", "Upgrade", "Http2-Settings":
		return true
	}
	return false
}

// Node reports whether a name, in any case, is the node's own in both directions.
func Node(name string) bool {
	return len(name) >= len(NodePrefix) && strings.EqualFold(name[:len(NodePrefix)], NodePrefix)
}

// Reserved reports whether a field of a request is the node's to set: by name, in any case and not empty, or by what a
// server that turns names into variables (RFC 3875 §4.1.18) reads it as.
func Reserved(name string) bool {
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
	return strings.HasPrefix(folded, NodePrefix) || strings.HasPrefix(folded, forwardedPrefix) ||
		folded == "forwarded" || folded == "x-forwarded" || folded == "x-real-ip"
}

// SettableInRequest reports whether a rule may set or remove a field of that canonical name in a request: none that
// frames the message, names its host or is the node's.
func SettableInRequest(name string) bool {
	return name != "" && !Reserved(name) && !fixed(name)
}

// SettableInAnswer is SettableInRequest for an answer, in which the node sets fewer fields.
func SettableInAnswer(name string) bool {
	return name != "" && !Node(name) && !fixed(name) && name != "Proxy"
}

func fixed(name string) bool {
	return HopByHop(name) || name == "Host" || name == "Content-Length" || name == "Cdn-Loop"
}

// AddressClaim reports whether a canonical name, or what a server may read it as, is one under which other networks tell
// an origin who the client is.
func AddressClaim(name string) bool {
	switch Read(name) {
	case "Ali-Cdn-Real-Ip", "Cdn-Src-Ip", "Cf-Connecting-Ip", "Cf-Connecting-Ipv6", "Cf-Pseudo-Ipv4", "Client-Ip",
		"Fastly-Client-Ip", "Fly-Client-Ip", "Incap-Client-Ip", "Proxy-Client-Ip", "Remote-Addr", "True-Client-Ip",
		"Wl-Proxy-Client-Ip", "X-Appengine-User-Ip", "X-Azure-Clientip", "X-Azure-Socketip", "X-Client-Ip",
		"X-Cluster-Client-Ip", "X-Envoy-External-Address", "X-Original-Forwarded-For", "X-Originating-Ip",
		"X-Proxyuser-Ip", "X-Remote-Addr", "X-Remote-Ip":
		return true
	}
	return false
}

// Read returns the canonical name that a server which turns names into variables takes a canonical one for: itself, for
// most.
func Read(name string) string {
	if strings.ContainsFunc(name, aliasing) {
		return textproto.CanonicalMIMEHeaderKey(dashed(name))
	}
	return name
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
