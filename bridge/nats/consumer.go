package nats

import (
	"context"
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
	prior <-chan struct{}    // closed when what took for the route before takes no more; nil: nothing did
	stop  context.CancelFunc // nil: it does not run
	done  chan struct{}

	// Of the session's mutex.
	ready bool
	err   string
	open  map[place]*taken

	delivering sync.Mutex // while the sink is called
	sink       session.Sink
}

// place is where a message is in its stream. A stream that was made anew counts from 1 again.
type place struct {
	sequence uint64
	at       time.Time
}

// taken is a message that is not settled.
type taken struct{ reply string } // where its acknowledgement goes: to the newest delivery of it

// Subscribe implements session.Session.
func (s *Session) Subscribe(route string, sub session.Subscription, sink session.Sink) {
	s.mu.Lock()
	have := s.subs[route]
	s.mu.Unlock()
	if have != nil {
		have.delivering.Lock()
		have.sink = sink // also of what a consumer that is replaced still delivers
		have.delivering.Unlock()
		if have.sub.Filter.String() == sub.Filter.String() && have.sub.Stream == sub.Stream && have.sub.InFlight == sub.InFlight {
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &consumer{route: route, sub: sub, sink: sink, open: map[place]*taken{}}
	if have != nil {
		c.open = have.open
		if have.stop != nil {
			have.stop()
			c.prior = have.done
		}
	}
	s.subs[route] = c
	s.begin(c)
}

// Unsubscribe implements session.Session. What was taken and is not settled is the route's still.
func (s *Session) Unsubscribe(ctx context.Context, route string) {
	s.mu.Lock()
	c := s.subs[route]
	delete(s.subs, route)
	if c == nil || c.stop == nil {
		s.mu.Unlock()
		return
	}
	s.former[c] = true
	c.stop()
	s.mu.Unlock()
	select {
	case <-c.done:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(c)
}

// forget lets go of a consumer whose route is gone and that has nothing under way. mu is held.
func (s *Session) forget(c *consumer) {
	if len(c.open) == 0 {
		delete(s.former, c)
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
	on := s.conn
	if on == nil {
		return
	}
	ctx, stop := context.WithCancel(on.ctx)
	c.stop, c.done = stop, make(chan struct{})
	prior, done := c.prior, c.done
	on.work.Go(func() {
		defer close(done)
		defer stop()
		if prior != nil {
			<-prior // it ends with its context
		}
		for attempt := 1; ctx.Err() == nil; attempt++ {
			if err := s.consume(ctx, on, c); err != nil && ctx.Err() == nil {
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

// streamOf finds the stream that has the subjects. Where several have some of them, one of them alone would leave the rest out.
func streamOf(ctx context.Context, js jetstream.JetStream, subjects string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list := js.StreamNames(ctx, jetstream.WithStreamListSubject(subjects))
	var all []string
	for name := range list.Name() {
		all = append(all, name)
	}
	slices.Sort(all)
	switch err := list.Err(); {
	case err != nil:
		return "", fmt.Errorf("which stream has %s is not known: %w", subjects, err)
	case len(all) == 0:
		return "", fmt.Errorf("no stream has %s", subjects)
	case len(all) > 1:
		return "", fmt.Errorf("several streams have %s: %s: name one of them in from.stream", subjects, strings.Join(all, ", "))
	}
	return all[0], nil
}

// consume takes until ctx ends or the server ends it.
func (s *Session) consume(ctx context.Context, on *connection, c *consumer) error {
	filter, stream := c.sub.Filter.String(), c.sub.Stream
	if stream == "" {
		var err error
		if stream, err = streamOf(ctx, on.js, filter); err != nil {
			return err
		}
	}
	at, err := on.js.CreateOrUpdateConsumer(ctx, stream, jetstream.ConsumerConfig{
		Durable: durable(c.sub.Name), FilterSubject: filter, AckPolicy: jetstream.AckExplicitPolicy, AckWait: s.ackWait,
		MaxAckPending: c.sub.InFlight, DeliverPolicy: jetstream.DeliverAllPolicy,
	})
	if err != nil {
		return fmt.Errorf("consumer of %s on stream %s: %w", filter, stream, err)
	}
	s.consumes(c, true, nil)
	if err := s.hold(ctx, at, c); err != nil {
		return err
	}
	return s.pull(ctx, on.nc, stream, c)
}

// holdPoll is how often a session that holds asks whether it need any longer.
const holdPoll = 250 * time.Millisecond

// hold waits, where nobody else takes from the consumer, until what was delivered before and is not held here is due to be delivered again. The
// server would deliver what is new meanwhile, and the order would be lost.
func (s *Session) hold(ctx context.Context, at jetstream.Consumer, c *consumer) error {
	if s.cfg.Shared {
		return nil
	}
	due := time.NewTimer(s.ackWait + s.ackWait/8)
	defer due.Stop()
	poll := time.NewTicker(min(holdPoll, s.ackWait/8))
	defer poll.Stop()
	for {
		info, err := at.Info(ctx)
		if err != nil {
			return err
		}
		s.mu.Lock()
		held := len(c.open)
		s.mu.Unlock()
		if info.NumAckPending <= held {
			return nil
		}
		select {
		case <-poll.C:
		case <-due.C:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}
