package route

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/guardyn-edge/guardyn/bridge/session"
	"github.com/guardyn-edge/guardyn/internal/durable"
)

// Properties that a dead letter says by why it is one.
const (
	ReasonProperty = "gdn-reason"
	RouteProperty  = "gdn-route"
	TopicProperty  = "gdn-topic" // that the message came by
)

// letter is a line of a dead-letter file.
type letter struct {
	Time       time.Time   `json:"time"`
	Route      string      `json:"route"`
	Reason     string      `json:"reason"`
	Topic      string      `json:"topic"`
	QoS        int         `json:"qos"`
	Retain     bool        `json:"retain,omitzero"`
	Properties [][2]string `json:"properties,omitzero"`
	Content    string      `json:"content_type,omitzero"`
	Text       *string     `json:"text,omitzero"`
	Base64     []byte      `json:"base64,omitzero"`
	// Escaped: topic, properties and content type are written by session.Escape, for one of them is no text that JSON could have as it is.
	Escaped bool   `json:"escaped,omitzero"`
	done    func() // called when it is on the disk, or the file is closed
}

// letterOf makes a letter. It can be written whatever bytes are in the message.
func (r *Route) letterOf(d *session.Delivery, reason string) letter {
	l := letter{
		Time: r.cfg.Now().UTC(), Route: r.cfg.Route.ID, Reason: strings.ToValidUTF8(reason, "\uFFFD"), Topic: d.Topic, QoS: d.QoS, Retain: d.Retain, Content: d.ContentType,
	}
	l.Escaped = !utf8.ValidString(d.Topic) || !utf8.ValidString(d.ContentType)
	for _, p := range d.Properties {
		l.Properties = append(l.Properties, [2]string{p.Name, p.Value})
		l.Escaped = l.Escaped || !utf8.ValidString(p.Name) || !utf8.ValidString(p.Value)
	}
	if l.Escaped {
		l.Topic, l.Content = session.Escape(l.Topic), session.Escape(l.Content)
		for i, p := range l.Properties {
			l.Properties[i] = [2]string{session.Escape(p[0]), session.Escape(p[1])}
		}
	}
	if utf8.Valid(d.Payload) {
		text := string(d.Payload)
		l.Text = &text
	} else {
		l.Base64 = d.Payload
	}
	return l
}

// refuse ends a message that the target will never take.
func (r *Route) refuse(w *work, why error) {
	r.mu.Lock()
	r.counts.refused++
	r.mu.Unlock()
	r.bury(w, why)
}

// bury ends a message that goes nowhere else: it goes where dead letters go, and is settled when it is there.
func (r *Route) bury(w *work, why error) {
	reason := why.Error()
	r.mu.Lock()
	r.err = reason
	r.mu.Unlock()
	dead, d := r.cfg.Route.DeadLetter, w.d
	switch {
	case r.letter != nil:
		l := r.letterOf(d, reason)
		l.done = func() { r.settle(w); r.pump() }
		r.letter.add(l)
	case r.cfg.Dead != nil:
		out := &session.Outgoing{Message: d.Message, Retries: &r.retry}
		var err error
		if out.Topic, err = dead.Topic.Topic(r.style.from, r.style.dead, d.Topic, w.captures); err != nil {
			r.lost(w, reason, err)
			return
		}
		out.QoS, out.Retain = 1, false
		harmless(&out.Message)
		out.Properties = append(out.Properties, session.Property{Name: ReasonProperty, Value: session.Escape(reason)},
			session.Property{Name: RouteProperty, Value: r.cfg.Route.ID}, session.Property{Name: TopicProperty, Value: session.Escape(d.Topic)}, r.path.hop)
		out.Done = func(err error) {
			switch {
			case err == nil:
				r.settle(w)
			case isRefusal(err):
				r.lost(w, reason, err)
			}
			r.pump()
		}
		r.cfg.Dead.Send(out)
	default:
		r.cfg.Log.Warn("a message is refused for good and dropped: the route has no place for dead letters",
			"route", r.cfg.Route.ID, "topic", d.Topic, "bytes", len(d.Payload), "reason", reason)
		r.drop(w, reason)
	}
}

// harmless makes of a message that was refused one that is not refused, or ends a connection, for the same text again.
func harmless(m *session.Message) {
	properties := make([]session.Property, 0, len(m.Properties)+4)
	for _, p := range m.Properties {
		properties = append(properties, session.Property{Name: session.Escape(p.Name), Value: session.Escape(p.Value)})
	}
	m.Properties, m.ContentType = properties, session.Escape(m.ContentType)
	m.Text = m.Text && utf8.Valid(m.Payload)
	if session.StrictTextFault(m.ResponseTopic) != "" || strings.ContainsAny(m.ResponseTopic, "+#") {
		m.ResponseTopic = ""
	}
	if len(m.Correlation) > session.MaxTextBytes {
		m.Correlation = nil
	}
}

func isRefusal(err error) bool {
	var r *session.Refusal
	return errors.As(err, &r)
}

