package mqtt

import (
	"bytes"

	"github.com/guardyn-edge/guardyn/bridge/session"
)

// inbox is what was taken and is not acknowledged.
type inbox struct {
	byID map[uint16]*incoming
	// order is how messages came on this connection: acknowledgements go out in it (MQTT 5.0 §4.6).
	order []*incoming
	// received are messages of QoS 2 that were acknowledged by PUBREC and not released yet: one of them again is no new message.
	received map[uint16]bool
	held     int // deliveries that are not settled, of every QoS
	freed    chan struct{}
}

// incoming is one message of QoS 1 or 2.
type incoming struct {
	id      uint16
	qos     int
	topic   string
	payload []byte
	settled bool
}

func newInbox() inbox {
	return inbox{byID: map[uint16]*incoming{}, received: map[uint16]bool{}, freed: make(chan struct{}, 1)}
}

// resume begins a new connection. When the broker has kept the session it delivers again what was not acknowledged.
func (in *inbox) resume(present bool) {
	in.order = nil
	if !present {
		clear(in.byID)
		clear(in.received)
	}
}

// again finds the message that p repeats: one that is under way still, or whose acknowledgement was lost.
func (in *inbox) again(p packet) *incoming {
	m := in.byID[p.id]
	if m != nil && p.dup && m.qos == p.msg.QoS && m.topic == p.msg.Topic && bytes.Equal(m.payload, p.msg.Payload) {
		return m
	}
	return nil
}

// awaitRoom waits, where a session may stop reading, until few enough are unsettled; false when the connection is lost before.
func (s *Session) awaitRoom(l *link) bool {
	for {
		s.mu.Lock()
		full := s.in.held >= 2*l.window
		s.mu.Unlock()
		if !full || s.cfg.IsTarget() {
			return true
		}
		select {
		case <-s.in.freed:
		case <-l.done:
			return false
		}
	}
}

// take delivers one message to the routes that it is for.
func (s *Session) take(l *link, p packet) {
	s.delivering.Lock()
	defer s.delivering.Unlock()
	s.mu.Lock()
	m := (*incoming)(nil)
	if p.msg.QoS > 0 {
		if s.in.received[p.id] {
			putAck(&l.buf, pubrec, p.id)
			s.mu.Unlock()
			l.signal()
			return
		}
		if m = s.in.again(p); m != nil {
			s.in.order = append(s.in.order, m)
			s.acknowledge()
			s.mu.Unlock()
			return
		}
		m = &incoming{id: p.id, qos: p.msg.QoS, topic: p.msg.Topic, payload: p.msg.Payload}
		s.in.byID[p.id] = m
		s.in.order = append(s.in.order, m)
	}
	sinks := s.subs.sinksOf(p)
	left := len(sinks)
	if left > 0 {
		s.in.held++
	} else if m != nil {
		m.settled = true
		s.acknowledge()
	}
	s.mu.Unlock()
	if left == 0 {
		s.cfg.Log.Warn("a message came that no route takes; it is acknowledged", "session", s.cfg.Session.ID, "topic", p.msg.Topic)
		return
	}
	settle := func() { // for each sink once
		s.mu.Lock()
		defer s.mu.Unlock()
		if left--; left > 0 {
			return
		}
		s.in.held--
		select {
		case s.in.freed <- struct{}{}:
		default:
		}
		if m != nil {
			m.settled = true
			s.acknowledge()
		}
	}
	for _, sink := range sinks {
		sink(session.NewDelivery(p.msg, settle))
	}
}

// acknowledge sends what is due: in the order in which messages came. mu is held.
func (s *Session) acknowledge() {
	if s.link == nil {
		return // what is settled is acknowledged when it comes again
	}
	n := 0
	for _, m := range s.in.order {
		if !m.settled {
			break
		}
		n++
		if s.in.byID[m.id] == m {
			delete(s.in.byID, m.id)
		}
		if m.qos == 1 {
			putAck(&s.link.buf, puback, m.id)
			continue
		}
		s.in.received[m.id] = true
		putAck(&s.link.buf, pubrec, m.id)
	}
	if n == 0 {
		return
	}
	clear(s.in.order[:n])
	s.in.order = s.in.order[n:]
	s.link.signal()
}
