package zone

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// samples are contents of types that rapid does not draw by parts.
var samples = []struct{ rrtype, content string }{
	{"DS", "60485 5 1 2BB183AF5F22588179A53B0A98631FAD1A292118"},
	{"DNSKEY", "256 3 8 AwEAAcw="},
	{"CDS", "0 0 0 00"},
	{"CDNSKEY", "0 3 0 AA=="},
	{"TLSA", "3 1 1 d2abde240d7cd3ee6b4b28c54df034b97983a1d16e8a410e4561cb106618e971"},
	{"SMIMEA", "3 1 1 d2abde24"},
	{"SSHFP", "2 1 123456789abcdef67890123456789abcdef67890"},
	{"NAPTR", `100 50 "s" "z3950+I2L+I2C" "!^.*$!mailto:x@y\\.z!" _z3950._tcp.gatech.edu.`},
	{"HTTPS", `16 foo.example.org. alpn="h2,h3-19" mandatory="ipv4hint,alpn" ipv4hint="192.0.2.1"`},
	{"HTTPS", "0 svc.example.net."},
	{"SVCB", `1 foo.example.com. key667="hello\210qoo"`},
	{"SVCB", `1 . port="53" ech="AEX+DQ==" ipv6hint="2001:db8::1"`},
	{"LOC", "51 30 12.748 N 0 7 39.611 W 0.00m 0m 0m 0m"},
	{"RP", `first\.last.example.com. .`},
	{"HINFO", `"PC; x" "a \"b\""`},
	{"AFSDB", "1 afs.example.com."},
	{"URI", `10 1 "ftp://ftp.example.com/public;x"`},
	{"CERT", "PGP 0 0 aGVsbG8="},
	{"APL", "1:192.168.32.0/21 !1:192.168.38.0/28 2:2001:db8::/32"},
	{"IPSECKEY", "10 1 2 192.0.2.38 AQNRU3mG7TVTO2BkR47usntb102uFJtugbo6BSGvgqt4AQ=="},
	{"IPSECKEY", "10 3 2 gw.example.com. AQNRU3mG"},
	{"AMTRELAY", "10 0 3 relay.example.com."},
	{"DHCID", "AAIBY2/AuCccgoJbsaxcQc9TUapptP69lOjxfNuVAA2kjEA="},
	{"OPENPGPKEY", "AQNRU3mG"},
	{"EUI48", "00-00-5e-00-53-2a"},
	{"EUI64", "00-00-5e-ef-10-00-00-2a"},
	{"NID", "10 0014:4fff:ff20:ee64"},
	{"L32", "10 10.1.2.0"},
	{"L64", "10 2001:0DB8:1140:1000"},
	{"LP", "10 l64.example.com."},
	{"CSYNC", "66 3 A NS AAAA"},
	{"ZONEMD", "2018031500 1 1 " + strings.Repeat("ab", 48)},
	{"KX", "10 kx.example.com."},
	{"PX", "10 a.example.com. b.example.com."},
	{"X25", "311061700956"},
	{"ISDN", `"150862028003217" "004"`},
	{"RT", "10 relay.example.com."},
	{"MINFO", "a.example.com. b.example.com."},
	{"NINFO", `"a" "b; c"`},
	{"RESINFO", `"qnamemin" "exterr=15-17"`},
	{"TALINK", "a.example.com. b.example.com."},
	{"HIP", "2 200100107B1A74DF365639CC39F1D578 AwEAAbdxyhNuSutc5EMzxTs9LBPCIkOFH8cIvM4p rvs1.example.com. rvs2.example.com."},
	{"GPOS", "-32.6882 116.8652 10.0"},
	{"NSAP-PTR", "host.example.com."},
	{"DLV", "60485 5 1 2BB183AF5F22588179A53B0A98631FAD1A292118"},
	{"KEY", "256 3 8 AwEAAcw="},
	{"TYPE65280", `\# 4 0a000001`},
	{"TYPE65281", `\# 0`},
	{"CNAME", `a\;b\"\(c\\.\000.\@.example.com.`},
	{"SPF", "v=spf1 -all"},
}

func TestSamplesReadOneWay(t *testing.T) {
	for _, s := range samples {
		typ, err := ParseRRType(s.rrtype)
		if err != nil {
			t.Error(err)
			continue
		}
		c, err := ParseContent(typ, s.content)
		if err != nil {
			t.Error(err)
			continue
		}
		if isGeneric(c) != isGeneric(s.content) {
			t.Errorf("%s %s prints as %s", s.rrtype, s.content, c)
		}
		again, err := ParseContent(typ, c)
		if err != nil || again != c {
			t.Errorf("%s %q a second time: %q, %v", s.rrtype, c, again, err)
		}
	}
}

