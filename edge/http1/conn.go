package http1

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Of Conn.wait.
const (
	waitNone      int64 = 0
	waitExpired   int64 = -1
	waitDismissed int64 = -2
)

// Conn is a client's connection. It is a [net.Conn] for who took it over, and until then belongs to the goroutine that serves it.
type Conn struct {
	server *Server
	nc     net.Conn
	tcp    *net.TCPConn         // of nc, nil when something is between
	tls    *tls.ConnectionState // nil without TLS
	peer   netip.Addr
	remote string

	in         []byte // read into
	start, end int    // what of it is not taken
	// wait is until when a head may be waited for, in nanoseconds of the server's clock times two, plus one once it has begun; or one of the
	// constants. Who waits and who ends the waiting agree by it.
	wait      atomic.Int64
	headUntil int64 // the same for all of a head, 0 before it has begun

	request  http.Request
	header   http.Header
	host     string // the value of Host
	body     body
	response Response
	closes   bool // the request is the last one
	fresh    bool // no request has come yet
	taken    bool // by who took it over
	// broken is set once reading was interrupted: no other request can be read.
	broken     atomic.Bool
	writeUntil atomic.Int64 // write deadline that is set, in nanoseconds of the server's clock
	attention
}

func newConn(s *Server, nc net.Conn) *Conn {
	c := &Conn{server: s, nc: nc, in: make([]byte, readSize), header: make(http.Header, 8), fresh: true}
	c.response.conn, c.response.header, c.body.conn = c, make(http.Header, 8), c
	if t, ok := nc.(*tls.Conn); ok {
		state := t.ConnectionState()
		c.tls = &state
	} else {
		under := nc
		if u, ok := nc.(interface{ NetConn() net.Conn }); ok {
			under = u.NetConn()
		}
		c.tcp, _ = under.(*net.TCPConn)
	}
	if a := nc.RemoteAddr(); a != nil {
		c.remote = a.String()
		if p, err := netip.ParseAddrPort(c.remote); err == nil {
			c.peer = p.Addr().Unmap().WithZone("")
		}
	}
	return c
}

// Peer is the address that the connection comes from, the zero Addr when that is none.
func (c *Conn) Peer() netip.Addr { return c.peer }

// HostField is the value of the request's Host field. [http.Request.Host] is what its target says, if that names a host.
func (c *Conn) HostField() string { return c.host }

// serve handles one request after the other.
func (c *Conn) serve() {
	defer func() {
		if !c.taken {
			c.nc.Close()
		}
	}()
	for {
		status, err := c.next()
		if err != nil {
			return
		}
		if status != 0 {
			c.refuse(status)
			return
		}
		if !c.handle() {
			return
		}
	}
}

// next reads the next request's head. status is with what it is refused, 0 for not at all; an error says that there is none.
func (c *Conn) next() (status int, err error) {
	if c.start == c.end {
		c.start, c.end = 0, 0
		if len(c.in) > readSize {
			c.in = make([]byte, readSize)
		}
	}
	c.headUntil = 0
	scan := headScan{}
	for {
		n, status := scan.scan(c.in[c.start:c.end])
		if status != 0 {
			return status, nil
		}
		if n > 0 {
			head := string(c.in[c.start+scan.skip : c.start+n])
			if c.start += n; c.start == c.end && len(c.in) > readSize {
				c.in, c.start, c.end = make([]byte, readSize), 0, 0 // an origin's answer may be long in coming
			}
			c.fresh = false
			return c.parse(head), nil
		}
		if c.end-c.start >= MaxHead {
			return http.StatusRequestHeaderFieldsTooLarge, nil
		}
		begun := c.end-c.start > scan.skip
		if err := c.await(begun); err != nil {
			if begun && errors.Is(err, os.ErrDeadlineExceeded) {
				return http.StatusRequestTimeout, nil
			}
			return 0, err
		}
	}
}

