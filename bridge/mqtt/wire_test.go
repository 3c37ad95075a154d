package mqtt

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/packets"
	packets311 "github.com/eclipse/paho.mqtt.golang/packets"

	"github.com/guardyn-edge/guardyn/bridge/session"
)

var moment = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)

func now() time.Time { return moment }

var full = session.Message{
	Topic: "plant/ä/temp", Payload: []byte(strings.Repeat("x", 300)), QoS: 2, Retain: true, ContentType: "application/json", ResponseTopic: "answers",
	Correlation: []byte{0, 1, 0xff}, Text: true, Expires: moment.Add(90 * time.Second),
	Properties: []session.Property{{Name: "a", Value: "1"}, {Name: "a", Value: "2"}, {Name: "", Value: ""}},
}

func reader(b []byte) *bufio.Reader { return bufio.NewReader(bytes.NewReader(b)) }

// TestPublishAgrees: what is written here, the Eclipse Paho library reads as it was meant, and the other way round.
func TestPublishAgrees(t *testing.T) {
	for name, m := range map[string]session.Message{
		"everything": full, "nothing": {Topic: "t", Payload: []byte{}}, "QoS 1": {Topic: "t", QoS: 1, Payload: []byte("p")},
		"large": {Topic: "t", QoS: 1, Payload: make([]byte, 300<<10)},
	} {
		t.Run(name, func(t *testing.T) {
			var w bytes.Buffer
			codec5{}.publish(&w, 7, m.QoS > 0, &m, moment)
			size := w.Len()
			raw := bytes.Clone(w.Bytes())
			control, err := packets.ReadPacket(&w)
			if err != nil || w.Len() != 0 {
				t.Fatalf("%v, %d of %d bytes are left", err, w.Len(), size)
			}
			p := control.Content.(*packets.Publish)
			if p.Topic != m.Topic || !bytes.Equal(p.Payload, m.Payload) || int(p.QoS) != m.QoS || p.Retain != m.Retain || p.Duplicate != (m.QoS > 0) ||
				p.Properties.ContentType != m.ContentType || p.Properties.ResponseTopic != m.ResponseTopic || !bytes.Equal(p.Properties.CorrelationData, m.Correlation) ||
				len(p.Properties.User) != len(m.Properties) || (p.Properties.MessageExpiry != nil) != !m.Expires.IsZero() || m.QoS > 0 && p.PacketID != 7 {
				t.Errorf("Paho reads %s", p)
			}
			got, err := codec5{}.read(reader(raw), now)
			if err != nil {
				t.Fatal(err)
			}
			if len(m.Payload) == 0 {
				got.msg.Payload = m.Payload
			}
			if !reflect.DeepEqual(got.msg, m) || got.dup != (m.QoS > 0) {
				t.Errorf("read %+v", got.msg)
			}
			w.Reset()
			codec311{}.publish(&w, 7, false, &m, moment)
			old, err := packets311.ReadPacket(bytes.NewReader(w.Bytes()))
			if err != nil {
				t.Fatal(err)
			}
			if o := old.(*packets311.PublishPacket); o.TopicName != m.Topic || !bytes.Equal(o.Payload, m.Payload) || int(o.Qos) != m.QoS || o.Retain != m.Retain {
				t.Errorf("Paho reads %s", o)
			}
		})
	}
	ids := []byte{packets.PUBLISH << 4, 10, 0, 1, 't', 5, packets.PropSubscriptionIdentifier, 1, packets.PropSubscriptionIdentifier, 0x80, 1, 'p'}
	if p, err := (codec5{}).read(reader(ids), now); err != nil || !reflect.DeepEqual(p.subscriptions, []int{1, 128}) {
		t.Errorf("subscriptions %v, %v", p.subscriptions, err)
	}
}

