package nats

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/guardyn-edge/guardyn/bridge/session"
)

// consumer takes for one route.
type consumer struct {
	route string
	sub   session.Subscription
	stop  context.CancelFunc // nil: it does not run
	done  chan struct{}

	// Of the session's mutex.
	ready bool
	err   string
	open  map[jetstream.Msg]bool // taken, not settled

	delivering sync.Mutex // while the sink is called
	sink       session.Sink
}

// Subscribe implements session.Session.
func (s *Session) Subscribe(route string, sub session.Subscription, sink session.Sink) {
	s.mu.Lock()
	have := s.subs[route]
	if have != nil && have.sub.Filter.String() == sub.Filter.String() && have.sub.Stream == sub.Stream && have.sub.InFlight == sub.InFlight {
		s.mu.Unlock()
		have.delivering.Lock()
		defer have.delivering.Unlock()
		have.sink = sink
		return
	}
	c := &consumer{route: route, sub: sub, sink: sink, open: map[jetstream.Msg]bool{}}
	s.subs[route] = c
	if have != nil && have.stop != nil {
		have.stop()
	}
	s.begin(c)
	s.mu.Unlock()
}

// Unsubscribe implements session.Session. What was taken and is not settled is delivered again to whoever has the consumer next.
func (s *Session) Unsubscribe(ctx context.Context, route string) {
	s.mu.Lock()
	c := s.subs[route]
	delete(s.subs, route)
	if c == nil || c.stop == nil {
		s.mu.Unlock()
		return
	}
	c.stop()
	s.mu.Unlock()
	select {
	case <-c.done:
	case <-ctx.Done():
	}
}

// sorted are the consumers by their routes. mu is held.
func (s *Session) sorted() []*consumer {
	var all []*consumer
	for _, route := range slices.Sorted(maps.Keys(s.subs)) {
		all = append(all, s.subs[route])
	}
	return all
}

// begin runs c, if there is a connection. mu is held.
func (s *Session) begin(c *consumer) {
	if s.js == nil {
		return
	}
	ctx, stop := context.WithCancel(s.running)
	c.stop, c.done = stop, make(chan struct{})
	js, done := s.js, c.done
	s.work.Go(func() {
		defer close(done)
		for attempt := 1; ctx.Err() == nil; attempt++ {
			if err := s.consume(ctx, js, c); err != nil && ctx.Err() == nil {
				s.consumes(c, false, err)
				s.cfg.Backoff.Wait(ctx, attempt)
			} else {
				attempt = 1
			}
		}
	})
}

func (s *Session) consumes(c *consumer, ready bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.ready, c.err = ready, ""
	if err != nil {
		c.err = err.Error()
	}
}

// durable is a name that JetStream takes.
func durable(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '.' || r == '*' || r == '>' || r <= ' ' || r == '/' || r == '\\' {
			return '_'
		}
		return r
	}, name)
}

// consume takes until ctx ends or the server ends it.
func (s *Session) consume(ctx context.Context, js jetstream.JetStream, c *consumer) error {
	filter, stream := c.sub.Filter.String(), c.sub.Stream
	if stream == "" {
		var err error
		if stream, err = js.StreamNameBySubject(ctx, filter); err != nil {
			return fmt.Errorf("no stream has %s: %w", filter, err)
		}
	}
	on, err := js.CreateOrUpdateConsumer(ctx, stream, jetstream.ConsumerConfig{
		Durable: durable(c.sub.Name), FilterSubject: filter, AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait,
		MaxAckPending: c.sub.InFlight, DeliverPolicy: jetstream.DeliverAllPolicy,
	})
	if err != nil {
		return fmt.Errorf("consumer of %s on stream %s: %w", filter, stream, err)
	}
	messages, err := on.Messages(jetstream.PullMaxMessages(max(c.sub.InFlight, 1)))
	if err != nil {
		return err
	}
	s.consumes(c, true, nil)
	leave := context.AfterFunc(ctx, messages.Stop)
	defer leave()
	var renewing sync.WaitGroup
	renewed, stop := context.WithCancel(ctx)
	renewing.Go(func() { s.renew(renewed, c) })
	defer renewing.Wait()
	defer stop()
	for {
		m, err := messages.Next()
		switch {
		case err == nil:
			s.deliver(c, m)
		case errors.Is(err, jetstream.ErrMsgIteratorClosed):
			return nil
		case errors.Is(err, jetstream.ErrNoHeartbeat):
			s.consumes(c, false, err) // it asks again by itself
		default:
			messages.Stop()
			return err
		}
		if err == nil {
			s.consumes(c, true, nil)
		}
	}
}

// renew keeps the server from delivering again what is under way.
func (s *Session) renew(ctx context.Context, c *consumer) {
	t := time.NewTicker(ackWait / 3)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
		s.mu.Lock()
		open := slices.Collect(maps.Keys(c.open))
		s.mu.Unlock()
		for _, m := range open {
			if err := m.InProgress(); err != nil && !errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
				s.note(err)
			}
		}
	}
}

// deliver gives one message to the route.
func (s *Session) deliver(c *consumer, m jetstream.Msg) {
	s.mu.Lock()
	c.open[m] = true
	s.mu.Unlock()
	out := session.Message{Topic: m.Subject(), Payload: m.Data(), QoS: 1}
	for name, values := range m.Headers() {
		for _, v := range values {
			switch {
			case strings.EqualFold(name, "Content-Type"):
				out.ContentType = v
			case !strings.HasPrefix(name, "Nats-"): // they are the server's own
				out.Properties = append(out.Properties, session.Property{Name: name, Value: v})
			}
		}
	}
	slices.SortStableFunc(out.Properties, func(a, b session.Property) int { return strings.Compare(a.Name, b.Name) })
	d := session.NewDelivery(out, func() {
		s.mu.Lock()
		delete(c.open, m)
		s.mu.Unlock()
		if err := m.Ack(); err != nil {
			s.note(err) // it is delivered again
		}
	})
	c.delivering.Lock()
	defer c.delivering.Unlock()
	c.sink(d)
}
