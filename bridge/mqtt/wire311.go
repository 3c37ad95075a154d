package mqtt

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/eclipse/paho.golang/packets"
	packets311 "github.com/eclipse/paho.mqtt.golang/packets"

	"github.com/guardyn-edge/guardyn/bridge/session"
)

// codec311 is MQTT 3.1.1. It has no properties, and its acknowledgements no reasons.
type codec311 struct{}

func (codec311) read(r *bufio.Reader, _ func() time.Time) (packet, error) {
	first, b, err := whole(r)
	if err != nil {
		return packet{}, err
	}
	p := packet{kind: first >> 4}
	switch p.kind {
	case packets.PUBLISH:
		p, rest, err := readPublish(first, b)
		if err == nil && p.msg.Topic == "" {
			err = errMalformed
		}
		p.msg.Payload = rest
		return p, err
	case packets.PUBACK, packets.PUBREC, packets.PUBREL, packets.PUBCOMP, packets.UNSUBACK:
		if len(b) != 2 {
			return p, errMalformed
		}
		p.id = binary.BigEndian.Uint16(b)
		return p, nil
	case packets.PINGRESP:
		return p, nil
	case packets.CONNACK, packets.SUBACK:
		control, err := packets311.NewControlPacketWithHeader(packets311.FixedHeader{MessageType: p.kind, RemainingLength: len(b)})
		if err == nil {
			err = control.Unpack(bytes.NewReader(b))
		}
		if err != nil {
			return p, fmt.Errorf("%w: %w", errMalformed, err)
		}
		switch c := control.(type) {
		case *packets311.ConnackPacket:
			p.reason, p.present, p.receiveMaximum, p.maximumQoS = c.ReturnCode, c.SessionPresent, 65535, 2
		case *packets311.SubackPacket:
			p.id, p.granted = c.MessageID, c.ReturnCodes
		}
		return p, nil
	}
	return p, fmt.Errorf("%w: a client is not sent packets of type %d", errMalformed, p.kind)
}

func (codec311) connect(w *bytes.Buffer, c connect) {
	p := packets311.NewControlPacket(packets311.Connect).(*packets311.ConnectPacket)
	p.ProtocolName, p.ProtocolVersion, p.ClientIdentifier, p.CleanSession, p.Keepalive = "MQTT", 4, c.clientID, c.clean, c.keepAlive
	p.UsernameFlag, p.Username = c.credentials.Username != "", c.credentials.Username
	p.PasswordFlag, p.Password = c.credentials.Password != "", []byte(c.credentials.Password)
	_ = p.Write(w)
}

func (codec311) publish(w *bytes.Buffer, id uint16, dup bool, m *session.Message, _ time.Time) {
	putPublish(w, id, dup, m, 0)
	_, _ = w.Write(m.Payload)
}

func (codec311) subscribe(w *bytes.Buffer, id uint16, filter string, qos byte, _ int) {
	p := packets311.NewControlPacket(packets311.Subscribe).(*packets311.SubscribePacket)
	p.MessageID, p.Topics, p.Qoss = id, []string{filter}, []byte{qos}
	_ = p.Write(w)
}

func (codec311) unsubscribe(w *bytes.Buffer, id uint16, filter string) {
	p := packets311.NewControlPacket(packets311.Unsubscribe).(*packets311.UnsubscribePacket)
	p.MessageID, p.Topics = id, []string{filter}
	_ = p.Write(w)
}

func (codec311) disconnect(w *bytes.Buffer) {
	_ = packets311.NewControlPacket(packets311.Disconnect).Write(w)
}

func (codec311) refused(byte) (refused, final bool) { return false, false }

func (codec311) why(kind, reason byte, _ string) string {
	if kind == packets.CONNACK {
		if words, ok := packets311.ConnackReturnCodes[reason]; ok {
			return fmt.Sprintf("%s (%d)", words, reason)
		}
	}
	return fmt.Sprintf("it gives no reason (0x%02X)", reason)
}