// TestExpiryWaits: the time that a message waits here is taken off.
func TestExpiryWaits(t *testing.T) {
	for wait, want := range map[time.Duration]uint32{0: 90, 30 * time.Second: 60, time.Hour: 1} {
		var w bytes.Buffer
		codec5{}.publish(&w, 1, false, &full, moment.Add(wait))
		p, err := packets.ReadPacket(&w)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Content.(*packets.Publish).Properties.MessageExpiry; got == nil || *got != want {
			t.Errorf("after %s: %v, want %d", wait, got, want)
		}
	}
}

// TestMalformed: nothing that a broker sends makes more of it than an error.
func TestMalformed(t *testing.T) {
	for name, b := range map[string][]byte{
		"length of five bytes": {0x30, 0x80, 0x80, 0x80, 0x80, 1}, "larger than any may be": {0x30, 0xff, 0xff, 0xff, 0x7f},
		"no topic": {0x30, 0}, "topic beyond the end": {0x30, 3, 0, 9, 'x'}, "QoS 3": {0x36, 5, 0, 1, 't', 0, 1}, "identifier 0": {0x32, 6, 0, 1, 't', 0, 0, 0},
		"empty topic": {0x30, 3, 0, 0, 0}, "properties beyond the end": {0x30, 4, 0, 1, 't', 9}, "unknown property": {0x30, 5, 0, 1, 't', 1, 0x7f},
		"cut property": {0x30, 6, 0, 1, 't', 2, 2, 0}, "topic alias": {0x30, 7, 0, 1, 't', 3, 0x23, 0, 1}, "short PUBACK": {0x40, 1, 0}, "receive maximum 0": {0x20, 6, 0, 0, 3, 0x21, 0, 0},
		"topic that is no UTF-8": {0x30, 4, 0, 1, 0xff, 0}, "topic with U+0000": {0x30, 4, 0, 1, 0, 0},
		"property that is no UTF-8": {0x30, 11, 0, 1, 't', 7, 0x26, 0, 1, 'n', 0, 1, 0xff}, "content type that is no UTF-8": {0x30, 8, 0, 1, 't', 4, 3, 0, 1, 0xff},
		"CONNECT": {0x10, 0}, "type 0": {0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if p, err := (codec5{}).read(reader(b), now); err == nil {
				t.Errorf("read as %+v", p)
			}
		})
	}
	if _, err := (codec5{}).read(reader([]byte{0x30, 9, 0}), now); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a cut packet gives %v", err)
	}
}

// FuzzRead: both codecs end with a packet or an error, and what is read as a PUBLISH is written as it was.
func FuzzRead(f *testing.F) {
	for _, m := range []session.Message{full, {Topic: "t"}} {
		var w bytes.Buffer
		codec5{}.publish(&w, 7, false, &m, moment)
		f.Add(bytes.Clone(w.Bytes()))
		codec311{}.publish(&w, 7, false, &m, moment)
		f.Add(bytes.Clone(w.Bytes()))
	}
	f.Add([]byte{0x20, 3, 0, 0, 0})
	f.Add([]byte{0x90, 4, 0, 1, 0, 1})
	f.Add([]byte{0xe0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, c := range []codec{codec5{}, codec311{}} {
			p, err := c.read(reader(b), now)
			if err != nil || p.kind != publish {
				continue
			}
			var w bytes.Buffer
			c.publish(&w, p.id, p.dup, &p.msg, moment)
			again, err := c.read(reader(w.Bytes()), now)
			if err != nil {
				t.Fatalf("what was written cannot be read: %v", err)
			}
			if p.msg.Expires.Before(moment.Add(time.Second)) && !p.msg.Expires.IsZero() {
				again.msg.Expires = p.msg.Expires // at least a second is sent
			}
			p.subscriptions, again.subscriptions = nil, nil
			if len(p.msg.Correlation) == 0 {
				p.msg.Correlation, again.msg.Correlation = nil, nil
			}
			if !reflect.DeepEqual(p, again) {
				t.Fatalf("%+v became %+v", p, again)
			}
		}
	})
}
