package mqtt

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/guardyn-edge/guardyn/bridge"
	"github.com/guardyn-edge/guardyn/bridge/session"
)

// maxIdentifier is the largest subscription identifier (MQTT 5.0 §3.8.2.1.2).
const maxIdentifier = 268435455

// subscriptions are what routes take. Routes with the same filter and group share one.
type subscriptions struct {
	all     []*subscription // sorted by what the broker is told
	asked   map[uint16]*subscription
	leaving map[uint16]chan struct{}
}

// subscription is one that the broker is asked for.
type subscription struct {
	session.Subscription
	wire       string // as the broker is told: with the group
	identifier int
	routes     []routeSink
	granted    int // -1: not yet, or refused
	err        string
}

type routeSink struct {
	route string
	qos   int
	sink  session.Sink
}

func newSubscriptions() subscriptions {
	return subscriptions{asked: map[uint16]*subscription{}, leaving: map[uint16]chan struct{}{}}
}

func wire(s session.Subscription) string {
	if s.Share == "" {
		return s.Filter.String()
	}
	return "$share/" + s.Share + "/" + s.Filter.String()
}

// Subscribe implements session.Session.
func (s *Session) Subscribe(route string, sub session.Subscription, sink session.Sink) {
	s.delivering.Lock()
	defer s.delivering.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	name := wire(sub)
	if have := s.subs.find(route); have != nil && have.wire != name {
		s.subs.remove(route) // a subscription that nobody has any more is Unsubscribe's to end
	}
	at, found := slices.BinarySearchFunc(s.subs.all, name, func(a *subscription, b string) int { return strings.Compare(a.wire, b) })
	r := routeSink{route, sub.QoS, sink}
	if found {
		have := s.subs.all[at]
		have.routes = append(slices.DeleteFunc(have.routes, func(o routeSink) bool { return o.route == route }), r)
		if want := have.most(); want != have.QoS {
			have.QoS = want
			s.ask(have)
		}
		return
	}
	added := &subscription{Subscription: sub, wire: name, identifier: s.subs.identify(name), routes: []routeSink{r}, granted: -1}
	s.subs.all = slices.Insert(s.subs.all, at, added)
	s.ask(added)
}

// most is the highest QoS that a route asks for.
func (b *subscription) most() int {
	q := 0
	for _, r := range b.routes {
		q = max(q, r.qos)
	}
	return q
}

// identify returns an identifier that no other has. It depends on the name, so that messages which a broker kept for a process before this
// one are told by it too.
func (b *subscriptions) identify(name string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	id := int(h.Sum32())%maxIdentifier + 1
	for slices.ContainsFunc(b.all, func(o *subscription) bool { return o.identifier == id }) {
		id = id%maxIdentifier + 1
	}
	return id
}

// ask sends a SUBSCRIBE, if there is a connection. mu is held.
func (s *Session) ask(sub *subscription) {
	sub.granted, sub.err = -1, ""
	if s.link == nil {
		return
	}
	id := s.newID()
	s.subs.asked[id] = sub
	s.codec.subscribe(&s.link.buf, id, sub.wire, byte(sub.QoS), sub.identifier)
	s.link.signal()
}

// granted takes a SUBACK.
func (s *Session) granted(p packet) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := s.subs.asked[p.id]
	delete(s.subs.asked, p.id)
	if sub == nil || len(p.granted) != 1 {
		return
	}
	if code := p.granted[0]; code >= 0x80 {
		sub.err = s.codec.why(p.kind, code, p.text)
		s.cfg.Log.Warn("a subscription is refused", "session", s.cfg.Session.ID, "filter", sub.wire, "error", sub.err)
	} else {
		sub.granted = int(code)
		if sub.granted != sub.QoS {
			sub.err = fmt.Sprintf("QoS %d was asked for, and %d is granted", sub.QoS, sub.granted)
		}
	}
}

// Unsubscribe implements session.Session.
func (s *Session) Unsubscribe(ctx context.Context, route string) {
	s.delivering.Lock()
	s.mu.Lock()
	sub := s.subs.find(route)
	if sub == nil || len(sub.routes) > 1 || s.link == nil {
		s.subs.remove(route)
		s.mu.Unlock()
		s.delivering.Unlock()
		return
	}
	id, gone := s.newID(), make(chan struct{})
	s.subs.leaving[id] = gone
	s.codec.unsubscribe(&s.link.buf, id, sub.wire)
	s.link.signal()
	s.mu.Unlock()
	s.delivering.Unlock() // what came before the broker's answer is the route's still
	limited, cancel := context.WithTimeout(ctx, subscribeTimeout)
	defer cancel()
	select {
	case <-gone:
	case <-limited.Done():
	}
	s.delivering.Lock()
	defer s.delivering.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.subs.leaving, id)
	s.subs.remove(route)
}

func (b *subscriptions) find(route string) *subscription {
	for _, sub := range b.all {
		if slices.ContainsFunc(sub.routes, func(r routeSink) bool { return r.route == route }) {
			return sub
		}
	}
	return nil
}

// remove takes a route off; a subscription without one is not asked for again.
func (b *subscriptions) remove(route string) {
	sub := b.find(route)
	if sub == nil {
		return
	}
	sub.routes = slices.DeleteFunc(sub.routes, func(r routeSink) bool { return r.route == route })
	if len(sub.routes) == 0 {
		b.all = slices.DeleteFunc(b.all, func(o *subscription) bool { return o == sub })
	}
}

// gone takes an UNSUBACK.
func (b *subscriptions) gone(id uint16) {
	if c := b.leaving[id]; c != nil {
		delete(b.leaving, id)
		close(c)
	}
}

// uses tells whether an answer by that packet identifier is outstanding.
func (b *subscriptions) uses(id uint16) bool { return b.asked[id] != nil || b.leaving[id] != nil }

// lost forgets what was asked on a connection that is lost.
func (b *subscriptions) lost() {
	clear(b.asked)
	for id := range b.leaving {
		b.gone(id)
	}
}

// sinksOf are those that a message is for: by the identifiers of the subscriptions it came by, where the broker names them, else
// by their filters.
func (b *subscriptions) sinksOf(p packet) []session.Sink {
	var sinks []session.Sink
	add := func(sub *subscription) {
		for _, r := range sub.routes {
			sinks = append(sinks, r.sink)
		}
	}
	for _, id := range p.subscriptions {
		for _, sub := range b.all {
			if sub.identifier == id {
				add(sub)
			}
		}
	}
	if len(sinks) > 0 {
		return sinks
	}
	for _, sub := range b.all {
		if _, ok := sub.Filter.Match(p.msg.Topic); ok {
			add(sub)
		}
	}
	return sinks
}

// status is sorted as the subscriptions are.
func (b *subscriptions) status() []bridge.SubscriptionStatus {
	out := make([]bridge.SubscriptionStatus, len(b.all))
	for i, sub := range b.all {
		out[i] = bridge.SubscriptionStatus{Filter: sub.wire, Asked: sub.QoS, Granted: sub.granted, Error: sub.err}
	}
	return out
}
