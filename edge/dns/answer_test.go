package dns_test

import (
	"net/netip"
	"slices"
	"testing"

	mdns "github.com/miekg/dns"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/edge/dns"
)

// TestNoAddressOfAFamily: a proxied name has no data for a family that the node has no address of.
func TestNoAddressOfAFamily(t *testing.T) {
	service = service[:2]
	t.Cleanup(func() { service = service[:3] })
	s := startTest(t, dns.Config{})
	const soa = "example.com. 300 IN SOA ns1.example.com. hostmaster.example.com. 58 7200 3600 1209600 300"
	a := ask(t, s, "udp", question("shop.example.com", mdns.TypeAAAA))
	if a.Rcode != mdns.RcodeSuccess || len(a.Answer) != 0 || !slices.Equal(lines(a.Ns), []string{soa}) {
		t.Error(a)
	}
}

// TestMostAddresses: the most addresses that a node can have are answered to a client without EDNS.
func TestMostAddresses(t *testing.T) {
	before := service
	t.Cleanup(func() { service = before })
	service = nil
	for i := range edge.MaxServiceAddresses {
		service = append(service, netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), netip.AddrFrom16([16]byte{15: byte(i)}))
	}
	s := startTest(t, dns.Config{})
	for _, qtype := range []uint16{mdns.TypeA, mdns.TypeAAAA} {
		if a := ask(t, s, "udp", question("shop.example.com", qtype)); a.Truncated || len(a.Answer) != edge.MaxServiceAddresses {
			t.Error(a)
		}
	}
}
