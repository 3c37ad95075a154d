package dns

import (
	"net/netip"

	mdns "github.com/miekg/dns"

	"github.com/guardyn-edge/guardyn/edge"
)

const (
	// udpSize is the payload size that the server advertises, and the most that it sends by UDP: what passes
	// every path without fragments (DNS Flag Day 2020).
	udpSize = 1232
	// tcpSize is the most that a message over TCP holds.
	tcpSize = 1<<16 - 1
)

// transport is how a message came.
type transport uint8

const (
	overUDP transport = iota
	overTCP
)

// respond answers one message in buf, which must hold udpSize or tcpSize octets. It returns nil when there
// is nothing to send. It takes the view once.
func (r *responder) respond(c *Config, from netip.Addr, via transport, message, buf []byte) []byte {
	q := &r.query
	r.zone, r.node, r.message.truncated = nil, -1, false
	switch q.parse(message) {
	case ignore:
		return nil
	case formatError:
		r.message.rcode = mdns.RcodeFormatError
		return headerOnly(q, buf, mdns.RcodeFormatError)
	case notImplemented:
		r.message.rcode = mdns.RcodeNotImplemented
		return headerOnly(q, buf, mdns.RcodeNotImplemented)
	}
	limit := tcpSize
	if via == overUDP {
		limit = min(q.udpSize, udpSize)
	}
	r.message.begin(q, buf, limit-optSize(q, r.nsid))
	r.lookUp(c, from)
	return r.message.end(q, r.nsid)
}

// lookUp fills the message with what the question is due.
func (r *responder) lookUp(c *Config, from netip.Addr) {
	q := &r.query
	view := c.Live.Load()
	switch {
	case q.edns && q.version > 0:
		r.message.rcode = mdns.RcodeBadVers
	case view == nil:
		r.message.rcode = mdns.RcodeServerFailure
	case q.qclass == mdns.ClassCHAOS && c.tellsVersion(q, from):
		r.addVersion(view)
	case q.qclass != mdns.ClassINET || q.qtype == mdns.TypeAXFR || q.qtype == mdns.TypeIXFR:
		r.message.rcode = mdns.RcodeRefused
	case q.qtype == 0 || q.qtype == mdns.TypeTKEY || q.qtype == mdns.TypeTSIG ||
		q.qtype == mdns.TypeMAILA || q.qtype == mdns.TypeMAILB:
		r.message.rcode = mdns.RcodeNotImplemented
	default:
		r.resolve(view)
	}
}

// refuse turns the answer that was just made into one that tells a client to come back by TCP, without
// records: what response-rate limiting lets slip.
func (r *responder) refuse() []byte {
	if r.message.rcode == mdns.RcodeFormatError || r.message.rcode == mdns.RcodeNotImplemented {
		return nil // a header has nothing to cut
	}
	r.message.truncated = true
	return r.message.end(&r.query, r.nsid)
}

// versionName is the CHAOS name that tells what is served, in wire format.
const versionName = "\x07version\x07guardyn\x00"

// tellsVersion reports whether a query may know what is served.
func (c *Config) tellsVersion(q *query, from netip.Addr) bool {
	return string(q.name) == versionName && contains(c.AllowVersion, from)
}

func contains(prefixes []netip.Prefix, a netip.Addr) bool {
	for _, p := range prefixes {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// addVersion answers version.guardyn. with the view's version, generation and content hash, a string each.
func (r *responder) addVersion(v *edge.View) {
	r.message.authoritative = true
	if r.query.qtype != mdns.TypeTXT && r.query.qtype != mdns.TypeANY {
		return
	}
	r.message.addSet(answerSection, versionSet(v), headerLen)
}
