package web

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const bodyTooLarge = "The request's body is larger than this site accepts."

// requestBody is a client's body under the zone's ceiling. A client that brings nothing for a while ends it.
type requestBody struct {
	io.ReadCloser
	stall   time.Duration
	timer   *time.Timer
	stalled atomic.Bool
	ended   atomic.Bool // it was read to its end
	// interrupt ends a Read that waits; the connection carries no other request of HTTP/1.1 then.
	interrupt func()

	mu      sync.Mutex
	err     error
	reading bool
	idle    *idleClock // once it is one direction of a stream
}

// limitBody puts the request's body under limit bytes. When it returns false the request is answered.
func (x *exchange) limitBody(limit int64) bool {
	r := x.r
	if r.ContentLength > limit {
		x.failBody(http.StatusRequestEntityTooLarge, bodyTooLarge)
		return false
	}
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength == 0 {
		return true
	}
	b := &requestBody{ReadCloser: http.MaxBytesReader(x.w.ResponseWriter, r.Body, limit), stall: x.server.config.BodyStall}
	if conn := x.w.conn; conn != nil {
		b.interrupt = conn.InterruptRead
	} else {
		body := r.Body
		b.interrupt = func() { body.Close() }
	}
	b.timer = time.AfterFunc(b.stall, b.late)
	b.timer.Stop()
	x.body = b
	return true
}

// Read implements io.Reader.
func (b *requestBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	b.reading = true
	wait := b.stall
	if b.idle != nil {
		wait = time.Duration(b.idle.timeout.Load())
	}
	b.timer.Reset(wait)
	b.mu.Unlock()
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.ended.Store(true)
	}
	b.mu.Lock()
	b.reading = false
	b.timer.Stop()
	if err != nil && err != io.EOF {
		b.err = err
	}
	if n > 0 && b.idle != nil {
		b.idle.touch(time.Now())
	}
	b.mu.Unlock()
	return n, err
}

// late ends a Read that has waited for too long.
func (b *requestBody) late() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.reading {
		return
	}
	if b.idle != nil {
		if left := time.Until(b.idle.end()); left > 0 {
			b.timer.Reset(left)
			return
		}
	}
	b.stalled.Store(true)
	b.interrupt()
}

// stream says that the answer has begun before the body's end: from here on what passes in the answer's direction keeps the
// body's open, too.
func (b *requestBody) stream(idle *idleClock) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.idle = idle
	if b.reading {
		b.timer.Reset(time.Until(idle.end()))
	}
}

// failure is what reading the body ended in, nil while it did not fail.
func (b *requestBody) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

func (b *requestBody) stop() { b.timer.Stop() }

// failBody is fail for a request whose body will not be read to its end.
func (x *exchange) failBody(status int, text string) {
	x.closeConnection()
	x.fail(status, text)
}

// closeConnection makes this answer the connection's last one, which cannot carry another request with a body half
// read. By HTTP/2 only the stream ends.
func (x *exchange) closeConnection() {
	if x.r.ProtoMajor < 2 {
		x.w.Header().Set("Connection", "close")
	}
}
