package e2e_test

import (
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// interopQuery is one question, and how it is asked.
type interopQuery struct {
	name  string
	qtype uint16
	tcp   bool
	size  uint16 // that EDNS advertises, 0 without EDNS
	do    bool
}

func (q interopQuery) String() string {
	how := "UDP, no EDNS"
	if q.size > 0 {
		how = fmt.Sprintf("UDP, EDNS %d", q.size)
	}
	if q.tcp {
		how = strings.Replace(how, "UDP", "TCP", 1)
	}
	if q.do {
		how += ", DO"
	}
	return fmt.Sprintf("%s %s (%s)", q.name, dns.Type(q.qtype), how)
}

// ask sends q to a server and returns what it answers.
func (q interopQuery) ask(addr string) (*dns.Msg, error) {
	m := new(dns.Msg)
	m.SetQuestion(q.name, q.qtype)
	if q.size > 0 {
		m.SetEdns0(q.size, q.do)
	}
	network := "udp"
	if q.tcp {
		network = "tcp"
	}
	conn, err := net.DialTimeout(network, addr, 5*time.Second)
	if err != nil {
		return nil, err
	}
	c := &dns.Conn{Conn: conn, UDPSize: 4096}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return nil, err
	}
	if err := c.WriteMsg(m); err != nil {
		return nil, err
	}
	return c.ReadMsg()
}

// interopTypes are asked of every name.
var interopTypes = []uint16{
	dns.TypeA, dns.TypeNS, dns.TypeCNAME, dns.TypeSOA, dns.TypePTR, dns.TypeMX, dns.TypeTXT, dns.TypeAAAA, dns.TypeSRV,
	dns.TypeNAPTR, dns.TypeDS, dns.TypeDNAME, dns.TypeSVCB, dns.TypeHTTPS, dns.TypeCAA, dns.TypeANY, 65400, 65500,
}

// interopQueries are the owners of the zone file and names around them, by every type, and a part of them in other ways.
func interopQueries(file string) []interopQuery {
	seen := make(map[string]bool)
	var names []string
	add := func(rel ...string) {
		for _, name := range rel {
			name = strings.TrimPrefix(name+"."+interopApex, "@.")
			if !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	for line := range strings.Lines(file) {
		if f := strings.Fields(line); len(f) > 0 && !strings.ContainsAny(line[:1], ";$ \t\n") {
			add(f[0])
		}
	}
	add(
		// Missing, and below and above what exists.
		"missing", "a.missing", "b.www", "www.www", "zzz.ent", "ent", "y.z.ent2", "z.ent2", "ent2", "b.c.d.e.f.g.h.i.j", "x.b.c.d.e.f.g.h.i.j",
		// Wildcards and what they cover or do not.
		"q.wild", "r.q.wild", "wild", "x.wild", "y.x.wild", "below.real.wild", "x.under.real.wild", "*.real.wild", "star", "q.star", "a.b.star",
		"q.starout", "star2", "q.star2", "two.star2", "q.two.star2", "*.star2", "mid", "q.mid", "sub.q.mid", "x.*.mid", "sub.*.mid", "*.*.wild",
		// Redirected names.
		"a.dname", "b.c.dname", "missing.dname", "x.dnameout", "a.dnameloop", "c.target", "target",
		// Delegated names.
		"www.deleg", "a.b.deleg", "x.signed", "x.sibling", "x.outside", "x.lame", "deep.cut", "cut", "x.in.deep.cut", "ns.lame",
		// Odd case, whole and in part.
		"WWW", "wWw", "Q.wIlD", "eNt", "MISSING", "X.DELEG", "ALIAS3", "A.DNAME",
		// An asterisk and odd labels as they come.
		"q.nswild", "r.q.nswild", "q.dnwild", "a.q.dnwild", "q.srvwild", "q.httpswild", "R.q.httpsWild",
		"*", "*.missing", "*.www", strings.Repeat("a", 63), strings.Repeat("l.", 60)+"long",
	)
	var out []interopQuery
	for _, name := range names {
		for _, qtype := range interopTypes {
			out = append(out, interopQuery{name: name, qtype: qtype, size: 1232})
		}
	}
	for _, outside := range []string{"other.example.", "test.", ".", "xinterop.test.", "interop.test.example."} {
		for _, qtype := range []uint16{dns.TypeA, dns.TypeNS, dns.TypeSOA, dns.TypeDS} {
			out = append(out, interopQuery{name: outside, qtype: qtype, size: 1232})
		}
	}
	// Types that only some names have, the same again over other transports and sizes.
	for _, name := range names {
		for _, q := range []interopQuery{
			{qtype: dns.TypeA},
			{qtype: dns.TypeTXT},
			{qtype: dns.TypeTXT, size: 512},
			{qtype: dns.TypeA, size: 4096},
			{qtype: dns.TypeTXT, size: 4096, do: true},
			{qtype: dns.TypeTXT, tcp: true},
			{qtype: dns.TypeMX, tcp: true, size: 1232},
			{qtype: dns.TypeTLSA, size: 1232},
			{qtype: dns.TypeSSHFP, size: 1232},
			{qtype: dns.TypeLOC, size: 1232},
			{qtype: dns.TypeHINFO, size: 1232},
			{qtype: dns.TypeRP, size: 1232},
			{qtype: dns.TypeAFSDB, size: 1232},
			{qtype: dns.TypeURI, size: 1232},
			{qtype: dns.TypeCERT, size: 1232},
			{qtype: dns.TypeOPENPGPKEY, size: 1232},
			{qtype: dns.TypeSMIMEA, size: 1232},
			{qtype: 65401, size: 1232},
		} {
			q.name = name
			out = append(out, q)
		}
	}
	return out
}
