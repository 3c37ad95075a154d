// Package originguard judges whether a node may connect to an address for a customer: the build asks it of
// the addresses that are written down, the dialer of those that a name resolved to.
package originguard

import (
	"fmt"
	"net/netip"
)

// A RefusedError says why an address may not be an origin.
type RefusedError struct {
	Addr netip.Addr
	// Reason is what the address is, as a noun: "loopback", "private".
	Reason string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("origin address %s is refused: it is %s; only the operator can allow such a range, by GUARDYN_ALLOWED_ORIGINS", e.Addr, e.Reason)
}

type refusal struct {
	prefix netip.Prefix
	reason string
}

// refusals are the ranges of the IANA special-purpose registries (RFC 6890 and its updates) that lead
// somewhere else than to a server on the internet, less the documentation ranges, which lead nowhere. The
// narrower range of two that overlap comes first, so that the reason is the exact one.
var refusals = [...]refusal{
	{netip.MustParsePrefix("169.254.169.254/32"), "a cloud metadata service"},
	{netip.MustParsePrefix("168.63.129.16/32"), "a cloud metadata service"},
	{netip.MustParsePrefix("100.100.100.200/32"), "a cloud metadata service"},
	{netip.MustParsePrefix("192.0.0.192/32"), "a cloud metadata service"},
	{netip.MustParsePrefix("fd00:ec2::254/128"), "a cloud metadata service"},
	{netip.MustParsePrefix("0.0.0.0/32"), "unspecified"},
	{netip.MustParsePrefix("::/128"), "unspecified"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("fc00::/7"), "private"},
	{netip.MustParsePrefix("fec0::/10"), "private"}, // site-local, RFC 3879
	{netip.MustParsePrefix("100.64.0.0/10"), "shared by carriers (CGNAT, RFC 6598)"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
	{netip.MustParsePrefix("255.255.255.255/32"), "broadcast"},
	{netip.MustParsePrefix("0.0.0.0/8"), "of this network (RFC 791)"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved (RFC 6890)"},
	{netip.MustParsePrefix("198.18.0.0/15"), "for benchmarks (RFC 2544)"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved (RFC 1112)"},
	{netip.MustParsePrefix("::ffff:0:0/96"), "an IPv4-mapped form (RFC 4291)"},
	{netip.MustParsePrefix("::ffff:0:0:0/96"), "an IPv4-translated form (RFC 2765)"},
	{netip.MustParsePrefix("::/96"), "an IPv4-compatible form (RFC 4291)"},
	{netip.MustParsePrefix("64:ff9b::/96"), "a NAT64 form (RFC 6052)"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "a NAT64 form (RFC 8215)"},
	{netip.MustParsePrefix("2002::/16"), "a 6to4 form (RFC 3056)"},
	{netip.MustParsePrefix("2001::/32"), "a Teredo form (RFC 4380)"},
	{netip.MustParsePrefix("100::/64"), "for discarding (RFC 6666)"},
	{netip.MustParsePrefix("5f00::/16"), "for segment routing (RFC 9602)"},
}

// Check returns nil when a node may connect to a, else a *RefusedError. An address within one of allowed
// passes whatever it is. An IPv4-mapped address connects to the IPv4 address in it, so allowed admits it
// by either; without that it is refused even when the address in it would pass, since no honest origin is
// written so. An address with a zone is refused: it has a meaning on one link alone.
func Check(a netip.Addr, allowed []netip.Prefix) error {
	if !a.IsValid() {
		return &RefusedError{Addr: a, Reason: "not an address"}
	}
	if a.Zone() != "" {
		return &RefusedError{Addr: a, Reason: "scoped to one link"}
	}
	bare := a.Unmap()
	for _, p := range allowed {
		if p.Contains(bare) || containsMapped(p, a) {
			return nil
		}
	}
	if a.Is4In6() {
		return &RefusedError{Addr: a, Reason: "an IPv4-mapped form (RFC 4291)"}
	}
	for i := range refusals {
		if refusals[i].prefix.Contains(a) {
			return &RefusedError{Addr: a, Reason: refusals[i].reason}
		}
	}
	return nil
}

// containsMapped is Contains for prefixes that are themselves written in the mapped form, which
// netip.Prefix.Contains compares bit by bit as IPv6.
func containsMapped(p netip.Prefix, a netip.Addr) bool {
	return a.Is4In6() && p.Addr().Is4In6() && p.Contains(a)
}
