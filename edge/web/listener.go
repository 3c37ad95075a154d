package web

import (
	"errors"
	"net"
	"sync"
	"syscall"
	"time"
)

// listener accepts clients' connections.
type listener struct {
	net.Listener
	set  *connSet
	done chan struct{}
	stop sync.Once
}

func newListener(l net.Listener, set *connSet) *listener {
	return &listener{Listener: l, set: set, done: make(chan struct{})}
}

// run gives each connection to serve, which does not wait, until the listener is closed or fails.
func (l *listener) run(serve func(*clientConn)) error {
	var delay time.Duration
	for {
		conn, err := l.set.accept(l.Listener, l.done)
		if err == nil {
			delay = 0
			serve(conn)
			continue
		}
		if !passes(err) {
			return err
		}
		delay = min(max(2*delay, 5*time.Millisecond), time.Second)
		wait := time.NewTimer(delay)
		select {
		case <-wait.C:
		case <-l.done:
			wait.Stop()
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

// Close implements net.Listener; connections stay open.
func (l *listener) Close() error {
	l.stop.Do(func() { close(l.done) })
	return l.Listener.Close()
}
