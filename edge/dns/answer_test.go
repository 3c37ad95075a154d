package dns_test

import (
	"fmt"
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

// TestTargetsAreBounded: the additional section has addresses of so many names of a set and no more.
func TestTargetsAreBounded(t *testing.T) {
	records := []string{"@ NS ns.other.test"}
	for i := range 40 {
		records = append(records, fmt.Sprintf("mx MX %d m%02d.example.com", i, i), fmt.Sprintf("m%02d A 192.0.2.%d", i, i))
	}
	live := new(edge.Live)
	live.Store(newView(t, nil, newSnapshot(t, 1, newZone(t, 1, "example.com", records...)), 1))
	s := start(t, dns.Config{Live: live, RateLimit: -1})
	a := ask(t, s, "tcp", question("mx.example.com", mdns.TypeMX))
	if len(a.Answer) != 40 || len(a.Extra) != 32 {
		t.Errorf("%d targets, %d addresses", len(a.Answer), len(a.Extra))
	}
}
