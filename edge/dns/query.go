package dns

import (
	"encoding/binary"

	mdns "github.com/miekg/dns"

	"github.com/guardyn-edge/guardyn/edge/rrset"
)

const (
	headerLen = 12
	// optLen is the length of an OPT record without options, its owner included.
	optLen = 11
)

// verdict is what becomes of a message before anything is looked up.
type verdict uint8

const (
	ignore         verdict = iota // no answer: an answer, or less than a header
	formatError                   // FORMERR, header only
	notImplemented                // NOTIMP, header only
	proceed
)

// query is a parsed query. It is used again for the next message.
type query struct {
	message []byte
	// name is the question's in lower case and wire format, with the root label.
	name    []byte
	nameBuf [rrset.MaxName]byte
	qtype   uint16
	qclass  uint16
	// end is where the question ends in message.
	end int

	edns     bool
	version  uint8
	dnssecOK bool
	nsid     bool
	udpSize  int
}

// parse reads a message. It accepts what RFC 1035 §4.1 and RFC 6891 §6.1 allow a query to hold: exactly one
// question, any well-formed records after it, at most one OPT, and nothing behind them.
func (q *query) parse(message []byte) verdict {
	q.message = message
	if len(message) < headerLen || message[2]&0x80 != 0 {
		return ignore
	}
	if message[2]&0x78 != 0 {
		return notImplemented
	}
	q.edns, q.version, q.dnssecOK, q.nsid, q.udpSize = false, 0, false, false, mdns.MinMsgSize
	if binary.BigEndian.Uint16(message[4:]) != 1 || !q.parseQuestion() {
		return formatError
	}
	records := int(binary.BigEndian.Uint16(message[6:])) + int(binary.BigEndian.Uint16(message[8:]))
	additional := int(binary.BigEndian.Uint16(message[10:]))
	at := q.end
	for i := range records + additional {
		if at = q.parseRecord(at, i >= records); at < 0 {
			return formatError
		}
	}
	if at != len(message) || q.qtype == mdns.TypeOPT {
		return formatError
	}
	return proceed
}

// parseQuestion reads the question. Its name cannot be compressed: there is no name before it.
func (q *query) parseQuestion() bool {
	m, at := q.message, headerLen
	name := q.nameBuf[:0]
	for {
		if at >= len(m) {
			return false
		}
		n := int(m[at])
		if n > 63 || len(name)+n+1 > rrset.MaxName || at+1+n > len(m) {
			return false
		}
		name = append(name, m[at])
		for _, c := range m[at+1 : at+1+n] {
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			name = append(name, c)
		}
		at += 1 + n
		if n == 0 {
			break
		}
	}
	if at+4 > len(m) {
		return false
	}
	q.name = name
	q.qtype = binary.BigEndian.Uint16(m[at:])
	q.qclass = binary.BigEndian.Uint16(m[at+2:])
	q.end = at + 4
	return true
}

// parseRecord reads the record at an offset and returns where it ends, -1 when it is malformed.
func (q *query) parseRecord(at int, additional bool) int {
	m := q.message
	owner := at
	if at = skipName(m, at); at < 0 || at+10 > len(m) {
		return -1
	}
	rdlength := int(binary.BigEndian.Uint16(m[at+8:]))
	end := at + 10 + rdlength
	if end > len(m) {
		return -1
	}
	if binary.BigEndian.Uint16(m[at:]) != mdns.TypeOPT {
		return end
	}
	if !additional || q.edns || m[owner] != 0 {
		return -1
	}
	q.edns = true
	q.udpSize = max(int(binary.BigEndian.Uint16(m[at+2:])), mdns.MinMsgSize)
	q.version = m[at+5]
	q.dnssecOK = m[at+6]&0x80 != 0
	for options := m[at+10 : end]; len(options) > 0; {
		if len(options) < 4 {
			return -1
		}
		n := 4 + int(binary.BigEndian.Uint16(options[2:]))
		if n > len(options) {
			return -1
		}
		if binary.BigEndian.Uint16(options) == mdns.EDNS0NSID {
			q.nsid = true
		}
		options = options[n:]
	}
	return end
}

// skipName returns where a name ends that may be compressed, -1 when it is malformed. A pointer must point
// backwards past the header; what it points at is not read.
func skipName(m []byte, at int) int {
	for start := at; at < len(m); {
		n := int(m[at])
		switch {
		case n == 0:
			return at + 1
		case n >= 0xc0:
			if at+2 > len(m) {
				return -1
			}
			if to := int(binary.BigEndian.Uint16(m[at:]) & 0x3fff); to < headerLen || to >= start {
				return -1
			}
			return at + 2
		case n > 63:
			return -1
		}
		if at += 1 + n; at-start > rrset.MaxName {
			return -1
		}
	}
	return -1
}
