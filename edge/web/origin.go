package web

import (
	"context"
	"crypto/tls"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/guardyn-edge/guardyn/edge/pool"
)

// origins is the client towards origins: its connections outlive every view.
type origins struct {
	dialer        *dialer
	idle          idleConns
	headerTimeout time.Duration // for the head of an answer once the request is sent
	connects      pool.Histogram
	writeStall    time.Duration
	transits      sync.Pool // of *transit
	http2         *http2Conns
}

func newOrigins(c *Config, d *dialer) *origins {
	return &origins{
		dialer: d, headerTimeout: c.OriginHeaderTimeout, writeStall: c.WriteStall,
		idle:  idleConns{max: c.MaxIdleOriginConns, perKey: c.MaxIdleConnsPerOrigin, timeout: c.OriginIdleTimeout},
		http2: newHTTP2Conns(c),
	}
}

// close lets idle connections go; those in use are closed at their exchange's end.
func (o *origins) close() {
	o.idle.close()
	o.http2.close()
}

// dial opens a connection, with a TLS handshake in the target's server name when its scheme asks for it. protocols
// are offered in it (RFC 7301), nil for none; the origin's choice is returned, empty for none.
func (o *origins) dial(ctx context.Context, t *target, protocols []string) (c *originConn, protocol string, err error) {
	begun := time.Now()
	tcp, err := o.dialer.dialTarget(ctx, t)
	if err != nil {
		return nil, "", err
	}
	if !t.secure() {
		o.connects.Observe(time.Since(begun))
		return newOriginConn(tcp, tcp, t.key, o.writeStall), "", nil
	}
	config := o.dialer.tls.Clone()
	config.ServerName, config.NextProtos = strings.Trim(t.sni, "[]"), protocols
	secured := tls.Client(tcp, config)
	ctx, cancel := context.WithTimeout(ctx, o.dialer.wait)
	defer cancel()
	if err := secured.HandshakeContext(ctx); err != nil {
		tcp.Close()
		return nil, "", fmt.Errorf("TLS handshake as %s: %w", strconv.Quote(config.ServerName), err)
	}
	o.connects.Observe(time.Since(begun))
	return newOriginConn(secured, tcp, t.key, o.writeStall), secured.ConnectionState().NegotiatedProtocol, nil
}

// transit is the memory that one exchange needs on its way, lent to one after another.
type transit struct {
	out []byte // the request's head, and its body when that is small
	// length is that of the request's body in octets, noBody or chunkedBody; small of them stand at the end of out.
	length int64
	small  int
	in     []byte // the answer's head, and what comes with it
	head   answerHead
	body   originBody
}

const (
	// smallTransit is what a transit begins with each way; headers beyond it, up to maxHeaderBytes, grow it for one
	// exchange.
	smallTransit = 4 << 10
	// maxSmallBody bounds what of a request's body is collected to be sent in one piece with its head.
	maxSmallBody = 8 << 10
)

func (o *origins) transit() *transit {
	if t, ok := o.transits.Get().(*transit); ok {
		return t
	}
	return &transit{out: make([]byte, 0, smallTransit), in: make([]byte, smallTransit)}
}

// done takes t back.
func (o *origins) done(t *transit) {
	if cap(t.out) > smallTransit+maxSmallBody || len(t.in) > 2*smallTransit {
		return
	}
	clear(t.head.fields) // they hold the head's text
	clear(t.head.connection)
	t.head = answerHead{fields: t.head.fields[:0], connection: t.head.connection[:0]}
	t.body = originBody{}
	o.transits.Put(t)
}