func drawRecord(t *rapid.T, zone Name) Record {
	label := rapid.StringMatching(`[a-z0-9_]([a-z0-9-]{0,8}[a-z0-9])?`)
	owner := rapid.SampledFrom([]string{"@", "*", "www", "a.b", "*.c", "in", "60", "txt", "www.example.com"}).Draw(t, "owner")
	host := label.Draw(t, "label") + rapid.SampledFrom([]string{".example.com", ".example.net.", ".org"}).Draw(t, "under")
	var rrtype, content string
	proxied := false
	switch rapid.IntRange(0, 8).Draw(t, "kind") {
	case 0:
		b := rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "a")
		rrtype, content = "A", fmt.Sprintf("%d.%d.%d.%d", b[0], b[1], b[2], b[3])
		proxied = rapid.Bool().Draw(t, "proxied")
	case 1:
		rrtype, content = "AAAA", fmt.Sprintf(`\# 16 %x`, rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "aaaa"))
		proxied = rapid.Bool().Draw(t, "proxied")
	case 2:
		rrtype, content = "CNAME", host
		proxied = rapid.Bool().Draw(t, "proxied")
	case 3:
		rrtype, content = "MX", fmt.Sprintf("%d %s", rapid.Uint16().Draw(t, "preference"), host)
	case 4:
		rrtype, content = "SRV", fmt.Sprintf("%d 0 5060 %s", rapid.Uint16().Draw(t, "priority"), host)
	case 5:
		octets := rapid.SliceOfN(rapid.Byte(), 0, 600).Draw(t, "txt")
		rrtype, content = rapid.SampledFrom([]string{"TXT", "SPF", "AVC"}).Draw(t, "type"), string(appendEscaped(nil, octets))
	case 6:
		octets := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "caa")
		rrtype, content = "CAA", printCAA(rapid.Uint8().Draw(t, "flags"), "issue", octets)
	case 7:
		rrtype, content = "TYPE65280", printGeneric(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "octets"))
	default:
		s := rapid.SampledFrom(samples).Draw(t, "sample")
		rrtype, content = s.rrtype, s.content
	}
	ttl := rapid.SampledFrom([]uint32{0, 1, 60, 300, 3600, MaxTTL}).Draw(t, "ttl")
	r, err := ParseRecord(zone, owner, rrtype, content, ttl, proxied)
	if err != nil {
		t.Fatalf("%s %s: %v", rrtype, content, err)
	}
	return r
}

func TestZoneFileRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		z := &Zone{ID: testID, Name: MustName("example.com")}
		seen := map[recordKey]bool{}
		for range rapid.IntRange(0, 12).Draw(t, "records") {
			r := drawRecord(t, z.Name)
			if k := (recordKey{r.Name, r.Type, r.Content}); !seen[k] {
				seen[k] = true
				z.Records = append(z.Records, r)
			}
		}
		z.Settings.SOA.Refresh = rapid.SampledFrom([]uint32{0, 1, 7200, MaxTTL}).Draw(t, "refresh")
		z.Settings.SOA.RName = rapid.SampledFrom([]Mailbox{{}, MustMailbox("admin.example.net"), MustMailbox(`a\.b\\\@\000.example.com`)}).Draw(t, "rname")
		z.Settings.SOA.MName = rapid.SampledFrom([]Name{{}, MustName("ns.example.net")}).Draw(t, "mname")
		if err := z.Normalize(); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := WriteZoneFile(&b, z); err != nil {
			t.Fatal(err)
		}
		f, err := ReadZoneFile(bytes.NewReader(b.Bytes()), z.Name)
		if err != nil {
			t.Fatalf("%v\n%s", err, b.String())
		}
		slices.SortFunc(f.Records, Record.Compare)
		if d := cmp.Diff(show(z.Records), show(f.Records)); d != "" {
			t.Fatalf("%s\n%s", d, b.String())
		}
		if *f.SOA != z.Settings.SOA {
			t.Fatalf("SOA %v, want %v\n%s", *f.SOA, z.Settings.SOA, b.String())
		}
	})
}

func TestWriteZoneFileEveryOctet(t *testing.T) {
	octets := make([]byte, 0, 65000)
	for len(octets) < 65000 {
		octets = append(octets, byte(len(octets)))
	}
	z := &Zone{ID: testID, Name: MustName("example.com"), Records: []Record{
		{Name: MustName("example.com"), Type: TypeTXT, Content: string(appendEscaped(nil, octets))},
	}}
	if err := z.Normalize(); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := WriteZoneFile(&b, z); err != nil {
		t.Fatal(err)
	}
	f, err := ReadZoneFile(&b, z.Name)
	if err != nil || len(f.Records) != 1 || f.Records[0] != z.Records[0] {
		t.Fatalf("%v, %v", f, err)
	}
}

func FuzzReadZoneFile(f *testing.F) {
	for _, s := range []string{
		"$TTL 60\n@ A 192.0.2.1 ; proxied\n", "@ 1h IN SOA a b ( 1 ; x\n 2 3 4 5 )\n TXT \"a;b\" c\\;\\200\n",
		"$ORIGIN .\nexample.com 60 NAPTR 1 1 \"\" \"\" \"\" @\n$GENERATE 1-9/2 a${0,3,n} CNAME $.x\n", "(\"\n)\n", "$INCLUDE x\n\\", "@ 60 HTTPS 1 . alpn=h2 \\# 0",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(checkFile)
}

// checkFile holds that what reads is well-formed and survives being written.
func checkFile(t *testing.T, b []byte) {
	zone := MustName("example.com")
	file, err := ReadZoneFile(bytes.NewReader(b), zone)
	if err != nil {
		return
	}
	z := &Zone{ID: testID, Name: zone, Records: file.Records}
	if file.SOA != nil {
		z.Settings.SOA = *file.SOA
	}
	if err := z.Normalize(); err != nil {
		t.Fatalf("what was read is not well-formed: %v", err)
	}
	var out bytes.Buffer
	if err := WriteZoneFile(&out, z); err != nil {
		t.Fatal(err)
	}
	again, err := ReadZoneFile(bytes.NewReader(out.Bytes()), zone)
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	slices.SortFunc(again.Records, Record.Compare)
	if d := cmp.Diff(show(z.Records), show(again.Records)); d != "" {
		t.Fatal(d)
	}
}

func BenchmarkReadZoneFile(b *testing.B) {
	var file strings.Builder
	file.WriteString("$TTL 300\n")
	for i := range 10_000 {
		fmt.Fprintf(&file, "h%d A 192.0.2.%d\n", i, i%250)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ReadZoneFile(strings.NewReader(file.String()), MustName("example.com")); err != nil {
			b.Fatal(err)
		}
	}
}
