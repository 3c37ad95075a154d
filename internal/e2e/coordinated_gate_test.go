package e2e_test

import (
	"context"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
)

// gate is the way to a server, or to several of which each connection takes one at random among those that answer. It can be
// cut, as a network is: nothing comes through and nobody is told. What was sent meanwhile arrives once it is mended.
type gate struct {
	network string
	addr    string // what it listens on

	mu       sync.Mutex
	backends []string
	open     chan struct{} // closed while the way is open
	conns    map[net.Conn]string
}

// newGate listens on addr, a path when network is unix.
func newGate(t testing.TB, network, addr string, backends ...string) *gate {
	t.Helper()
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{network: network, addr: l.Addr().String(), backends: backends, open: make(chan struct{}), conns: map[net.Conn]string{}}
	close(g.open)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { g.carry(ctx, client) })
		}
	})
	t.Cleanup(func() {
		stop()
		_ = l.Close()
		running.Wait()
	})
	return g
}

// cut lets nothing through any more.
func (g *gate) cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
}

// mend opens the way again.
func (g *gate) mend() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.open)
}

// use leads to these backends from now on, and ends connections to others, as a balancer does that finds them dead.
func (g *gate) use(backends ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.backends = backends
	for c, to := range g.conns {
		if !slices.Contains(backends, to) {
			_ = c.Close()
		}
	}
}

// through returns once the way is open; false when ctx ended first.
func (g *gate) through(ctx context.Context) bool {
	for {
		g.mu.Lock()
		open := g.open
		g.mu.Unlock()
		select {
		case <-open:
		case <-ctx.Done():
			return false
		}
		g.mu.Lock()
		same := g.open == open
		g.mu.Unlock()
		if same {
			return true
		}
	}
}

func (g *gate) carry(ctx context.Context, client net.Conn) {
	defer client.Close()
	ctx, end := context.WithCancel(ctx)
	defer end()
	if !g.through(ctx) {
		return
	}
	backend := g.dial(ctx)
	if backend == nil {
		return
	}
	defer func() {
		g.mu.Lock()
		delete(g.conns, backend)
		g.mu.Unlock()
		_ = backend.Close()
	}()
	defer context.AfterFunc(ctx, func() { _ = client.Close(); _ = backend.Close() })()
	var answers sync.WaitGroup
	answers.Go(func() { g.copy(ctx, client, backend); end() })
	g.copy(ctx, backend, client)
	end()
	answers.Wait()
}

func (g *gate) dial(ctx context.Context) net.Conn {
	g.mu.Lock()
	backends := slices.Clone(g.backends)
	g.mu.Unlock()
	rand.Shuffle(len(backends), func(i, j int) { backends[i], backends[j] = backends[j], backends[i] })
	for _, to := range backends {
		c, err := new(net.Dialer).DialContext(ctx, g.network, to)
		if err != nil {
			continue
		}
		g.mu.Lock()
		g.conns[c] = to
		still := slices.Contains(g.backends, to)
		g.mu.Unlock()
		if !still {
			_ = c.Close() // the copying ends at once
		}
		return c
	}
	return nil
}

// copy ends with either connection.
func (g *gate) copy(ctx context.Context, to, from net.Conn) {
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if !g.through(ctx) {
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
