package http1

import (
	"net"
	"time"
)

// Gone reports whether the client was seen to have left, or to have ended its side: by Attend, or by a read or write of its request's
// body or answer.
func (c *Conn) Gone() bool { return c.gone.Load() }

// OnLeave has f called once when the client is seen to have left, at once when it was already; nil: nothing is any more. f is called
// on another goroutine than the handler's, maybe after OnLeave(nil) has returned when both are at the same time.
func (c *Conn) OnLeave(f *func()) {
	c.leave.Store(f)
	if f != nil && c.gone.Load() && c.leave.CompareAndSwap(f, nil) {
		(*f)()
	}
}

// Attend begins to notice that the client leaves, until the handler returns; during a request with a body, once that was read to its
// end. What the client sends meanwhile is the beginning of its next request. A handler has its client attended when it begins to wait
// for something: of an answer that is there at once nobody needs to know that, and a read costs a tenth of what a request does.
func (c *Conn) Attend() {
	c.attend.Lock()
	defer c.attend.Unlock()
	c.wanted = true
	if c.body.ended.Load() {
		c.listen()
	}
}

// bodyEnded is told that nothing else reads from the connection any more.
func (c *Conn) bodyEnded() {
	c.body.ended.Store(true)
	c.attend.Lock()
	defer c.attend.Unlock()
	if c.wanted {
		c.listen()
	}
}

// listen reads ahead. A client whose next requests fill the buffer is there. The caller holds attend.
func (c *Conn) listen() {
	if c.reading != nil || c.gone.Load() || c.taken {
		return
	}
	if c.start == c.end {
		c.start, c.end = 0, 0
	}
	if c.end == len(c.in) {
		return
	}
	done := make(chan struct{})
	c.reading = done
	go func() {
		defer close(done)
		n, err := c.nc.Read(c.in[c.end:])
		if c.end += n; err != nil {
			c.lost(err)
		}
	}()
}

// unattend ends what Attend began.
func (c *Conn) unattend() {
	c.attend.Lock()
	defer c.attend.Unlock()
	c.wanted = false
	c.leave.Store(nil)
	if c.reading == nil {
		return
	}
	c.nc.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // of a connection that is closed the read is over
	<-c.reading
	c.reading = nil
	if !c.broken.Load() {
		c.nc.SetReadDeadline(time.Time{}) //nolint:errcheck // the next read says so
	}
}

// lost takes note of an error of reading or writing. One of a deadline tells nothing of the client.
func (c *Conn) lost(err error) {
	if t, ok := err.(net.Error); ok && t.Timeout() {
		return
	}
	c.gone.Store(true)
	if leave := c.leave.Swap(nil); leave != nil {
		(*leave)()
	}
}
