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
	denied bool  // the server does not allow its subject
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
		stuck := s.put(ctx, js)
		s.mu.Lock()
		var first *outgoing
		if len(s.out.sent) > 0 {
			first = s.out.sent[0]
		}
		s.mu.Unlock()
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

// put sends what is queued, and refuses what cannot be sent at all. It is stuck when the connection takes nothing. No lock is held while it is
// written, for that may take until the server reads.
func (s *Session) put(ctx context.Context, js jetstream.JetStream) (stuck bool) {
	for ctx.Err() == nil {
		s.mu.Lock()
		if len(s.out.queue) == 0 {
			s.mu.Unlock()
			return false
		}
		o := s.out.queue[0]
		s.out.queue = s.out.queue[1:]
		s.out.sent = append(s.out.sent, o) // before it is: what the server says of it may come at once
		o.future, o.err, o.denied = nil, nil, false
		s.mu.Unlock()
		fault := unspeakable(&o.Message)
		if fault == "" {
			future, err := js.PublishMsgAsync(o.message(), jetstream.WithMsgID(o.id))
			switch {
			case errors.Is(err, nats.ErrMaxPayload) || errors.Is(err, nats.ErrBadSubject):
				fault = s.final(ctx, js, o, err)
			case err != nil:
				s.note(err)
				s.mu.Lock()
				s.out.sent = s.out.sent[:len(s.out.sent)-1]
				s.out.queue = append([]*outgoing{o}, s.out.queue...)
				s.mu.Unlock()
				return true
			default:
				o.future = future
				continue
			}
		}
		s.mu.Lock()
		s.out.sent = s.out.sent[:len(s.out.sent)-1]
		s.mu.Unlock()
		o.Done(&session.Refusal{Reason: fault})
	}
	return false
}

// hear waits for the answer to the message that was sent first, or for more to send; false when the message is to be sent again.
func (s *Session) hear(ctx context.Context, js jetstream.JetStream, o *outgoing) bool {
	var err error
	s.mu.Lock()
	denied := o.denied
	s.mu.Unlock()
	if denied {
		err = &session.Refusal{Reason: "the server does not allow the subject " + o.Topic + ": it is not allowed to this user"}
	} else {
		select {
		case <-o.future.Ok():
		case err = <-o.future.Err():
		case <-s.out.wake:
			return true // there is more to send meanwhile, or this one is denied
		case <-ctx.Done():
			return false
		}
		if err != nil {
			reason := s.final(ctx, js, o, err)
			if reason == "" {
				s.note(err)
				o.err = err
				return false
			}
			err = &session.Refusal{Reason: reason}
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

// headersTooLarge is the error of a stream that is given more than 64 KiB of headers.
const headersTooLarge jetstream.ErrorCode = 10097

// final says why a stream will never take the message, "" when it may.
func (s *Session) final(ctx context.Context, js jetstream.JetStream, o *outgoing, err error) string {
	var api *jetstream.APIError
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return fmt.Sprintf("the message has %d bytes, more than the server takes", len(o.Payload))
	case errors.Is(err, nats.ErrBadSubject):
		return "the subject cannot be sent: " + err.Error()
	case errors.As(err, &api) && (api.ErrorCode == jetstream.JSErrCodeStreamMessageExceedsMaximum || api.ErrorCode == headersTooLarge):
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
		// An empty message with a status is taken for a server's own by clients.
		if carried(p.Name) && !(len(o.Payload) == 0 && strings.EqualFold(p.Name, "Status")) {
			m.Header.Add(p.Name, p.Value)
		}
	}
	if o.ContentType != "" {
		m.Header.Set("Content-Type", o.ContentType)
	}
	return m
}

// carried tells whether a property may be a header, by its name: by NATS's rule for them, and because it is not one that the server takes for its own.
func carried(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == ':' }) && !owned(name)
}

// owned tells of the headers by which JetStream is commanded, as to drop all that a stream has (Nats-Rollup), and by which it tells of messages.
func owned(name string) bool {
	const prefix = "Nats-"
	return len(name) >= len(prefix) && strings.EqualFold(name[:len(prefix)], prefix)
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
