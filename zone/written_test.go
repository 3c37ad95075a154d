package zone

import (
	"strings"
	"testing"
)

// TestTargetsAsWritten: of every type that points at names, a target of one label must say which name it means.
func TestTargetsAsWritten(t *testing.T) {
	const none = ""
	for _, tt := range []struct {
		name, rrtype, content string
		want                  string // none: refused
	}{
		{"MX, one label", "MX", "10 mail", none},
		{"MX, one label and the dot", "MX", "10 mail.", "10 mail"},
		{"MX, absolute without the dot", "MX", "10 mail.example.com", "10 mail.example.com"},
		{"MX, absolute", "MX", "10 mail.example.com.", "10 mail.example.com"},
		{"MX, the zone", "MX", "10 @", "10 example.com"},
		{"MX, none (RFC 7505)", "MX", "0 .", "0 ."},
		{"MX, an escaped dot is none", "MX", `10 a\.b`, none},
		{"CNAME, one label", "CNAME", "www", none},
		{"CNAME, one label and the dot", "CNAME", "www.", "www"},
		{"CNAME, U-label", "CNAME", "bücher", none},
		{"NS, one label", "NS", "ns1", none},
		{"NS, absolute", "NS", "NS1.Example.NET.", "ns1.example.net"},
		{"PTR, one label", "PTR", "host", none},
		{"DNAME, one label", "DNAME", "elsewhere", none},
		{"SRV, one label", "SRV", "0 5 5060 sip", none},
		{"SRV, none", "SRV", "0 0 0 .", "0 0 0 ."},
		{"SRV, absolute without the dot", "SRV", "0 5 5060 sip.example.com", "0 5 5060 sip.example.com"},
		{"HTTPS, one label", "HTTPS", "1 backend alpn=h2", none},
		{"HTTPS, one label and the dot", "HTTPS", "1 backend. alpn=h2", `1 backend alpn="h2"`},
		{"HTTPS, itself", "HTTPS", "1 . alpn=h2", `1 . alpn="h2"`},
		{"SVCB, absolute", "SVCB", "1 svc.example.net. port=53", `1 svc.example.net port="53"`},
		{"NAPTR, one label", "NAPTR", `10 20 "s" "SIP+D2U" "" sip`, none},
		{"NAPTR, none", "NAPTR", `10 20 "u" "E2U+sip" "!^.*$!sip:a@b!" .`, `10 20 "u" "E2U+sip" "!^.*$!sip:a@b!" .`},
		{"AFSDB, one label", "AFSDB", "1 db", none},
		{"KX, one label", "KX", "1 kx", none},
		{"RP, one of two", "RP", "admin.example.com. who", none},
		{"RP, both", "RP", "admin.example.com. who.example.com.", "admin.example.com who.example.com"},
		{"TXT is no name", "TXT", "mail", `"mail"`},
		{"CAA is no name", "CAA", `0 issue "ca"`, `0 issue "ca"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			apex, err := ParseName("example.com")
			if err != nil {
				t.Fatal(err)
			}
			r, err := ParseRecord(apex, "x", tt.rrtype, tt.content, 0, false)
			if tt.want == none {
				if err == nil || !strings.Contains(err.Error(), "has no dot: write ") || !strings.Contains(err.Error(), `.example.com."`) {
					t.Fatalf("read as %q, %v", r.Content, err)
				}
				return
			}
			if err != nil || tt.rrtype != "TXT" && r.Content != tt.want {
				t.Fatalf("read as %q, %v; want %q", r.Content, err, tt.want)
			}
			again, err := ParseRecord(apex, "x", tt.rrtype, WrittenContent(r.Type, r.Content), 0, false)
			if err != nil || again != r {
				t.Errorf("written as %q it is read as %+v, %v", WrittenContent(r.Type, r.Content), again, err)
			}
		})
	}
}
