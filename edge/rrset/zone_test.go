package rrset_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/guardyn-edge/guardyn/edge/rrset"
	"github.com/guardyn-edge/guardyn/zone"
)

// newZone parses lines of "name type content", or "name ttl type content".
func newZone(t testing.TB, apex string, lines ...string) *zone.Zone {
	t.Helper()
	z := &zone.Zone{ID: "0198c5a0-0000-7000-8000-000000000001", Name: zone.MustName(apex)}
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
	slices.SortFunc(z.Records, zone.Record.Compare)
	return z
}

func compile(t testing.TB, z *zone.Zone) *rrset.Zone {
	t.Helper()
	c, err := rrset.Compile(z)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// rel is a name below the apex in wire format, without the root label.
func rel(t testing.TB, name string) []byte {
	t.Helper()
	if name == "@" {
		return nil
	}
	var buf [rrset.MaxName]byte
	n, err := dns.PackDomainName(name+".", buf[:], 0, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(buf[:n-1])
}

func TestMatch(t *testing.T) {
	z := compile(t, newZone(
		t, "example.com",
		"@ NS ns1.example.com", "ns1 A 192.0.2.1", "www A 192.0.2.2", "*.wild TXT w", "real.deeper.wild A 192.0.2.3",
		"a.b.c.ent A 192.0.2.4", "sub NS ns.sub.example.com", "ns.sub A 192.0.2.5", "x.sub NS ns.x.sub.example.com",
		"old DNAME new.example.com", "below.old A 192.0.2.6", "w-w A 192.0.2.7", "*.w-w CNAME www.example.com",
		"d.cut NS ns.example.net", "d.dn DNAME example.net", "deep.d.dn NS ns.example.net",
	))
	for _, row := range []struct {
		name  string
		kind  rrset.Kind
		depth int
		at    bool
	}{
		{"@", rrset.Exact, 0, false},
		{"www", rrset.Exact, 1, false},
		{"wwww", rrset.NXDomain, 0, false},
		{"ww", rrset.NXDomain, 0, false},
		{"x.www", rrset.NXDomain, 1, false},
		{"ent", rrset.Exact, 1, false},
		{"b.c.ent", rrset.Exact, 3, false},
		{"x.c.ent", rrset.NXDomain, 2, false},
		{"wild", rrset.Exact, 1, false},
		{"x.wild", rrset.Wildcard, 2, false},
		{"x.y.wild", rrset.Wildcard, 2, false},
		{"*.wild", rrset.Exact, 2, false},
		{"*.*.wild", rrset.NXDomain, 2, false}, // the closest encloser is *.wild, which has no wildcard below
		{"deeper.wild", rrset.Exact, 2, false},
		{"none.deeper.wild", rrset.NXDomain, 2, false},
		{"x.w-w", rrset.Wildcard, 2, false},
		{"w", rrset.NXDomain, 0, false},
		{"sub", rrset.Referral, 1, true},
		{"ns.sub", rrset.Referral, 1, false},
		{"x.sub", rrset.Referral, 1, false},
		{"none.sub", rrset.Referral, 1, false},
		{"subx", rrset.NXDomain, 0, false},
		{"old", rrset.Exact, 1, false},
		{"below.old", rrset.Redirect, 1, false},
		{"none.old", rrset.Redirect, 1, false},
		{"d.cut", rrset.Referral, 2, true},
		{"cut", rrset.Exact, 1, false},
		{"deep.d.dn", rrset.Redirect, 2, false},
		{"zzz", rrset.NXDomain, 0, false},
		{"\\000", rrset.NXDomain, 0, false},
		{"www\\000", rrset.NXDomain, 0, false},
		{"ent\\000c", rrset.NXDomain, 0, false}, // one label, not c.ent
		{"\\255.www", rrset.NXDomain, 1, false},
	} {
		m := z.Match(rel(t, row.name))
		if m.Kind != row.kind || z.Depth(m.Node) != row.depth || m.At != row.at {
			t.Errorf("%s: kind %d depth %d at %t, want %d %d %t", row.name, m.Kind, z.Depth(m.Node), m.At, row.kind, row.depth, row.at)
		}
	}
}

// TestMatchModel compares Match with a plain reading of RFC 1034 §4.3.2 over maps, on random zones.
func TestMatchModel(t *testing.T) {
	labels := []string{"a", "b", "ab", "*", "a-", "0", "_"}
	random := rand.New(rand.NewPCG(1, 2))
	name := func(wildcards bool) string {
		var parts []string
		for range 1 + random.IntN(4) {
			l := labels[random.IntN(len(labels))]
			if l == "*" && (len(parts) > 0 || !wildcards) {
				l = "a"
			}
			parts = append(parts, l)
		}
		return strings.Join(parts, ".")
	}
	for range 300 {
		z := &zone.Zone{Name: zone.MustName("example.com")}
		exists, cut, dname := map[string]bool{"": true}, map[string]bool{}, map[string]bool{}
		for range 1 + random.IntN(8) {
			n := name(true)
			if exists[n] {
				continue
			}
			rrtype, content := "A", "192.0.2.1"
			switch random.IntN(5) {
			case 0:
				if n[0] != '*' {
					rrtype, content, cut[n] = "NS", "ns.example.net", true
				}
			case 1:
				if n[0] != '*' {
					rrtype, content, dname[n] = "DNAME", "example.net", true
				}
			}
			r, err := zone.ParseRecord(z.Name, n, rrtype, content, 0, false)
			if err != nil {
				t.Fatal(err)
			}
			z.Records = append(z.Records, r)
			for p := n; p != ""; _, p, _ = strings.Cut(p, ".") {
				exists[p] = true
			}
		}
		compiled := compile(t, z)
		model := func(n string) (rrset.Kind, int) {
			parts := strings.Split(n, ".")
			encloser := 0
			for i := range len(parts) + 1 { // i labels from the end
				s := strings.Join(parts[len(parts)-i:], ".")
				if !exists[s] {
					break
				}
				encloser = i
				switch {
				case cut[s]:
					return rrset.Referral, i
				case dname[s] && i < len(parts):
					return rrset.Redirect, i
				}
			}
			if encloser == len(parts) {
				return rrset.Exact, encloser
			}
			wild := strings.TrimSuffix("*."+strings.Join(parts[len(parts)-encloser:], "."), ".")
			if exists[wild] {
				return rrset.Wildcard, encloser + 1
			}
			return rrset.NXDomain, encloser
		}
		for range 60 {
			n := name(false)
			m := compiled.Match(rel(t, n))
			if kind, depth := model(n); m.Kind != kind || compiled.Depth(m.Node) != depth {
				t.Fatalf("%s in %v: kind %d depth %d, want %d %d", n, z.Records, m.Kind, compiled.Depth(m.Node), kind, depth)
			}
		}
	}
}

// unpack returns a set's records with an owner.
func unpack(t *testing.T, s rrset.Set, owner string) []string {
	t.Helper()
	m := make([]byte, 12, 4096)
	binary.BigEndian.PutUint16(m[6:], uint16(s.Count))
	name := make([]byte, rrset.MaxName)
	n, err := dns.PackDomainName(owner+".", name, 0, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	binary.BigEndian.PutUint16(m[4:], 1)
	m = append(append(append(m, name[:n]...), 0, 1, 0, 1), s.Data...)
	var out dns.Msg
	if err := out.Unpack(m); err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, rr := range out.Answer {
		lines = append(lines, strings.ReplaceAll(rr.String(), "\t", " "))
	}
	return lines
}

func TestSets(t *testing.T) {
	z := compile(t, newZone(
		t, "example.com",
		"@ NS ns2.example.com", "@ NS ns1.example.com", "@ MX 10 mail.example.com", "@ MX 0 .", "@ TXT v=spf1 -all",
		"@ CAA 0 issue ca.example.net", "www 60 A 192.0.2.2", "www 30 A 192.0.2.1", "www AAAA 2001:DB8::1",
		`q TXT a\"b\\c\000`, "long TXT "+strings.Repeat("x", 300), `odd TYPE65400 \# 3 010203`, "empty TXT \"\"",
		"svc SRV 1 2 443 www.example.com", "h HTTPS 1 . alpn=h2", "c CNAME WWW.example.com", `dot NS a\.b.example.net`,
	))
	for _, row := range []struct {
		name   string
		rrtype uint16
		want   []string
	}{
		{"@", dns.TypeNS, []string{"example.com. 300 IN NS ns1.example.com.", "example.com. 300 IN NS ns2.example.com."}},
		{"@", dns.TypeMX, []string{"example.com. 300 IN MX 0 .", "example.com. 300 IN MX 10 mail.example.com."}},
		{"@", dns.TypeTXT, []string{`example.com. 300 IN TXT "v=spf1 -all"`}},
		{"@", dns.TypeCAA, []string{`example.com. 300 IN CAA 0 issue "ca.example.net"`}},
		{"@", dns.TypeSOA, []string{"example.com. 3600 IN SOA ns1.example.com. hostmaster.example.com. 0 7200 3600 1209600 300"}},
		{"www", dns.TypeA, []string{"www.example.com. 30 IN A 192.0.2.1", "www.example.com. 30 IN A 192.0.2.2"}},
		{"www", dns.TypeAAAA, []string{"www.example.com. 300 IN AAAA 2001:db8::1"}},
		{"q", dns.TypeTXT, []string{`q.example.com. 300 IN TXT "a\"b\\c\000"`}},
		{"long", dns.TypeTXT, []string{`long.example.com. 300 IN TXT "` + strings.Repeat("x", 255) + `" "` + strings.Repeat("x", 45) + `"`}},
		{"empty", dns.TypeTXT, []string{`empty.example.com. 300 IN TXT ""`}},
		{"odd", 65400, []string{`odd.example.com. 300 CLASS1 TYPE65400 \# 3 010203`}},
		{"svc", dns.TypeSRV, []string{"svc.example.com. 300 IN SRV 1 2 443 www.example.com."}},
		{"h", dns.TypeHTTPS, []string{`h.example.com. 300 IN HTTPS 1 . alpn="h2"`}},
		{"c", dns.TypeCNAME, []string{"c.example.com. 300 IN CNAME www.example.com."}},
		{"dot", dns.TypeNS, []string{`dot.example.com. 300 IN NS a\.b.example.net.`}},
		{"www", dns.TypeTXT, nil},
	} {
		node, ok := z.Lookup(rel(t, row.name))
		if !ok {
			t.Fatalf("%s is not there", row.name)
		}
		owner := strings.TrimPrefix(row.name+".example.com", "@.")
		set, ok := z.Set(node, row.rrtype)
		if ok != (row.want != nil) {
			t.Fatalf("%s %s: there %t", row.name, dns.Type(row.rrtype), ok)
		}
		if ok {
			if got := unpack(t, set, owner); !slices.Equal(got, row.want) {
				t.Errorf("%s %s\n got %q\nwant %q", row.name, dns.Type(row.rrtype), got, row.want)
			}
		}
	}
}

func TestSOASettings(t *testing.T) {
	for name, row := range map[string]struct {
		soa      zone.SOA
		records  []string
		want     string
		negative uint32
	}{
		"defaults": {
			want:     "example.com. 3600 IN SOA ns.example.com. hostmaster.example.com. 7 7200 3600 1209600 300",
			negative: 300,
		},
		"first NS": {
			records:  []string{"@ NS b.example.net", "@ NS a.example.net", "sub NS 0.example.net"},
			want:     "example.com. 3600 IN SOA a.example.net. hostmaster.example.com. 7 7200 3600 1209600 300",
			negative: 300,
		},
		"all set, TTL below minimum": {
			soa:      zone.SOA{MName: zone.MustName("m.example.org"), RName: zone.MustMailbox(`r\.s.example.org`), Refresh: 1, Retry: 2, Expire: 3, Minimum: 900, TTL: 60},
			records:  []string{"@ NS b.example.net"},
			want:     "example.com. 60 IN SOA m.example.org. r\\.s.example.org. 7 1 2 3 900",
			negative: 60,
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := newZone(t, "example.com", row.records...)
			config.Settings.SOA = row.soa
			z := compile(t, config)
			soa := z.SOA()
			soa.Data = slices.Clone(soa.Data)
			rrset.SetSerial(soa.Data, 7)
			if got := unpack(t, soa, "example.com"); got[0] != row.want {
				t.Errorf("got  %s\nwant %s", got[0], row.want)
			}
			if z.NegativeTTL() != row.negative {
				t.Errorf("negative TTL %d, want %d", z.NegativeTTL(), row.negative)
			}
		})
	}
}

// TestSOAOfTheLongestName: the names that an SOA takes from the zone's by default must not outgrow 255 octets, or
// no node could compile what the build let through.
func TestSOAOfTheLongestName(t *testing.T) {
	label := strings.Repeat("a", 63)
	z := newZone(t, strings.Join([]string{label, label, label, strings.Repeat("b", 61)}, "."))
	soa := unpack(t, compile(t, z).SOA(), z.Name.String())
	if len(soa) != 1 || strings.Count(soa[0], z.Name.String()) != 3 {
		t.Errorf("SOA %v, want the zone's own name as server and mailbox", soa)
	}
}

func TestProxied(t *testing.T) {
	z := compile(t, newZone(
		t, "example.com",
		"@ A 192.0.2.9 proxied", "www A 192.0.2.1 proxied", "www AAAA 2001:db8::1 proxied", "www A 192.0.2.2", "www TXT t",
		"app CNAME origin.example.net proxied", "plain A 192.0.2.3",
	))
	for _, row := range []struct {
		name    string
		proxied bool
		want    rrset.Origin
	}{
		{"@", true, rrset.Origin{Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.9")}}},
		{"www", true, rrset.Origin{Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}}},
		{"app", true, rrset.Origin{Target: "origin.example.net"}},
		{"plain", false, rrset.Origin{}},
	} {
		node, _ := z.Lookup(rel(t, row.name))
		o, ok := z.Origin(node)
		if ok != row.proxied || o.Target != row.want.Target || !slices.Equal(o.Addresses, row.want.Addresses) {
			t.Errorf("%s: %v %t", row.name, o, ok)
		}
		// What an origin's address is must not be found by DNS.
		for _, rrtype := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeCNAME} {
			if _, there := z.Set(node, rrtype); there && row.proxied {
				t.Errorf("%s has its own %s", row.name, dns.Type(rrtype))
			}
		}
		if z.Empty(node) {
			t.Errorf("%s is an empty non-terminal", row.name)
		}
	}
	www, _ := z.Lookup(rel(t, "www"))
	if _, ok := z.Set(www, dns.TypeTXT); !ok {
		t.Error("the TXT record beside proxied ones is gone")
	}
}

func TestCompileErrors(t *testing.T) {
	a := func(name, rrtype, content string) zone.Record {
		rt, err := zone.ParseRRType(rrtype)
		if err != nil {
			t.Fatal(err)
		}
		return zone.Record{Name: zone.MustName(name), Type: rt, Content: content}
	}
	for name, row := range map[string]struct {
		record zone.Record
		want   string
	}{
		"outside the zone":    {a("www.example.net", "A", "192.0.2.1"), "record www.example.net A: the name is not in the zone"},
		"suffix of a label":   {a("wwwexample.com", "A", "192.0.2.1"), "record wwwexample.com A: the name is not in the zone"},
		"address":             {a("www.example.com", "A", "192.0.2"), "record www.example.com A: "},
		"SOA as a record":     {a("example.com", "SOA", "a. b. 1 2 3 4 5"), "record example.com SOA: "},
		"proxied, no address": {zone.Record{Name: zone.MustName("p.example.com"), Type: zone.TypeA, Content: "x", Proxied: true}, "record p.example.com A: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := rrset.Compile(&zone.Zone{Name: zone.MustName("example.com"), Records: []zone.Record{row.record}})
			if err == nil || !strings.HasPrefix(err.Error(), row.want) {
				t.Errorf("error %v, want %s…", err, row.want)
			}
		})
	}
}

func TestAllocations(t *testing.T) {
	z := compile(t, newZone(t, "example.com", "www A 192.0.2.1", "*.w TXT x"))
	names := [][]byte{rel(t, "www"), rel(t, "x.y.w"), rel(t, "none")}
	if n := testing.AllocsPerRun(100, func() {
		for _, name := range names {
			m := z.Match(name)
			z.Set(m.Node, dns.TypeA)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
