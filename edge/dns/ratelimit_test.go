package dns_test

import (
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/guardyn-edge/guardyn/edge/dns"
)

// clock is a time that a test sets.
type clock struct{ offset atomic.Int64 }

func (c *clock) now() time.Time { return time.Unix(1_700_000_000, c.offset.Load()) }

func (c *clock) step(d time.Duration) { c.offset.Add(int64(d)) }

// flood asks n queries by UDP from one address and counts what comes back: whole, cut, or not at all. The
// server must have one socket: it answers in order, so after the answer to a later query of another client
// the one before it has come or never will.
func flood(t *testing.T, s *dns.Server, n int, name func(i int) string, qtype uint16) (whole, cut, dropped int) {
	t.Helper()
	before := s.Stats()
	server := net.UDPAddrFromAddrPort(s.Addr())
	conn, err := net.DialUDP("udp", nil, server)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	buf := make([]byte, 4096)
	for i := range n {
		b, err := question(name(i), qtype).Pack()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write(b); err != nil {
			t.Fatal(err)
		}
		other, err := net.DialUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 1, byte(i), 1)}, server)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Write(b); err != nil {
			t.Fatal(err)
		}
		other.SetReadDeadline(time.Now().Add(5 * time.Second))
		if _, err := other.Read(buf); err != nil {
			t.Fatal(err)
		}
		other.Close()
		conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		switch _, err := conn.Read(buf); {
		case err != nil:
			dropped++
		case buf[2]&0x02 != 0:
			cut++
		default:
			whole++
		}
	}
	after := s.Stats()
	if got := int(after.RateDropped - before.RateDropped); got != dropped {
		t.Errorf("%d dropped, counted %d", dropped, got)
	}
	if got := int(after.RateSlipped - before.RateSlipped); got != cut {
		t.Errorf("%d slipped, counted %d", cut, got)
	}
	return whole, cut, dropped
}

func TestRateLimit(t *testing.T) {
	same := func(name string) func(int) string { return func(int) string { return name } }
	numbered := func(below string) func(int) string {
		return func(i int) string { return fmt.Sprintf("n%d.%s", i, below) }
	}
	for _, row := range []struct {
		name                string
		config              dns.Config
		ask                 func(int) string
		qtype               uint16
		whole, cut, dropped int
	}{
		{"one name", dns.Config{RateLimit: 10}, same("www.example.com"), mdns.TypeA, 10, 5, 5},
		{"one name without data", dns.Config{RateLimit: 10}, same("www.example.com"), mdns.TypeMX, 10, 5, 5},
		{"names that do not exist are one", dns.Config{RateLimit: 10}, numbered("example.com"), mdns.TypeA, 10, 5, 5},
		{"names of a wildcard are one", dns.Config{RateLimit: 10}, numbered("wild.example.com"), mdns.TypeTXT, 10, 5, 5},
		{"names below a cut are one", dns.Config{RateLimit: 10}, numbered("sub.example.com"), mdns.TypeA, 10, 5, 5},
		{"REFUSED is one", dns.Config{RateLimit: 10}, numbered("example.org"), mdns.TypeA, 10, 5, 5},
		{"names that differ", dns.Config{RateLimit: 10}, func(i int) string { return fmt.Sprintf("l%d.example.com", i%10) }, mdns.TypeCNAME, 20, 0, 0},
		{"slip 1", dns.Config{RateLimit: 10, RateLimitSlip: 1}, same("www.example.com"), mdns.TypeA, 10, 10, 0},
		{"no slip", dns.Config{RateLimit: 10, RateLimitSlip: -1}, same("www.example.com"), mdns.TypeA, 10, 0, 10},
		{"off", dns.Config{RateLimit: -1}, same("www.example.com"), mdns.TypeA, 20, 0, 0},
		{"exempt", dns.Config{RateLimit: 10, RateLimitExempt: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/16")}}, same("www.example.com"), mdns.TypeA, 20, 0, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			row.config.Sockets = 1 // slip counts by socket
			row.config.Now = new(clock).now
			s := startTest(t, row.config)
			whole, cut, dropped := flood(t, s, 20, row.ask, row.qtype)
			if whole != row.whole || cut != row.cut || dropped != row.dropped {
				t.Errorf("%d whole, %d cut, %d dropped; want %d, %d, %d", whole, cut, dropped, row.whole, row.cut, row.dropped)
			}
			if a := ask(t, s, "tcp", question(row.ask(0), row.qtype)); a.Truncated {
				t.Error("TCP is limited")
			}
		})
	}
}

func TestRateLimitDefault(t *testing.T) {
	var c clock
	s := startTest(t, dns.Config{RateLimit: 200, Now: c.now, Sockets: 1})
	www := func(int) string { return "www.example.com" }
	if whole, _, _ := flood(t, s, 210, www, mdns.TypeA); whole != 200 {
		t.Errorf("%d at once", whole)
	}
	c.step(100 * time.Millisecond)
	if whole, _, _ := flood(t, s, 30, www, mdns.TypeA); whole != 20 {
		t.Errorf("%d after 100 ms", whole)
	}
	c.step(20 * time.Hour) // the limiter's clock has gone round; other clients have been forgotten too
	if whole, _, _ := flood(t, s, 210, www, mdns.TypeA); whole != 200 {
		t.Errorf("%d after a day", whole)
	}
}
