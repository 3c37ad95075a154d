package mqtt

import (
	"fmt"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/bridge/session"
)

// attempts is how often a message is sent that the broker refuses without saying that it is the message's fault.
const attempts = 10

// A connection that ends while messages are on the wire may have ended over one of them: the one that was there at sharedEnds of them goes alone,
// with those behind it, and at aloneEnds more it is refused. What brokers do not allow, many end the connection over without a word.
const (
	sharedEnds = 2
	aloneEnds  = 5
)

// outbox is what is to be sent, and what was sent and is not confirmed, in the order of Send.
type outbox struct {
	queue  []*outgoing // not on the wire
	sent   []*outgoing // on the wire; those that are finished are taken off lazily
	byID   map[uint16]*outgoing
	flying int    // messages that are on the wire, with an identifier
	last   uint16 // identifier that was given last
	// suspects is how many messages go one by one, since the broker ended the connection over one of them.
	suspects int
	paused   bool // the broker has no quota; a timer goes on
}

// outgoing is one message in the outbox.
type outgoing struct {
	*session.Outgoing
	id       uint16 // 0: none yet, or of QoS 0
	dup      bool   // it was on the wire in this session
	flying   bool   // it is on the wire, with an identifier
	received bool   // of QoS 2: the broker has said PUBREC. It passes the message on at PUBREL, so that only PUBCOMP confirms it
	tries    int
	shared   int // connections that ended while it was on the wire with others
	ends     int // that ended while it was there alone
	finished bool
}

func newOutbox() outbox {
	return outbox{byID: map[uint16]*outgoing{}}
}

// Send implements session.Session.
func (s *Session) Send(o *session.Outgoing) {
	var done after
	defer done.run()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		done.add(func() { o.Done(session.ErrStopped) })
		return
	}
	s.out.queue = append(s.out.queue, &outgoing{Outgoing: o})
	s.pump(&done)
}

// pump writes what the broker has room for. mu is held.
func (s *Session) pump(done *after) {
	l := s.link
	if l == nil || s.out.paused || l.leaving {
		return
	}
	wrote, now := 0, time.Time{}
	for _, o := range s.out.queue {
		if o.finished { // confirmed at the last moment of a connection
			wrote++
			continue
		}
		if o.QoS > 0 && s.out.flying >= l.quota(o.QoS) || s.out.suspects > 0 && s.out.flying > 0 {
			break
		}
		wrote++
		m := o.Message
		m.QoS = min(m.QoS, l.maximumQoS)
		if m.QoS == 0 {
			o.forget(&s.out)
		} else if o.id == 0 {
			o.id = s.newID()
			s.out.byID[o.id] = o
		}
		if reason := l.refuses(&m); reason != "" {
			o.forget(&s.out)
			o.finished = true
			done.add(func() { o.Done(&session.Refusal{Reason: reason}) })
			continue
		}
		if now.IsZero() {
			now = s.cfg.Now()
		}
		if o.received {
			putAck(&l.buf, pubrel, o.id)
		} else {
			s.codec.publish(&l.buf, o.id, o.dup, &m, now)
		}
		if m.QoS > 0 {
			o.dup, o.flying = true, true
			s.out.flying++
		}
		s.out.sent = append(s.out.sent, o)
		if m.QoS == 0 {
			l.flushed = append(l.flushed, o)
		}
	}
	if wrote == 0 {
		return
	}
	clear(s.out.queue[:wrote])
	if s.out.queue = s.out.queue[wrote:]; len(s.out.queue) == 0 {
		s.out.queue = nil
	}
	s.out.tidy()
	l.signal()
}

// quota is how many messages may be on the wire. MQTT 3.1.1 has no receive maximum, and brokers have one all the same for QoS 2, where they
// keep what is not released: Mosquitto ends the connection over the 21st.
func (l *link) quota(qos int) int {
	if qos == 2 && l.old {
		return exactly311
	}
	return l.receiveMaximum
}

