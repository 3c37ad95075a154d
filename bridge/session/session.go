// Package session has what a route sees of the sessions that it takes messages from and gives them to, whatever they speak.
package session

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/guardyn-edge/guardyn/bridge"
	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/topic"
)

// MaxMessageBytes bounds one message with its properties, taken or sent; a larger one from a broker ends the connection.
const MaxMessageBytes = 16 << 20

// Message is one message. Who has it may change its fields, but not what they point to.
type Message struct {
	Topic      string
	Payload    []byte
	Properties []Property // user properties or headers, as they came
	QoS        int        // by which it came, or is to go
	Retain     bool

	// Of MQTT 5 (§3.3.2.3); other kinds carry them as far as they can.
	ContentType   string
	ResponseTopic string
	Correlation   []byte
	Text          bool      // the payload is UTF-8, by its format indicator
	Expires       time.Time // zero: never
}

// Property is a user property (MQTT 5.0 §3.3.2.3.7) or a header.
type Property struct{ Name, Value string }

// Delivery is a message that a session has taken for one subscription.
type Delivery struct {
	Message
	settled atomic.Bool
	settle  func()
	back    func() // nil: the source takes nothing back
	dropped string
}

// NewDelivery returns a delivery of m; settle is called once, when every target has confirmed it or it goes nowhere.
func NewDelivery(m Message, settle func()) *Delivery { return &Delivery{Message: m, settle: settle} }

// NewReturnable is NewDelivery of a message that its source takes back, for others.
func NewReturnable(m Message, settle, back func()) *Delivery {
	return &Delivery{Message: m, settle: settle, back: back}
}

// Return gives the message back to its source, which delivers it to another; false when that does not take it back, or it is settled. To settle it
// later does nothing.
func (d *Delivery) Return() bool {
	if d.back == nil || !d.settled.CompareAndSwap(false, true) {
		return false
	}
	d.back()
	return true
}

// Settle has the source acknowledge the message, if its connection is still the one it came by. Calls after the first do nothing.
func (d *Delivery) Settle() {
	if d.settled.CompareAndSwap(false, true) {
		d.settle()
	}
}

// Drop is Settle of a message that goes nowhere, for a reason, which is for people.
func (d *Delivery) Drop(reason string) {
	if d.settled.CompareAndSwap(false, true) {
		d.dropped = reason
		d.settle()
	}
}

// Dropped is why the message went nowhere, "" when it did not. It is asked while it is settled, or later.
func (d *Delivery) Dropped() string { return d.dropped }

// Subscription is what a session asks its source for.
type Subscription struct {
	Filter topic.Filter
	Share  string // of mqtt: the group; "": none
	QoS    int    // of mqtt: the most that is asked for
	Stream string // of nats
	// Name is the same for the subscription on all members of the cohort: the name that nats keeps its place under.
	Name string
	// InFlight is how many messages may be taken and not settled.
	InFlight int
}

// Sink takes deliveries, in order, from one goroutine; it does not block. Each is settled later, or never.
type Sink func(*Delivery)

// Outgoing is one message on its way to a target.
type Outgoing struct {
	Message
	// Done is called once, from any goroutine, also before Send returns: with nil when the target has the message for good; with a
	// *Refusal when it never will; with ErrStopped when the session stopped before that is known.
	Done func(error)
	// Retries counts attempts that were not confirmed. It may be nil.
	Retries *atomic.Uint64
}

// Retried counts an attempt that was not confirmed.
func (o *Outgoing) Retried() {
	if o.Retries != nil {
		o.Retries.Add(1)
	}
}

// Session is one connection, made again whenever it breaks. Its methods may be called from any goroutine, also while it does not run.
type Session interface {
	// Run connects, and again after each loss, until ctx ends; then it disconnects and waits for everything that it has begun. What it sends
	// and has no confirmation for stays with it until the next Run or Close. It runs once at a time.
	Run(ctx context.Context)

	// Close answers everything that is unconfirmed with ErrStopped, as it does with every Send that follows. Run has ended.
	Close()

	// Subscribe has route take what s describes, from now on and after each new connection. A route has one subscription: another sink takes
	// the place of the one before, and nothing that comes goes to neither. What others ask for already is not asked for anew.
	Subscribe(route string, s Subscription, sink Sink)

	// Unsubscribe ends a route's subscription and, when it was the last with it, tells the source. It waits, within ctx, until nothing comes by it
	// any more; what does until then goes to the sink.
	Unsubscribe(ctx context.Context, route string)

	// Send sends in order. What it may hold is bounded by the routes that call it.
	Send(o *Outgoing)

	// Ordered tells whether the session itself keeps the order of messages while several are unconfirmed. If not, a route sends those of
	// one topic one by one.
	Ordered() bool

	// Status tells how it does; Exclusive and Holder are not its to say.
	Status() bridge.SessionStatus
}

// Refusal is why a message will never be taken. It is for people.
type Refusal struct{ Reason string }

func (r *Refusal) Error() string { return "refused: " + r.Reason }

// ErrStopped is of a message whose session stopped before it was confirmed.
var ErrStopped = errors.New("the session was stopped before the target confirmed")

// Config is what every kind of session is made from.
type Config struct {
	Session document.Session
	Member  string // that stands for {member}
	Secrets Secrets
	// Window is how many messages all routes from the session may have unsettled together, at least 1.
	Window func() int
	// Shared: other members of the cohort take from the same source at the same time, so that there is no order to be kept between messages.
	Shared bool
	// IsTarget tells whether routes send by the session too.
	IsTarget func() bool
	Backoff  Backoff
	Log      Logger
	Now      func() time.Time
}

// Keep is a session's Run: it connects by connection, which tells how long it held and why it ended, and again after each loss, until ctx ends.
// note is told of the states, and of why there is no connection.
func (c *Config) Keep(ctx context.Context, connection func(context.Context) (held time.Duration, err error), note func(bridge.SessionState, error)) {
	note(bridge.Connecting, nil)
	for attempt := 1; ctx.Err() == nil; attempt++ {
		held, err := connection(ctx)
		if ctx.Err() != nil {
			break
		}
		if c.Backoff.Held(held) {
			attempt = 1
		}
		note(bridge.Connecting, err)
		c.Log.Warn("session is not connected; it tries again", "session", c.Session.ID, "error", err)
		c.Backoff.Wait(ctx, attempt)
	}
	note(bridge.Stopping, nil)
}
