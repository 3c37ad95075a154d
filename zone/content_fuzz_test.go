package zone

import (
	"fmt"
	"strings"
	"testing"
)

func FuzzParseContent(f *testing.F) {
	for _, s := range samples {
		t, err := ParseRRType(s.rrtype)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint16(t), s.content)
	}
	f.Add(uint16(TypeTXT), `"a" b \200 \"`)
	f.Add(uint16(TypeCAA), `0 issue "a\"b"`)
	f.Add(uint16(TypeMX), `010 Mail.Example.`)
	f.Add(uint16(TypeSRV), `\# 8 0001000200030161`)
	f.Fuzz(checkContent)
}

// checkContent holds that the normal form is one, printable, and exactly what packs.
func checkContent(t *testing.T, rrtype uint16, content string) {
	typ := RRType(rrtype)
	once, err := ParseContent(typ, content)
	if err != nil {
		return
	}
	if twice, err := ParseContent(typ, once); err != nil || twice != once {
		t.Fatalf("%s %q prints %q, then %q, %v", typ, content, once, twice, err)
	}
	for _, c := range []byte(once) {
		if c < ' ' || c > '~' {
			t.Fatalf("%s %q prints %q", typ, content, once)
		}
	}
	rr, err := (Record{Name: MustName("example.com"), Type: typ, Content: once}).RR()
	if err != nil {
		t.Fatalf("%s %q: %v", typ, once, err)
	}
	wire, err := packRDATA(rr)
	if err != nil {
		t.Fatalf("%s %q: %v", typ, once, err)
	}
	if len(wire) > MaxRDATA {
		t.Fatalf("%d octets", len(wire))
	}
	back, err := ParseContent(typ, printGeneric(wire))
	if err != nil || back != once {
		t.Fatalf("%s %q through the wire: %q, %v", typ, once, back, err)
	}
}

func FuzzParseName(f *testing.F) {
	for _, s := range []string{"Example.COM.", "*.a", "bücher.example", "xn--bcher-kva.example", "a。b", "x_y.0/25.arpa", "ＡＢ.example", "ß.de", "1.2.3.4", "*", "@"} {
		f.Add(s)
	}
	zone := MustName("example.com")
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := ParseName(s); err == nil {
			again, err := ParseName(n.String())
			if err != nil || again != n || n.IsZero() || len(n.String()) > maxName {
				t.Fatalf("%q folds to %q, then %q, %v", s, n, again, err)
			}
			if up, err := ParseName(strings.ToUpper(n.String()) + "."); err != nil || up != n {
				t.Fatalf("%q in upper case is %q, %v", n, up, err)
			}
		}
		if n, err := ParseNameIn(zone, s); err == nil {
			if !n.Under(zone) {
				t.Fatalf("%q is %q, outside", s, n)
			}
			if again, err := ParseNameIn(zone, n.In(zone)); err != nil || again != n {
				t.Fatalf("%q prints %q, which is %q, %v", n, n.In(zone), again, err)
			}
		}
	})
}

func TestParseName(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"case and dot", "WWW.Example.COM.", "www.example.com"},
		{"U-label", "BÜCHER.example", "xn--bcher-kva.example"},
		{"A-label in upper case", "XN--BCHER-KVA.example", "xn--bcher-kva.example"},
		{"ideographic dot", "a。example", "a.example"},
		{"eszett is kept (IDNA2008)", "faß.de", "xn--fa-hia.de"},
		{"wildcard", "*.Example.com", "*.example.com"},
		{"underscore, slash, hyphens", "_a.0/25.r3---sn.example", "_a.0/25.r3---sn.example"},
		{"longest", strings.Repeat("a.", 126) + "a", strings.Repeat("a.", 126) + "a"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if n, err := ParseName(tc.in); err != nil || n.String() != tc.want {
				t.Fatalf("%q, %v; want %q", n, err, tc.want)
			}
		})
	}
	for _, tc := range []struct{ name, in, want string }{
		{"empty", "", "empty"},
		{"root", ".", "root"},
		{"two dots", "a..b", "label is empty"},
		{"two dots at the end", "a..", "label is empty"},
		{"long label", strings.Repeat("a", 64) + ".b", "most is 63"},
		{"long name", strings.Repeat("a.", 127) + "a", "most is 253"},
		{"wildcard inside", "a.*.b", "first label"},
		{"wildcard in a label", "a*.b", "first label"},
		{"wildcard alone", "*", "stand under"},
		{"space", "a b.c", "not a letter"},
		{"terminal escape", "a\x1b[2J.c", `\x1b`},
		{"address", "192.0.2.1", "all digits"},
		{"bad A-label", "xn--a.example", "A-label"},
		{"A-label of ASCII", "xn--abc-.example", "A-label"},
		{"fullwidth slash", "a／b.example", "not a"},
		{"not UTF-8", "\xff.example", "UTF-8"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if n, err := ParseName(tc.in); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("%q, %v; want %q", n, err, tc.want)
			}
		})
	}
}