// await reads more of a head.
func (c *Conn) await(begun bool) error {
	if c.end == len(c.in) {
		if c.start > 0 {
			c.end = copy(c.in, c.in[c.start:c.end])
			c.start = 0
		} else {
			c.in = append(c.in, make([]byte, min(len(c.in), MaxHead-len(c.in)))...)
		}
	}
	if begun && c.headUntil == 0 {
		c.headUntil = (c.server.now.Load()+int64(c.server.config.HeaderTimeout))<<1 | 1
	}
	until := c.headUntil
	switch {
	case begun:
	case c.fresh:
		until = (c.server.now.Load() + int64(c.server.config.HeaderTimeout)) << 1
	default:
		until = (c.server.now.Load() + int64(c.server.config.IdleTimeout)) << 1
	}
	c.wait.Store(until)
	if !begun && c.server.closing.Load() {
		c.dismiss()
	}
	n, err := c.nc.Read(c.in[c.end:])
	c.end += n
	if !c.wait.CompareAndSwap(until, waitNone) {
		// Who ended the waiting has set a deadline once it has let go of the lock.
		c.attend.Lock()
		expired := c.wait.Swap(waitNone) == waitExpired
		c.nc.SetReadDeadline(time.Time{}) //nolint:errcheck // of a connection that is closed the next read says so
		c.attend.Unlock()
		if expired {
			return os.ErrDeadlineExceeded
		}
		// It was dismissed, and may have something to say yet.
	}
	if n > 0 {
		return nil
	}
	return err
}

// expire ends the waiting for a head that lasts longer than it may.
func (c *Conn) expire(now int64) {
	if until := c.wait.Load(); until <= 0 || until>>1 >= now {
		return
	}
	c.attend.Lock()
	defer c.attend.Unlock()
	if until := c.wait.Load(); until > 0 && until>>1 < now && c.wait.CompareAndSwap(until, waitExpired) {
		c.nc.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // a closed connection ends the read too
	}
}

// dismiss ends the waiting for a next request soon.
func (c *Conn) dismiss() {
	c.attend.Lock()
	defer c.attend.Unlock()
	if until := c.wait.Load(); until > 0 && until&1 == 0 && c.wait.CompareAndSwap(until, waitDismissed) {
		c.nc.SetReadDeadline(time.Now().Add(farewell)) //nolint:errcheck // a closed connection ends the read too
	}
}

// handle answers the request that was read. false: it was the connection's last one.
func (c *Conn) handle() (more bool) {
	w := &c.response
	w.begin()
	if c.run() || c.taken {
		w.release()
		return false
	}
	c.unattend()
	w.finish()
	w.release()
	c.forget()
	closes := w.closes || w.err != nil || c.broken.Load() || c.gone.Load()
	if c.body.state == bodyEnded {
		if closes && w.err == nil && !c.closes {
			c.linger()
		}
		return !closes
	}
	if closes || !c.drain() {
		c.linger()
		return false
	}
	return true
}

// forget lets go of what the request and its answer hold, which may be a hundred times what a connection needs that waits for the next
// one, or for its client to read.
func (c *Conn) forget() {
	c.header, c.response.header = emptied(c.header), emptied(c.response.header)
	c.request, c.host = http.Request{}, ""
	clear(c.response.keys[:cap(c.response.keys)])
	c.response.trailers = nil
}

// emptied is h without fields, or another where h has grown.
func emptied(h http.Header) http.Header {
	if len(h) > fewFields {
		return make(http.Header, 8)
	}
	clear(h)
	return h
}

// run calls the handler. aborted: it broke its answer off.
func (c *Conn) run() (aborted bool) {
	defer func() {
		if aborted {
			c.server.panicked(c, recover())
			c.unattend()
		}
	}()
	aborted = true
	c.server.config.Handler(&c.response, &c.request)
	return false
}

// drain reads what is left of the body, if that is not too much.
func (c *Conn) drain() (whole bool) {
	if c.body.expects && !c.body.continued.Load() {
		return false
	}
	if c.body.buffered() {
		return true
	}
	c.nc.SetReadDeadline(time.Now().Add(c.server.config.Linger)) //nolint:errcheck // of a connection that is closed the read says so
	buf := c.server.buffer()
	defer c.server.writers.Put(buf)
	for n := 0; n < maxDrain; {
		m, err := c.body.Read(buf[:])
		if n += m; err == io.EOF {
			return c.nc.SetReadDeadline(time.Time{}) == nil
		}
		if err != nil {
			return false
		}
	}
	return false
}

