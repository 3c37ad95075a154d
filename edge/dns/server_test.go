package dns_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/edge/dns"
	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

// newZone parses lines of "name type content", or "name ttl type content", with "proxied" at their end.
func newZone(t testing.TB, n int, apex string, lines ...string) *zone.Zone {
	t.Helper()
	z := &zone.Zone{ID: zone.ID(fmt.Sprintf("0198c5a0-0000-7000-8000-%012d", n)), Name: zone.MustName(apex)}
	for _, line := range lines {
		line, proxied := strings.CutSuffix(line, " proxied")
		f := strings.SplitN(line, " ", 3)
		var ttl uint32
		if _, err := fmt.Sscanf(f[1], "%d", &ttl); err == nil {
			f = append(f[:1], strings.SplitN(f[2], " ", 2)...)
		}
		r, err := zone.ParseRecord(z.Name, f[0], f[1], f[2], ttl, proxied)
		if err != nil {
			t.Fatal(err)
		}
		z.Records = append(z.Records, r)
	}
	return z
}

func newSnapshot(t testing.TB, version uint64, zones ...*zone.Zone) *snapshot.Snapshot {
	t.Helper()
	in := snapshot.Input{Now: time.Unix(1, 0)}
	for _, z := range zones {
		in.Zones = append(in.Zones, snapshot.ZoneInput{Workspace: "w", Zone: z})
	}
	s, _, err := snapshot.Build(in, snapshot.Meta{Version: version, CreatedAt: time.Unix(1, 0)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var service = []netip.Addr{
	netip.MustParseAddr("198.51.100.1"), netip.MustParseAddr("198.51.100.2"), netip.MustParseAddr("2001:db8:e::1"),
}

func newView(t testing.TB, old *edge.View, s *snapshot.Snapshot, generation uint64) *edge.View {
	t.Helper()
	v, err := edge.Compile(old, s, generation, edge.Options{ServiceAddresses: service})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// testZones is what most tests ask about.
func testZones(t testing.TB) []*zone.Zone {
	big := make([]string, 0, 80)
	for i := range 80 {
		big = append(big, fmt.Sprintf("big A 203.0.113.%d", i+1))
	}
	return []*zone.Zone{
		newZone(t, 1, "example.com", append(
			big,
			"@ NS ns1.example.com", "@ NS ns2.example.net", "ns1 A 203.0.113.53", "@ A 203.0.113.1", "@ MX 10 mail.example.com",
			"www A 203.0.113.80", "www AAAA 2001:db8::80", "mixed 900 TXT a", "mixed 60 TXT b",
			"a.b.ent TXT deep",
			"*.wild TXT w", "*.wild MX 5 mail.example.com", "real.deeper.wild A 203.0.113.3", "*.wc CNAME www.example.com",
			"c1 CNAME c2.example.com", "c2 CNAME www.example.com", "cout CNAME www.example.org", "cx CNAME host.example.net",
			"cnx CNAME none.example.com", "cnodata CNAME ns1.example.com", "cproxied CNAME shop.example.com",
			"csub CNAME www.sub.example.com", "loop1 CNAME loop2.example.com", "loop2 CNAME loop1.example.com",
			"self CNAME self.example.com", "rho CNAME loop1.example.com", "xloop CNAME xloop.example.net",
			"l0 CNAME l1.example.com", "l1 CNAME l2.example.com", "l2 CNAME l3.example.com", "l3 CNAME l4.example.com",
			"l4 CNAME l5.example.com", "l5 CNAME l6.example.com", "l6 CNAME l7.example.com", "l7 CNAME l8.example.com",
			"l8 CNAME l9.example.com", "l9 A 203.0.113.9",
			"sub NS ns.sub.example.com", "sub NS ns.other.example", "ns.sub A 203.0.113.54", "ns.sub AAAA 2001:db8::54",
			"sub DS 12345 13 2 "+strings.Repeat("ab", 32), "unsigned NS ns.other.example",
			"child NS ns1.example.com",
			"shop A 203.0.113.99 proxied", "shop TXT verify", "app CNAME origin.example.org proxied", "*.tenant A 203.0.113.98 proxied",
			"old DNAME new.example.net", "long DNAME "+strings.Repeat("a.", 90)+"example.net",
			`odd TYPE65400 \# 3 010203`, "svc HTTPS 1 . alpn=h2", "caa CAA 0 issue ca.example.org", "tlsa TLSA 3 1 1 "+strings.Repeat("cd", 32),
		)...),
		newZone(t, 2, "example.net", "@ NS ns2.example.net", "host A 203.0.113.10", "xloop CNAME xloop.example.com", "x.new A 203.0.113.11"),
		newZone(t, 3, "child.example.com", "@ NS ns1.example.com", "www A 203.0.113.12"),
		newZone(t, 4, "uncut.example.com", "@ NS ns1.example.com"), // its parent has no NS for it
	}
}

// start serves on loopback until the test ends.
func start(t testing.TB, c dns.Config) *dns.Server {
	t.Helper()
	if c.Addr == "" {
		c.Addr = "127.0.0.1:0"
	}
	s, err := dns.NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return s
}

// startTest serves testZones as version 42, generation 58, without a rate limit.
func startTest(t testing.TB, c dns.Config) *dns.Server {
	t.Helper()
	c.Live = new(edge.Live)
	c.Live.Store(newView(t, nil, newSnapshot(t, 42, testZones(t)...), 58))
	if c.RateLimit == 0 {
		c.RateLimit = -1
	}
	return start(t, c)
}

// ask sends m by network ("udp" or "tcp") and returns the answer.
func ask(t testing.TB, s *dns.Server, network string, m *mdns.Msg) *mdns.Msg {
	t.Helper()
	client := mdns.Client{Net: network, Timeout: 5 * time.Second, UDPSize: 4096}
	answer, _, err := client.Exchange(m, s.Addr().String())
	if err != nil {
		t.Fatalf("%s %s: %v", network, m.Question[0].String(), err)
	}
	return answer
}

// roundTrip sends raw bytes by network ("udp" or "tcp") and returns the answer's.
func roundTrip(t testing.TB, s *dns.Server, network string, message []byte) []byte {
	t.Helper()
	conn, err := net.Dial(network, s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(5 * time.Second))
	if network == "tcp" {
		message = append(binary.BigEndian.AppendUint16(nil, uint16(len(message))), message...)
	}
	if _, err := conn.Write(message); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 2+65535)
	if network == "udp" {
		n, err := conn.Read(answer)
		if err != nil {
			t.Fatal(err)
		}
		return answer[:n]
	}
	if _, err := io.ReadFull(conn, answer[:2]); err != nil {
		t.Fatal(err)
	}
	answer = answer[:binary.BigEndian.Uint16(answer)]
	if _, err := io.ReadFull(conn, answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

func question(name string, qtype uint16) *mdns.Msg {
	m := new(mdns.Msg)
	m.SetQuestion(mdns.Fqdn(name), qtype)
	m.RecursionDesired = false
	return m
}

// lines prints records with one space between fields, in their order.
func lines(rrs []mdns.RR) []string {
	var out []string
	for _, rr := range rrs {
		if rr.Header().Rrtype != mdns.TypeOPT {
			out = append(out, strings.TrimSpace(strings.ReplaceAll(rr.String(), "\t", " ")))
		}
	}
	return out
}

// exchange sends raw bytes by UDP and returns what comes back, nil for silence: that is known when a good query
// sent after it on the same socket is answered first.
func exchange(t testing.TB, s *dns.Server, packet []byte) []byte {
	t.Helper()
	conn, err := net.Dial("udp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, p := range [][]byte{packet, []byte("\x5e\x5e\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")} { // FORMERR
		if _, err := conn.Write(p); err != nil {
			t.Fatal(err)
		}
	}
	conn.SetReadDeadline(time.Now().Add(5 * time.Second))
	buf := make([]byte, 65536)
	n, err := conn.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	if n > 2 && buf[0] == 0x5e && buf[1] == 0x5e {
		return nil
	}
	return slices.Clone(buf[:n])
}

func TestBeforeTheFirstView(t *testing.T) {
	live := new(edge.Live)
	s := start(t, dns.Config{Live: live})
	for _, network := range []string{"udp", "tcp"} {
		if a := ask(t, s, network, question("www.example.com", mdns.TypeA)); a.Rcode != mdns.RcodeServerFailure || a.Authoritative {
			t.Errorf("%s: %v", network, a)
		}
	}
	live.Store(newView(t, nil, newSnapshot(t, 1, testZones(t)...), 1))
	if a := ask(t, s, "udp", question("www.example.com", mdns.TypeA)); a.Rcode != mdns.RcodeSuccess || len(a.Answer) != 1 {
		t.Errorf("after it: %v", a)
	}
}

func TestConfigErrors(t *testing.T) {
	live := new(edge.Live)
	for name, row := range map[string]struct {
		config dns.Config
		want   string
	}{
		"no view":    {dns.Config{}, "Live is not set"},
		"NSID":       {dns.Config{Live: live, NSID: strings.Repeat("x", 129)}, "NSID has 129 bytes"},
		"rate limit": {dns.Config{Live: live, RateLimit: 100_001}, "rate limit of 100001"},
	} {
		if _, err := dns.NewServer(row.config); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, addr := range map[string]string{"no port": "127.0.0.1", "not here": "192.0.2.1:0", "bad port": "127.0.0.1:99999"} {
		s, err := dns.NewServer(dns.Config{Live: live, Addr: addr})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Listen(); err == nil || !strings.Contains(err.Error(), addr) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAddressInUse(t *testing.T) {
	s := start(t, dns.Config{Live: new(edge.Live)})
	second, err := dns.NewServer(dns.Config{Live: new(edge.Live), Addr: s.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Listen(); err == nil {
		t.Fatal("two servers have one port")
	}
}

// TestUDPInUse: when UDP alone is another's, nothing is bound: TCP is free again.
func TestUDPInUse(t *testing.T) {
	var failed error
	for range 10 { // another process may take the port of the round
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := tcp.Addr().String()
		udp, err := net.ListenPacket("udp", addr)
		tcp.Close()
		if err != nil {
			failed = err
			continue
		}
		s, err := dns.NewServer(dns.Config{Live: new(edge.Live), Addr: addr})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Listen()
		if err == nil {
			t.Fatal("it shares another's port")
		}
		free, freeErr := net.Listen("tcp", addr)
		if freeErr == nil {
			free.Close()
		}
		udp.Close()
		if freeErr == nil && strings.Contains(err.Error(), "udp") {
			return
		}
		failed = errors.Join(err, freeErr)
	}
	t.Fatal(failed)
}

// TestEveryAddress: on the unspecified address an answer comes from the address that was asked.
func TestEveryAddress(t *testing.T) {
	for _, row := range []struct{ listen, ask string }{
		{":0", "127.0.0.2"}, {":0", "::1"}, {"0.0.0.0:0", "127.0.0.3"}, {"[::1]:0", "::1"},
	} {
		t.Run(row.listen+" "+row.ask, func(t *testing.T) {
			s := startTest(t, dns.Config{Addr: row.listen})
			to := netip.AddrPortFrom(netip.MustParseAddr(row.ask), s.Addr().Port()).String()
			for _, network := range []string{"udp", "tcp"} {
				client := mdns.Client{Net: network, Timeout: 5 * time.Second}
				a, _, err := client.Exchange(question("www.example.com", mdns.TypeA), to)
				if err != nil || len(a.Answer) != 1 {
					t.Errorf("%s: %v %v", network, a, err)
				}
			}
		})
	}
}

func TestCloseEndsConnections(t *testing.T) {
	live := new(edge.Live)
	live.Store(newView(t, nil, newSnapshot(t, 1, testZones(t)...), 1))
	s, err := dns.NewServer(dns.Config{Live: live, Addr: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(context.Background()) }()
	conn, err := mdns.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.WriteMsg(question("www.example.com", mdns.TypeA)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ReadMsg(); err != nil {
		t.Fatal(err)
	}
	s.Close()
	s.Close()
	if err := <-done; err != nil {
		t.Errorf("serve: %v", err)
	}
	if _, err := conn.ReadMsg(); err != io.EOF {
		t.Errorf("an idle connection after Close: %v", err)
	}
	if _, err := net.Dial("tcp", s.Addr().String()); err == nil {
		t.Error("it still listens")
	}
}
