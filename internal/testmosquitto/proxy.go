package testmosquitto

import (
	"io"
	"net"
	"sync"
	"testing"
)

// Proxy passes TCP connections on to an address, until they are cut.
type Proxy struct {
	Addr string
	to   string
	l    net.Listener
	work sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]bool
	closed bool
	refuse bool
	limit  int // bytes from the server that pass on a connection before it is cut; 0: no limit
	served int
}

// NewProxy serves until the test ends.
func NewProxy(t testing.TB, to string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String(), to: to, l: l, conns: map[net.Conn]bool{}}
	p.work.Go(p.run)
	t.Cleanup(func() {
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		_ = l.Close()
		p.Cut()
		p.work.Wait()
	})
	return p
}

// URL is the proxy's, of MQTT.
func (p *Proxy) URL() string { return "mqtt://" + p.Addr }

func (p *Proxy) run() {
	for {
		a, err := p.l.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		refuse, limit := p.refuse, p.limit
		p.mu.Unlock()
		b, err := net.Dial("tcp", p.to)
		if err != nil || refuse || !p.hold(a, b) {
			_ = a.Close()
			if b != nil {
				_ = b.Close()
			}
			continue
		}
		p.work.Go(func() { p.pass(a, b, 0) })
		p.work.Go(func() { p.pass(b, a, limit) })
	}
}

func (p *Proxy) hold(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		p.conns[c] = true
	}
	p.served++
	return !p.closed
}

func (p *Proxy) pass(from, to net.Conn, limit int) {
	var source io.Reader = from
	if limit > 0 {
		source = io.LimitReader(from, int64(limit))
	}
	_, _ = io.Copy(to, source)
	_ = from.Close()
	_ = to.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, from)
	delete(p.conns, to)
}

// Cut ends every connection.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
}

// Refuse says whether connections are taken.
func (p *Proxy) Refuse(refuse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = refuse
}

// CutAfter has each new connection cut when so many bytes have come from the server; 0: not.
func (p *Proxy) CutAfter(bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.limit = bytes
}

// Served is how many connections there were.
func (p *Proxy) Served() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.served
}