// linger ends this side and reads what the client still sends, so that it can read the answer before the connection goes.
func (c *Conn) linger() {
	if c.gone.Load() || c.CloseWrite() != nil || c.nc.SetReadDeadline(time.Now().Add(c.server.config.Linger)) != nil {
		return
	}
	c.wait.Store((c.server.now.Load() + int64(2*c.server.config.Linger)) << 1) // what ends it is its own deadline, or a shutdown
	if c.server.closing.Load() {
		c.dismiss()
	}
	buf := c.server.buffer()
	defer c.server.writers.Put(buf)
	for n := 0; n < maxDrain; {
		m, err := c.nc.Read(buf[:])
		if n += m; err != nil {
			return
		}
	}
}

// refuse answers a head that is none.
func (c *Conn) refuse(status int) {
	if c.server.config.Refused != nil {
		c.server.config.Refused(c, status)
	}
	w := &c.response
	c.request.Method, c.request.ProtoMajor, c.request.ProtoMinor = http.MethodGet, 1, 1
	c.body.none()
	w.begin()
	w.refused(status)
	w.release()
	if w.err == nil {
		c.linger()
	}
}

// Read implements [net.Conn] for who took the connection over: what the client sent before comes first.
func (c *Conn) Read(p []byte) (int, error) {
	if c.start < c.end {
		n := copy(p, c.in[c.start:c.end])
		if c.start += n; c.start == c.end {
			c.in, c.start, c.end = nil, 0, 0
		}
		return n, nil
	}
	return c.nc.Read(p)
}

// Write implements [net.Conn]. A client that takes nothing for Config.WriteStall loses the connection.
func (c *Conn) Write(p []byte) (int, error) {
	if err := c.stall(); err != nil {
		return 0, err
	}
	return c.nc.Write(p)
}

// stall sets the deadline for a write, when the one that is set is near.
func (c *Conn) stall() error {
	now := c.server.now.Load()
	if c.writeUntil.Load()-now >= int64(c.server.config.WriteStall/2) {
		return nil
	}
	until := time.Now().Add(c.server.config.WriteStall)
	c.writeUntil.Store(int64(until.Sub(c.server.epoch)))
	return c.nc.SetWriteDeadline(until)
}

// CloseWrite ends this side.
func (c *Conn) CloseWrite() error {
	if t, ok := c.nc.(interface{ CloseWrite() error }); ok {
		return t.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Close implements [net.Conn].
func (c *Conn) Close() error { return c.nc.Close() }

// LocalAddr implements [net.Conn].
func (c *Conn) LocalAddr() net.Addr { return c.nc.LocalAddr() }

// RemoteAddr implements [net.Conn].
func (c *Conn) RemoteAddr() net.Addr { return c.nc.RemoteAddr() }

// SetDeadline implements [net.Conn].
func (c *Conn) SetDeadline(t time.Time) error {
	c.writeUntil.Store(0)
	return c.nc.SetDeadline(t)
}

// SetReadDeadline implements [net.Conn].
func (c *Conn) SetReadDeadline(t time.Time) error { return c.nc.SetReadDeadline(t) }

// SetWriteDeadline implements [net.Conn].
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.writeUntil.Store(0)
	return c.nc.SetWriteDeadline(t)
}

// InterruptRead ends a read of the request's body that waits, from any goroutine. The connection carries no other request.
func (c *Conn) InterruptRead() {
	c.broken.Store(true)
	c.nc.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // a closed connection ends the read too
}

// attention is how a handler learns that its client has left.
type attention struct {
	gone  atomic.Bool
	leave atomic.Pointer[func()]

	attend  sync.Mutex
	wanted  bool          // once the body has ended
	reading chan struct{} // closed once the read is over; nil when there is none
}