// exactly311 bounds messages of QoS 2 on the wire with MQTT 3.1.1.
const exactly311 = 20

// forget frees the message's identifier.
func (o *outgoing) forget(out *outbox) {
	if o.id != 0 && out.byID[o.id] == o {
		delete(out.byID, o.id)
	}
	o.id, o.dup, o.received = 0, false, false
}

// refuses says why a broker, by what it said of itself, would not take the message.
func (l *link) refuses(m *session.Message) string {
	size := uint32(len(m.Topic) + len(m.Payload) + publish5Size(m) + 16)
	switch {
	case l.maximumPacket > 0 && size > l.maximumPacket:
		return fmt.Sprintf("the message has about %d bytes, and the broker takes %d", size, l.maximumPacket)
	case size > session.MaxMessageBytes:
		return fmt.Sprintf("the message has about %d bytes, more than %d", size, session.MaxMessageBytes)
	case m.Retain && l.noRetain:
		return "the broker keeps no retained messages"
	}
	return l.unspeakable(m)
}

// unspeakable says what of the message MQTT cannot say. A broker that is sent it ends the connection (MQTT 5.0 §1.5.4).
func (l *link) unspeakable(m *session.Message) string {
	if fault := session.TextFault(m.Topic); fault != "" {
		return "the topic cannot be sent: " + fault
	}
	if l.old {
		return "" // the rest stays behind
	}
	for _, t := range [...]struct{ name, text string }{{"content type", m.ContentType}, {"response topic", m.ResponseTopic}} {
		if fault := session.TextFault(t.text); fault != "" {
			return fmt.Sprintf("the %s cannot be sent: %s", t.name, fault)
		}
	}
	if strings.ContainsAny(m.ResponseTopic, "+#") {
		return "the response topic cannot be sent: it has wildcards"
	}
	if n := len(m.Correlation); n > session.MaxTextBytes {
		return fmt.Sprintf("the correlation data cannot be sent: it has %d bytes, more than %d", n, session.MaxTextBytes)
	}
	for _, p := range m.Properties {
		fault := session.TextFault(p.Name)
		if fault == "" {
			fault = session.TextFault(p.Value)
		}
		if fault != "" {
			return fmt.Sprintf("the user property %.100q cannot be sent: %s", p.Name, fault)
		}
	}
	return ""
}

// newID returns an identifier that is not in use. There are more of them than can be, by the receive maximum.
func (s *Session) newID() uint16 {
	for {
		s.out.last++
		id := s.out.last
		if id != 0 && s.out.byID[id] == nil && !s.subs.uses(id) {
			return id
		}
	}
}

// wrote finishes messages of QoS 0: nobody confirms them.
func (s *Session) wrote(flushed []*outgoing) {
	s.mu.Lock()
	var done after
	for _, o := range flushed {
		if !o.finished {
			o.finished = true
			done.add(func() { o.Done(nil) })
		}
	}
	s.out.tidy()
	s.mu.Unlock()
	done.run()
}

// confirmed takes a PUBACK, PUBREC or PUBCOMP.
func (s *Session) confirmed(p packet) {
	var done after
	defer done.run()
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.out.byID[p.id]
	refused, final := s.codec.refused(p.reason)
	switch {
	case p.kind == pubcomp:
		refused = false // a broker that knows nothing of the message any more has passed it on
	case p.kind == pubrec && !refused && s.link != nil:
		if o != nil {
			o.received = true
		}
		putAck(&s.link.buf, pubrel, p.id)
		s.link.signal()
		return
	}
	if o == nil {
		return
	}
	delete(s.out.byID, p.id)
	o.tries++
	if o.flying {
		o.flying = false
		s.out.flying--
	}
	if s.out.suspects > 0 {
		s.out.suspects--
	}
	switch {
	case !refused:
		o.finished = true
		done.add(func() { o.Done(nil) })
	case final || p.reason != quotaExceeded && o.tries >= attempts:
		o.finished = true
		reason := s.codec.why(p.kind, p.reason, p.text)
		done.add(func() { o.Done(&session.Refusal{Reason: reason}) })
	default:
		o.Retried()
		s.err = "the broker does not take messages: " + s.codec.why(p.kind, p.reason, p.text)
		s.retry(o)
	}
	s.out.tidy()
	s.pump(&done)
}

