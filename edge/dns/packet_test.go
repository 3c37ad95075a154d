package dns_test

import (
	"bytes"
	"net/netip"
	"slices"
	"testing"

	mdns "github.com/miekg/dns"

	"github.com/guardyn-edge/guardyn/edge/dns"
)

func TestMalformed(t *testing.T) {
	s := startTest(t, dns.Config{})
	for _, row := range dns.Malformed {
		t.Run(row.Name, func(t *testing.T) {
			got := exchange(t, s, row.Packet)
			if row.Rcode == dns.Silence {
				if got != nil {
					t.Fatalf("answered %x", got)
				}
				return
			}
			if len(got) < 12 {
				t.Fatalf("answer %x", got)
			}
			if !bytes.Equal(got[:2], row.Packet[:2]) || got[2]&0x80 == 0 || int(got[3]&0xf) != row.Rcode {
				t.Errorf("header %x, want rcode %d", got[:12], row.Rcode)
			}
			if got[2]&0x79 != 0x80|row.Packet[2]&0x79 && got[2]&0x79 != row.Packet[2]&0x79 {
				t.Errorf("opcode or RD differ: %x", got[2])
			}
			if got[3]&0xe0 != 0 || got[3]&0x10 != row.Packet[3]&0x10 {
				t.Errorf("RA, Z or AD set, or CD not copied: %x", got[3])
			}
			var m mdns.Msg
			if err := m.Unpack(got); err != nil {
				t.Errorf("the answer does not parse: %v", err)
			}
			if row.Rcode == mdns.RcodeFormatError && len(got) != 12 {
				t.Errorf("FORMERR of %d octets", len(got))
			}
		})
	}
}

func TestCaseIsEchoed(t *testing.T) {
	s := startTest(t, dns.Config{})
	for _, name := range []string{"wWw.ExAmPlE.cOm.", "NoNe.eXample.COM.", "X.WILD.example.com.", "C1.Example.Com."} {
		a := ask(t, s, "udp", question(name, mdns.TypeTXT))
		if a.Question[0].Name != name {
			t.Errorf("asked %s, echoed %s", name, a.Question[0].Name)
		}
		for _, rr := range a.Answer {
			if h := rr.Header(); h.Rrtype == mdns.TypeTXT && h.Name != name {
				t.Errorf("asked %s, owner %s", name, h.Name)
			}
		}
	}
}

func TestEDNS(t *testing.T) {
	s := startTest(t, dns.Config{NSID: "edge-7"})
	for _, row := range []struct {
		name  string
		edit  func(*mdns.OPT)
		rcode int
		check func(*mdns.OPT) bool
	}{
		{"plain", func(*mdns.OPT) {}, mdns.RcodeSuccess, func(o *mdns.OPT) bool { return len(o.Option) == 0 && !o.Do() }},
		{"DO", func(o *mdns.OPT) { o.SetDo() }, mdns.RcodeSuccess, func(o *mdns.OPT) bool { return o.Do() }},
		{"version 1", func(o *mdns.OPT) { o.SetVersion(1) }, mdns.RcodeBadVers, func(o *mdns.OPT) bool { return o.Version() == 0 }},
		{"version 255", func(o *mdns.OPT) { o.SetVersion(255) }, mdns.RcodeBadVers, func(o *mdns.OPT) bool { return o.Version() == 0 }},
		{"NSID", func(o *mdns.OPT) { o.Option = append(o.Option, &mdns.EDNS0_NSID{Code: mdns.EDNS0NSID}) }, mdns.RcodeSuccess, func(o *mdns.OPT) bool {
			n, ok := o.Option[0].(*mdns.EDNS0_NSID)
			return ok && len(o.Option) == 1 && n.Nsid == "656467652d37"
		}},
		{"cookie, padding", func(o *mdns.OPT) {
			o.Option = append(o.Option, &mdns.EDNS0_COOKIE{Code: mdns.EDNS0COOKIE, Cookie: "0011223344556677"}, &mdns.EDNS0_PADDING{Padding: make([]byte, 200)})
		}, mdns.RcodeSuccess, func(o *mdns.OPT) bool { return len(o.Option) == 0 }},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := question("www.example.com", mdns.TypeA)
			m.SetEdns0(4096, false)
			row.edit(m.IsEdns0())
			a := ask(t, s, "udp", m)
			o := a.IsEdns0()
			if a.Rcode != row.rcode || o == nil || !row.check(o) || o.UDPSize() != 1232 {
				t.Errorf("%v", a)
			}
			if row.rcode == mdns.RcodeBadVers && (len(a.Answer) != 0 || a.Authoritative) {
				t.Errorf("BADVERS with data: %v", a)
			}
		})
	}
	if a := ask(t, s, "udp", question("www.example.com", mdns.TypeA)); a.IsEdns0() != nil {
		t.Error("an OPT to who sent none")
	}
}

