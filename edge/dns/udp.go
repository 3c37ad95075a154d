package dns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime/debug"
)

// readSize is how much of a UDP message is read. A query that fills it is ignored.
const readSize = 4096

// udpSocket is one of the sockets that share the address, read by one goroutine.
type udpSocket struct {
	conn     *net.UDPConn
	counters counters
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
		case err != nil:
			s.config.Logger.Warn("dns: udp read failed", "error", err)
			s.pause()
		}
	}
}

// readUDP answers until reading fails, or handling a message panics: a fault must not take the node down.
func (s *Server) readUDP(u *udpSocket) error {
	defer s.recoverPanic(&u.counters)
	r := &responder{nsid: []byte(s.config.NSID)}
	var message, oob, out []byte
	message, out = make([]byte, readSize), make([]byte, 0, udpSize)
	if s.addr.Addr().IsUnspecified() {
		oob = make([]byte, controlSize)
	}
	for {
		n, control, from, err := readFrom(u.conn, message, oob)
		if err != nil {
			return err
		}
		u.counters.queries.Add(1)
		client := clientAddr(from)
		var answer []byte
		if n < len(message) {
			answer = r.respond(&s.config, client, overUDP, message[:n], out)
		}
		if answer == nil {
			u.counters.ignored.Add(1)
			continue
		}
		if answer = s.limited(r, &u.counters, client, answer); answer == nil {
			continue
		}
		u.counters.made(&r.message)
		if err := writeTo(u.conn, answer, control, from); err != nil {
			u.counters.sendErrors.Add(1)
		}
	}
}

// clientAddr is the address that prefixes are matched with.
func clientAddr(from netip.AddrPort) netip.Addr { return from.Addr().Unmap().WithZone("") }

// readFrom reads a message and, when oob is not nil, the local address that it came to, as control
// messages for the answer.
func readFrom(c *net.UDPConn, b, oob []byte) (n int, control []byte, from netip.AddrPort, err error) {
	if oob == nil {
		n, from, err = c.ReadFromUDPAddrPort(b)
		return n, nil, from, err
	}
	n, oobn, _, from, err := c.ReadMsgUDPAddrPort(b, oob)
	if err != nil {
		return 0, nil, from, err
	}
	return n, sourceControl(oob[:oobn]), from, nil
}

func writeTo(c *net.UDPConn, b, control []byte, to netip.AddrPort) error {
	if control == nil {
		_, err := c.WriteToUDPAddrPort(b, to)
		return err
	}
	_, _, err := c.WriteMsgUDPAddrPort(b, control, to)
	return err
}

// recoverPanic counts and logs a panic, with its stack.
func (s *Server) recoverPanic(c *counters) {
	if p := recover(); p != nil {
		c.panics.Add(1)
		s.config.Logger.Error("dns: panic while answering", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	}
}
