package dns

import (
	"encoding/binary"
	"strings"

	mdns "github.com/miekg/dns"
)

// Silence is the outcome of a message that gets no answer.
const Silence = -1

// Malformed are messages that a client should not send, or need not, each with the response code that is due:
// what FuzzRespond starts from too. Those that succeed ask for www.example.com A.
var Malformed = malformed()

// MalformedMessage is one of them.
type MalformedMessage struct {
	Name   string
	Packet []byte
	Rcode  int
}

// rawMessage is a header with one question, and what follows it.
func rawMessage(flags uint16, counts [4]uint16, parts ...string) []byte {
	b := binary.BigEndian.AppendUint16([]byte{0xab, 0xcd}, flags)
	for _, n := range counts {
		b = binary.BigEndian.AppendUint16(b, n)
	}
	return append(b, strings.Join(parts, "")...)
}

const (
	wwwName  = "\x03www\x07example\x03com\x00"
	wwwQuery = wwwName + "\x00\x01\x00\x01"
	opt      = "\x00\x00\x29\x04\xd0\x00\x00\x00\x00"
	optEmpty = opt + "\x00\x00"
)

func malformed() []MalformedMessage {
	one := [4]uint16{1}
	label63 := "\x3f" + strings.Repeat("a", 63)
	return []MalformedMessage{
		{"a good one", rawMessage(0, one, wwwQuery), mdns.RcodeSuccess},
		{"empty", nil, Silence},
		{"one octet", []byte{1}, Silence},
		{"eleven octets", rawMessage(0, one)[:11], Silence},
		{"an answer", rawMessage(0x8000, one, wwwQuery), Silence},
		{"an answer with no question", rawMessage(0x8000, [4]uint16{}), Silence},
		{"an answer to a NOTIFY", rawMessage(0xa000, one, wwwQuery), Silence},
		{"an answer with an error", rawMessage(0x8001, one), Silence},
		{"IQUERY", rawMessage(1<<11, one, wwwQuery), mdns.RcodeNotImplemented},
		{"STATUS", rawMessage(2<<11, one, wwwQuery), mdns.RcodeNotImplemented},
		{"NOTIFY", rawMessage(4<<11, one, wwwQuery), mdns.RcodeNotImplemented},
		{"UPDATE", rawMessage(5<<11, one, wwwQuery), mdns.RcodeNotImplemented},
		{"opcode 15", rawMessage(15<<11, one, wwwQuery), mdns.RcodeNotImplemented},
		{"header alone", rawMessage(0, [4]uint16{}), mdns.RcodeFormatError},
		{"QDCOUNT 0 with a question", rawMessage(0, [4]uint16{}, wwwQuery), mdns.RcodeFormatError},
		{"QDCOUNT 0 with OPT", rawMessage(0, [4]uint16{0, 0, 0, 1}, optEmpty), mdns.RcodeFormatError},
		{"QDCOUNT 2", rawMessage(0, [4]uint16{2}, wwwQuery, wwwQuery), mdns.RcodeFormatError},
		{"QDCOUNT 2, one there", rawMessage(0, [4]uint16{2}, wwwQuery), mdns.RcodeFormatError},
		{"QDCOUNT 65535", rawMessage(0, [4]uint16{65535}, wwwQuery), mdns.RcodeFormatError},
		{"no question there", rawMessage(0, one), mdns.RcodeFormatError},
		{"name without end", rawMessage(0, one, "\x03www"), mdns.RcodeFormatError},
		{"label past the end", rawMessage(0, one, "\x3fwww"), mdns.RcodeFormatError},
		{"no type", rawMessage(0, one, wwwName), mdns.RcodeFormatError},
		{"half a class", rawMessage(0, one, wwwName, "\x00\x01\x00"), mdns.RcodeFormatError},
		{"pointer to itself", rawMessage(0, one, "\xc0\x0c", "\x00\x01\x00\x01"), mdns.RcodeFormatError},
		{"pointer into the header", rawMessage(0, one, "\xc0\x00", "\x00\x01\x00\x01"), mdns.RcodeFormatError},
		{"pointer forward", rawMessage(0, one, "\x01a\xc0\x12", "\x00\x01\x00\x01\x00"), mdns.RcodeFormatError},
		{"label type 01", rawMessage(0, one, "\x40a\x00", "\x00\x01\x00\x01"), mdns.RcodeFormatError},
		{"label type 10", rawMessage(0, one, "\x80a\x00", "\x00\x01\x00\x01"), mdns.RcodeFormatError},
		{"name of 256 octets", rawMessage(0, one, strings.Repeat(label63, 3), "\x3e", strings.Repeat("a", 62), "\x00", "\x00\x01\x00\x01"), mdns.RcodeFormatError},
		{"name of 255 octets", rawMessage(0, one, strings.Repeat(label63, 3), "\x3d", strings.Repeat("a", 61), "\x00", "\x00\x01\x00\x01"), mdns.RcodeRefused},
		{"one trailing octet", rawMessage(0, one, wwwQuery, "\x00"), mdns.RcodeFormatError},
		{"a record that is not counted", rawMessage(0, one, wwwQuery, optEmpty), mdns.RcodeFormatError},
		{"a record that is not there", rawMessage(0, [4]uint16{1, 0, 0, 1}, wwwQuery), mdns.RcodeFormatError},
		{"65535 records that are not there", rawMessage(0, [4]uint16{1, 65535, 65535, 65535}, wwwQuery), mdns.RcodeFormatError},
		{"record's name loops", rawMessage(0, [4]uint16{1, 0, 0, 1}, wwwQuery, "\xc0\x21\x00\x01\x00\x01\x00\x00\x00\x00\x00\x00"), mdns.RcodeFormatError},
		{"record's name points forward", rawMessage(0, [4]uint16{1, 0, 0, 1}, wwwQuery, "\xc0\x30\x00\x01\x00\x01\x00\x00\x00\x00\x00\x00"), mdns.RcodeFormatError},
		{"RDLENGTH past the end", rawMessage(0, [4]uint16{1, 0, 0, 1}, wwwQuery, "\x00\x00\x01\x00\x01\x00\x00\x00\x00\x00\x01"), mdns.RcodeFormatError},
		{"an answer record in a query", rawMessage(0, [4]uint16{1, 1}, wwwQuery, "\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x00\x00\x04abcd"), mdns.RcodeSuccess},
		{"an unknown additional record", rawMessage(0, [4]uint16{1, 0, 0, 2}, wwwQuery, "\x00\xff\x00\x00\x01\x00\x00\x00\x00\x00\x00", optEmpty), mdns.RcodeSuccess},
		{"two OPT", rawMessage(0, [4]uint16{1, 0, 0, 2}, wwwQuery, optEmpty, optEmpty), mdns.RcodeFormatError},
		{"OPT in the answer section", rawMessage(0, [4]uint16{1, 1}, wwwQuery, optEmpty), mdns.RcodeFormatError},
		{"OPT with an owner", rawMessage(0, [4]uint16{1, 0, 0, 1}, wwwQuery, "\x01a", optEmpty), mdns.RcodeFormatError},
		{"option header cut", rawMessage(0, [4]uint16{1, 0, 0, 1}, wwwQuery, opt, "\x00\x03\x00\x03\x00"), mdns.RcodeFormatError},
		{"option past the end", rawMessage(0, [4]uint16{1, 0, 0, 1}, wwwQuery, opt, "\x00\x04\x00\x03\x00\x01"), mdns.RcodeFormatError},
		{"padding", rawMessage(0, [4]uint16{1, 0, 0, 1}, wwwQuery, opt, "\x00\x08\x00\x0c\x00\x04\x00\x00\x00\x00"), mdns.RcodeSuccess},
		{"an option that nobody knows", rawMessage(0, [4]uint16{1, 0, 0, 1}, wwwQuery, opt, "\x00\x05\xff\x00\x00\x01x"), mdns.RcodeSuccess},
		{"every flag set", rawMessage(0x07ff, one, wwwQuery), mdns.RcodeSuccess},
		{"TC set", rawMessage(0x0200, one, wwwQuery), mdns.RcodeSuccess},
		{"class ANY", rawMessage(0, one, wwwName, "\x00\x01\x00\xff"), mdns.RcodeRefused},
		{"class 0", rawMessage(0, one, wwwName, "\x00\x01\x00\x00"), mdns.RcodeRefused},
		{"type 0", rawMessage(0, one, wwwName, "\x00\x00\x00\x01"), mdns.RcodeNotImplemented},
		{"type OPT", rawMessage(0, one, wwwName, "\x00\x29\x00\x01"), mdns.RcodeFormatError},
		{"type TSIG", rawMessage(0, one, wwwName, "\x00\xfa\x00\x01"), mdns.RcodeNotImplemented},
		{"RFC 9619, QDCOUNT 2 with one question twice", rawMessage(0, [4]uint16{2}, wwwQuery, "\xc0\x0c\x00\x01\x00\x01"), mdns.RcodeFormatError},
		{"RFC 1035 §4.1.4, a pointer behind a label", rawMessage(0, one, "\x03www\xc0\x0c", "\x00\x01\x00\x01"), mdns.RcodeFormatError},
		{"RFC 1035 §4.1.4, half a pointer", rawMessage(0, one, "\x03www\xc0"), mdns.RcodeFormatError},
		{"RFC 6891 §5, an extended label type", rawMessage(0, one, "\x41\x01\x00", "\x00\x01\x00\x01"), mdns.RcodeFormatError},
		{"RFC 2181 §11, any octet in a label", rawMessage(0, one, "\x04\x00\x01\x80\xff\x07example\x03com\x00", "\x00\x01\x00\x01"), mdns.RcodeNameError},
		{"RFC 2181 §11, a dot in a label", rawMessage(0, one, "\x0bwww.example\x03com\x00", "\x00\x01\x00\x01"), mdns.RcodeRefused},
		{"RFC 4343 §3, only ASCII letters have a case", rawMessage(0, one, "\x03ww\xd7\x07example\x03com\x00", "\x00\x01\x00\x01"), mdns.RcodeNameError},
		{"the root", rawMessage(0, one, "\x00", "\x00\x01\x00\x01"), mdns.RcodeRefused},
		{"the root by ANY", rawMessage(0, one, "\x00", "\x00\xff\x00\x01"), mdns.RcodeRefused},
		{"a label of NUL", rawMessage(0, one, "\x01\x00\x03www\x07example\x03com\x00", "\x00\x01\x00\x01"), mdns.RcodeNameError},
		{"RFC 2930 §2, TKEY", rawMessage(0, one, wwwName, "\x00\xf9\x00\x01"), mdns.RcodeNotImplemented},
		{"RFC 5936 §4.2, AXFR by UDP", rawMessage(0, one, wwwName, "\x00\xfc\x00\x01"), mdns.RcodeRefused},
		{"RFC 1996 §3.11, a NOTIFY with an answer", rawMessage(4<<11, [4]uint16{1, 1}, wwwName, "\x00\x06\x00\x01"), mdns.RcodeNotImplemented},
		{"RFC 8490 §5.4, DSO", rawMessage(6<<11, [4]uint16{}), mdns.RcodeNotImplemented},
		{"RFC 6891 §6.1.1, OPT in the authority section", rawMessage(0, [4]uint16{1, 0, 1}, wwwQuery, optEmpty), mdns.RcodeFormatError},
		{"RFC 6891 §6.1.2, OPT without its end", rawMessage(0, [4]uint16{1, 0, 0, 1}, wwwQuery, opt, "\x00"), mdns.RcodeFormatError},
		{"RFC 6891 §6.1.2, OPT that says less than there is", rawMessage(0, [4]uint16{1, 0, 0, 1}, wwwQuery, opt, "\x00\x00\x00\x03\x00\x00"), mdns.RcodeFormatError},
		{"RFC 6891 §6.1.2, an empty option", rawMessage(0, [4]uint16{1, 0, 0, 1}, wwwQuery, opt, "\x00\x04\xff\x00\x00\x00"), mdns.RcodeSuccess},
		{"RFC 6891 §6.1.2, one option a hundred times", rawMessage(0, [4]uint16{1, 0, 0, 1}, wwwQuery, opt, "\x01\x90", strings.Repeat("\x00\x03\x00\x00", 100)), mdns.RcodeSuccess},
		{"RFC 8945 §5.2, a TSIG record that nobody checks", rawMessage(0, [4]uint16{1, 0, 0, 1}, wwwQuery, "\x01k\x00\x00\xfa\x00\xff\x00\x00\x00\x00\x00\x00"), mdns.RcodeSuccess},
		{"a record of a name that is too long", rawMessage(0, [4]uint16{1, 0, 0, 1}, wwwQuery, strings.Repeat(label63, 4), "\x00\x00\x01\x00\x01\x00\x00\x00\x00\x00\x00"), mdns.RcodeFormatError},
		{"every octet set", []byte(strings.Repeat("\xff", 512)), Silence},
		{"every octet 0", make([]byte, 512), mdns.RcodeFormatError},
		{"longer than what is read", rawMessage(0, one, wwwQuery, strings.Repeat("\x00", readSize)), Silence},
	}
}
