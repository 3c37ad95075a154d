package mqtt

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/guardyn-edge/guardyn/bridge/session"
)

// codec5 is MQTT 5.0.
type codec5 struct{}

func (codec5) read(r *bufio.Reader, now func() time.Time) (packet, error) {
	first, b, err := whole(r)
	if err != nil {
		return packet{}, err
	}
	p := packet{kind: first >> 4}
	switch p.kind {
	case packets.PUBLISH:
		return publish5(first, b, now)
	case packets.PUBACK, packets.PUBREC, packets.PUBREL, packets.PUBCOMP:
		if len(b) < 2 {
			return p, errMalformed
		}
		p.id = binary.BigEndian.Uint16(b)
		if len(b) > 2 {
			p.reason = b[2]
		}
		if len(b) > 4 {
			properties := &packets.Properties{}
			if err := properties.Unpack(bytes.NewBuffer(b[3:]), p.kind); err != nil {
				return p, fmt.Errorf("%w: %w", errMalformed, err)
			}
			p.text = properties.ReasonString
		}
		return p, nil
	case packets.PINGRESP:
		return p, nil
	}
	return other5(p, b)
}

// other5 reads what is rare.
func other5(p packet, b []byte) (packet, error) {
	control := packets.NewControlPacket(p.kind)
	if control == nil {
		return p, errMalformed
	}
	if p.kind == packets.DISCONNECT && len(b) == 0 {
		return p, nil
	}
	if err := control.Content.Unpack(bytes.NewBuffer(b)); err != nil {
		return p, fmt.Errorf("%w: %w", errMalformed, err)
	}
	switch c := control.Content.(type) {
	case *packets.Connack:
		p.reason, p.present, p.text = c.ReasonCode, c.SessionPresent, c.Properties.ReasonString
		p.receiveMaximum, p.maximumQoS, p.keepAlive = 65535, 2, c.Properties.ServerKeepAlive
		if v := c.Properties.ReceiveMaximum; v != nil {
			if *v == 0 { // a protocol error (MQTT 5.0 §3.2.2.3.3)
				return p, fmt.Errorf("%w: its receive maximum is 0", errMalformed)
			}
			p.receiveMaximum = *v
		}
		if v := c.Properties.MaximumQOS; v != nil {
			p.maximumQoS = *v
		}
		if v := c.Properties.MaximumPacketSize; v != nil {
			p.maximumPacket = *v
		}
		p.noRetain = c.Properties.RetainAvailable != nil && *c.Properties.RetainAvailable == 0
	case *packets.Suback:
		p.id, p.granted, p.text = c.PacketID, c.Reasons, c.Properties.ReasonString
	case *packets.Unsuback:
		p.id, p.granted = c.PacketID, c.Reasons
	case *packets.Disconnect:
		p.reason, p.text = c.ReasonCode, c.Properties.ReasonString
	default:
		return p, fmt.Errorf("%w: a client is not sent %s", errMalformed, control.PacketType())
	}
	return p, nil
}

// publish5 reads a PUBLISH with its properties (MQTT 5.0 §3.3.2.3).
func publish5(first byte, b []byte, now func() time.Time) (packet, error) {
	p, b, err := readPublish(first, b)
	if err != nil {
		return p, err
	}
	size, b, ok := varint(b)
	if !ok || size > len(b) {
		return p, errMalformed
	}
	m, rest := &p.msg, b[:size]
	m.Payload = b[size:]
	for len(rest) > 0 && ok {
		name := rest[0]
		rest = rest[1:]
		switch name {
		case packets.PropPayloadFormat:
			if ok = len(rest) >= 1; ok {
				m.Text, rest = rest[0] == 1, rest[1:]
			}
		case packets.PropMessageExpiry:
			if ok = len(rest) >= 4; ok {
				m.Expires = now().Add(time.Duration(binary.BigEndian.Uint32(rest)) * time.Second)
				rest = rest[4:]
			}
		case packets.PropTopicAlias:
			return p, fmt.Errorf("%w: a topic alias, which the session does not allow", errMalformed)
		case packets.PropResponseTopic:
			m.ResponseTopic, rest, ok = textUTF8(rest)
		case packets.PropCorrelationData:
			var data string
			data, rest, ok = text(rest)
			m.Correlation = []byte(data)
		case packets.PropContentType:
			m.ContentType, rest, ok = textUTF8(rest)
		case packets.PropSubscriptionIdentifier:
			var id int
			id, rest, ok = varint(rest)
			p.subscriptions = append(p.subscriptions, id)
		case packets.PropUser:
			var u session.Property
			if u.Name, rest, ok = textUTF8(rest); ok {
				u.Value, rest, ok = textUTF8(rest)
			}
			m.Properties = append(m.Properties, u)
		default:
			ok = false
		}
	}
	if !ok || m.Topic == "" {
		return p, errMalformed
	}
	return p, nil
}

