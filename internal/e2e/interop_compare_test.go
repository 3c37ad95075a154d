package e2e_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// difference is one between the node and another server that stays, and why.
type difference struct {
	server string
	reason string
	is     func(q interopQuery, own, theirs *dns.Msg, found []string) bool
}

// interopDifferences are few, and each must still be there: a row that explains nothing fails the test.
var interopDifferences = []difference{
	{"knot", "ANY: this node has one HINFO for it (RFC 8482 §4.2), Knot one of the RRsets (§4.1)", anySubset},
	{"nsd", "ANY: this node has one HINFO for it (RFC 8482 §4.2), NSD one of the RRsets (§4.1)", anySubset},
	{"knot", "TXT is one string of octets here, however a file cuts it: readers join the pieces (RFC 7208 §3.3)", cutText},
	{"nsd", "TXT is one string of octets here, however a file cuts it: readers join the pieces (RFC 7208 §3.3)", cutText},
	{"knot", "how many aliases one answer follows is open (RFC 1034 §3.6.2): this node 8, Knot fewer of CNAME and more of DNAME", longChain},
	{"nsd", "how many aliases one answer follows is open (RFC 1034 §3.6.2): this node 8, NSD as many but each DNAME once", longChain},
	{"knot", "what NS at a wildcard means is open (RFC 4592 §4.2): data here and in NSD, a referral under the asterisk in Knot", wildcardNS},
	{"knot", "HTTPS with its owner as target, synthesised: the owner's addresses are there too (RFC 9460 §4.1), in Knot without a wildcard alone", wildcardHTTPS},
	{"nsd", "addresses of MX, SRV and SVCB targets may be left out (RFC 1034 §4.3.2 step 6): NSD does under minimal-responses", noAddresses},
}

// anySubset: an answer to ANY that is whole, but for what of the data it holds.
func anySubset(q interopQuery, own, theirs *dns.Msg, found []string) bool {
	if q.qtype != dns.TypeANY || !only(found, "answer", "additional", "TC") || len(own.Answer) == 0 {
		return false
	}
	hinfo, ok := own.Answer[len(own.Answer)-1].(*dns.HINFO)
	return ok && hinfo.Cpu == "RFC8482" && (len(theirs.Answer) > 0 || theirs.Truncated)
}

// cutText: the octets of each TXT record are the same, and there is nothing else.
func cutText(q interopQuery, own, theirs *dns.Msg, found []string) bool {
	joined := func(m *dns.Msg) (out []string) {
		for _, rr := range m.Answer {
			if txt, ok := rr.(*dns.TXT); ok {
				out = append(out, txt.Hdr.String()+strings.Join(txt.Txt, ""))
			}
		}
		slices.Sort(out)
		return out
	}
	texts := joined(own)
	return q.qtype == dns.TypeTXT && only(found, "answer") && len(texts) > 0 && len(texts) == len(own.Answer) &&
		len(own.Answer) == len(theirs.Answer) && slices.Equal(texts, joined(theirs))
}

// longChain: one answer has all of the other's aliases and goes on, or was cut because it did.
func longChain(q interopQuery, own, theirs *dns.Msg, found []string) bool {
	if !only(found, "answer", "authority", "TC") || own.Rcode != theirs.Rcode {
		return false
	}
	short, long := printed(own.Answer), printed(theirs.Answer)
	if len(short) > len(long) {
		short, long = long, short
	}
	for _, rr := range short {
		if !slices.Contains(long, rr) {
			return false
		}
	}
	name, _, _ := strings.Cut(strings.TrimSuffix(q.name, "."+interopApex), ".")
	return len(long) > 5 && (name == "step1" || name == "a")
}

// wildcardNS: the other server refers to an asterisk.
func wildcardNS(q interopQuery, own, theirs *dns.Msg, _ []string) bool {
	return strings.HasSuffix(q.name, ".nswild."+interopApex) && own.Authoritative && !theirs.Authoritative &&
		len(theirs.Ns) == 1 && theirs.Ns[0].Header().Name == "*.nswild."+interopApex
}

// wildcardHTTPS: the other server's additional section is empty.
func wildcardHTTPS(q interopQuery, _, theirs *dns.Msg, found []string) bool {
	return q.qtype == dns.TypeHTTPS && strings.HasSuffix(strings.ToLower(q.name), ".httpswild."+interopApex) && only(found, "additional") &&
		len(printed(theirs.Extra)) == 0
}

// noAddresses: the other server's additional section is empty where this one's holds addresses.
func noAddresses(q interopQuery, own, theirs *dns.Msg, found []string) bool {
	switch q.qtype {
	case dns.TypeMX, dns.TypeSRV, dns.TypeSVCB, dns.TypeHTTPS:
		return only(found, "additional") && len(printed(own.Extra)) > 0 && len(printed(theirs.Extra)) == 0
	}
	return false
}

// only reports whether every one of found is among parts.
func only(found []string, parts ...string) bool {
	return !slices.ContainsFunc(found, func(s string) bool { return !slices.Contains(parts, s) })
}

// knownDifference returns the index of what explains all that was found, -1 when nothing does.
func knownDifference(server string, q interopQuery, own, theirs *dns.Msg, found []string) int {
	return slices.IndexFunc(interopDifferences, func(d difference) bool { return d.server == server && d.is(q, own, theirs, found) })
}

// differences names the parts of two answers that are not equal, order within a section and the SOA's serial aside.
func differences(q interopQuery, own, theirs *dns.Msg) (found []string) {
	note := func(part string, own, theirs any) {
		if a, b := fmt.Sprint(own), fmt.Sprint(theirs); a != b {
			found = append(found, part)
		}
	}
	note("rcode", own.Rcode, theirs.Rcode)
	note("AA", own.Authoritative, theirs.Authoritative)
	note("TC", own.Truncated, theirs.Truncated)
	note("flags", []bool{own.Response, own.RecursionDesired, own.RecursionAvailable, own.AuthenticatedData, own.CheckingDisabled, own.Zero},
		[]bool{theirs.Response, theirs.RecursionDesired, theirs.RecursionAvailable, theirs.AuthenticatedData, theirs.CheckingDisabled, theirs.Zero})
	note("question", own.Question, theirs.Question)
	note("answer", printed(own.Answer), printed(theirs.Answer))
	note("authority", printed(own.Ns), printed(theirs.Ns))
	note("additional", printed(own.Extra), printed(theirs.Extra))
	note("EDNS", edns(own), edns(theirs))
	return found
}

// printed is a section as text, in one order.
func printed(section []dns.RR) []string {
	var out []string
	for _, rr := range section {
		switch rr := rr.(type) {
		case *dns.OPT:
			continue
		case *dns.SOA:
			rr.Serial = 0
		}
		h, rdata := rr.Header(), strings.TrimPrefix(rr.String(), rr.Header().String())
		switch h.Rrtype {
		case dns.TypeNS, dns.TypeCNAME, dns.TypeDNAME, dns.TypePTR, dns.TypeMX, dns.TypeSOA:
			// A name that is compressed has the case of the one that it points into.
			rdata = strings.ToLower(rdata)
		}
		out = append(out, fmt.Sprintf("%s %d %d %d %s", strings.ToLower(h.Name), h.Ttl, h.Class, h.Rrtype, rdata))
	}
	slices.Sort(out)
	return out
}

// edns is what of OPT has to be equal: that it is there, version and DO.
func edns(m *dns.Msg) string {
	o := m.IsEdns0()
	if o == nil {
		return "none"
	}
	return fmt.Sprint(o.Version(), o.Do())
}
