package mqtt

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/guardyn-edge/guardyn/bridge/session"
)

// packet is what was read: those fields are set that its kind has. Kinds are those of both versions (MQTT 5.0 §2.1.2).
type packet struct {
	kind   byte
	id     uint16
	reason byte
	text   string // the reason, in the broker's words

	// Of PUBLISH.
	msg           session.Message
	dup           bool
	subscriptions []int // identifiers of those it came by; none: unknown

	granted []byte // of SUBACK

	// Of CONNACK.
	present        bool
	receiveMaximum uint16
	maximumQoS     byte
	noRetain       bool
	maximumPacket  uint32 // 0: no limit
	keepAlive      *uint16
}

// codec reads and writes the packets of one version. Writing is to memory and does not fail.
type codec interface {
	read(r *bufio.Reader, now func() time.Time) (packet, error)
	connect(w *bytes.Buffer, c connect)
	publish(w *bytes.Buffer, id uint16, dup bool, m *session.Message, now time.Time)
	subscribe(w *bytes.Buffer, id uint16, filter string, qos byte, identifier int)
	unsubscribe(w *bytes.Buffer, id uint16, filter string)
	disconnect(w *bytes.Buffer)
	// final tells whether the reason of a PUBACK or PUBREC means that the message will never be taken.
	refused(reason byte) (refused, final bool)
	// why is what a reason of a CONNACK, SUBACK or DISCONNECT means.
	why(kind, reason byte, text string) string
}

// connect is what CONNECT says.
type connect struct {
	clientID       string
	clean          bool
	expiry         uint32 // seconds
	keepAlive      uint16 // seconds
	receiveMaximum uint16
	credentials    session.Credentials
}

var errMalformed = errors.New("the broker sent a malformed packet")

// header reads a packet's fixed header; the length is bounded.
func header(r *bufio.Reader) (first byte, length int, err error) {
	if first, err = r.ReadByte(); err != nil {
		return 0, 0, err
	}
	for shift := 0; ; shift += 7 {
		b, err := r.ReadByte()
		if err != nil {
			return 0, 0, unexpected(err)
		}
		length |= int(b&0x7f) << shift
		switch {
		case b < 0x80 && length > session.MaxMessageBytes:
			return 0, 0, fmt.Errorf("the broker sent a packet of %d bytes, more than %d", length, session.MaxMessageBytes)
		case b < 0x80:
			return first, length, nil
		case shift == 21:
			return 0, 0, errMalformed
		}
	}
}

// unexpected is err of a packet that has begun.
func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// whole reads a packet: the first byte of its fixed header, and what follows that header.
func whole(r *bufio.Reader) (first byte, b []byte, err error) {
	first, length, err := header(r)
	if err != nil {
		return 0, nil, err
	}
	b = make([]byte, length)
	if _, err := io.ReadFull(r, b); err != nil {
		return 0, nil, unexpected(err)
	}
	return first, b, nil
}

// readPublish reads what both versions share; rest is what follows the topic and the packet identifier.
func readPublish(first byte, b []byte) (p packet, rest []byte, err error) {
	p = packet{kind: packets.PUBLISH, dup: first&8 != 0}
	p.msg.QoS, p.msg.Retain = int(first>>1&3), first&1 != 0
	topic, rest, ok := text(b)
	if !ok || p.msg.QoS == 3 {
		return p, nil, errMalformed
	}
	if fault := session.TextFault(topic); fault != "" {
		return p, nil, fmt.Errorf("%w: a topic: %s", errMalformed, fault)
	}
	p.msg.Topic = topic
	if p.msg.QoS > 0 {
		if len(rest) < 2 {
			return p, nil, errMalformed
		}
		p.id, rest = binary.BigEndian.Uint16(rest), rest[2:]
		if p.id == 0 {
			return p, nil, errMalformed
		}
	}
	return p, rest, nil
}

// textUTF8 takes a string off b; one that is none makes the packet malformed (MQTT 5.0 §1.5.4).
func textUTF8(b []byte) (string, []byte, bool) {
	s, rest, ok := text(b)
	return s, rest, ok && session.TextFault(s) == ""
}

// text takes a string that is not looked at, or binary data, off b.
func text(b []byte) (string, []byte, bool) {
	if len(b) < 2 {
		return "", nil, false
	}
	n := int(binary.BigEndian.Uint16(b))
	if len(b) < 2+n {
		return "", nil, false
	}
	return string(b[2 : 2+n]), b[2+n:], true
}

// varint takes a variable byte integer (MQTT 5.0 §1.5.5) off b.
func varint(b []byte) (int, []byte, bool) {
	v := 0
	for i := 0; i < 4 && i < len(b); i++ {
		v |= int(b[i]&0x7f) << (7 * i)
		if b[i] < 0x80 {
			return v, b[i+1:], true
		}
	}
	return 0, nil, false
}

func putVarint(w *bytes.Buffer, v int) {
	for v >= 0x80 {
		w.WriteByte(byte(v) | 0x80)
		v >>= 7
	}
	w.WriteByte(byte(v))
}

func sizeVarint(v int) int {
	n := 1
	for ; v >= 0x80; v >>= 7 {
		n++
	}
	return n
}

func putText[T ~string | ~[]byte](w *bytes.Buffer, s T) {
	_, _ = w.Write(binary.BigEndian.AppendUint16(w.AvailableBuffer(), uint16(len(s))))
	_, _ = w.WriteString(string(s))
}

// putPublish writes a PUBLISH up to its payload; properties are as long as sized, with their length.
func putPublish(w *bytes.Buffer, id uint16, dup bool, m *session.Message, sized int) {
	first := packets.PUBLISH<<4 | byte(m.QoS)<<1
	if dup {
		first |= 8
	}
	if m.Retain {
		first |= 1
	}
	length := 2 + len(m.Topic) + sized + len(m.Payload)
	if m.QoS > 0 {
		length += 2
	}
	w.Grow(length + 5)
	w.WriteByte(first)
	putVarint(w, length)
	putText(w, m.Topic)
	if m.QoS > 0 {
		_, _ = w.Write(binary.BigEndian.AppendUint16(w.AvailableBuffer(), id))
	}
}

// putAck writes an acknowledgement of success, the same in both versions.
func putAck(w *bytes.Buffer, kind byte, id uint16) {
	first := kind << 4
	if kind == packets.PUBREL {
		first |= 2
	}
	_, _ = w.Write([]byte{first, 2, byte(id >> 8), byte(id)})
}

// putPing writes a PINGREQ, the same in both versions.
func putPing(w *bytes.Buffer) { _, _ = w.Write([]byte{packets.PINGREQ << 4, 0}) }
