package web

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of HTTP/2. The windows of all streams of a connection fit its own, so that a request that is not read holds back no more
// than that. A client that opens and resets streams faster than they are handled (CVE-2023-44487) is cut off once 4 ×
// maxStreams of its handlers are waiting, and Config.MaxRequests bounds those at work over all.
const (
	maxStreams        = 128
	maxFrame          = 16 << 10
	streamWindow      = 256 << 10
	connWindow        = 1 << 20
	maxHeaderTable    = 4 << 10
	pingAfter         = 30 * time.Second // without a frame
	pingTimeout       = 15 * time.Second
	defaultHandshakes = 1024
)

// tlsListener accepts connections over TLS, shakes hands beside each other, and gives what came of it to who serves it: for HTTP/2
// net/http, which accepts from it, for HTTP/1.1 the server's own. It owns the goroutines that shake hands.
type tlsListener struct {
	*listener
	server     *Server
	config     *tls.Config
	handshakes chan struct{} // a slot for each that is worked on
	ready      chan net.Conn // by HTTP/2
	running    sync.WaitGroup

	mu     sync.Mutex
	closed bool // nothing is added to running any more
}

func newTLSListener(l net.Listener, s *Server) *tlsListener {
	return &tlsListener{
		listener: newListener(l, s.conns), server: s, config: s.tlsConfig(),
		handshakes: make(chan struct{}, s.config.MaxHandshakes), ready: make(chan net.Conn),
	}
}

// run accepts until the listener is closed or fails.
func (l *tlsListener) run() error { return l.listener.run(l.begin) }

// begin serves conn on a goroutine of its own, unless the listener is closed.
func (l *tlsListener) begin(conn *clientConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		conn.Close()
		return
	}
	l.running.Go(func() { l.serve(conn) })
}

// serve shakes hands and hands the connection on.
func (l *tlsListener) serve(raw *clientConn) {
	shaking := &handshakeConn{clientConn: raw, slots: l.handshakes}
	conn := tls.Server(shaking, l.config)
	err := l.shakeHands(conn)
	shaking.end()
	l.server.counters.handshake(conn, err)
	if err != nil {
		raw.Close()
		return
	}
	if conn.ConnectionState().NegotiatedProtocol != protoH2 {
		go l.server.http1.ServeConn(conn) // on a stack that no handshake has stretched
		return
	}
	select {
	case l.ready <- conn:
	case <-l.done:
		raw.Close()
	}
}

func (l *tlsListener) shakeHands(conn *tls.Conn) error {
	ctx, cancel := context.WithTimeout(context.Background(), l.server.config.HandshakeTimeout)
	defer cancel()
	return conn.HandshakeContext(ctx)
}

// Accept implements net.Listener for net/http.
func (l *tlsListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.ready:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener; connections stay open.
func (l *tlsListener) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	return l.listener.Close()
}

// handshakeConn is a connection while hands are shaken. It holds a slot while something is made of what its client has sent, and none
// while that is waited for: who says nothing, or little, takes no place from who does.
type handshakeConn struct {
	*clientConn
	slots chan struct{}
	held  bool // the goroutine's that shakes hands
	over  atomic.Bool
}

// Read implements net.Conn.
func (c *handshakeConn) Read(p []byte) (int, error) {
	if c.over.Load() {
		return c.clientConn.Read(p)
	}
	if c.held {
		<-c.slots
	}
	n, err := c.clientConn.Read(p)
	c.slots <- struct{}{}
	c.held = true
	return n, err
}

// end is called once hands are shaken, or are not.
func (c *handshakeConn) end() {
	c.over.Store(true)
	if c.held {
		<-c.slots
	}
}

// http2Bounds are those that net/http holds a connection of HTTP/2 to; its header list and idle time are those of HTTP/1.1.
func http2Bounds(c *Config) *http.HTTP2Config {
	return &http.HTTP2Config{
		MaxConcurrentStreams: maxStreams, MaxReadFrameSize: maxFrame, MaxDecoderHeaderTableSize: maxHeaderTable, MaxEncoderHeaderTableSize: maxHeaderTable,
		MaxReceiveBufferPerStream: streamWindow, MaxReceiveBufferPerConnection: connWindow,
		SendPingTimeout: pingAfter, PingTimeout: pingTimeout, WriteByteTimeout: c.WriteStall,
	}
}

// handshake counts how one ended.
func (c *counters) handshake(conn *tls.Conn, err error) {
	if err == nil {
		state := conn.ConnectionState()
		if state.Version == tls.VersionTLS13 {
			c.handshakes13.Add(1)
		} else {
			c.handshakes12.Add(1)
		}
		if state.DidResume {
			c.resumed.Add(1)
		}
		return
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		c.handshakeTimeouts.Add(1)
	case err.Error() == noCertificate:
		c.unknownNames.Add(1)
	default:
		c.handshakeFailures.Add(1)
	}
}

// noCertificate is what crypto/tls says after it answered unrecognized_name; there is no value to compare with.
const noCertificate = "tls: no certificates configured"
