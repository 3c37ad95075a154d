package nats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/guardyn-edge/guardyn/bridge/session"
)

// How messages are asked for: a request stands at the server, which answers by messages and, meanwhile, by signs of life.
const (
	pullBatch     = 10000 // messages of one request; how many come before they are acknowledged is the consumer's to bound
	pullExpires   = 30 * time.Second
	pullHeartbeat = 5 * time.Second
)

// ackPrefix begins the reply subject of a message of a stream. The server's own words have none; what they look like else, anybody can write into
// the headers of an empty message, and the client library takes such a message for them and keeps it for ever.
const ackPrefix = "$JS.ACK."

// pull takes from a consumer until ctx ends and what has come is the route's, or the server ends it.
func (s *Session) pull(ctx context.Context, nc *nats.Conn, stream string, c *consumer) error {
	inbox, done := nc.NewInbox(), make(chan struct{})
	words, used := make(chan *nats.Msg, 16), make(chan struct{}, 1)
	var left atomic.Int64 // messages that the request is good for
	var heard atomic.Bool // since it was last looked
	sub, err := nc.Subscribe(inbox, func(m *nats.Msg) {
		heard.Store(true)
		if !strings.HasPrefix(m.Reply, ackPrefix) {
			select {
			case words <- m:
			default: // there are some that say as much
			}
			return
		}
		s.deliver(c, m)
		if left.Add(-1) == 0 {
			used <- struct{}{}
		}
	})
	if err != nil {
		return err
	}
	sub.SetClosedHandler(func(string) { close(done) })
	if !sub.IsValid() { // it was closed before it could say so
		return nats.ErrConnectionClosed
	}
	defer func() {
		_ = sub.Unsubscribe() // unless it is drained, or the connection is lost
		<-done
	}()
	if err := sub.SetPendingLimits(-1, -1); err != nil { // the consumer's MaxAckPending is the bound
		return err
	}
	// What has come is the route's: else it would come again only behind what is new.
	leave := context.AfterFunc(ctx, func() { _ = sub.Drain() })
	defer leave()
	request := fmt.Appendf(nil, `{"batch":%d,"expires":%d,"idle_heartbeat":%d}`, pullBatch, pullExpires, pullHeartbeat)
	look := time.NewTicker(2 * pullHeartbeat)
	defer look.Stop()
	for {
		if left.Load() <= 0 && ctx.Err() == nil {
			left.Store(pullBatch)
			if err := nc.PublishRequest("$JS.API.CONSUMER.MSG.NEXT."+stream+"."+durable(c.sub.Name), inbox, request); err != nil {
				return err
			}
		}
		select {
		case <-used:
		case m := <-words:
			over, err := ended(m)
			if err != nil {
				return err
			}
			if over {
				left.Store(0)
			}
		case <-look.C:
			if heard.Swap(false) {
				s.consumes(c, true, nil)
				continue
			}
			s.consumes(c, false, errors.New("the server gives no sign of life; it is asked again"))
			left.Store(0)
		case <-done:
			if ctx.Err() != nil {
				return nil
			}
			return errors.New("the subscription has ended")
		}
	}
}

// ended tells of the server's own word whether the request is over, and its error whether the consumer is.
func ended(m *nats.Msg) (bool, error) {
	code, text := m.Header.Get("Status"), m.Header.Get("Description")
	switch code {
	case "100": // a sign of life
		return false, nil
	case "404", "408": // it has expired
		return true, nil
	case "409":
		if strings.EqualFold(text, "batch completed") {
			return true, nil
		}
	}
	return true, fmt.Errorf("the server says: %s (%s)", text, code)
}

// deliver gives one message to the route.
func (s *Session) deliver(c *consumer, m *nats.Msg) {
	meta, err := m.Metadata()
	if err != nil {
		s.note(fmt.Errorf("a message came without its place in the stream: %w", err))
		return
	}
	at, t := place{meta.Sequence.Stream, meta.Timestamp}, &taken{m.Reply}
	s.mu.Lock()
	if again := c.open[at]; again != nil {
		again.reply = t.reply // the route has it
		s.mu.Unlock()
		return
	}
	c.open[at] = t
	s.mu.Unlock()
	out := session.Message{Topic: m.Subject, Payload: m.Data, QoS: 1}
	for name, values := range m.Header {
		for _, v := range values {
			switch {
			case strings.EqualFold(name, "Content-Type"):
				out.ContentType = v
			case !owned(name):
				out.Properties = append(out.Properties, session.Property{Name: name, Value: v})
			}
		}
	}
	slices.SortStableFunc(out.Properties, func(a, b session.Property) int { return strings.Compare(a.Name, b.Name) })
	ends := func(how string) func() {
		return func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if c.open[at] != t {
				return // it was handed back
			}
			delete(c.open, at)
			s.forget(c)
			s.acks = append(s.acks, ack{t.reply, how})
			select {
			case s.ackWake <- struct{}{}:
			default:
			}
		}
	}
	d := session.NewReturnable(out, ends(ackDone), ends(ackBack))
	c.delivering.Lock()
	defer c.delivering.Unlock()
	c.sink(d)
}
