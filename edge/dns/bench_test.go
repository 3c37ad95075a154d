package dns

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

// benchView has n zones of four names each.
func benchView(b testing.TB, n int) *edge.Live {
	b.Helper()
	in := snapshot.Input{Now: time.Unix(1, 0)}
	for i := range n {
		z := &zone.Zone{ID: zone.ID(fmt.Sprintf("0198c5a0-0000-7000-8000-%012d", i)), Name: zone.MustName(fmt.Sprintf("zone%d.example", i))}
		for _, r := range [][3]string{
			{"@", "NS", "ns1.example.net"}, {"www", "A", "192.0.2.1"}, {"c", "CNAME", z.Name.String()}, {"*.w", "TXT", "x"}, {"@", "A", "192.0.2.2"},
		} {
			record, err := zone.ParseRecord(z.Name, r[0], r[1], r[2], 0, false)
			if err != nil {
				b.Fatal(err)
			}
			z.Records = append(z.Records, record)
		}
		in.Zones = append(in.Zones, snapshot.ZoneInput{Workspace: "w", Zone: z})
	}
	s, _, err := snapshot.Build(in, snapshot.Meta{Version: 1})
	if err != nil {
		b.Fatal(err)
	}
	v, err := edge.Compile(nil, s, 1, edge.Options{})
	if err != nil {
		b.Fatal(err)
	}
	live := new(edge.Live)
	live.Store(v)
	return live
}

// BenchmarkRespond is the packet path without the socket.
func BenchmarkRespond(b *testing.B) {
	const zones = 1000
	live := benchView(b, zones)
	for _, row := range []struct {
		name, label string
		qtype       uint16
	}{
		{"A", "www.", mdns.TypeA},
		{"NXDOMAIN", "none.", mdns.TypeA},
		{"CNAME", "c.", mdns.TypeA},
		{"wildcard", "x.w.", mdns.TypeTXT},
		{"SOA", "", mdns.TypeSOA},
		{"REFUSED", "www.other.", mdns.TypeA},
	} {
		b.Run(row.name, func(b *testing.B) {
			var queries [zones][]byte
			for i := range queries {
				m := new(mdns.Msg)
				m.SetQuestion(fmt.Sprintf("%szone%d.example.", row.label, i), row.qtype)
				m.SetEdns0(1232, false)
				q, err := m.Pack()
				if err != nil {
					b.Fatal(err)
				}
				queries[i] = q
			}
			c := &Config{Live: live}
			l := newRateLimiter(200, time.Now())
			r, out := new(responder), make([]byte, 0, udpSize)
			client := netip.MustParseAddr("192.0.2.99")
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if r.respond(c, client, overUDP, queries[i], out) == nil {
					b.Fatal("no answer")
				}
				name := rateName{node: r.node}
				if r.zone != nil {
					name.apex = r.zone.Apex()
				}
				l.allow(client, name, time.Now())
				if i++; i == zones {
					i = 0
				}
			}
		})
	}
}

// BenchmarkUDP asks over loopback, one query at a time from each of many clients: server, clients and system
// together.
// served is a server that serves until the test ends.
func served(t testing.TB, c Config) *Server {
	t.Helper()
	s, err := NewServer(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Serve(context.Background()) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

func BenchmarkUDP(b *testing.B) {
	s := served(b, Config{Live: benchView(b, 1000), Addr: "127.0.0.1:0", RateLimit: -1})
	m := new(mdns.Msg)
	m.SetQuestion("www.zone7.example.", mdns.TypeA)
	query, err := m.Pack()
	if err != nil {
		b.Fatal(err)
	}
	b.SetParallelism(16)
	b.ReportAllocs()
	b.RunParallel(func(p *testing.PB) {
		conn, err := net.Dial("udp", s.Addr().String())
		if err != nil {
			b.Error(err)
			return
		}
		defer conn.Close()
		answer := make([]byte, udpSize)
		for p.Next() {
			conn.SetReadDeadline(time.Now().Add(5 * time.Second))
			if _, err := conn.Write(query); err != nil {
				b.Error(err)
				return
			}
			if _, err := conn.Read(answer); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.StopTimer()
}

// TestNoAllocation: what a query costs does not grow the heap, from the socket to the socket.
func TestNoAllocation(t *testing.T) {
	s := served(t, Config{Live: benchView(t, 10), Addr: "127.0.0.1:0", RateLimitSlip: 1, RateLimit: 1000, NSID: "node"})
	conn, err := net.Dial("udp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name  string
		qtype uint16
	}{
		{"www.zone7.example.", mdns.TypeA},
		{"c.zone7.example.", mdns.TypeA},
		{"none.zone7.example.", mdns.TypeA},
		{"x.w.zone7.example.", mdns.TypeTXT},
		{"zone7.example.", mdns.TypeSOA},
		{"zone7.example.", mdns.TypeANY},
		{"www.other.", mdns.TypeA},
	} {
		m := new(mdns.Msg)
		m.SetQuestion(row.name, row.qtype)
		m.SetEdns0(1232, false)
		m.IsEdns0().Option = append(m.IsEdns0().Option, &mdns.EDNS0_NSID{Code: mdns.EDNS0NSID})
		query, err := m.Pack()
		if err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, udpSize)
		conn.SetReadDeadline(time.Now().Add(20 * time.Second))
		// The limit is reached on the way.
		if n := testing.AllocsPerRun(2000, func() {
			if _, err := conn.Write(query); err != nil {
				t.Error(err)
			}
			if _, err := conn.Read(answer); err != nil {
				t.Error(err)
			}
		}); n != 0 {
			t.Errorf("%s %s: %g allocations a query", row.name, mdns.Type(row.qtype), n)
		}
	}
	if got := s.Stats(); got.RateSlipped == 0 {
		t.Error("the limit was not reached")
	}
	conn.Close()
}
