package web

import (
	"context"
	"net"
	"sync"
	"time"
)

// listener accepts at most a number of connections at once and puts each under the wire check. It keeps them,
// so that those which have left net/http's care can be closed too.
type listener struct {
	net.Listener
	slots      chan struct{}
	done       chan struct{}
	stop       sync.Once
	writeStall time.Duration

	mu    sync.Mutex
	conns map[*wireConn]struct{}
}

func newListener(l net.Listener, max int, writeStall time.Duration) *listener {
	return &listener{
		Listener: l, writeStall: writeStall, conns: make(map[*wireConn]struct{}),
		slots: make(chan struct{}, max), done: make(chan struct{}),
	}
}

// Accept implements net.Listener. It waits while all slots are taken.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	c := &wireConn{Conn: conn, onClose: l.forget, writeStall: l.writeStall}
	l.mu.Lock()
	l.conns[c] = struct{}{}
	l.mu.Unlock()
	return c, nil
}

func (l *listener) forget(c *wireConn) {
	l.mu.Lock()
	delete(l.conns, c)
	l.mu.Unlock()
	<-l.slots
}

// Close implements net.Listener; connections stay open.
func (l *listener) Close() error {
	l.stop.Do(func() { close(l.done) })
	return l.Listener.Close()
}

// closeConns closes every connection that is still open.
func (l *listener) closeConns() {
	l.mu.Lock()
	open := make([]*wireConn, 0, len(l.conns))
	for c := range l.conns {
		open = append(open, c)
	}
	l.mu.Unlock()
	for _, c := range open {
		c.Close()
	}
}

func (l *listener) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

type connKey struct{}

// withConn puts a connection where the handlers of its requests find it.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

func connOf(ctx context.Context) *wireConn {
	c, _ := ctx.Value(connKey{}).(*wireConn)
	return c
}