func TestParseNameIn(t *testing.T) {
	zone := MustName("example.com")
	for _, tc := range []struct{ in, want string }{
		{"@", "example.com"},
		{"www", "www.example.com"},
		{"WWW.example.com", "www.example.com"},
		{"www.example.com.", "www.example.com"},
		{"example.com", "example.com"},
		{"*", "*.example.com"},
		{"*.a", "*.a.example.com"},
		{"1", "1.example.com"},
		{"other.org", "other.org.example.com"},
		{"badexample.com", "badexample.com.example.com"},
		{"bücher", "xn--bcher-kva.example.com"},
	} {
		if n, err := ParseNameIn(zone, tc.in); err != nil || n.String() != tc.want {
			t.Errorf("%q is %q, %v; want %q", tc.in, n, err, tc.want)
		}
	}
	for _, s := range []string{"", ".", "other.org.", "badexample.com.", "a..b", strings.Repeat("a.", 124) + "a"} {
		if n, err := ParseNameIn(zone, s); err == nil {
			t.Errorf("%q is %q", s, n)
		}
	}
}

func TestScalars(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"10s", "10s"},
		{"90s", "1m30s"},
		{"60m", "1h"},
		{"1.5h", "1h30m"},
		{"250ms", "250ms"},
		{"0.25s", "250ms"},
		{"7d", "168h"},
		{"1w1d1h", "193h"},
		{"0s", "0s"},
	} {
		if d, err := ParseDuration(tc.in); err != nil || d.String() != tc.want {
			t.Errorf("%q is %s, %v", tc.in, d, err)
		}
	}
	for _, s := range []string{"", "10", "-1s", "+1s", "1ns", "1.0005s", "1x", "d", "9999999h", "99999w", "1d-2h"} {
		if d, err := ParseDuration(s); err == nil {
			t.Errorf("duration %q is %s", s, d)
		}
	}
	for _, tc := range []struct{ in, want string }{
		{"64KiB", "64KiB"},
		{"4096 kib", "4MiB"},
		{"1500", "1500B"},
		{"1500B", "1500B"},
		{"1MB", "1000000B"},
		{"0", "0B"},
		{"2048", "2KiB"},
	} {
		if z, err := ParseSize(tc.in); err != nil || z.String() != tc.want {
			t.Errorf("%q is %s, %v", tc.in, z, err)
		}
	}
	for _, s := range []string{"", "KiB", "-1", "1.5MiB", "9999999TiB", "1XB"} {
		if z, err := ParseSize(s); err == nil {
			t.Errorf("size %q is %s", s, z)
		}
	}
	for _, tc := range []struct{ in, want string }{{"1%", "1.00%"}, {"0.5%", "0.50%"}, {"100.00%", "100.00%"}, {"0.01%", "0.01%"}, {"0%", "0.00%"}} {
		if p, err := ParsePercent(tc.in); err != nil || p.String() != tc.want {
			t.Errorf("%q is %s, %v", tc.in, p, err)
		}
	}
	for _, s := range []string{"", "1", "%", "1.%", ".5%", "100.01%", "0.001%", "-1%", "+1%"} {
		if p, err := ParsePercent(s); err == nil {
			t.Errorf("percent %q is %s", s, p)
		}
	}
}

func BenchmarkParseContent(b *testing.B) {
	for _, bc := range []struct {
		t RRType
		s string
	}{
		{TypeA, "192.0.2.1"},
		{TypeAAAA, "2001:db8::1"},
		{TypeCNAME, "www.example.com"},
		{TypeMX, "10 mail.example.com"},
		{TypeTXT, "v=spf1 include:_spf.example.com -all"},
		{TypeTXT, `say \"hi\"`},
		{TypeCAA, `0 issue "letsencrypt.org"`},
		{TypeHTTPS, `1 . alpn="h2,h3"`},
	} {
		b.Run(fmt.Sprintf("%s/%s", bc.t, bc.s), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := ParseContent(bc.t, bc.s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParseName(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseName("www.example.com"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNormalize(b *testing.B) {
	z := &Zone{ID: testID, Name: MustName("example.com")}
	for i := range 10_000 {
		z.Records = append(z.Records, Record{Name: MustName(fmt.Sprintf("h%05d.example.com", i)), Type: TypeA, Content: "192.0.2.1"})
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := z.Normalize(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10_000, "ns/record")
}
