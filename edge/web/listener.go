package web

import (
	"context"
	"net"
	"sync"
	"time"
)

// listener accepts connections of HTTP/1.1 without TLS and puts each under the wire check.
type listener struct {
	net.Listener
	set        *connSet
	done       chan struct{}
	stop       sync.Once
	writeStall time.Duration
}

func newListener(l net.Listener, set *connSet, writeStall time.Duration) *listener {
	return &listener{Listener: l, set: set, writeStall: writeStall, done: make(chan struct{})}
}

// Accept implements net.Listener. It waits while all slots are taken.
func (l *listener) Accept() (net.Conn, error) {
	conn, err := l.set.accept(l.Listener, l.done)
	if err != nil {
		return nil, err
	}
	return &wireConn{Conn: conn, writeStall: l.writeStall}, nil
}

// Close implements net.Listener; connections stay open.
func (l *listener) Close() error {
	l.stop.Do(func() { close(l.done) })
	return l.Listener.Close()
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
