package web

import (
	"errors"
	"fmt"
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

	mu  sync.Mutex
	err error
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
	conn := x.w.conn
	b.timer = time.AfterFunc(b.stall, func() {
		b.stalled.Store(true)
		if conn != nil {
			conn.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // a connection that is closed ends the read too
		}
	})
	b.timer.Stop()
	x.body = b
	return true
}

// Read implements io.Reader.
func (b *requestBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.stall)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	if err != nil && err != io.EOF {
		b.mu.Lock()
		b.err = err
		b.mu.Unlock()
	}
	return n, err
}

// failure is what reading the body ended in, nil while it did not fail.
func (b *requestBody) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

func (b *requestBody) stop() { b.timer.Stop() }

// answerBody is the body of an origin's answer.
type answerBody struct {
	io.ReadCloser
	x *exchange
}

// errBrokenOff begins the error of an answer that an origin did not end.
var errBrokenOff = errors.New("the origin broke off its answer")

// Read implements io.Reader. What ends the body early is the origin's error, unless the client left or its own
// body failed before.
func (b *answerBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if x := b.x; err != nil && err != io.EOF && !x.cut {
		x.cut = true
		if x.r.Context().Err() == nil && (x.body == nil || x.body.failure() == nil) {
			x.result.Err = err
			x.originErr = fmt.Errorf("%w after %d octets: %w", errBrokenOff, x.w.bytes+int64(n), err)
			x.server.counters.originErrors.Add(1)
		}
	}
	return n, err
}

// endCut sends what came of an answer that is cut short, before net/http closes the connection: what it still
// holds it would throw away.
func (x *exchange) endCut() {
	if !x.cut {
		return
	}
	http.NewResponseController(x.w).Flush() //nolint:errcheck // a client that left needs no answer
}

// failBody is fail for a request whose body will not be read to its end: the connection cannot carry
// another.
func (x *exchange) failBody(status int, text string) {
	x.w.Header().Set("Connection", "close")
	x.fail(status, text)
}
