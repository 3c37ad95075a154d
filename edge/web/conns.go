package web

import (
	"net"
	"sync"
)

// connSet bounds the connections of clients over all listeners and keeps them, so that those which have left their server's care can be
// closed too.
type connSet struct {
	slots chan struct{}

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

func newConnSet(limit int) *connSet {
	return &connSet{slots: make(chan struct{}, limit), conns: make(map[net.Conn]struct{})}
}

// accept accepts a connection of l, once there is a slot for it. done closed ends the waiting.
func (s *connSet) accept(l net.Listener, done <-chan struct{}) (*clientConn, error) {
	select {
	case s.slots <- struct{}{}:
	case <-done:
		return nil, net.ErrClosed
	}
	conn, err := l.Accept()
	if err != nil {
		<-s.slots
		return nil, err
	}
	c := &clientConn{Conn: conn, set: s}
	s.mu.Lock()
	s.conns[c] = struct{}{}
	s.mu.Unlock()
	return c, nil
}

// closeAll closes every connection that is still open, without a word.
func (s *connSet) closeAll() {
	s.mu.Lock()
	open := make([]net.Conn, 0, len(s.conns))
	for c := range s.conns {
		open = append(open, c)
	}
	s.mu.Unlock()
	for _, c := range open {
		c.Close()
	}
}

func (s *connSet) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns)
}

// clientConn is a client's connection as it was accepted. Its slot is free once it is closed.
type clientConn struct {
	net.Conn
	set  *connSet
	once sync.Once
}

// NetConn is the connection as the system has it.
func (c *clientConn) NetConn() net.Conn { return c.Conn }

// CloseWrite ends this side.
func (c *clientConn) CloseWrite() error {
	if t, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return t.CloseWrite()
	}
	return nil
}

// Close implements net.Conn.
func (c *clientConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.set.mu.Lock()
		delete(c.set.conns, c)
		c.set.mu.Unlock()
		<-c.set.slots
	})
	return err
}
