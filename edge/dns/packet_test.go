package dns_test

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"
	"testing"

	mdns "github.com/miekg/dns"

	"github.com/guardyn-edge/guardyn/edge/dns"
)

// packet is a header with one question, and what follows it.
func packet(flags uint16, counts [4]uint16, parts ...string) []byte {
	b := binary.BigEndian.AppendUint16([]byte{0xab, 0xcd}, flags)
	for _, n := range counts {
		b = binary.BigEndian.AppendUint16(b, n)
	}
	return append(b, strings.Join(parts, "")...)
}

const (
	wwwName  = "\x03www\x07example\x03com\x00"
	wwwQuery = wwwName + "\x00\x01\x00\x01"
	opt      = "\x00\x00\x29\x04\xd0\x00\x00\x00\x00"
	optEmpty = opt + "\x00\x00"
)

func TestMalformed(t *testing.T) {
	s := startTest(t, dns.Config{})
	one := [4]uint16{1}
	const silence = -1
	label63 := "\x3f" + strings.Repeat("a", 63)
	for _, row := range []struct {
		name   string
		packet []byte
		rcode  int
	}{
		{"a good one", packet(0, one, wwwQuery), mdns.RcodeSuccess},
		{"empty", nil, silence},
		{"one octet", []byte{1}, silence},
		{"eleven octets", packet(0, one)[:11], silence},
		{"an answer", packet(0x8000, one, wwwQuery), silence},
		{"an answer with no question", packet(0x8000, [4]uint16{}), silence},
		{"an answer to a NOTIFY", packet(0xa000, one, wwwQuery), silence},
		{"an answer with an error", packet(0x8001, one), silence},
		{"IQUERY", packet(1<<11, one, wwwQuery), mdns.RcodeNotImplemented},
		{"STATUS", packet(2<<11, one, wwwQuery), mdns.RcodeNotImplemented},
		{"NOTIFY", packet(4<<11, one, wwwQuery), mdns.RcodeNotImplemented},
		{"UPDATE", packet(5<<11, one, wwwQuery), mdns.RcodeNotImplemented},
		{"opcode 15", packet(15<<11, one, wwwQuery), mdns.RcodeNotImplemented},
		{"header alone", packet(0, [4]uint16{}), mdns.RcodeFormatError},
		{"QDCOUNT 0 with a question", packet(0, [4]uint16{}, wwwQuery), mdns.RcodeFormatError},
		{"QDCOUNT 0 with OPT", packet(0, [4]uint16{0, 0, 0, 1}, optEmpty), mdns.RcodeFormatError},
		{"QDCOUNT 2", packet(0, [4]uint16{2}, wwwQuery, wwwQuery), mdns.RcodeFormatError},
		{"QDCOUNT 2, one there", packet(0, [4]uint16{2}, wwwQuery), mdns.RcodeFormatError},
		{"QDCOUNT 65535", packet(0, [4]uint16{65535}, wwwQuery), mdns.RcodeFormatError},
		{"no question there", packet(0, one), mdns.RcodeFormatError},
		{"name without end", packet(0, one, "\x03www"), mdns.RcodeFormatError},
		{"label past the end", packet(0, one, "\x3fwww"), mdns.RcodeFormatError},
		{"no type", packet(0, one, wwwName), mdns.RcodeFormatError},
		{"half a class", packet(0, one, wwwName, "\x00\x01\x00"), mdns.RcodeFormatError},
		{"pointer to itself", packet(0, one, "\xc0\x0c", "\x00\x01\x00\x01"), mdns.RcodeFormatError},
		{"pointer into the header", packet(0, one, "\xc0\x00", "\x00\x01\x00\x01"), mdns.RcodeFormatError},
		{"pointer forward", packet(0, one, "\x01a\xc0\x12", "\x00\x01\x00\x01\x00"), mdns.RcodeFormatError},
		{"label type 01", packet(0, one, "\x40a\x00", "\x00\x01\x00\x01"), mdns.RcodeFormatError},
		{"label type 10", packet(0, one, "\x80a\x00", "\x00\x01\x00\x01"), mdns.RcodeFormatError},
		{"name of 256 octets", packet(0, one, strings.Repeat(label63, 3), "\x3e", strings.Repeat("a", 62), "\x00", "\x00\x01\x00\x01"), mdns.RcodeFormatError},
		{"name of 255 octets", packet(0, one, strings.Repeat(label63, 3), "\x3d", strings.Repeat("a", 61), "\x00", "\x00\x01\x00\x01"), mdns.RcodeRefused},
		{"one trailing octet", packet(0, one, wwwQuery, "\x00"), mdns.RcodeFormatError},
		{"a record that is not counted", packet(0, one, wwwQuery, optEmpty), mdns.RcodeFormatError},
		{"a record that is not there", packet(0, [4]uint16{1, 0, 0, 1}, wwwQuery), mdns.RcodeFormatError},
		{"65535 records that are not there", packet(0, [4]uint16{1, 65535, 65535, 65535}, wwwQuery), mdns.RcodeFormatError},
		{"record's name loops", packet(0, [4]uint16{1, 0, 0, 1}, wwwQuery, "\xc0\x21\x00\x01\x00\x01\x00\x00\x00\x00\x00\x00"), mdns.RcodeFormatError},
		{"record's name points forward", packet(0, [4]uint16{1, 0, 0, 1}, wwwQuery, "\xc0\x30\x00\x01\x00\x01\x00\x00\x00\x00\x00\x00"), mdns.RcodeFormatError},
		{"RDLENGTH past the end", packet(0, [4]uint16{1, 0, 0, 1}, wwwQuery, "\x00\x00\x01\x00\x01\x00\x00\x00\x00\x00\x01"), mdns.RcodeFormatError},
		{"an answer record in a query", packet(0, [4]uint16{1, 1}, wwwQuery, "\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x00\x00\x04abcd"), mdns.RcodeSuccess},
		{"an unknown additional record", packet(0, [4]uint16{1, 0, 0, 2}, wwwQuery, "\x00\xff\x00\x00\x01\x00\x00\x00\x00\x00\x00", optEmpty), mdns.RcodeSuccess},
		{"two OPT", packet(0, [4]uint16{1, 0, 0, 2}, wwwQuery, optEmpty, optEmpty), mdns.RcodeFormatError},
		{"OPT in the answer section", packet(0, [4]uint16{1, 1}, wwwQuery, optEmpty), mdns.RcodeFormatError},
		{"OPT with an owner", packet(0, [4]uint16{1, 0, 0, 1}, wwwQuery, "\x01a", optEmpty), mdns.RcodeFormatError},
		{"option header cut", packet(0, [4]uint16{1, 0, 0, 1}, wwwQuery, opt, "\x00\x03\x00\x03\x00"), mdns.RcodeFormatError},
		{"option past the end", packet(0, [4]uint16{1, 0, 0, 1}, wwwQuery, opt, "\x00\x04\x00\x03\x00\x01"), mdns.RcodeFormatError},
		{"padding", packet(0, [4]uint16{1, 0, 0, 1}, wwwQuery, opt, "\x00\x08\x00\x0c\x00\x04\x00\x00\x00\x00"), mdns.RcodeSuccess},
		{"an option that nobody knows", packet(0, [4]uint16{1, 0, 0, 1}, wwwQuery, opt, "\x00\x05\xff\x00\x00\x01x"), mdns.RcodeSuccess},
		{"every flag set", packet(0x07ff, one, wwwQuery), mdns.RcodeSuccess},
		{"TC set", packet(0x0200, one, wwwQuery), mdns.RcodeSuccess},
		{"class ANY", packet(0, one, wwwName, "\x00\x01\x00\xff"), mdns.RcodeRefused},
		{"class 0", packet(0, one, wwwName, "\x00\x01\x00\x00"), mdns.RcodeRefused},
		{"type 0", packet(0, one, wwwName, "\x00\x00\x00\x01"), mdns.RcodeNotImplemented},
		{"type OPT", packet(0, one, wwwName, "\x00\x29\x00\x01"), mdns.RcodeFormatError},
		{"type TSIG", packet(0, one, wwwName, "\x00\xfa\x00\x01"), mdns.RcodeNotImplemented},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := exchange(t, s, row.packet)
			if row.rcode == silence {
				if got != nil {
					t.Fatalf("answered %x", got)
				}
				return
			}
			if len(got) < 12 {
				t.Fatalf("answer %x", got)
			}
			if !bytes.Equal(got[:2], row.packet[:2]) || got[2]&0x80 == 0 || int(got[3]&0xf) != row.rcode {
				t.Errorf("header %x, want rcode %d", got[:12], row.rcode)
			}
			if got[2]&0x79 != 0x80|row.packet[2]&0x79 && got[2]&0x79 != row.packet[2]&0x79 {
				t.Errorf("opcode or RD differ: %x", got[2])
			}
			if got[3]&0xe0 != 0 || got[3]&0x10 != row.packet[3]&0x10 {
				t.Errorf("RA, Z or AD set, or CD not copied: %x", got[3])
			}
			var m mdns.Msg
			if err := m.Unpack(got); err != nil {
				t.Errorf("the answer does not parse: %v", err)
			}
			if row.rcode == mdns.RcodeFormatError && len(got) != 12 {
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