// unwritten notes that dead letters wait, or, without an error, that they do no more.
func (r *Route) unwritten(letters int, err error) {
	r.mu.Lock()
	if r.stuck = ""; err != nil {
		r.stuck = fmt.Sprintf("%d dead letters cannot be written yet: %v", letters, err)
	}
	r.mu.Unlock()
	if err == nil {
		r.cfg.Log.Info("dead letters are written again", "route", r.cfg.Route.ID, "letters", letters)
		return
	}
	r.cfg.Log.Warn("dead letters cannot be written; it is tried again", "route", r.cfg.Route.ID, "letters", letters, "error", err)
}

// mended tells of a last line of the dead-letter file that a crash, a power cut or a full disk has left unfinished.
func (r *Route) mended(torn durable.Torn) {
	text := "a dead-letter file ended in part of a letter, which is cut off: its message was not acknowledged, and its source delivers it again"
	if !torn.Cut {
		text = "a dead-letter file ended in a line without its end, which is kept as a line"
	}
	r.cfg.Log.Warn(text, "route", r.cfg.Route.ID, "file", r.cfg.Route.DeadLetter.File, "bytes", torn.Size, "begins", session.Escape(torn.Begin))
}

// lost ends a message that not even the place for dead letters takes.
func (r *Route) lost(w *work, reason string, err error) {
	r.cfg.Log.Warn("a message is refused for good, its place for dead letters refuses it too, and it is dropped",
		"route", r.cfg.Route.ID, "topic", w.d.Topic, "bytes", len(w.d.Payload), "reason", reason, "error", err)
	r.mu.Lock()
	r.err = "dead letter: " + err.Error()
	r.mu.Unlock()
	r.drop(w, reason+"; dead letter: "+err.Error())
}

// Abandon refuses what a route that is gone has left: nobody will deliver it any more.
func (r *Route) Abandon(left []*session.Delivery) {
	for _, d := range left {
		r.cfg.Log.Warn("a message was not confirmed when its route was removed; it is dropped", "route", r.cfg.Route.ID, "topic", d.Topic)
		d.Drop("its route was removed")
	}
}

// letterMark is what the line of a letter begins with.
const letterMark = `{"time":"`

// letterFile appends lines to a file, each one synced before its message is settled. Its goroutine ends with close.
type letterFile struct {
	lines   durable.Lines
	backoff session.Backoff
	failed  func(letters int, err error) // told of every attempt that was for nothing, and with nil of the one after those that was not
	torn    func(durable.Torn)           // told of what was left of a line
	stop    context.CancelFunc
	work    sync.WaitGroup

	mu      sync.Mutex
	waiting []letter // at most in_flight
	wake    chan struct{}
}

func newLetterFile(path string, b session.Backoff, failed func(letters int, err error), torn func(durable.Torn)) *letterFile {
	ctx, stop := context.WithCancel(context.Background())
	f := &letterFile{
		lines:   durable.Lines{Path: path, Mark: letterMark, Whole: func(line []byte) bool { return jsontext.Value(line).IsValid() }},
		backoff: b, failed: failed, torn: torn, stop: stop, wake: make(chan struct{}, 1),
	}
	f.work.Go(func() { f.run(ctx) })
	return f
}

func (f *letterFile) add(l letter) {
	f.mu.Lock()
	f.waiting = append(f.waiting, l)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *letterFile) run(ctx context.Context) {
	// Who reads the file need not wait for the next letter to find only whole ones. What is wrong with it, or that it is not there, matters to that.
	if torn, err := f.lines.Mend(ctx); err == nil {
		f.tell(torn)
	}
	for {
		select {
		case <-f.wake:
		case <-ctx.Done():
			return
		}
		f.mu.Lock()
		batch := f.waiting
		f.waiting = nil
		f.mu.Unlock()
		for attempt := 1; ; attempt++ {
			err := f.append(ctx, batch)
			if err == nil && attempt > 1 {
				f.failed(len(batch), nil)
			}
			if err == nil {
				break
			}
			if ctx.Err() == nil {
				f.failed(len(batch), err)
			}
			if !f.backoff.Wait(ctx, attempt) {
				return // unsettled: the source delivers them again
			}
		}
		for _, l := range batch {
			l.done()
		}
	}
}

func (f *letterFile) tell(torn durable.Torn) {
	if torn != (durable.Torn{}) {
		f.torn(torn)
	}
}

// append writes whole lines, and is sure of them before it returns.
func (f *letterFile) append(ctx context.Context, batch []letter) error {
	var lines []byte
	for _, l := range batch {
		line, err := json.Marshal(l) // what it cannot have is escaped
		if err != nil {
			return fmt.Errorf("dead letter: %w", err)
		}
		lines = append(append(lines, line...), '\n')
	}
	torn, err := f.lines.Append(ctx, lines)
	f.tell(torn)
	return err
}

func (f *letterFile) close() {
	f.stop()
	f.work.Wait()
}
