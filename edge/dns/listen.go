package dns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// listenTries is how many ports of the system's choice are tried until one is free for UDP and TCP.
const listenTries = 32

// udpBuffer is what each UDP socket asks the system to buffer in each direction, in bytes.
const udpBuffer = 1 << 20

// Listen binds UDP and TCP. Queries that come before Serve wait in the sockets. After an error nothing is
// bound.
func (s *Server) Listen() error {
	host, port, err := net.SplitHostPort(s.config.Addr)
	if err != nil {
		return fmt.Errorf("dns: listen on %q: %w", s.config.Addr, err)
	}
	for try := 1; ; try++ {
		err = s.listen(host, port)
		if err == nil {
			return nil
		}
		if port != "0" || try == listenTries || !isInUse(err) {
			return fmt.Errorf("dns: listen on %s: %w", s.config.Addr, err)
		}
	}
}

// listen binds once. TCP is first: its port is nobody else's, while another server's UDP sockets that
// share theirs would let these join.
func (s *Server) listen(host, port string) error {
	// To the net package 0.0.0.0 and :: are both every address of both families.
	family := ""
	if a, err := netip.ParseAddr(host); err == nil && a.Is4() {
		family = "4"
	}
	listener, err := net.Listen("tcp"+family, net.JoinHostPort(host, port))
	if err != nil {
		return err
	}
	tcpAddr, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		listener.Close()
		return errors.New("the address is not one of TCP")
	}
	addr := tcpAddr.AddrPort()
	addr = netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
	conns, err := listenUDP("udp"+family, addr, s.config.Sockets)
	if err != nil {
		listener.Close()
		return err
	}
	s.addr = addr
	s.tcp.listener = listener
	s.udp = make([]udpSocket, len(conns))
	for i, conn := range conns {
		s.udp[i].conn = conn
	}
	return nil
}

// listenUDP opens n sockets that share addr, or as many as the system allows.
func listenUDP(network string, addr netip.AddrPort, n int) (conns []*net.UDPConn, err error) {
	defer func() {
		if err != nil {
			for _, c := range conns {
				c.Close()
			}
			conns = nil
		}
	}()
	// A socket that shares nothing shows whether the port is free.
	probe, err := net.ListenUDP(network, net.UDPAddrFromAddrPort(addr))
	if err != nil {
		return nil, err
	}
	if !sharesPort {
		return []*net.UDPConn{probe}, nil
	}
	probe.Close()
	config := net.ListenConfig{Control: udpControl}
	for range n {
		c, err := config.ListenPacket(context.Background(), network, addr.String())
		if err != nil {
			return conns, err
		}
		conn, ok := c.(*net.UDPConn)
		if !ok {
			c.Close()
			return conns, errors.New("the socket is not one of UDP")
		}
		// The system may grant less.
		_ = conn.SetReadBuffer(udpBuffer)
		_ = conn.SetWriteBuffer(udpBuffer)
		conns = append(conns, conn)
	}
	return conns, nil
}
