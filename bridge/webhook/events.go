package webhook

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json"

	"github.com/guardyn-edge/guardyn/bridge/session"
	"github.com/guardyn-edge/guardyn/bridge/topic"
)

// events are the last messages that were sent to a session that listens, for those who watch.
type events struct {
	mu       sync.Mutex
	ring     []event // at most maxEvents; the last one has number last
	last     uint64
	more     chan struct{} // closed and replaced with each event
	watchers int
}

// event is one message as watchers see it.
type event struct {
	topic string
	data  []byte
}

// eventData is the JSON of an event.
type eventData struct {
	Topic      string      `json:"topic"`
	Properties [][2]string `json:"properties,omitzero"`
	Content    string      `json:"content_type,omitzero"`
	Text       *string     `json:"text,omitzero"`
	Base64     []byte      `json:"base64,omitzero"`
}

func newEvents() *events { return &events{more: make(chan struct{})} }

func (e *events) add(m *session.Message) {
	d := eventData{Topic: m.Topic, Content: m.ContentType}
	for _, p := range m.Properties {
		d.Properties = append(d.Properties, [2]string{p.Name, p.Value})
	}
	if utf8.Valid(m.Payload) {
		text := string(m.Payload)
		d.Text = &text
	} else {
		d.Base64 = m.Payload
	}
	data, err := json.Marshal(d)
	if err != nil { // a property that is not UTF-8
		data, _ = json.Marshal(eventData{Topic: m.Topic, Base64: m.Payload})
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.last++; len(e.ring) == maxEvents {
		copy(e.ring, e.ring[1:])
		e.ring = e.ring[:maxEvents-1]
	}
	e.ring = append(e.ring, event{m.Topic, data})
	close(e.more)
	e.more = make(chan struct{})
}

// after returns the events behind number n, the number of the last one, and what is closed when there are more; false when some
// of them are gone.
func (e *events) after(n uint64) ([]event, uint64, <-chan struct{}, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n > e.last {
		n = e.last // of another process
	}
	missing := e.last - n
	if missing > uint64(len(e.ring)) {
		return nil, e.last, e.more, false
	}
	return append([]event(nil), e.ring[len(e.ring)-int(missing):]...), e.last, e.more, true
}

func (e *events) enter() (uint64, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.watchers == maxWatchers {
		return 0, false
	}
	e.watchers++
	return e.last, true
}

func (e *events) leave() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.watchers--
}

// serve streams events to one watcher until it goes.
func (e *events) serve(w http.ResponseWriter, r *http.Request) {
	text := r.URL.Query().Get("topic")
	if text == "" {
		text = "#"
	}
	filter, err := topic.ParseFilter(topic.MQTT, text)
	if err != nil {
		http.Error(w, "topic: "+err.Error(), http.StatusBadRequest)
		return
	}
	at, ok := e.enter()
	if !ok {
		w.Header().Set("Retry-After", retryAfter)
		http.Error(w, fmt.Sprintf("%d watch already", maxWatchers), http.StatusServiceUnavailable)
		return
	}
	defer e.leave()
	if id, err := strconv.ParseUint(r.Header.Get("Last-Event-ID"), 10, 64); err == nil {
		at = id
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	out := http.NewResponseController(w)
	if out.Flush() != nil {
		return
	}
	alive := time.NewTicker(15 * time.Second)
	defer alive.Stop()
	for {
		list, last, more, ok := e.after(at)
		if !ok {
			fmt.Fprint(w, "event: lost\ndata: events are gone that were not seen\n\n") // and goes on with what is new
			list = nil
		}
		for i, ev := range list {
			if _, ok := filter.Match(ev.topic); ok {
				fmt.Fprintf(w, "id: %d\ndata: %s\n\n", last-uint64(len(list)-1-i), ev.data)
			}
		}
		at = last
		_ = out.SetWriteDeadline(time.Now().Add(requestTimeout))
		if out.Flush() != nil {
			return
		}
		select {
		case <-more:
		case <-alive.C:
			fmt.Fprint(w, ": alive\n\n")
		case <-r.Context().Done():
			return
		}
	}
}
