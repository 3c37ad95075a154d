package dns_test

import (
	"slices"
	"strings"
	"testing"

	mdns "github.com/miekg/dns"

	"github.com/guardyn-edge/guardyn/edge/dns"
)

const (
	soaCom   = "example.com. 300 IN SOA ns1.example.com. hostmaster.example.com. 58 7200 3600 1209600 300"
	soaNet   = "example.net. 300 IN SOA ns2.example.net. hostmaster.example.net. 58 7200 3600 1209600 300"
	soaChild = "child.example.com. 300 IN SOA ns1.example.com. hostmaster.child.example.com. 58 7200 3600 1209600 300"
	soaUncut = "uncut.example.com. 300 IN SOA ns1.example.com. hostmaster.uncut.example.com. 58 7200 3600 1209600 300"
	wwwA     = "www.example.com. 300 IN A 203.0.113.80"
)

// answerRow is one question and all of its answer.
type answerRow struct {
	name    string
	section string // what it is a case of
	qtype   uint16
	rcode   int
	referal bool // AA is not set
	answer  []string
	ns      []string
	extra   []string
}

func answerRows() []answerRow {
	longCNAME := []string{"old.example.com. 300 IN DNAME new.example.net."}
	service4 := func(owner string) []string {
		return []string{owner + " 300 IN A 198.51.100.1", owner + " 300 IN A 198.51.100.2"}
	}
	chain := func(n int) (out []string) {
		for i := range n {
			out = append(out, "l"+string(rune('0'+i))+".example.com. 300 IN CNAME l"+string(rune('1'+i))+".example.com.")
		}
		return out
	}
	return []answerRow{
		{name: "www.example.com", section: "RFC 1034 §4.3.2 3a", qtype: mdns.TypeA, answer: []string{wwwA}},
		{name: "www.example.com", section: "RFC 3596", qtype: mdns.TypeAAAA, answer: []string{"www.example.com. 300 IN AAAA 2001:db8::80"}},
		{name: "example.com", section: "apex", qtype: mdns.TypeA, answer: []string{"example.com. 300 IN A 203.0.113.1"}},
		{name: "example.com", section: "apex NS", qtype: mdns.TypeNS, answer: []string{"example.com. 300 IN NS ns1.example.com.", "example.com. 300 IN NS ns2.example.net."}, extra: []string{"ns1.example.com. 300 IN A 203.0.113.53"}},
		{name: "example.com", section: "apex SOA", qtype: mdns.TypeSOA, answer: []string{strings.Replace(soaCom, " 300 ", " 3600 ", 1)}},
		{name: "mixed.example.com", section: "RFC 2181 §5.2", qtype: mdns.TypeTXT, answer: []string{`mixed.example.com. 60 IN TXT "a"`, `mixed.example.com. 60 IN TXT "b"`}},
		{name: "odd.example.com", section: "RFC 3597", qtype: 65400, answer: []string{`odd.example.com. 300 CLASS1 TYPE65400 \# 3 010203`}},
		{name: "svc.example.com", section: "RFC 9460", qtype: mdns.TypeHTTPS, answer: []string{`svc.example.com. 300 IN HTTPS 1 . alpn="h2"`}},
		{name: "caa.example.com", section: "RFC 8659", qtype: mdns.TypeCAA, answer: []string{`caa.example.com. 300 IN CAA 0 issue "ca.example.org"`}},

		{name: "none.example.com", section: "RFC 2308 §2.1", qtype: mdns.TypeA, rcode: mdns.RcodeNameError, ns: []string{soaCom}},
		{name: "a.b.c.none.example.com", section: "RFC 2308 §2.1", qtype: mdns.TypeA, rcode: mdns.RcodeNameError, ns: []string{soaCom}},
		{name: "below.www.example.com", section: "RFC 2308 §2.1", qtype: mdns.TypeA, rcode: mdns.RcodeNameError, ns: []string{soaCom}},
		{name: "www.example.com", section: "RFC 2308 §2.2", qtype: mdns.TypeMX, ns: []string{soaCom}},
		{name: "www.example.com", section: "unknown type", qtype: 65500, ns: []string{soaCom}},
		{name: "www.example.com", section: "a type that is only made", qtype: mdns.TypeRRSIG, ns: []string{soaCom}},
		{name: "ent.example.com", section: "RFC 8020", qtype: mdns.TypeTXT, ns: []string{soaCom}},
		{name: "b.ent.example.com", section: "RFC 8020", qtype: mdns.TypeA, ns: []string{soaCom}},
		{name: "c.ent.example.com", section: "RFC 8020", qtype: mdns.TypeTXT, rcode: mdns.RcodeNameError, ns: []string{soaCom}},

		{name: "x.wild.example.com", section: "RFC 4592 §2.2.1", qtype: mdns.TypeTXT, answer: []string{`x.wild.example.com. 300 IN TXT "w"`}},
		{name: "x.y.wild.example.com", section: "RFC 4592 §2.2.1", qtype: mdns.TypeTXT, answer: []string{`x.y.wild.example.com. 300 IN TXT "w"`}},
		{name: "x.wild.example.com", section: "RFC 4592, no data", qtype: mdns.TypeA, ns: []string{soaCom}},
		{name: "*.wild.example.com", section: "RFC 4592 §2.1.3", qtype: mdns.TypeTXT, answer: []string{`*.wild.example.com. 300 IN TXT "w"`}},
		{name: "wild.example.com", section: "the wildcard's parent", qtype: mdns.TypeTXT, ns: []string{soaCom}},
		{name: "deeper.wild.example.com", section: "RFC 4592 §2.2.2", qtype: mdns.TypeTXT, ns: []string{soaCom}},
		{name: "none.deeper.wild.example.com", section: "RFC 4592, closest encloser", qtype: mdns.TypeTXT, rcode: mdns.RcodeNameError, ns: []string{soaCom}},
		{name: "x.wc.example.com", section: "RFC 4592 §4.4", qtype: mdns.TypeA, answer: []string{"x.wc.example.com. 300 IN CNAME www.example.com.", wwwA}},

		{name: "c1.example.com", section: "CNAME chain", qtype: mdns.TypeA, answer: []string{
			"c1.example.com. 300 IN CNAME c2.example.com.", "c2.example.com. 300 IN CNAME www.example.com.", wwwA,
		}},
		{name: "c1.example.com", section: "CNAME itself", qtype: mdns.TypeCNAME, answer: []string{"c1.example.com. 300 IN CNAME c2.example.com."}},
		{name: "cx.example.com", section: "chain to another zone", qtype: mdns.TypeA, answer: []string{
			"cx.example.com. 300 IN CNAME host.example.net.", "host.example.net. 300 IN A 203.0.113.10",
		}},
		{name: "cx.example.com", section: "chain to another zone, no data", qtype: mdns.TypeAAAA, answer: []string{
			"cx.example.com. 300 IN CNAME host.example.net.",
		}, ns: []string{soaNet}},
		{name: "cout.example.com", section: "chain out of the platform", qtype: mdns.TypeA, answer: []string{"cout.example.com. 300 IN CNAME www.example.org."}},
		{name: "cnx.example.com", section: "RFC 6604 §3", qtype: mdns.TypeA, rcode: mdns.RcodeNameError, answer: []string{
			"cnx.example.com. 300 IN CNAME none.example.com.",
		}, ns: []string{soaCom}},
		{name: "cnodata.example.com", section: "RFC 2308 §2.2.1", qtype: mdns.TypeMX, answer: []string{
			"cnodata.example.com. 300 IN CNAME ns1.example.com.",
		}, ns: []string{soaCom}},
		{
			name: "csub.example.com", section: "chain into a delegation", qtype: mdns.TypeA, answer: []string{
				"csub.example.com. 300 IN CNAME www.sub.example.com.",
			}, ns: []string{"sub.example.com. 300 IN NS ns.other.example.", "sub.example.com. 300 IN NS ns.sub.example.com."},
			extra: []string{"ns.sub.example.com. 300 IN A 203.0.113.54", "ns.sub.example.com. 300 IN AAAA 2001:db8::54"},
		},
		{name: "loop1.example.com", section: "CNAME loop", qtype: mdns.TypeA, answer: []string{
			"loop1.example.com. 300 IN CNAME loop2.example.com.", "loop2.example.com. 300 IN CNAME loop1.example.com.",
		}},
		{name: "self.example.com", section: "CNAME to itself", qtype: mdns.TypeA, answer: []string{"self.example.com. 300 IN CNAME self.example.com."}},
		{name: "rho.example.com", section: "a chain into a loop", qtype: mdns.TypeA, answer: []string{
			"rho.example.com. 300 IN CNAME loop1.example.com.", "loop1.example.com. 300 IN CNAME loop2.example.com.", "loop2.example.com. 300 IN CNAME loop1.example.com.",
		}},
		{name: "xloop.example.com", section: "CNAME loop across zones", qtype: mdns.TypeA, answer: []string{
			"xloop.example.com. 300 IN CNAME xloop.example.net.", "xloop.example.net. 300 IN CNAME xloop.example.com.",
		}},
		{name: "l2.example.com", section: "a chain of 7", qtype: mdns.TypeA, answer: append(chain(9)[2:], "l9.example.com. 300 IN A 203.0.113.9")},
		{name: "l0.example.com", section: "a chain of 9", qtype: mdns.TypeA, answer: chain(8)},

		{
			name: "www.sub.example.com", section: "RFC 1034 §4.3.2 3b", qtype: mdns.TypeA, referal: true,
			ns:    []string{"sub.example.com. 300 IN NS ns.other.example.", "sub.example.com. 300 IN NS ns.sub.example.com."},
			extra: []string{"ns.sub.example.com. 300 IN A 203.0.113.54", "ns.sub.example.com. 300 IN AAAA 2001:db8::54"},
		},
		{
			name: "sub.example.com", section: "the cut itself", qtype: mdns.TypeNS, referal: true,
			ns:    []string{"sub.example.com. 300 IN NS ns.other.example.", "sub.example.com. 300 IN NS ns.sub.example.com."},
			extra: []string{"ns.sub.example.com. 300 IN A 203.0.113.54", "ns.sub.example.com. 300 IN AAAA 2001:db8::54"},
		},
		{
			name: "ns.sub.example.com", section: "glue is not authoritative", qtype: mdns.TypeA, referal: true,
			ns:    []string{"sub.example.com. 300 IN NS ns.other.example.", "sub.example.com. 300 IN NS ns.sub.example.com."},
			extra: []string{"ns.sub.example.com. 300 IN A 203.0.113.54", "ns.sub.example.com. 300 IN AAAA 2001:db8::54"},
		},
		{name: "x.unsigned.example.com", section: "no glue", qtype: mdns.TypeANY, referal: true, ns: []string{"unsigned.example.com. 300 IN NS ns.other.example."}},
		{name: "sub.example.com", section: "RFC 4035 §3.1.4.1", qtype: mdns.TypeDS, answer: []string{
			"sub.example.com. 300 IN DS 12345 13 2 " + strings.ToUpper(strings.Repeat("ab", 32)),
		}},
		{name: "unsigned.example.com", section: "no DS", qtype: mdns.TypeDS, ns: []string{soaCom}},
		{
			name: "x.sub.example.com", section: "DS below the cut", qtype: mdns.TypeDS, referal: true,
			ns:    []string{"sub.example.com. 300 IN NS ns.other.example.", "sub.example.com. 300 IN NS ns.sub.example.com."},
			extra: []string{"ns.sub.example.com. 300 IN A 203.0.113.54", "ns.sub.example.com. 300 IN AAAA 2001:db8::54"},
		},
		{name: "www.child.example.com", section: "the child is on the platform", qtype: mdns.TypeA, answer: []string{"www.child.example.com. 300 IN A 203.0.113.12"}},
		{name: "child.example.com", section: "DS from the parent", qtype: mdns.TypeDS, ns: []string{soaCom}},
		{name: "child.example.com", section: "MX from the child", qtype: mdns.TypeMX, ns: []string{soaChild}},
		{name: "uncut.example.com", section: "DS, the parent has no cut", qtype: mdns.TypeDS, ns: []string{soaUncut}},
		{name: "example.net", section: "DS, no parent here", qtype: mdns.TypeDS, ns: []string{soaNet}},

		{name: "shop.example.com", section: "proxied", qtype: mdns.TypeA, answer: service4("shop.example.com.")},
		{name: "shop.example.com", section: "proxied", qtype: mdns.TypeAAAA, answer: []string{"shop.example.com. 300 IN AAAA 2001:db8:e::1"}},
		{name: "shop.example.com", section: "data beside a proxied name", qtype: mdns.TypeTXT, answer: []string{`shop.example.com. 300 IN TXT "verify"`}},
		{name: "shop.example.com", section: "other types of a proxied name", qtype: mdns.TypeMX, ns: []string{soaCom}},
		{name: "app.example.com", section: "proxied CNAME", qtype: mdns.TypeA, answer: service4("app.example.com.")},
		{name: "app.example.com", section: "a proxied CNAME does not show", qtype: mdns.TypeCNAME, ns: []string{soaCom}},
		{name: "x.tenant.example.com", section: "proxied wildcard", qtype: mdns.TypeA, answer: service4("x.tenant.example.com.")},
		{name: "cproxied.example.com", section: "chain to a proxied name", qtype: mdns.TypeA, answer: append(
			[]string{"cproxied.example.com. 300 IN CNAME shop.example.com."}, service4("shop.example.com.")...,
		)},

		{name: "x.old.example.com", section: "RFC 6672", qtype: mdns.TypeA, answer: append(
			longCNAME, "x.old.example.com. 300 IN CNAME x.new.example.net.", "x.new.example.net. 300 IN A 203.0.113.11",
		)},
		{name: "y.x.old.example.com", section: "RFC 6672, NXDOMAIN", qtype: mdns.TypeA, rcode: mdns.RcodeNameError, answer: append(
			longCNAME, "y.x.old.example.com. 300 IN CNAME y.x.new.example.net.",
		), ns: []string{soaNet}},
		{name: "old.example.com", section: "RFC 6672 §2.3", qtype: mdns.TypeA, ns: []string{soaCom}},
		{name: "old.example.com", section: "the DNAME itself", qtype: mdns.TypeDNAME, answer: longCNAME},
		{name: strings.Repeat("b.", 40) + "long.example.com", section: "RFC 6672 §2.2", qtype: mdns.TypeA, rcode: mdns.RcodeYXDomain, answer: []string{
			"long.example.com. 300 IN DNAME " + strings.Repeat("a.", 90) + "example.net.",
		}},

		{name: "www.example.com", section: "RFC 8482 §4.2", qtype: mdns.TypeANY, answer: []string{`www.example.com. 3600 IN HINFO "RFC8482" ""`}},
		{name: "shop.example.com", section: "RFC 8482, proxied", qtype: mdns.TypeANY, answer: []string{`shop.example.com. 3600 IN HINFO "RFC8482" ""`}},
		{name: "c1.example.com", section: "RFC 8482 §4.1", qtype: mdns.TypeANY, answer: []string{"c1.example.com. 300 IN CNAME c2.example.com."}},
		{name: "ent.example.com", section: "RFC 8482, no data", qtype: mdns.TypeANY, ns: []string{soaCom}},
		{name: "none.example.com", section: "RFC 8482, no name", qtype: mdns.TypeANY, rcode: mdns.RcodeNameError, ns: []string{soaCom}},

		{name: "www.example.org", section: "out of zone", qtype: mdns.TypeA, rcode: mdns.RcodeRefused, referal: true},
		{name: "com", section: "out of zone", qtype: mdns.TypeNS, rcode: mdns.RcodeRefused, referal: true},
		{name: ".", section: "out of zone", qtype: mdns.TypeNS, rcode: mdns.RcodeRefused, referal: true},
		{name: "xexample.com", section: "out of zone", qtype: mdns.TypeA, rcode: mdns.RcodeRefused, referal: true},
		{name: "example.com", section: "RFC 5936", qtype: mdns.TypeAXFR, rcode: mdns.RcodeRefused, referal: true},
		{name: "example.com", section: "RFC 1995", qtype: mdns.TypeIXFR, rcode: mdns.RcodeRefused, referal: true},
		{name: "example.com", section: "MAILB", qtype: mdns.TypeMAILB, rcode: mdns.RcodeNotImplemented, referal: true},
	}
}

