package nats

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/guardyn-edge/guardyn/bridge/session"
	"github.com/guardyn-edge/guardyn/bridge/topic"
)

// outbox is what is to be sent, and what was sent and is not confirmed, in the order of Send.
type outbox struct {
	queue []*outgoing
	sent  []*outgoing
	wake  chan struct{}
	id    string // that message ids begin with: streams take each one once
	last  uint64
}

// outgoing is one message in the outbox.
type outgoing struct {
	*session.Outgoing
	id     string // the same at each attempt
	future jetstream.PubAckFuture
	err    error // what was heard of this attempt: a future says it once
}

func newOutbox() outbox { return outbox{wake: make(chan struct{}, 1), id: rand.Text()} }

// Send implements session.Session.
func (s *Session) Send(o *session.Outgoing) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		o.Done(session.ErrStopped)
		return
	}
	s.out.last++
	s.out.queue = append(s.out.queue, &outgoing{Outgoing: o, id: s.out.id + "-" + strconv.FormatUint(s.out.last, 10)})
	s.mu.Unlock()
	s.out.signal()
}

func (b *outbox) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// drop empties the outbox and returns what was in it.
func (b *outbox) drop() []*outgoing {
	left := append(b.sent, b.queue...)
	b.sent, b.queue = nil, nil
	return left
}

// publish sends what is queued and hears, in the order of sending, what became of it. After a failure everything that was under way is heard
// first, and what has failed goes out again, in its order, after a while.
func (s *Session) publish(ctx context.Context, js jetstream.JetStream) {
	for attempt := 1; ; {
		var faulty []func()
		s.mu.Lock()
		for len(s.out.queue) > 0 {
			o := s.out.queue[0]
			if fault := unspeakable(&o.Message); fault != "" {
				s.out.queue = s.out.queue[1:]
				faulty = append(faulty, func() { o.Done(&session.Refusal{Reason: fault}) })
				continue
			}
			future, err := js.PublishMsgAsync(o.message(), jetstream.WithMsgID(o.id))
			if errors.Is(err, nats.ErrMaxPayload) || errors.Is(err, nats.ErrBadSubject) {
				reason := s.final(ctx, js, o, err)
				s.out.queue = s.out.queue[1:]
				faulty = append(faulty, func() { o.Done(&session.Refusal{Reason: reason}) })
				continue
			}
			if err != nil {
				s.err = err.Error()
				break
			}
			o.future, o.err = future, nil
			s.out.queue, s.out.sent = s.out.queue[1:], append(s.out.sent, o)
		}
		stuck, first := len(s.out.queue) > 0, (*outgoing)(nil)
		if len(s.out.sent) > 0 {
			first = s.out.sent[0]
		}
		s.mu.Unlock()
		for _, refuse := range faulty {
			refuse()
		}
		if len(faulty) > 0 {
			continue // what follows may have come meanwhile
		}
		switch {
		case first != nil:
			if s.hear(ctx, js, first) {
				attempt = 1
				continue
			}
		case !stuck:
			select {
			case <-s.out.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		s.again(ctx, js)
		if !s.cfg.Backoff.Wait(ctx, attempt) {
			return
		}
		attempt++
	}
}

// hear waits for the answer to the message that was sent first, or for more to send; false when the message is to be sent again.
func (s *Session) hear(ctx context.Context, js jetstream.JetStream, o *outgoing) bool {
	var err error
	select {
	case <-o.future.Ok():
	case err = <-o.future.Err():
	case <-s.out.wake:
		return true // there is more to send meanwhile
	case <-ctx.Done():
		return false
	}
	if err != nil {
		if reason := s.final(ctx, js, o, err); reason != "" {
			err = &session.Refusal{Reason: reason}
		} else {
			s.note(err)
			o.err = err
			return false
		}
	}
	s.mu.Lock()
	if len(s.out.sent) > 0 && s.out.sent[0] == o {
		s.out.sent[0] = nil
		s.out.sent = s.out.sent[1:]
	}
	s.mu.Unlock()
	o.Done(err)
	return true
}

// answer waits for a stream's word.
func answer(ctx context.Context, future jetstream.PubAckFuture) error {
	select {
	case <-future.Ok():
		return nil
	case err := <-future.Err():
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// again hears everything that is under way and queues what has failed, before what waits.
func (s *Session) again(ctx context.Context, js jetstream.JetStream) {
	s.mu.Lock()
	sent := s.out.sent
	s.mu.Unlock()
	var failed, confirmed []*outgoing
	for _, o := range sent {
		if o == nil {
			continue
		}
		err := o.err
		if err == nil {
			err = answer(ctx, o.future)
		}
		if err == nil {
			confirmed = append(confirmed, o)
		} else {
			failed = append(failed, o)
		}
	}
	s.mu.Lock()
	s.out.sent = nil
	s.out.queue = append(failed, s.out.queue...)
	s.mu.Unlock()
	for _, o := range failed {
		o.Retried()
	}
	for _, o := range confirmed {
		o.Done(nil)
	}
}

// final says why a stream will never take the message, "" when it may.
func (s *Session) final(ctx context.Context, js jetstream.JetStream, o *outgoing, err error) string {
	var api *jetstream.APIError
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return fmt.Sprintf("the message has %d bytes, more than the server takes", len(o.Payload))
	case errors.Is(err, nats.ErrBadSubject):
		return "the subject cannot be sent: " + err.Error()
	case errors.As(err, &api) && api.ErrorCode == jetstream.JSErrCodeStreamMessageExceedsMaximum:
		return api.Description
	case errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders):
		// No stream has the subject, or the one that has it is away at this moment: the server knows which.
		ask, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		if _, err := js.StreamNameBySubject(ask, o.Topic); errors.Is(err, jetstream.ErrStreamNotFound) {
			return "no stream has the subject " + o.Topic
		}
	}
	return ""
}

// message is o as NATS has it. Properties whose names cannot be those of headers stay behind.
func (o *outgoing) message() *nats.Msg {
	m := nats.NewMsg(o.Topic)
	m.Data = o.Payload
	for _, p := range o.Properties {
		if carried(p.Name) {
			m.Header.Add(p.Name, p.Value)
		}
	}
	if o.ContentType != "" {
		m.Header.Set("Content-Type", o.ContentType)
	}
	return m
}

// carried tells whether a property may be a header, by its name.
func carried(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == ':' })
}

// unspeakable says what of the message NATS cannot say: its subjects have no spaces and control characters, its headers one line each.
func unspeakable(m *session.Message) string {
	if err := topic.CheckTopic(topic.NATS, m.Topic); err != nil {
		return "the subject cannot be sent: " + err.Error()
	}
	if strings.ContainsAny(m.ContentType, "\r\n") {
		return "the content type cannot be a header: it has several lines"
	}
	for _, p := range m.Properties {
		if carried(p.Name) && strings.ContainsAny(p.Value, "\r\n") {
			return fmt.Sprintf("the property %s cannot be a header: its value has several lines", p.Name)
		}
	}
	return ""
}
