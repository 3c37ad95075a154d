//lint:file-ignore SA1019 it names net/http, whose client keeps connections by address and not by zone as a node must.

package web

import (
	"context"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

// http2Conns keeps the connections to origins by HTTP/2, each of which carries as many exchanges at once as its origin
// allows. A connection that idles is closed after a time, and over max of them an idle one goes for each that comes.
type http2Conns struct {
	transport *http2.Transport
	max       int

	mu      sync.Mutex
	closed  bool
	n       int
	conns   map[originKey][]*http2.ClientConn
	opening map[originKey]chan struct{} // closed when somebody has opened one, or failed
}

// How soon an origin's connection that went silent is found dead.
const (
	http2PingAfter   = 30 * time.Second
	http2PingTimeout = 15 * time.Second
)

func newHTTP2Conns(c *Config) *http2Conns {
	return &http2Conns{
		max: c.MaxIdleOriginConns,
		transport: &http2.Transport{
			AllowHTTP: true, DisableCompression: true, IdleConnTimeout: c.OriginIdleTimeout, MaxHeaderListSize: maxHeaderBytes,
			ReadIdleTimeout: http2PingAfter, PingTimeout: http2PingTimeout, WriteByteTimeout: c.WriteStall,
		},
		conns: make(map[originKey][]*http2.ClientConn), opening: make(map[originKey]chan struct{}),
	}
}

// conn returns a connection to t with a stream reserved, or plain, a connection that speaks HTTP/1.1, when that is what
// the origin agreed to. reused tells one that was not opened for the caller.
func (p *http2Conns) conn(ctx context.Context, o *origins, t *target) (cc *http2.ClientConn, plain *originConn, reused bool, err error) {
	for {
		cc, wait := p.reserve(t.key)
		if cc != nil {
			return cc, nil, true, nil
		}
		if wait == nil {
			cc, plain, err = p.open(ctx, o, t)
			return cc, plain, false, err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, nil, false, context.Cause(ctx)
		}
	}
}

// reserve takes a stream of a connection that there is; without one it tells what to wait for, nil when it is the
// caller who is to open one and to call opened.
func (p *http2Conns) reserve(key originKey) (*http2.ClientConn, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.conns[key]
	for i := 0; i < len(all); {
		if all[i].ReserveNewRequest() {
			return all[i], nil
		}
		if s := all[i].State(); s.Closed || s.Closing {
			all[i] = all[len(all)-1]
			all = all[:len(all)-1]
			p.n--
			p.keep(key, all)
			continue
		}
		i++
	}
	if wait, ok := p.opening[key]; ok {
		return nil, wait
	}
	p.opening[key] = make(chan struct{})
	return nil, nil
}

func (p *http2Conns) keep(key originKey, all []*http2.ClientConn) {
	if len(all) == 0 {
		delete(p.conns, key)
		return
	}
	p.conns[key] = all
}

// open dials for all who wait.
func (p *http2Conns) open(ctx context.Context, o *origins, t *target) (cc *http2.ClientConn, plain *originConn, err error) {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		close(p.opening[t.key])
		delete(p.opening, t.key)
		if cc == nil {
			return
		}
		if p.closed {
			cc.Close()
			return
		}
		if p.n >= p.max {
			p.closeIdle()
		}
		p.conns[t.key] = append(p.conns[t.key], cc)
		p.n++
	}()
	c, protocol, err := o.dial(ctx, t, []string{"h2", "http/1.1"})
	if err != nil {
		return nil, nil, err
	}
	if t.secure() && protocol != "h2" {
		return nil, c, nil
	}
	if cc, err = p.transport.NewClientConn(c); err != nil {
		c.Close()
		return nil, nil, err
	}
	cc.ReserveNewRequest()
	return cc, nil, nil
}

// closeIdle closes one connection without an exchange, if there is one. The caller holds mu.
func (p *http2Conns) closeIdle() {
	for key, all := range p.conns {
		for i, cc := range all {
			if s := cc.State(); s.StreamsActive+s.StreamsReserved+s.StreamsPending == 0 {
				cc.Close()
				all[i] = all[len(all)-1]
				p.n--
				p.keep(key, all[:len(all)-1])
				return
			}
		}
	}
}

// close closes all, and whatever is opened from now on.
func (p *http2Conns) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, all := range p.conns {
		for _, cc := range all {
			cc.Close()
		}
	}
	clear(p.conns)
	p.n = 0
}
