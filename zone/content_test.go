package zone

import (
	"strings"
	"testing"
)

func TestParseContent(t *testing.T) {
	for _, tc := range []struct{ name, typ, in, want string }{
		{"A", "A", "192.0.2.1", "192.0.2.1"},
		{"AAAA upper and expanded", "AAAA", "2001:0DB8:0:0:0:0:0:1", "2001:db8::1"},
		{"AAAA mapped", "AAAA", "::FFFF:192.0.2.1", "::ffff:192.0.2.1"},
		{"CNAME case and dot", "CNAME", "WWW.Example.COM.", "www.example.com"},
		{"CNAME to a U-label", "CNAME", "Bücher.example", "xn--bcher-kva.example"},
		{"CNAME to the root", "CNAME", ".", "."},
		{"PTR with escapes", "PTR", `First\.Last.example.com.`, `first\.last.example.com`},
		{"MX leading zeros", "MX", "010  Mail.example.com.", "10 mail.example.com"},
		{"null MX", "MX", "0 .", "0 ."},
		{"SRV", "SRV", "0 5 05060 Sip.example.com", "0 5 5060 sip.example.com"},
		{"TXT plain", "TXT", "v=spf1 -all", "v=spf1 -all"},
		{"TXT quoted", "TXT", `"v=spf1 " "-all"`, "v=spf1 -all"},
		{"TXT with quotes", "TXT", `say "hi"`, `say \"hi\"`},
		{"TXT with quotes, quoted", "TXT", `"say \"hi\""`, `say \"hi\"`},
		{"TXT empty string", "TXT", `""`, ""},
		{"TXT octets", "TXT", "\\000\x80\\200\\;\\065", `\000\128\200;A`},
		{"TXT spaces stay", "TXT", "  a  ", "  a  "},
		{"TXT hash is text", "TXT", `# 1`, `# 1`},
		{"DMARC escaped semicolon", "TXT", `v=DMARC1\; p=none`, `v=DMARC1; p=none`},
		{"CAA", "CAA", `0 ISSUE letsencrypt.org`, `0 issue "letsencrypt.org"`},
		{"CAA parameters", "CAA", `000 issue "ca.example; policy=ev"`, `0 issue "ca.example; policy=ev"`},
		{"CAA empty value", "CAA", `128 issue ""`, `128 issue ""`},
		{"TLSA hex case and spaces", "TLSA", `3 1 1 AB cd`, `3 1 1 abcd`},
		{"DS", "DS", `060485 5 1 2BB183AF5F22588179A53B0A98631FAD1A292118`, `60485 5 1 2BB183AF5F22588179A53B0A98631FAD1A292118`},
		{"SSHFP", "SSHFP", "2 1 123456789abcdef67890123456789abcdef67890", "2 1 123456789ABCDEF67890123456789ABCDEF67890"},
		{"NAPTR", "NAPTR", `100 010 "S" "SIP+D2U" "" _Sip._udp.Example.com.`, `100 10 "S" "SIP+D2U" "" _sip._udp.example.com`},
		{"HTTPS", "HTTPS", `1 . alpn=h2,h3 port=443`, `1 . alpn="h2,h3" port="443"`},
		{"HTTPS parameters in any order", "HTTPS", `1 Foo.example.com. port=443 alpn="h2"`, `1 foo.example.com alpn="h2" port="443"`},
		{"RP", "RP", `first\.last.Example.com. txt.example.com`, `first\.last.example.com txt.example.com`},
		{"LOC", "LOC", `51 30 12.748 N 0 7 39.611 W 0.00m 0m 0m 0m`, `51 30 12.748 N 00 07 39.611 W 0m 0.00m 0.00m 0.00m`},
		{"A as octets", "A", `\# 4 C0 00 0201`, "192.0.2.1"},
		{"MX as octets", "MX", `\# 10 000a 044D61696c 0178 00`, "10 mail.x"},
		{"TXT as octets", "TXT", `\# 4 03 612262`, `a\"b`},
		{"CNAME as octets with odd octets", "CNAME", `\# 5 03612b2e 00`, `a\+\.`},
		{"unknown", "TYPE65280", `\# 3 ABCDEF`, `\# 3 abcdef`},
		{"unknown empty", "TYPE65280", `\# 0`, `\# 0`},
		{"APL empty", "APL", `\# 0`, `\# 0`},
		{"APL", "APL", `1:192.168.32.0/21 !1:192.168.38.0/28`, `1:192.168.32.0/21 !1:192.168.38.0/28`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			typ, err := ParseRRType(tc.typ)
			if err != nil {
				t.Fatal(err)
			}
			got, err := ParseContent(typ, tc.in)
			if err != nil || got != tc.want {
				t.Fatalf("ParseContent(%s, %q) = %q, %v; want %q", tc.typ, tc.in, got, err, tc.want)
			}
			again, err := ParseContent(typ, got)
			if err != nil || again != got {
				t.Fatalf("a second time: %q, %v", again, err)
			}
			rr, err := (Record{Name: MustName("example.com"), Type: typ, Content: got}).RR()
			if err != nil {
				t.Fatal(err)
			}
			wire, err := packRDATA(rr)
			if err != nil {
				t.Fatal(err)
			}
			if known(typ) && len(wire) > 0 {
				back, err := printWire(typ, wire)
				if err != nil || back != got {
					t.Fatalf("through the wire: %q, %v", back, err)
				}
			}
		})
	}
}

