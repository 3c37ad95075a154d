package web

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

// forward sends the request to its target and the answer back.
func (x *exchange) forward() {
	if o := x.target.origin; o != nil {
		o.Begin()
		x.sent = time.Now()
		defer func() { x.target.origin.End(x.result) }()
	}
	if x.body != nil {
		defer x.body.stop()
	}
	x.try()
	if x.speaksHTTP2() {
		x.forwardHTTP2()
		return
	}
	x.forwardHTTP1(nil)
}

// forwardHTTP1 is forward by HTTP/1.1, at first over c if that is not nil.
func (x *exchange) forwardHTTP1(c *originConn) {
	t := x.server.origins.transit()
	pumped, ok := x.prepare(t)
	if !ok {
		return
	}
	defer func() {
		if x.pump != nil {
			x.pump.end()
		}
	}()
	c, err := x.ask(t, c, pumped)
	if err == errOtherProtocol {
		if t.small > 0 {
			x.body.ReadCloser = io.NopCloser(bytes.NewReader(t.out[len(t.out)-t.small:]))
		}
		x.forwardHTTP2()
		return
	}
	if err != nil {
		x.originFailed(err)
		return
	}
	if t.head.status == http.StatusSwitchingProtocols {
		if !x.unwatch() {
			c.Close()
			x.clientLeft()
		}
		x.tunnel(c, t)
		return
	}
	if !x.relay(c, t) {
		x.unwatch()
		c.Close()
		x.abandon()
		return
	}
	whole := x.pump == nil || x.pump.end()
	x.pump = nil
	if stayed := x.unwatch(); stayed && whole && t.head.keep && len(t.body.in) == 0 {
		x.server.origins.idle.put(c)
	} else {
		c.Close()
	}
	x.server.origins.done(t)
}

// prepare writes the request's head, and its body when that is small and the client was not told to wait, so that one
// write sends both. Else the body is to be pumped. When it returns false the request is answered.
func (x *exchange) prepare(t *transit) (pumped, ok bool) {
	r := x.r
	t.small = 0
	switch t.length = r.ContentLength; {
	case x.body == nil:
		if t.length != 0 || len(r.Header["Content-Length"]) == 0 {
			t.length = noBody
		}
	case t.length < 0:
		t.length, pumped = chunkedBody, true
	case t.length > maxSmallBody || len(r.Header["Expect"]) > 0:
		pumped = true
	default:
		t.small = int(t.length)
	}
	t.out = x.appendRequest(t.out[:0], t.length)
	if t.small == 0 {
		return pumped, true
	}
	at := len(t.out)
	t.out = append(t.out, make([]byte, t.small)...)
	for at < len(t.out) {
		n, err := x.body.Read(t.out[at:])
		if at += n; err != nil && at < len(t.out) {
			x.originFailed(err)
			return false, false
		}
	}
	x.body.ended.Store(true)
	return false, true
}

// errOtherProtocol says that the next origin of a pool is spoken to by HTTP/2.
var errOtherProtocol = errors.New("the next origin speaks HTTP/2")

// ask sends the request over a connection, and returns that with the answer's head in t, the watch over the client
// being on. An origin that no connection can be opened to passes the request on to the next of its pool.
func (x *exchange) ask(t *transit, c *originConn, pumped bool) (_ *originConn, err error) {
	fresh := false
	for {
		if c == nil {
			if c, err = x.originConn(fresh); err != nil {
				if x.left() || !x.next(err) {
					return nil, err
				}
				if x.speaksHTTP2() {
					return nil, errOtherProtocol
				}
				x.readdress(t)
				fresh = false
				continue
			}
		}
		if x.trace != nil {
			x.tryConnected(c.RemoteAddr(), "1.1", c.reused)
		}
		x.watch(c)
		var came bool
		if came, err = x.send(t, c, pumped); err == nil {
			return c, nil
		}
		stayed := x.unwatch()
		c.Close()
		// The origin hung up while the connection was idle, most likely, which says nothing of the request.
		if again := c.reused && !came && !fresh && stayed && x.body == nil && safe(x.r.Method) && !timedOut(err); !again {
			return nil, err
		}
		c, fresh = nil, true
		if x.trace != nil {
			x.tryFailed(err)
			x.try()
			x.readdress(t)
		}
	}
}

// originConn returns a connection to the target that speaks HTTP/1.1: an idle one unless fresh is asked for, or a new one.
func (x *exchange) originConn(fresh bool) (*originConn, error) {
	if !fresh {
		if c := x.server.origins.idle.get(x.target.key); c != nil {
			return c, nil
		}
	}
	ctx, release := x.context()
	defer release()
	c, _, err := x.server.origins.dial(ctx, x.target, nil)
	return c, err
}

// readdress writes the head again, for another target.
func (x *exchange) readdress(t *transit) {
	small := bytes.Clone(t.out[len(t.out)-t.small:])
	t.out = append(x.appendRequest(t.out[:0], t.length), small...)
}

