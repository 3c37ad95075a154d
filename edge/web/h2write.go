package web

import (
	"net/http"
	"sync"
	"time"
)

// streamWriter is the answer on a stream of HTTP/2. A client gives out by its window how much it takes (RFC 9113 §5.2); one
// that gives nothing for the stall loses the stream, as one that takes nothing of HTTP/1.1 loses its connection. Without that
// it would hold a slot for as long as it answers pings.
type streamWriter struct {
	http.ResponseWriter
	stall   time.Duration
	timer   *time.Timer // armed while something is written
	pending bool        // some of it may be in net/http's buffer

	mu    sync.Mutex
	ended bool // the stream is net/http's again
}

func newStreamWriter(w http.ResponseWriter, stall time.Duration) *streamWriter {
	s := &streamWriter{ResponseWriter: w, stall: stall}
	s.timer = time.AfterFunc(stall, s.reset)
	s.timer.Stop()
	return s
}

// reset ends the stream.
func (w *streamWriter) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.ended {
		http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Unix(1, 0)) //nolint:errcheck // the stream is gone then
	}
}

// Write implements io.Writer.
func (w *streamWriter) Write(p []byte) (int, error) {
	w.timer.Reset(w.stall)
	n, err := w.ResponseWriter.Write(p)
	w.timer.Stop()
	w.pending = true
	return n, err
}

// Flush implements http.Flusher.
func (w *streamWriter) Flush() {
	w.timer.Reset(w.stall)
	http.NewResponseController(w.ResponseWriter).Flush() //nolint:errcheck // a later write fails too
	w.timer.Stop()
	w.pending = false
}

// finish sends what net/http still holds, while the request has its slot: what it sends after the handler's end waits for
// nobody then.
func (w *streamWriter) finish() {
	if w.pending {
		w.Flush()
	}
}

// end gives the stream back to net/http.
func (w *streamWriter) end() {
	w.timer.Stop()
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
}

// Unwrap lets http.ResponseController reach what is wrapped.
func (w *streamWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