// publish5Size is how long m's properties are.
func publish5Size(m *session.Message) int {
	n := 0
	if m.Text {
		n += 2
	}
	if !m.Expires.IsZero() {
		n += 5
	}
	for _, s := range [...]int{len(m.ContentType), len(m.ResponseTopic), len(m.Correlation)} {
		if s > 0 {
			n += 3 + s
		}
	}
	for _, u := range m.Properties {
		n += 5 + len(u.Name) + len(u.Value)
	}
	return n
}

func (codec5) publish(w *bytes.Buffer, id uint16, dup bool, m *session.Message, now time.Time) {
	size := publish5Size(m)
	putPublish(w, id, dup, m, size+sizeVarint(size))
	putVarint(w, size)
	if m.Text {
		_, _ = w.Write([]byte{packets.PropPayloadFormat, 1})
	}
	if !m.Expires.IsZero() {
		// The time that it waited here is taken off (MQTT 5.0 §3.3.2.3.3).
		left := max(m.Expires.Sub(now)/time.Second, 1)
		w.WriteByte(packets.PropMessageExpiry)
		_, _ = w.Write(binary.BigEndian.AppendUint32(w.AvailableBuffer(), uint32(left)))
	}
	if m.ContentType != "" {
		w.WriteByte(packets.PropContentType)
		putText(w, m.ContentType)
	}
	if m.ResponseTopic != "" {
		w.WriteByte(packets.PropResponseTopic)
		putText(w, m.ResponseTopic)
	}
	if len(m.Correlation) > 0 {
		w.WriteByte(packets.PropCorrelationData)
		putText(w, m.Correlation)
	}
	for _, u := range m.Properties {
		w.WriteByte(packets.PropUser)
		putText(w, u.Name)
		putText(w, u.Value)
	}
	_, _ = w.Write(m.Payload)
}

// put writes what is rare.
func put(w *bytes.Buffer, kind byte, content packets.Packet) {
	control := packets.ControlPacket{FixedHeader: packets.FixedHeader{Type: kind}, Content: content}
	if kind == packets.SUBSCRIBE || kind == packets.UNSUBSCRIBE {
		control.Flags = 2
	}
	_, _ = control.WriteTo(w)
}

func (codec5) connect(w *bytes.Buffer, c connect) {
	largest := uint32(session.MaxMessageBytes)
	put(w, packets.CONNECT, &packets.Connect{
		ProtocolName: "MQTT", ProtocolVersion: 5, ClientID: c.clientID, CleanStart: c.clean, KeepAlive: c.keepAlive,
		UsernameFlag: c.credentials.Username != "", Username: c.credentials.Username,
		PasswordFlag: c.credentials.Password != "", Password: []byte(c.credentials.Password),
		Properties: &packets.Properties{SessionExpiryInterval: &c.expiry, ReceiveMaximum: &c.receiveMaximum, MaximumPacketSize: &largest},
	})
}

// subscribe asks for retained messages only when the broker has no such subscription yet, and for their flag as it was set.
func (codec5) subscribe(w *bytes.Buffer, id uint16, filter string, qos byte, identifier int) {
	put(w, packets.SUBSCRIBE, &packets.Subscribe{
		PacketID: id, Properties: &packets.Properties{SubscriptionIdentifier: &identifier},
		Subscriptions: []packets.SubOptions{{Topic: filter, QoS: qos, RetainHandling: 1, RetainAsPublished: true}},
	})
}

func (codec5) unsubscribe(w *bytes.Buffer, id uint16, filter string) {
	put(w, packets.UNSUBSCRIBE, &packets.Unsubscribe{PacketID: id, Topics: []string{filter}, Properties: &packets.Properties{}})
}

func (codec5) disconnect(w *bytes.Buffer) {
	put(w, packets.DISCONNECT, &packets.Disconnect{Properties: &packets.Properties{}})
}

// refused: a quota may be free again later, and so may what the broker does not specify or has of its own; the rest is of the message.
func (codec5) refused(reason byte) (refused, final bool) {
	switch reason {
	case packets.PubackUnspecifiedError, packets.PubackImplementationSpecificError, packets.PubackPacketIdentifierInUse, packets.PubackQuotaExceeded:
		return true, false
	}
	return reason >= 0x80, true
}

func (codec5) why(kind, reason byte, text string) string {
	var words string
	switch kind {
	case packets.CONNACK:
		words = (&packets.Connack{ReasonCode: reason}).Reason()
	case packets.DISCONNECT:
		words = (&packets.Disconnect{ReasonCode: reason}).Reason()
	case packets.SUBACK:
		words = (&packets.Suback{Reasons: []byte{reason}}).Reason(0)
	case packets.PUBACK:
		words = (&packets.Puback{ReasonCode: reason}).Reason()
	case packets.PUBREC:
		words = (&packets.Pubrec{ReasonCode: reason}).Reason()
	}
	if words == "" {
		words = "it gives no reason"
	}
	if text != "" {
		words = text + "; " + words
	}
	return fmt.Sprintf("%s (0x%02X)", words, reason)
}