func TestAnswers(t *testing.T) {
	s := startTest(t, dns.Config{})
	for _, row := range answerRows() {
		for _, network := range []string{"udp", "tcp"} {
			t.Run(row.section+" "+row.name+" "+mdns.Type(row.qtype).String()+" "+network, func(t *testing.T) {
				m := question(row.name, row.qtype)
				m.SetEdns0(1232, false)
				a := ask(t, s, network, m)
				if a.Rcode != row.rcode || a.Authoritative == row.referal || a.Truncated || a.RecursionAvailable || !a.Response {
					t.Errorf("header: %+v", a.MsgHdr)
				}
				if !slices.Equal(a.Question, m.Question) {
					t.Errorf("question: %v", a.Question)
				}
				for _, s := range []struct {
					name      string
					got, want []string
				}{
					{"answer", lines(a.Answer), row.answer}, {"authority", lines(a.Ns), row.ns}, {"additional", lines(a.Extra), row.extra},
				} {
					if !slices.Equal(s.got, s.want) {
						t.Errorf("%s\n got %q\nwant %q", s.name, s.got, s.want)
					}
				}
				if o := a.IsEdns0(); o == nil || o.UDPSize() != 1232 || o.Version() != 0 || o.Do() || len(o.Option) != 0 {
					t.Errorf("OPT: %v", o)
				}
			})
		}
	}
}

// TestNoAddressOfAFamily: a proxied name has no data for a family that the node has no address of.
func TestNoAddressOfAFamily(t *testing.T) {
	service = service[:2]
	t.Cleanup(func() { service = service[:3] })
	s := startTest(t, dns.Config{})
	a := ask(t, s, "udp", question("shop.example.com", mdns.TypeAAAA))
	if a.Rcode != mdns.RcodeSuccess || len(a.Answer) != 0 || !slices.Equal(lines(a.Ns), []string{soaCom}) {
		t.Error(a)
	}
}
