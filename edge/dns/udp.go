package dns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime/debug"
	"time"

	"github.com/guardyn-edge/guardyn/edge/pool"
)

// readSize is how much of a UDP message is read. A query that fills it is ignored.
const readSize = 4096

// udpSocket is one of the sockets that share the address, read by one goroutine.
type udpSocket struct {
	conn     *net.UDPConn
	counters counters
	seconds  pool.Histogram
}

// serveUDP answers what comes on u until the server closes.
func (s *Server) serveUDP(u *udpSocket) error {
	for {
		err := s.readUDP(u)
		switch {
		case s.isClosing():
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("dns: udp %s: %w", s.addr, err)
		default:
			s.config.Logger.Warn("dns: udp read failed", "error", err)
			s.pause()
		}
	}
}

// readUDP answers until reading fails; it returns that error.
func (s *Server) readUDP(u *udpSocket) error {
	b, err := newBatch(u.conn, s.addr.Addr().IsUnspecified())
	if err != nil {
		return err
	}
	r := &responder{nsid: []byte(s.config.NSID)}
	for {
		n, err := b.receive()
		if err != nil {
			return err
		}
		now := s.config.Now()
		u.counters.queries.Add(uint64(n))
		for i := range n {
			message, client := b.message(i)
			if answer := s.answerUDP(r, &u.counters, client, now, message, b.room(i)); answer != nil {
				b.queue(i, answer)
			}
		}
		if failed := b.send(); failed > 0 {
			u.counters.sendErrors.Add(uint64(failed))
		}
		u.seconds.ObserveEach(s.config.Now().Sub(now), n)
	}
}

// answerUDP answers one message in buf, nil when there is nothing to send. The answer is counted. A fault takes neither
// the node down nor other messages' answers with it.
func (s *Server) answerUDP(r *responder, c *counters, client netip.Addr, now time.Time, message, buf []byte) (answer []byte) {
	defer s.recoverPanic(c)
	if message != nil {
		buf = r.respond(&s.config, client, overUDP, message, buf)
	}
	if message == nil || buf == nil {
		c.ignored.Add(1)
		return nil
	}
	s.config.countZone(r)
	if buf = s.limited(r, c, client, now, buf); buf != nil {
		c.made(&r.message)
	}
	return buf
}

// clientAddr is the address that prefixes are matched with.
func clientAddr(from netip.AddrPort) netip.Addr { return from.Addr().Unmap().WithZone("") }

// recoverPanic counts and logs a panic, with its stack.
func (s *Server) recoverPanic(c *counters) {
	if p := recover(); p != nil {
		c.panics.Add(1)
		s.config.Logger.Error("dns: panic while answering", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	}
}
