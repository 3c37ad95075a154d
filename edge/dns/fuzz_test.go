package dns

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	mdns "github.com/miekg/dns"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

// fuzzView has a zone with one of each kind of name.
func fuzzView(f *testing.F) *edge.Live {
	z := &zone.Zone{ID: "0198c5a0-0000-7000-8000-000000000001", Name: zone.MustName("e")}
	for _, r := range []struct {
		name, rrtype, content string
		proxied               bool
	}{
		{"@", "NS", "ns.e", false},
		{"ns", "A", "192.0.2.1", false},
		{"a", "A", "192.0.2.2", false},
		{"c", "CNAME", "a.e", false},
		{"l", "CNAME", "l.e", false},
		{"*.w", "TXT", "x", false},
		{"d", "DNAME", "w.e", false},
		{"s", "NS", "ns.s.e", false},
		{"ns.s", "A", "192.0.2.3", false},
		{"p", "A", "192.0.2.4", true},
		{"t.ent", "TXT", "deep", false},
	} {
		record, err := zone.ParseRecord(z.Name, r.name, r.rrtype, r.content, 0, r.proxied)
		if err != nil {
			f.Fatal(err)
		}
		z.Records = append(z.Records, record)
	}
	s, _, err := snapshot.Build(snapshot.Input{Zones: []snapshot.ZoneInput{{Workspace: "w", Zone: z}}, Now: time.Unix(1, 0)}, snapshot.Meta{Version: 1})
	if err != nil {
		f.Fatal(err)
	}
	v, err := edge.Compile(nil, s, 1, edge.Options{ServiceAddresses: []netip.Addr{netip.MustParseAddr("198.51.100.1")}})
	if err != nil {
		f.Fatal(err)
	}
	live := new(edge.Live)
	live.Store(v)
	return live
}

// FuzzRespond feeds a message to the packet path. An answer must be one to that message, within its
// transport's limit, and well formed; what is itself an answer must get none.
func FuzzRespond(f *testing.F) {
	client := netip.MustParseAddr("192.0.2.99")
	c := &Config{Live: fuzzView(f), AllowVersion: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
	head := "\x12\x34\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00"
	for _, seed := range []string{
		head + "\x01a\x01e\x00\x00\x01\x00\x01",
		head + "\x01A\x01c\x01E\x00\x00\xff\x00\x01",
		head + "\x01x\x01y\x01d\x01e\x00\x00\x10\x00\x01",
		head + "\x01x\x01s\x01e\x00\x00\x01\x00\x01",
		head + "\x01s\x01e\x00\x00\x2b\x00\x01",
		head + "\x01l\x01e\x00\x00\x01\x00\x01",
		head + "\x01p\x01e\x00\x00\x1c\x00\x01",
		head + "\x03ent\x01e\x00\x00\x1c\x00\x01",
		head + "\x07version\x07guardyn\x00\x00\x10\x00\x03",
		head + "\x01e\x00\x00\x06\x00\x01",
		head + "\x01e\x00\x00\xfc\x00\x01",
		head + "\xc0\x0c\x00\x01\x00\x01",
		head + "\x00\x00\x02\x00\x01",
		"\x12\x34\x80\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x01e\x00\x00\x01\x00\x01",
		"\x12\x34\x20\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x01e\x00\x00\x06\x00\x01",
		"\x12\x34\x01\x10\x00\x01\x00\x00\x00\x00\x00\x01\x01a\x01e\x00\x00\x01\x00\x01\x00\x00\x29\x04\xd0\x00\x00\x80\x00\x00\x04\x00\x03\x00\x00",
		"\x12\x34\x00\x00\x00\x01\x00\x00\x00\x00\x00\x01\x01a\x01e\x00\x00\x01\x00\x01\x00\x00\x29\x02\x00\x00\x01\x00\x00\x00\x00",
		"\x12\x34\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x01a\x01e\x00\x00\x01\x00\x01\x01a\x01e\x00\x00\x01\x00\x01",
	} {
		f.Add([]byte(seed))
	}
	for _, m := range Malformed {
		f.Add(m.Packet)
	}
	r := &responder{nsid: []byte("node")}
	udp, tcp := make([]byte, 0, udpSize), make([]byte, 0, tcpSize)
	f.Fuzz(func(t *testing.T, message []byte) {
		if len(message) > tcpSize {
			return
		}
		original := bytes.Clone(message)
		check := func(answer []byte, limit int) {
			if answer == nil {
				return
			}
			if message[2]&0x80 != 0 {
				t.Fatalf("an answer to an answer: %x", answer)
			}
			if len(answer) < headerLen || len(answer) > limit {
				t.Fatalf("%d octets, limit %d", len(answer), limit)
			}
			if !bytes.Equal(answer[:2], message[:2]) || answer[2]&0x80 == 0 {
				t.Fatalf("not an answer to it: %x", answer[:headerLen])
			}
			var m mdns.Msg
			if err := m.Unpack(answer); err != nil {
				t.Fatalf("%v: %x", err, answer)
			}
			if m.Rcode == mdns.RcodeSuccess && m.Opcode == mdns.OpcodeQuery && len(m.Question) != 1 {
				t.Fatalf("success without a question: %x", answer)
			}
		}
		answer := r.respond(c, client, overUDP, message, udp)
		limit := headerLen // FORMERR and NOTIMP are a header
		if r.query.parse(message) == proceed {
			limit = min(max(r.query.udpSize, 512), udpSize)
		}
		check(answer, limit)
		if answer = r.respond(c, client, overUDP, message, udp); answer != nil {
			// What slips through the rate limit is as long as what asked for it, and the NSID.
			check(r.refuse(), len(message)+len(r.nsid))
		}
		check(r.respond(c, client, overTCP, message, tcp), tcpSize)
		if !bytes.Equal(message, original) {
			t.Fatal("the message was changed")
		}
	})
}
