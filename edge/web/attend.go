package web

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"
)

// net/http reads on behind every request without a body, on a goroutine of its own, to notice that the client leaves. Of an
// answer that is there at once nobody needs to know that; waking that goroutine and interrupting it is a tenth of what a
// proxied request costs. So a wireConn answers that read with nothing (see wireConn.Read), and the exchange has it read in
// earnest once it waits for something.

// attendAfter is how long an exchange waits for the origin before it attends to its client.
const attendAfter = 50 * time.Millisecond

// attention is how an exchange learns that its client has left.
type attention struct {
	// asked is how many requests have come and are not answered. While there is one net/http reads no other.
	asked atomic.Int32
	// eager is set while net/http's own read is answered in earnest: during a request with a body, behind which it begins
	// once that has ended.
	eager atomic.Bool
	// cancel, which may be nil, is called when the client has left.
	cancel atomic.Pointer[context.CancelFunc]
	// reading is closed once the read that attends to the client is over; nil when there is none.
	reading chan struct{}
	// octet is what a client has sent behind its request, if came is set.
	octet [1]byte
	came  bool
}

// begin is called when a request's handler begins.
func (c *wireConn) begin(r *http.Request) { c.eager.Store(r.Body != nil && r.Body != http.NoBody) }

// attend begins to notice that the client leaves. Until unattend nothing else reads from the connection.
func (c *wireConn) attend() {
	if c.reading != nil || c.came || c.eager.Load() || c.gone.Load() {
		return
	}
	c.Conn.SetReadDeadline(time.Time{}) //nolint:errcheck // of a connection that is closed the read says so
	done := make(chan struct{})
	c.reading = done
	go func() {
		defer close(done)
		n, err := c.Conn.Read(c.octet[:])
		if c.came = n == 1; err != nil {
			c.lost(err)
		}
	}()
}

// unattend ends what attend began.
func (c *wireConn) unattend() {
	if c.reading == nil {
		return
	}
	c.Conn.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // of a connection that is closed the read is over
	<-c.reading
	c.reading = nil
	c.Conn.SetReadDeadline(time.Time{}) //nolint:errcheck // net/http sets the next one
}

// end is called when a request's handler returns.
func (c *wireConn) end() {
	c.unattend()
	c.eager.Store(false)
	c.asked.Add(-1)
}

// context returns the request's context, which is done once the client has left, for what the exchange is about to wait for;
// release, once that is over. The context of the request itself tells it by HTTP/2 alone, and behind a body.
func (x *exchange) context() (ctx context.Context, release func()) {
	conn := x.ownConn()
	if f := x.cache.flight; f != nil {
		if conn != nil {
			conn.attend()
		}
		return f.Context(x.server.life), func() {}
	}
	if conn == nil || conn.eager.Load() {
		return x.r.Context(), func() {}
	}
	ctx, cancel := context.WithCancel(x.r.Context())
	conn.cancel.Store(&cancel)
	conn.attend()
	if conn.gone.Load() {
		cancel()
	}
	return ctx, func() {
		conn.cancel.Store(nil)
		cancel()
	}
}
