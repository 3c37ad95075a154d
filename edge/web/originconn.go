package web

import (
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"github.com/guardyn-edge/guardyn/zone"
)

// originKey says which connections reach a target. The zone is part of it: a connection that one zone's traffic has
// brought into a bad state never carries another's.
type originKey struct {
	zone   zone.ID
	scheme zone.Scheme
	// host is host:port, or all the addresses when there are several; one address is in address.
	host    string
	address netip.AddrPort
	sni     string
}

// originConn is a connection to an origin. One exchange at a time has it, or it is idle.
type originConn struct {
	net.Conn
	key originKey
	// reused says that it has carried an exchange before.
	reused bool
	// release ends the connection at once, from any goroutine: what waits in Read or Write returns an error.
	release func()
	// idle bounds the silence of an answer that has begun, nil before; readUntil is the deadline that is set for it.
	idle      *idleClock
	readUntil time.Time
	stall     time.Duration // how long the origin may take nothing
	until     time.Time     // write deadline that is set

	raw   syscall.RawConn
	look  func(fd uintptr)
	octet [1]byte
	calm  bool

	// Of idleConns.
	expires      time.Time
	above, below *originConn // of the same key, by when they came
	newer, older *originConn // of all
}

// newOriginConn wraps conn, which is tcp or a TLS connection over it.
func newOriginConn(conn, tcp net.Conn, key originKey, stall time.Duration) *originConn {
	c := &originConn{Conn: conn, key: key, stall: stall}
	c.release = func() { tcp.Close() }
	if s, ok := tcp.(syscall.Conn); ok {
		c.raw, _ = s.SyscallConn()
	}
	c.look = c.peek
	return c
}

// quiet reports whether an idle connection is open and has nothing to read. An origin that says something nobody
// asked for is not to be understood: it would be taken for the answer to the next request.
func (c *originConn) quiet() bool {
	c.calm = false
	return c.raw == nil || c.raw.Control(c.look) == nil && c.calm
}

// stream says that the head of an answer is here.
func (c *originConn) stream(idle *idleClock) { c.idle, c.readUntil = idle, time.Time{} }

// Read implements net.Conn.
func (c *originConn) Read(p []byte) (int, error) {
	if c.idle == nil {
		return c.Conn.Read(p)
	}
	return c.idle.read(c.Conn, &c.readUntil, p)
}

// Write implements net.Conn. An origin that takes nothing for the stall, or for half of it at least, loses the
// connection.
func (c *originConn) Write(p []byte) (int, error) {
	if now := time.Now(); c.until.Sub(now) < c.stall/2 {
		c.until = now.Add(c.stall)
		if err := c.SetWriteDeadline(c.until); err != nil {
			return 0, err
		}
	}
	return c.Conn.Write(p)
}

// CloseWrite ends this side of a connection that has left HTTP.
func (c *originConn) CloseWrite() error {
	if t, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return t.CloseWrite()
	}
	return http.ErrNotSupported
}
