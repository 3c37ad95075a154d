package dns

import (
	"encoding/binary"
	"math"

	mdns "github.com/miekg/dns"

	"github.com/guardyn-edge/guardyn/edge/rrset"
)

// maxPointer is the largest offset that a compression pointer can hold (RFC 1035 §4.1.4).
const maxPointer = 0x3fff

// section is a part of an answer, by its place in the header's counts.
type section int

const (
	answerSection section = iota + 1
	authoritySection
	additionalSection
)

// message is an answer as it grows. Its buffer has room for all that it may hold; a record that does not
// fit sets truncated and leaves it as it was.
type message struct {
	buf           []byte
	limit         int // of the records, less what the OPT will take
	counts        [4]uint16
	rcode         int
	authoritative bool
	truncated     bool
}

// begin starts an answer in buf with the question of q, its case kept (draft-vixie-dnsext-dns0x20).
func (m *message) begin(q *query, buf []byte, limit int) {
	m.buf = append(buf[:0], q.message[:q.end]...)
	m.limit = limit
	m.counts = [4]uint16{1}
	m.rcode, m.authoritative, m.truncated = mdns.RcodeSuccess, false, false
}

// addSet adds an RRset whose owner is at an offset of the message, uncompressed up to its end.
func (m *message) addSet(s section, set rrset.Set, owner int) (ok bool) {
	if owner > maxPointer {
		return m.addSetUncompressed(s, set, owner)
	}
	at := len(m.buf)
	if at+len(set.Data) > m.limit || !m.count(s, set.Count) {
		m.truncated = true
		return false
	}
	m.buf = append(m.buf, set.Data...)
	if owner == headerLen {
		return true
	}
	for at < len(m.buf) {
		binary.BigEndian.PutUint16(m.buf[at:], 0xc000|uint16(owner))
		at += recordLen(m.buf[at:])
	}
	return true
}

// addOptional is addSet for what an answer is whole without: when it does not fit, nothing is truncated.
func (m *message) addOptional(s section, set rrset.Set, owner int) (ok bool) {
	before := m.truncated
	if ok = m.addSet(s, set, owner); !ok {
		m.truncated = before
	}
	return ok
}

// addSetUncompressed is addSet for an owner that no pointer reaches, as a large answer over TCP can have.
func (m *message) addSetUncompressed(s section, set rrset.Set, owner int) (ok bool) {
	name := m.buf[owner : owner+nameLen(m.buf[owner:])]
	if len(m.buf)+len(set.Data)+set.Count*(len(name)-2) > m.limit || !m.count(s, set.Count) {
		m.truncated = true
		return false
	}
	for data := set.Data; len(data) > 0; {
		n := recordLen(data)
		m.buf = append(append(m.buf, name...), data[2:n]...)
		data = data[n:]
	}
	return true
}

// count adds to a section's count unless that would overflow it.
func (m *message) count(s section, n int) bool {
	if int(m.counts[s])+n > math.MaxUint16 {
		return false
	}
	m.counts[s] += uint16(n)
	return true
}

// end writes header and OPT and returns the answer. A truncated one keeps the question alone: the client
// comes back by TCP for all of it (RFC 2181 §9).
func (m *message) end(q *query, nsid []byte) []byte {
	if m.truncated {
		m.buf = m.buf[:q.end]
		m.counts = [4]uint16{1}
	}
	if q.edns {
		m.counts[additionalSection]++
		m.buf = append(m.buf, 0, 0, byte(mdns.TypeOPT), udpSize>>8, udpSize&0xff, byte(m.rcode>>4), 0, 0, 0)
		if q.dnssecOK {
			m.buf[len(m.buf)-2] = 0x80 // RFC 3225 §3
		}
		if q.nsid && len(nsid) > 0 {
			n := len(nsid)
			m.buf = append(m.buf, byte((n+4)>>8), byte(n+4), 0, mdns.EDNS0NSID, byte(n>>8), byte(n))
			m.buf = append(m.buf, nsid...)
		} else {
			m.buf = append(m.buf, 0, 0)
		}
	}
	writeHeader(m.buf, q, m.rcode&0xf)
	if m.authoritative {
		m.buf[2] |= 0x04
	}
	if m.truncated {
		m.buf[2] |= 0x02
	}
	for i, n := range m.counts {
		binary.BigEndian.PutUint16(m.buf[4+2*i:], n)
	}
	return m.buf
}

// optSize is what end will add for q.
func optSize(q *query, nsid []byte) int {
	switch {
	case !q.edns:
		return 0
	case q.nsid && len(nsid) > 0:
		return optLen + 4 + len(nsid)
	}
	return optLen
}

// headerOnly is an answer of a header and nothing else, to what has no question that can be read.
func headerOnly(q *query, buf []byte, rcode int) []byte {
	buf = append(buf[:0], q.message[:headerLen]...)
	writeHeader(buf, q, rcode)
	clear(buf[4:headerLen])
	return buf
}

// writeHeader writes identifier and flags: QR, the query's opcode, RD and CD (RFC 4035 §3.1.6), and rcode.
func writeHeader(buf []byte, q *query, rcode int) {
	buf[0], buf[1] = q.message[0], q.message[1]
	buf[2] = 0x80 | q.message[2]&0x79
	buf[3] = q.message[3]&0x10 | byte(rcode)
}

// recordLen is the length of the packed record that data begins with, whose owner is a pointer.
func recordLen(data []byte) int { return 12 + int(binary.BigEndian.Uint16(data[10:])) }

// nameLen is the length of the uncompressed name that data begins with.
func nameLen(data []byte) int {
	n := 0
	for data[n] != 0 {
		n += 1 + int(data[n])
	}
	return n + 1
}
