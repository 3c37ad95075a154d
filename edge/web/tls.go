package web

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
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

// tlsListener accepts connections over TLS, shakes hands beside each other, and gives what came of it to net/http: for HTTP/2 the TLS
// connection itself, which net/http knows by its type, for HTTP/1.1 one under the wire check. It owns the goroutines that shake hands.
type tlsListener struct {
	net.Listener
	server     *Server
	config     *tls.Config
	handshakes chan struct{} // a slot for each that is under way
	ready      chan net.Conn
	done       chan struct{}
	stop       sync.Once
	running    sync.WaitGroup

	mu     sync.Mutex
	closed bool // nothing is added to running any more
}

func newTLSListener(l net.Listener, s *Server) *tlsListener {
	return &tlsListener{
		Listener: l, server: s, config: s.tlsConfig(),
		handshakes: make(chan struct{}, s.config.MaxHandshakes), ready: make(chan net.Conn), done: make(chan struct{}),
	}
}

// run accepts until the listener is closed or fails.
func (l *tlsListener) run() error {
	var delay time.Duration
	for {
		select {
		case l.handshakes <- struct{}{}:
		case <-l.done:
			return net.ErrClosed
		}
		conn, err := l.server.conns.accept(l.Listener, l.done)
		if err != nil {
			<-l.handshakes
			if passes(err) {
				delay = min(max(2*delay, 5*time.Millisecond), time.Second)
				wait := time.NewTimer(delay)
				select {
				case <-wait.C:
				case <-l.done:
					wait.Stop()
				}
				continue
			}
			return err
		}
		delay = 0
		if !l.begin(conn) {
			return net.ErrClosed
		}
	}
}

// passes reports whether Accept may work again after err: for lack of descriptors or memory, or a client that left.
func passes(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// begin serves conn on a goroutine of its own, unless the listener is closed.
func (l *tlsListener) begin(conn *clientConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		conn.Close()
		<-l.handshakes
		return false
	}
	l.running.Go(func() { l.serve(conn) })
	return true
}

// serve shakes hands and hands the connection on.
func (l *tlsListener) serve(raw *clientConn) {
	conn := tls.Server(raw, l.config)
	err := l.shakeHands(conn)
	<-l.handshakes
	l.server.counters.handshake(conn, err)
	if err != nil {
		raw.Close()
		return
	}
	var serves net.Conn = conn
	if state := conn.ConnectionState(); state.NegotiatedProtocol != protoH2 {
		serves = &wireConn{Conn: conn, writeStall: l.server.config.WriteStall, tls: &state}
	}
	select {
	case l.ready <- serves:
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
	var err error
	l.stop.Do(func() {
		l.mu.Lock()
		l.closed = true
		l.mu.Unlock()
		close(l.done)
		err = l.Listener.Close()
	})
	return err
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