// TestTruncation: big.example.com A needs 33 + 80×16 octets.
func TestTruncation(t *testing.T) {
	s := startTest(t, dns.Config{})
	for _, row := range []struct {
		name string
		size uint16 // 0: no EDNS
		max  int
	}{
		{"no EDNS", 0, 512}, {"size 100", 100, 512}, {"size 512", 512, 512}, {"size 1232", 1232, 1232}, {"size 65535", 65535, 1232},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := question("big.example.com", mdns.TypeA)
			if row.size > 0 {
				m.SetEdns0(row.size, false)
			}
			a := ask(t, s, "udp", m)
			if !a.Truncated || len(a.Answer) != 0 || !a.Authoritative || a.Len() > row.max || (a.IsEdns0() != nil) != (row.size > 0) {
				t.Errorf("%v", a)
			}
		})
	}
	m := question("big.example.com", mdns.TypeA)
	if a := ask(t, s, "tcp", m); a.Truncated || len(a.Answer) != 80 {
		t.Errorf("over TCP: %d records, TC %t", len(a.Answer), a.Truncated)
	}
	if got := s.Stats(); got.Truncated != 5 || got.UDPQueries != 5 || got.TCPQueries != 1 || got.Answers[mdns.RcodeSuccess] != 6 {
		t.Errorf("%+v", got)
	}
}

func TestVersion(t *testing.T) {
	allowed := startTest(t, dns.Config{AllowVersion: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	other := startTest(t, dns.Config{AllowVersion: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}})
	chaos := func(name string, qtype uint16) *mdns.Msg {
		m := question(name, qtype)
		m.Question[0].Qclass = mdns.ClassCHAOS
		return m
	}
	a := ask(t, allowed, "udp", chaos("Version.Guardyn", mdns.TypeTXT))
	txt, ok := a.Answer[0].(*mdns.TXT)
	if !ok || a.Rcode != mdns.RcodeSuccess || len(txt.Txt) != 3 || txt.Hdr.Ttl != 0 || txt.Hdr.Class != mdns.ClassCHAOS {
		t.Fatal(a)
	}
	if !slices.Equal(txt.Txt[:2], []string{"version=42", "generation=58"}) || len(txt.Txt[2]) != len("content_hash=")+64 {
		t.Error(txt.Txt)
	}
	for name, row := range map[string]struct {
		server *dns.Server
		m      *mdns.Msg
		rcode  int
	}{
		"another client":  {other, chaos("version.guardyn", mdns.TypeTXT), mdns.RcodeRefused},
		"version.bind":    {allowed, chaos("version.bind", mdns.TypeTXT), mdns.RcodeRefused},
		"below it":        {allowed, chaos("a.version.guardyn", mdns.TypeTXT), mdns.RcodeRefused},
		"another type":    {allowed, chaos("version.guardyn", mdns.TypeA), mdns.RcodeSuccess},
		"class IN":        {allowed, question("version.guardyn", mdns.TypeTXT), mdns.RcodeRefused},
		"a zone in CHAOS": {allowed, chaos("www.example.com", mdns.TypeA), mdns.RcodeRefused},
	} {
		if a := ask(t, row.server, "tcp", row.m); a.Rcode != row.rcode || len(a.Answer) != 0 {
			t.Errorf("%s: %v", name, a)
		}
	}
}
