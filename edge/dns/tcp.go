package dns

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// bufferSize is what a connection has for reading and for writing. A longer query is read as it comes, so
	// that a length alone costs no memory.
	bufferSize = 4096
	// errorPause is how long a socket rests after an error, as when the system is out of descriptors.
	errorPause = 50 * time.Millisecond
)

// tcpListener is the TCP side of a server.
type tcpListener struct {
	listener net.Listener
	counters counters
	accepted atomic.Uint64
	refused  atomic.Uint64

	mu        sync.Mutex
	conns     map[net.Conn]struct{}
	perSource map[netip.Addr]int
	closed    bool
}

// tcpBuffers is what one connection uses at a time.
type tcpBuffers struct {
	reader *bufio.Reader
	writer *bufio.Writer
	answer []byte // its length, then the answer; made for the first
	r      responder
}

// serveTCP accepts until the server closes, then waits for the connections.
func (s *Server) serveTCP() error {
	var conns sync.WaitGroup
	defer conns.Wait()
	var buffers sync.Pool
	for {
		conn, err := s.tcp.listener.Accept()
		if s.isClosing() {
			if err == nil {
				conn.Close()
			}
			return nil
		}
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("dns: tcp %s: %w", s.addr, err)
		}
		if err != nil {
			s.config.Logger.Warn("dns: accept failed", "error", err)
			s.pause()
			continue
		}
		source := sourceOf(conn)
		if !s.tcp.add(conn, source, &s.config) {
			conn.Close()
			continue
		}
		conns.Go(func() {
			defer s.tcp.remove(conn, source)
			defer s.recoverPanic(&s.tcp.counters)
			b, ok := buffers.Get().(*tcpBuffers)
			if !ok {
				b = &tcpBuffers{
					reader: bufio.NewReaderSize(nil, bufferSize), writer: bufio.NewWriterSize(nil, bufferSize),
					r: responder{nsid: []byte(s.config.NSID)},
				}
			}
			s.serveConn(conn, b)
			buffers.Put(b)
		})
	}
}

// pause rests after an error of a socket, or until the server closes.
func (s *Server) pause() {
	t := time.NewTimer(errorPause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.closing:
	}
}

// serveConn answers the messages of one connection in their order (RFC 7766 §6.2.1). Answers to messages that
// came together go out together.
func (s *Server) serveConn(conn net.Conn, b *tcpBuffers) {
	b.reader.Reset(conn)
	b.writer.Reset(conn)
	defer b.reader.Reset(nil)
	defer b.writer.Reset(nil)
	client := clientOf(conn)
	end := time.Now().Add(s.config.ConnectionTimeout)
	for !s.isClosing() {
		if err := conn.SetDeadline(earlier(time.Now().Add(s.config.IdleTimeout), end)); err != nil {
			return
		}
		// Close wakes a reader by a deadline in the past, which the line above may just have undone.
		if s.isClosing() {
			return
		}
		message, err := readMessage(b.reader)
		if err != nil {
			return
		}
		s.tcp.counters.queries.Add(1)
		if cap(b.answer) == 0 {
			b.answer = make([]byte, 2, 2+tcpSize)
		}
		answer := b.r.respond(&s.config, client, overTCP, message, b.answer[2:2])
		if answer == nil {
			s.tcp.counters.ignored.Add(1)
			break
		}
		s.config.countZone(&b.r)
		s.tcp.counters.made(&b.r.message)
		binary.BigEndian.PutUint16(b.answer, uint16(len(answer)))
		b.writer.Write(b.answer[:2+len(answer)])
		if !holdsMessage(b.reader) {
			if err := b.writer.Flush(); err != nil {
				s.tcp.counters.sendErrors.Add(1)
				return
			}
		}
	}
	b.writer.Flush()
}

// readMessage reads a message after its length. It is valid until the next read.
func readMessage(r *bufio.Reader) ([]byte, error) {
	prefix, err := r.Peek(2)
	if err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(prefix))
	if 2+n > r.Size() {
		if _, err := r.Discard(2); err != nil {
			return nil, err
		}
		message, err := io.ReadAll(io.LimitReader(r, int64(n)))
		if err == nil && len(message) < n {
			err = io.ErrUnexpectedEOF
		}
		return message, err
	}
	message, err := r.Peek(2 + n)
	if err != nil {
		return nil, err
	}
	_, err = r.Discard(2 + n) // what is buffered cannot fail, and stays in place
	return message[2:], err
}

// holdsMessage reports whether the next message has come whole.
func holdsMessage(r *bufio.Reader) bool {
	if r.Buffered() < 2 {
		return false
	}
	prefix, err := r.Peek(2)
	return err == nil && r.Buffered() >= 2+int(binary.BigEndian.Uint16(prefix))
}

// add takes a connection on, unless a cap is reached.
func (t *tcpListener) add(conn net.Conn, source netip.Addr, c *Config) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || len(t.conns) >= c.MaxConnections || t.perSource[source] >= c.MaxConnectionsPerSource {
		t.refused.Add(1)
		return false
	}
	t.accepted.Add(1)
	t.conns[conn] = struct{}{}
	t.perSource[source]++
	return true
}

// remove forgets a connection and closes it, in this order: a client that sees the end has room for another.
func (t *tcpListener) remove(conn net.Conn, source netip.Addr) {
	defer conn.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.conns, conn)
	if t.perSource[source]--; t.perSource[source] == 0 {
		delete(t.perSource, source)
	}
}

func (t *tcpListener) open() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.conns)
}

// close stops accepting and wakes every connection that waits for a message; one that is being answered ends
// after its answer.
func (t *tcpListener) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.listener != nil {
		t.listener.Close()
	}
	for conn := range t.conns {
		if c, ok := conn.(*net.TCPConn); ok {
			c.SetReadDeadline(time.Unix(1, 0))
		}
	}
}

// sourceOf is what the cap per source counts by: the IPv4 address, or the /64.
func sourceOf(conn net.Conn) netip.Addr {
	a := clientOf(conn)
	if a.Is6() {
		return netip.PrefixFrom(a, 64).Masked().Addr()
	}
	return a
}

func clientOf(conn net.Conn) netip.Addr {
	if a, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		return clientAddr(a.AddrPort())
	}
	return netip.Addr{}
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
