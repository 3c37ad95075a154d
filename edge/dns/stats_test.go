package dns_test

import (
	"maps"
	"testing"

	mdns "github.com/miekg/dns"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/edge/dns"
	"github.com/guardyn-edge/guardyn/edge/perzone"
)

// Queries are counted for the zone that their question is in, over UDP and TCP, and the counts go on when the zone changes.
func TestQueriesByZone(t *testing.T) {
	live := new(edge.Live)
	one := func(n int, content string) *edge.View {
		return newView(t, live.Load(), newSnapshot(t, uint64(n), newZone(t, 1, "example.com", "www A "+content), newZone(t, 2, "example.org", "www A 192.0.2.1")), uint64(n))
	}
	live.Store(one(1, "192.0.2.1"))
	zones := perzone.New[dns.ZoneCounts](perzone.Selection{Names: []string{"example.com", "example.net"}})
	s := start(t, dns.Config{Live: live, Zones: zones, RateLimit: -1, Sockets: 1})
	ask := func(network, name string, rcode int) {
		t.Helper()
		m, _, err := (&mdns.Client{Net: network}).Exchange(question(name, mdns.TypeA), s.Addr().String())
		if err != nil || m.Rcode != rcode {
			t.Fatalf("%s: %v, %v", name, m, err)
		}
	}
	ask("udp", "www.example.com.", mdns.RcodeSuccess)
	ask("tcp", "none.example.com.", mdns.RcodeNameError)
	ask("udp", "www.example.org.", mdns.RcodeSuccess)
	ask("udp", "www.example.edu.", mdns.RcodeRefused)
	live.Store(one(2, "192.0.2.2"))
	ask("udp", "www.example.com.", mdns.RcodeSuccess)

	got := map[string]uint64{}
	zones.Each(func(zone string, c *dns.ZoneCounts) {
		for rcode, n := range c.Queries() {
			if n > 0 {
				got[zone+" "+mdns.RcodeToString[rcode]] = n
			}
		}
	})
	if want := map[string]uint64{
		"example.com NOERROR": 2, "example.com NXDOMAIN": 1, perzone.Other + " NOERROR": 1, perzone.Other + " REFUSED": 1,
	}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	// What was sent is measured afterwards, before the next is read.
	if h := s.Stats().UDPSeconds; h.Count < 3 || h.Count > 4 || h.Sum <= 0 {
		t.Errorf("times %+v", h)
	}
}
