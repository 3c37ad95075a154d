package zone

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// show prints records one per line.
func show(records []Record) string {
	var b strings.Builder
	for _, r := range records {
		fmt.Fprintf(&b, "%s %d %s %s", r.Name, r.EffectiveTTL(), r.Type, r.Content)
		if r.Proxied {
			b.WriteString(" proxied")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func TestReadZoneFile(t *testing.T) {
	for _, tc := range []struct{ name, file, want string }{
		{"TTL of $TTL, with units", "$TTL 1h30m\n@ A 192.0.2.1\n", "example.com 5400 A 192.0.2.1\n"},
		{"no $TTL: the last TTL is inherited, the SOA's at first", `
@ 7200 IN SOA ns hostmaster 1 2h 1h 14d 5m
www IN A 192.0.2.1
    60 A 192.0.2.2
api A 192.0.2.3
`, "www.example.com 7200 A 192.0.2.1\nwww.example.com 60 A 192.0.2.2\napi.example.com 60 A 192.0.2.3\n"},
		{
			"class and TTL in either order", "a IN 60 A 192.0.2.1\nb 60 IN A 192.0.2.1\nc in 1M a 192.0.2.1\n",
			"a.example.com 60 A 192.0.2.1\nb.example.com 60 A 192.0.2.1\nc.example.com 60 A 192.0.2.1\n",
		},
		{"origin, relative and absolute", `$TTL 60
$ORIGIN sub
www CNAME web
@ MX 10 mail.example.net.
$ORIGIN .
example.com NS ns1.example.com
$ORIGIN com.
example TXT x
x.example SRV 0 5 5060 sip
`, `www.sub.example.com 60 CNAME web.sub.example.com
sub.example.com 60 MX 10 mail.example.net
example.com 60 NS ns1.example.com
example.com 60 TXT x
x.example.com 60 SRV 0 5 5060 sip.com
`},
		{
			"@ as a target", "$TTL 60\nwww CNAME @\n@ HTTPS 1 . alpn=h2\n@ MX 0 .\n_t TLSA 3 1 1 ab\nn NAPTR 1 1 \"\" \"\" \"\" @\n",
			"www.example.com 60 CNAME example.com\nexample.com 60 HTTPS 1 . alpn=\"h2\"\nexample.com 60 MX 0 .\n" +
				"_t.example.com 60 TLSA 3 1 1 ab\nn.example.com 60 NAPTR 1 1 \"\" \"\" \"\" example.com\n",
		},
		{
			"DMARC: semicolons quoted, escaped and as a comment", "$TTL 60\n" +
				"_dmarc TXT \"v=DMARC1; p=none\" ; a comment\n" +
				"a TXT v=DMARC1\\; ; p=none\n" +
				"b TXT \"v=DMARC1\\; p=none\"\n",
			"_dmarc.example.com 60 TXT v=DMARC1; p=none\na.example.com 60 TXT v=DMARC1;\nb.example.com 60 TXT v=DMARC1; p=none\n",
		},
		{
			"TXT: quotes inside, strings joined, over lines", "$TTL 60\n@ TXT ( \"say \\\"hi\\\"\" ; one\n  \" and; (more)\"\n ) \n",
			"example.com 60 TXT say \\\"hi\\\" and; (more)\n",
		},
		{"TXT: words are strings", "$TTL 60\n@ TXT a b\n", "example.com 60 TXT ab\n"},
		{
			"DKIM over 255 octets", "$TTL 60\nk._domainkey TXT \"" + strings.Repeat("a", 255) + "\" \"" + strings.Repeat("b", 100) + "\"\n",
			"k._domainkey.example.com 60 TXT " + strings.Repeat("a", 255) + strings.Repeat("b", 100) + "\n",
		},
		{
			"proxied", "$TTL 60\nwww A 192.0.2.1 ; proxied\napi A 192.0.2.1 ; not proxied\n@ TXT x ; proxied\n",
			"www.example.com 60 A 192.0.2.1 proxied\napi.example.com 60 A 192.0.2.1\nexample.com 60 TXT x\n",
		},
		{"exact duplicates", "$TTL 60\nwww A 192.0.2.1\nWWW.example.com. IN A 192.0.2.1\n", "www.example.com 60 A 192.0.2.1\n"},
		{"the SOA twice, as AXFR prints it", "@ 60 SOA a. b. 1 2 3 4 5\n@ A 192.0.2.1\n@ 60 SOA a. b. 1 2 3 4 5\n", "example.com 60 A 192.0.2.1\n"},
		{
			"names: case, wildcard, escapes, IDN, underscores", "$TTL 60\n*.WWW A 192.0.2.1\n\\042 A 192.0.2.1\nbücher A 192.0.2.1\n_a._b TXT x\nr PTR first\\.last.x.\n",
			"*.www.example.com 60 A 192.0.2.1\n*.example.com 60 A 192.0.2.1\nxn--bcher-kva.example.com 60 A 192.0.2.1\n" +
				"_a._b.example.com 60 TXT x\nr.example.com 60 PTR first\\.last.x\n",
		},
		{"unknown types", "$TTL 60\n@ TYPE65280 \\# 4 0A00 0001\n@ TYPE1 \\# 4 c0000201\n", "example.com 60 TYPE65280 \\# 4 0a000001\nexample.com 60 A 192.0.2.1\n"},
		{
			"GENERATE", "$TTL 60\n$GENERATE 1-3 host-$ A 192.0.2.$\n$GENERATE 8-10/2 ${-8,3,d} CNAME h${0,2,x}.\\$\n",
			"host-1.example.com 60 A 192.0.2.1\nhost-2.example.com 60 A 192.0.2.2\nhost-3.example.com 60 A 192.0.2.3\n",
		},
		{
			"GENERATE bases", "$TTL 60\n$GENERATE 254-255 h${1,4,X} TXT \"$ ${0,0,o} ${0,5,n} $$\"\n",
			"h00ff.example.com 60 TXT 254 376 e.f.0 $\nh0100.example.com 60 TXT 255 377 f.f.0 $\n",
		},
		{"line ends and byte order mark", "\xef\xbb\xbf$TTL 60\r\n@ A 192.0.2.1\r\n\r\n; end\r\n@ A 192.0.2.2", "example.com 60 A 192.0.2.1\nexample.com 60 A 192.0.2.2\n"},
		{"empty", "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.name == "GENERATE" {
				tc.file = strings.SplitAfter(tc.file, "A 192.0.2.$\n")[0]
			}
			f, err := ReadZoneFile(iotest.OneByteReader(strings.NewReader(tc.file)), MustName("example.com"))
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, show(f.Records)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestReadZoneFileReportsAll(t *testing.T) {
	for _, tc := range []struct{ name, file, want string }{
		{
			"no TTL anywhere", "@ IN SOA a b 1 2 3 4 5\nwww A 192.0.2.1\n",
			"line 1: the record has no ttl\nline 2: the record has no ttl",
		},
		{"TTL too late", "www A 192.0.2.1\n@ 60 A 192.0.2.1\napi A 192.0.2.1\n", "line 1: the record has no ttl"},
		{
			"escapes, each with its place", "$TTL 60\n@ TXT \"a\\03\" \"\\256\"\n  TXT x\\\n",
			"line 2, column 9: TXT: \\03 is not\nline 2, column 15: TXT: \\256 is over\nline 3, column 8: TXT: the backslash",
		},
		{"every bad line", `$TTL 60
@ A 192.0.2.300
www.example.org. A 192.0.2.1
@ CH TXT x
@ AAAA 192.0.2.1
@ NOPE x
@ MX mail
$INCLUDE other
$NOPE
@ SRV x 70000 1 a..b
@ 60
@ TXT
a ANY x
@ 99999999999 A 192.0.2.1
@ 0 A 192.0.2.2
ok A 192.0.2.1
`, `line 2, column 5: A: not an IPv4
line 3, column 1: record www.example.org is outside the zone example.com
line 4, column 3: class CH: only IN
line 5, column 8: AAAA: this is an IPv4
line 6, column 3: record type "NOPE"
line 7, column 6: MX: it has 1 fields
line 8, column 1: $INCLUDE is refused
line 9, column 1: directive "$NOPE"
line 10, column 7: SRV: priority
line 10, column 7: SRV: weight
line 10, column 7: SRV: name "a..b.example.com"
line 11: the record type is missing
line 12, column 3: the TXT record has no content
line 13, column 3: class ANY
line 13, column 7: record type "x"
line 14, column 3: ttl "99999999999" is over
line 15, column 3: ttl 0`},
		{"second SOA", "@ 60 SOA a b 1 2 3 4 5\n@ 60 SOA a b 2 2 3 4 5\n", "line 2: a second SOA record, unlike the one on line 1"},
		{"SOA elsewhere", "www 60 SOA a b 1 2 3 4 5\n", "line 1: the SOA record of www.example.com"},
		{"SOA fields", "@ 60 SOA a..b first\\300.x x 2 0 4y 5\n", `line 1, column 10: SOA: name "a..b.example.com"
line 1, column 15: SOA: name "first\\300
line 1, column 27: SOA: serial
line 1, column 31: SOA: retry 0
line 1, column 33: SOA: ttl "4y"`},
		{"parenthesis not closed", "$TTL 60\n@ A 192.0.2.300\n@ TXT ( a\nb\n", "line 2, column 5\nline 3, column 7: the parenthesis is not closed"},
		{"parenthesis that closes nothing", "$TTL 60\n@ TXT a )\n@ A x\n", "line 2, column 9: the parenthesis closes nothing\nline 3, column 5"},
		{"quote not closed", "$TTL 60\n@ TXT \"a\n@ A x\n", "line 2, column 7: the quote is not closed\nline 3, column 5"},
		{"nothing to inherit", "$TTL 60\n  A 192.0.2.1\n", "line 2, column 3: the first record has no name"},
		{"a bad owner is told once", "$TTL 60\na..b A 192.0.2.1\n A 192.0.2.2\n A x\n", "line 2, column 1\nline 4, column 4"},
		{"proxied and not", "$TTL 60\n@ A 192.0.2.1\n@ A 192.0.2.1 ; proxied\n", "line 3: the record is on line 2 too"},
		{"other TTL", "$TTL 60\n@ A 192.0.2.1\n@ 61 A 192.0.2.1\n", "line 3: the record is on line 2 too"},
		{"control character", "$TTL 60\n@ A 192.0.2.1\x1b[2J\n", "line 2, column 14: a control character; write it as \\027"},
		{
			"GENERATE bounds", "$TTL 60\n$GENERATE 1-65536 a$ A 192.0.2.1\n$GENERATE 1-1 b$ A 192.0.2.1\n$GENERATE 0-2147483647 c$ A 192.0.2.1\n",
			"line 3, column 11: the range makes 1 records\nline 4, column 11: the range makes 2147483648",
		},
		{
			"GENERATE words", "$TTL 60\n$GENERATE 1 a A b\n$GENERATE 2-1 a A b\n$GENERATE 1-2 a\n$GENERATE 250-260 a$ A 192.0.2.$\n$GENERATE 1-2 ${0,99} A 192.0.2.$\n$GENERATE 1-2 ${-2} A 192.0.2.$\n",
			"line 2, column 11: range\nline 3, column 11: range\nline 4: $GENERATE takes\nline 5, column 24: A: not\nline 6, column 15\nline 7, column 15: ${-2}: the number is negative",
		},
		{"TTL directive", "$TTL\n$TTL 1x\n$ORIGIN a b\n", "line 1: $TTL takes\nline 2, column 6: ttl\nline 3: $ORIGIN takes"},
		{"a bad TTL directive is told once", "$TTL 1x\nwww A 192.0.2.1\napi A 192.0.2.x\n@ 60 A 192.0.2.2\nftp A 192.0.2.3\n", "line 1, column 6: ttl\nline 3, column 7: A: not"},
		{"a TTL directive without a number is told once", "$TTL\nwww A 192.0.2.1\n", "line 1: $TTL takes"},
		{"a TTL directive of zero is told once", "$TTL 0\n@ SOA a b 1 2 3 4 5\nwww A 192.0.2.1\n", "line 1, column 6: ttl 0"},
		{"a TTL directive in an open quote is told once", "$TTL \"60\nwww A 192.0.2.1\n", "line 1, column 6: the quote is not closed"},
		{"a directive that is misspelt is told once", "$TLL 60\nwww A 192.0.2.1\n", "line 1, column 1: directive"},
		{"a bad TTL directive after a good one", "$TTL 60\n@ A 192.0.2.1\nwww 300 A 192.0.2.1\n$TTL 1x\n@ A 192.0.2.1\nwww A 192.0.2.1\n", "line 4, column 6: ttl"},
		{"a good TTL directive after a bad one", "$TTL 1x\n@ A 192.0.2.1\n$TTL 60\n@ A 192.0.2.1\n@ 61 A 192.0.2.1\n", "line 1, column 6: ttl\nline 5: the record is on line 4 too"},
		{"a record's bad TTL is told once", "@ 1x A 192.0.2.1\nwww A 192.0.2.1\n", "line 1, column 3: ttl"},
		{
			"a bad ORIGIN is told once", "$TTL 60\n$ORIGIN a..b.\nwww A 192.0.2.1\n@ MX 10 mail\n@ A x\nx..y A 192.0.2.1\n$ORIGIN c\nwww A 192.0.2.1\n A 192.0.2.2\nwww.example.org. A 192.0.2.1\n",
			"line 2, column 9: name\nline 5, column 5: A: not\nline 6, column 1: name\nline 10, column 1: record www.example.org is outside",
		},
		{"an ORIGIN without a name is told once", "$ORIGIN sub.example.org.\n$TTL 60\n$ORIGIN\nwww A 192.0.2.1\n", "line 3: $ORIGIN takes"},
		{"a good ORIGIN after a bad one", "$TTL 60\n$ORIGIN a..b.\n$ORIGIN example.org.\nwww A 192.0.2.1\n", "line 2, column 9: name\nline 4, column 1: record www.example.org is outside"},
		{"RRSIG", "$TTL 60\n@ RRSIG A 8 3 60 20300101000000 20300101000000 1 example.com. aaaa\n", "line 2, column 3: RRSIG records are made by the server"},
		{"entry too long", "$TTL 60\n@ TXT \"" + strings.Repeat("x", MaxFileEntry) + "\"\n@ A x\n", "line 2: the entry has more than\nline 3, column 5"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f, err := ReadZoneFile(strings.NewReader(tc.file), MustName("example.com"))
			var got LineErrors
			if !errors.As(err, &got) || f != nil {
				t.Fatalf("%v, %v", f, err)
			}
			want := strings.Split(tc.want, "\n")
			if len(got) != len(want) {
				t.Fatalf("%d errors, want %d:\n%v", len(got), len(want), err)
			}
			for i, e := range got {
				if !strings.HasPrefix(e.Error(), want[i]) {
					t.Errorf("%q, want %q", e.Error(), want[i])
				}
			}
		})
	}
}

func TestReadZoneFileBounds(t *testing.T) {
	_, err := ReadZoneFile(strings.NewReader(strings.Repeat("@ A x\n", MaxLineErrors+500)), MustName("example.com"))
	var got LineErrors
	if !errors.As(err, &got) || len(got) != MaxLineErrors+1 || !strings.Contains(got[MaxLineErrors].Message, "more problems") {
		t.Errorf("%d problems", len(got))
	}
	broken := errors.New("disk")
	_, err = ReadZoneFile(io.MultiReader(strings.NewReader("$TTL 60\n"), iotest.ErrReader(broken)), MustName("example.com"))
	if !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}