// send writes what t has of the request and reads the head of the answer. came reports whether anything of an answer
// has come.
func (x *exchange) send(t *transit, c *originConn, pumped bool) (came bool, err error) {
	if _, err := c.Write(t.out); err != nil {
		return false, err
	}
	x.asked = time.Now()
	if pumped {
		// What is left of the exchange before must not end the wait while the body is still on its way.
		if err := c.SetReadDeadline(time.Time{}); err != nil {
			return false, err
		}
		x.startPump(c, x.r.ContentLength < 0)
	} else if err := c.SetReadDeadline(x.asked.Add(min(attendAfter, x.server.origins.headerTimeout))); err != nil {
		return false, err
	}
	came, err = x.readHead(t, c)
	if err != nil && x.pump != nil {
		err = errors.Join(x.pump.failure(), err)
	}
	return came, err
}

// maxInterim bounds the interim answers to one request.
const maxInterim = 16

// readHead reads until the head of the final answer, or of one that switches protocols, and passes interim ones on.
func (x *exchange) readHead(t *transit, c *originConn) (came bool, err error) {
	in := t.in[:0]
	for range maxInterim {
		var scan lineScan
		var n int
		for {
			if n, err = scan.scan(in); err != nil {
				return true, err
			}
			if n > maxHeaderBytes || n == 0 && len(in) >= maxHeaderBytes {
				return true, headError("its head is longer than 64 KiB")
			}
			if n > 0 {
				break
			}
			if len(in) == len(t.in) {
				t.in = append(t.in, make([]byte, len(t.in))...)
				in = t.in[:len(in)]
			}
			m, err := c.Read(t.in[len(in):])
			in = t.in[:len(in)+m]
			if m == 0 && err != nil {
				if x.waitsOn(c, err) {
					continue
				}
				return came || len(in) > 0, brokenOff(err)
			}
		}
		came = true
		if err := t.head.parse(string(in[:n])); err != nil {
			return true, err
		}
		rest := in[n:]
		if !t.head.interim() {
			if x.pump == nil {
				if more := t.head.length < 0 || int64(len(rest)) < t.head.length; more {
					if conn := x.w.conn; conn != nil {
						conn.Attend()
					}
					c.stream(newIdleClock(x.server.config.StreamIdleTimeout))
				}
			} else {
				idle := newIdleClock(x.server.config.StreamIdleTimeout)
				if x.early = x.pump.answer(); x.early {
					x.body.stream(idle)
				}
				c.stream(idle)
			}
			t.body.begin(c, &t.head, x.r.Method, t.in, rest)
			return true, nil
		}
		x.interim(&t.head)
		in = t.in[:copy(t.in, rest)]
	}
	return true, headError("too many interim answers")
}

// waitsOn attends to the client once the origin has been waited for a little, which err tells, and says whether to wait on.
func (x *exchange) waitsOn(c *originConn, err error) bool {
	conn := x.w.conn
	left := x.server.origins.headerTimeout - time.Since(x.asked)
	if x.pump != nil || left <= 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	if conn != nil {
		conn.Attend()
	}
	return c.SetReadDeadline(time.Now().Add(left)) == nil
}

// originFailed answers for an origin that did not. What the client is to blame for, or its leaving, is no error of the origin's.
func (x *exchange) originFailed(err error) {
	x.result.Latency = time.Since(x.sent)
	unread, awaited := false, false
	if b := x.body; b != nil {
		failure, stalled := b.failure(), b.stalled.Load()
		awaited = b.awaited()
		if x.stopBody != nil {
			x.stopBody() // an answer must not wait for the client's body
		}
		unread = !b.ended.Load()
		if x.bodyFailed(failure, stalled) {
			return
		}
	}
	if x.left() {
		x.clientLeft()
	}
	x.originErr = err
	switch {
	case refusedStream(err):
		x.result.Status = http.StatusServiceUnavailable // what it would have said by HTTP/1.1
	case !awaited:
		x.result.Err = err // else whoever sends a body slowly could have origins ejected that do not wait for it
	}
	x.tryFailed(err)
	x.server.counters.originErrors.Add(1)
	if unread {
		x.closeConnection()
	}
	if timedOut(err) {
		x.fail(http.StatusGatewayTimeout, "The site's server did not answer in time.")
		return
	}
	x.fail(http.StatusBadGateway, "The site's server could not be reached.")
}

// awaited reports whether more of the body is waited for.
func (b *requestBody) awaited() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reading
}

// bodyFailed answers for a body that did not come to its end; false: it did not fail, or the client left.
func (x *exchange) bodyFailed(failure error, stalled bool) bool {
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(failure, &tooLarge):
		x.failBody(http.StatusRequestEntityTooLarge, bodyTooLarge)
	case stalled:
		x.failBody(http.StatusRequestTimeout, "The request's body did not arrive in time.")
	case failure != nil && !x.left():
		x.failBody(http.StatusBadRequest, "The request's body is malformed.")
	default:
		return false
	}
	return true
}

// clientLeft ends the exchange without an answer; at the handler's end an empty 200 would be written.
func (x *exchange) clientLeft() {
	x.w.status = statusClientGone
	panic(http.ErrAbortHandler)
}

func timedOut(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout() || errors.Is(err, context.DeadlineExceeded)
}