func TestParseContentRefuses(t *testing.T) {
	for _, tc := range []struct{ name, typ, in, want string }{
		{"A leading zero", "A", "192.0.2.010", "not an IPv4 address"},
		{"A is AAAA", "A", "::1", "AAAA"},
		{"AAAA is A", "AAAA", "192.0.2.1", "record type is A"},
		{"AAAA zone", "AAAA", "fe80::1%eth0", "zone"},
		{"three digits", "TXT", `a\03`, `at character 2: \03 is not three digits`},
		{"over 255", "TXT", `\256`, `at character 1: \256 is over`},
		{"dangling", "TXT", `abc\`, `at character 4: the backslash at the end`},
		{"all together", "TXT", `\03x\256 \`, "at character 10"},
		{"open quote", "TXT", `"abc`, "not closed"},
		{"too long", "TXT", strings.Repeat("x", 65400), "the most is 65535"},
		{"MX fields", "MX", "mail.example.com", "preference target"},
		{"MX number", "MX", "65536 mail.example.com", "preference"},
		{"MX all problems", "MX", "x a..b", "a label is empty"},
		{"CNAME address", "CNAME", "192.0.2.1", "digits"},
		{"CNAME at", "CNAME", "@", "write the name out"},
		{"SOA", "SOA", "a. b. 1 2 3 4 5", "soa.refresh"},
		{"ANY", "ANY", "x", "queries"},
		{"RRSIG", "RRSIG", "x", "signs"},
		{"OPT", "OPT", "x", "not a type of data"},
		{"CAA spaces", "CAA", "0 issue a b", "quotes"},
		{"comment", "TLSA", "3 1 1 abcd ; comment", "semicolon"},
		{"second line", "NAPTR", "1 2 \"\" \"\" \"\" .\nx 1 IN A 192.0.2.1", "control character"},
		{"unknown without octets", "TYPE65280", "abc", "RFC 3597"},
		{"length", "TYPE65280", `\# 2 ab`, "length says 2"},
		{"known octets wrong", "A", `\# 3 010203`, "not RDATA of A"},
		{"pointer", "CNAME", `\# 2 c000`, "not RDATA"},
		{"TLSA number", "TLSA", "3 1 x abcd", "bad TLSA"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			typ, err := ParseRRType(tc.typ)
			if err != nil {
				t.Fatal(err)
			}
			got, err := ParseContent(typ, tc.in)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("ParseContent(%s, %q) = %q, %v; want an error with %q", tc.typ, tc.in, got, err, tc.want)
			}
		})
	}
}