// quotaExceeded is the reason that says nothing of the message (MQTT 5.0 §3.4.2.1).
const quotaExceeded = 0x97

// retry puts o back, before everything that is not on the wire, and holds all of it for a while.
func (s *Session) retry(o *outgoing) {
	again := &outgoing{Outgoing: o.Outgoing, tries: o.tries}
	o.finished = true // on the wire
	s.out.queue = append([]*outgoing{again}, s.out.queue...)
	s.out.paused = true
	time.AfterFunc(s.cfg.Backoff.Delay(o.tries), func() {
		var done after
		defer done.run()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.out.paused = false
		s.pump(&done)
	})
}

// lost puts what was on the wire back, in its order.
func (out *outbox) lost() {
	queue := make([]*outgoing, 0, len(out.sent)+len(out.queue))
	out.flying = 0
	for _, o := range out.sent {
		if o.flying = false; !o.finished {
			o.Retried()
			queue = append(queue, o)
		}
	}
	out.queue, out.sent = append(queue, out.queue...), nil
}

// resume begins a new connection. When the broker knows nothing of the session, nor do the packet identifiers mean anything.
func (out *outbox) resume(present bool) {
	if present {
		return
	}
	for _, o := range out.queue {
		o.forget(out)
	}
	clear(out.byID)
}

// suspect notes that the broker ended the connection over a message: those that were on the wire go one by one, and one that it happens to
// alone is returned, to be refused.
func (out *outbox) suspect(reason byte) *outgoing {
	if !blames(reason) {
		return nil
	}
	var open []*outgoing
	for _, o := range out.sent {
		if !o.finished {
			open = append(open, o)
		}
	}
	if out.suspects = len(open); len(open) != 1 {
		return nil
	}
	return out.giveUp(open[0])
}

// giveUp takes a message out, to be refused; what is behind it waits no longer. It returns the message.
func (out *outbox) giveUp(o *outgoing) *outgoing {
	out.suspects, o.finished = 0, true
	o.forget(out)
	return o
}

// ended notes that the connection ended of itself. A message that it happens to over and over, alone on the wire, is returned, to be refused.
func (out *outbox) ended() *outgoing {
	var open []*outgoing
	for _, o := range out.sent {
		if !o.finished && o.id != 0 {
			open = append(open, o)
		}
	}
	switch {
	case len(open) == 0:
	case len(open) > 1:
		for _, o := range open {
			o.shared++
		}
		if open[0].shared >= sharedEnds {
			out.suspects = max(out.suspects, len(open))
		}
	default:
		o := open[0]
		out.suspects = max(out.suspects, 1) // what is behind it waits
		if o.ends++; o.ends >= aloneEnds {
			return out.giveUp(o)
		}
	}
	return nil
}

// blames tells whether the reason of a DISCONNECT is about what a client sent (MQTT 5.0 §3.14.2.1).
func blames(reason byte) bool {
	switch reason {
	case 0x81, 0x82, 0x90, 0x94, 0x95, 0x99, 0x9A, 0x9B:
		return true
	}
	return false
}

// tidy takes finished messages off.
func (out *outbox) tidy() {
	n := 0
	for n < len(out.sent) && out.sent[n].finished {
		out.sent[n] = nil
		n++
	}
	if out.sent = out.sent[n:]; len(out.sent) == 0 {
		out.sent = nil
	}
}

// drop empties the outbox and returns what was in it.
func (out *outbox) drop() []*outgoing {
	out.lost()
	left := out.queue
	out.queue = nil
	clear(out.byID)
	return left
}
