package nats

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
)

// What a message's reply subject is told (JetStream's ack protocol).
const (
	ackDone  = "+ACK"
	ackBack  = "-NAK"
	ackGoing = "+WPI"
)

// ack is what a reply subject is to be told.
type ack struct{ reply, how string }

// acknowledge sends acknowledgements as they come, those too that a connection before has not sent, until ctx ends. A target's confirmation
// does not wait for the source's server.
func (s *Session) acknowledge(ctx context.Context, nc *nats.Conn) {
	for {
		s.mu.Lock()
		due := s.acks
		s.acks = nil
		s.mu.Unlock()
		for i, a := range due {
			if err := nc.Publish(a.reply, []byte(a.how)); err != nil {
				s.mu.Lock()
				s.acks = append(due[i:], s.acks...)
				s.mu.Unlock()
				break
			}
		}
		select {
		case <-s.ackWake:
		case <-ctx.Done():
			return
		}
	}
}

// renew keeps the server from delivering again what is under way.
func (s *Session) renew(ctx context.Context, nc *nats.Conn) {
	t := time.NewTicker(s.ackWait / 3)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
		for _, reply := range s.underWay(false) {
			if nc.Publish(reply, []byte(ackGoing)) != nil {
				break // the connection is lost
			}
		}
	}
}

// underWay are the reply subjects of what is not settled, in the order of the streams; with taking it is forgotten.
func (s *Session) underWay(taking bool) []string {
	type one struct {
		place
		reply string
	}
	var all []one
	s.mu.Lock()
	gather := func(c *consumer) {
		for at, t := range c.open {
			all = append(all, one{at, t.reply})
		}
		if taking {
			clear(c.open)
		}
	}
	for _, c := range s.subs {
		gather(c)
	}
	for c := range s.former {
		gather(c)
	}
	if taking {
		clear(s.former)
	}
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b one) int { return cmp.Compare(a.sequence, b.sequence) })
	replies := make([]string, len(all))
	for i, x := range all {
		replies[i] = x.reply
	}
	return replies
}

// handBack acknowledges what is settled and gives back what is not, so that others, or the next process, need not wait for it.
func (s *Session) handBack(ctx context.Context, nc *nats.Conn) {
	s.mu.Lock()
	acks := s.acks
	s.acks = nil
	s.mu.Unlock()
	for _, a := range acks {
		_ = nc.Publish(a.reply, []byte(a.how)) // what is not told is delivered again
	}
	for _, reply := range s.underWay(true) {
		_ = nc.Publish(reply, []byte(ackBack))
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer cancel()
	_ = nc.FlushWithContext(last)
}
