//lint:file-ignore SA1019 it names net/http, whose client keeps connections by address and not by zone as a node must.

package web

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"github.com/guardyn-edge/guardyn/edge/http1"
	"github.com/guardyn-edge/guardyn/zone"
)

// speaksHTTP2 reports whether the target is asked by HTTP/2 (RFC 9113): one of scheme h2c always and without TLS, one
// of scheme https for gRPC, when it agrees in the handshake.
func (x *exchange) speaksHTTP2() bool {
	switch x.target.scheme {
	case zone.SchemeH2C:
		return true
	case zone.SchemeHTTPS:
		return isGRPC(x.r.Header.Get("Content-Type"))
	default:
		return false
	}
}

// isGRPC reports whether a media type is that of gRPC over HTTP/2, which gRPC-Web is not.
func isGRPC(contentType string) bool {
	const grpc = "application/grpc"
	if len(contentType) < len(grpc) || !strings.EqualFold(contentType[:len(grpc)], grpc) {
		return false
	}
	rest := contentType[len(grpc):]
	return rest == "" || rest[0] == '+' || rest[0] == ';'
}

// forwardHTTP2 is forward by HTTP/2.
func (x *exchange) forwardHTTP2() {
	ctx, release := x.context()
	defer release()
	for retried := false; ; {
		cc, plain, reused, err := x.server.origins.http2.conn(ctx, x.server.origins, x.target)
		switch {
		case plain != nil:
			x.forwardHTTP1(plain)
			return
		case err != nil && ctx.Err() == nil && x.next(err):
			if !x.speaksHTTP2() {
				x.forwardHTTP1(nil)
				return
			}
			continue
		case err != nil:
			x.originFailed(err)
			return
		}
		if x.trace != nil {
			x.tryConnected(nil, "2", reused) // the library tells no address
		}
		if again := x.exchangeHTTP2(ctx, cc, !retried); !again {
			return
		}
		retried = true
	}
}

// errHeadLate is the error of an origin that thinks for too long.
var errHeadLate error = headLate{}

type headLate struct{}

func (headLate) Error() string { return "the origin's answer did not begin in time" }
func (headLate) Timeout() bool { return true }

// exchangeHTTP2 is one stream. again: the origin has taken nothing of the request, and it may go over another
// connection, which only happens when mayRetry.
func (x *exchange) exchangeHTTP2(ctx context.Context, cc *http2.ClientConn, mayRetry bool) (again bool) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(x.server.origins.headerTimeout, func() { cancel(errHeadLate) })
	defer late.Stop()
	var interim interimGate
	r := (&http.Request{
		Method: x.r.Method, Host: x.target.hostHeader, Header: x.originHeader(),
		URL:   &url.URL{Scheme: x.target.urlScheme(), Host: x.target.hostHeader, Opaque: x.rule.Path, RawQuery: x.rule.Query},
		Proto: "HTTP/2.0", ProtoMajor: 2,
	}).WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		Got1xxResponse: func(status int, h textproto.MIMEHeader) error { return interim.pass(x, status, http.Header(h)) },
	}))
	delete(r.Header, "Expect") // reading the client's body says yes to it
	if _, ok := r.Header["User-Agent"]; !ok {
		r.Header["User-Agent"] = []string{""} // keeps the library from naming itself
	}
	var body *http2Body
	if x.body != nil {
		late.Stop()
		body = &http2Body{body: x.body, ended: func() { late.Reset(x.server.origins.headerTimeout) }}
		r.Body, r.ContentLength = body, x.r.ContentLength
		http.NewResponseController(x.w.ResponseWriter).EnableFullDuplex() //nolint:errcheck // as for a pump
		x.stopBody = body.end
		defer body.end()
	}
	x.asked = time.Now()
	res, err := cc.RoundTrip(r)
	interim.close()
	if body != nil {
		body.answered.Store(true)
	}
	late.Stop()
	if err != nil {
		refused := refusedStream(err)
		untouched := body == nil || !body.begun.Load()
		if mayRetry && ctx.Err() == nil && untouched && (refused || body == nil && safe(x.r.Method)) {
			x.tryFailed(err)
			x.try()
			return true
		}
		if cause := context.Cause(ctx); cause == errHeadLate {
			err = cause
		}
		x.originFailed(err)
		return false
	}
	defer res.Body.Close()
	idle := newIdleClock(x.server.config.StreamIdleTimeout)
	if x.body != nil && !x.body.ended.Load() {
		x.body.stream(idle)
	}
	defer idle.guard(func() { cancel(errIdle) })()
	if !x.relayHTTP2(ctx, res, idle) {
		x.abandon()
	}
	return false
}

// refusedStream reports whether an origin has taken nothing of a request, having too many of them (RFC 9113 §8.7).
func refusedStream(err error) bool {
	var stream http2.StreamError
	return errors.As(err, &stream) && stream.Code == http2.ErrCodeRefusedStream
}

// urlScheme is what :scheme says.
func (t *target) urlScheme() string {
	if t.secure() {
		return "https"
	}
	return "http"
}

// relayHTTP2 is relay for an answer by HTTP/2.
func (x *exchange) relayHTTP2(ctx context.Context, res *http.Response, idle *idleClock) bool {
	a := answerHead{status: res.StatusCode, length: res.ContentLength, chunked: true, fields: fieldsOf(res.Header)}
	for name := range res.Trailer {
		a.fields = append(a.fields, field{"Trailer", name})
	}
	if len(a.fields) > http1.MaxFields {
		x.originFailed(headError("it has more than 256 fields"))
		return true
	}
	if a.status == http.StatusSwitchingProtocols {
		x.originFailed(headError("it switches protocols, which HTTP/2 cannot"))
		return true
	}
	if x.body != nil && !x.body.ended.Load() && !isGRPC(x.r.Header.Get("Content-Type")) {
		x.closeConnection()
	}
	announced := x.answerHeader(&a)
	x.respond(a.status)
	if a.length < 0 {
		x.w.flush()
	}
	buf := x.server.buffers.Get()
	defer x.server.buffers.Put(buf)
	for {
		n, err := res.Body.Read(buf)
		if n > 0 {
			idle.touch(time.Now())
			if _, err := x.w.Write(buf[:n]); err != nil {
				return false // the client left
			}
			if a.length < 0 {
				x.w.flush()
			}
			idle.touch(time.Now())
		}
		if err == io.EOF {
			x.relayTrailer(fieldsOf(res.Trailer), announced)
			return true
		}
		if err != nil {
			if cause := context.Cause(ctx); cause == errIdle {
				err = cause
			}
			x.brokenOff(err)
			return false
		}
	}
}

func fieldsOf(h http.Header) []field {
	fields := make([]field, 0, len(h))
	for name, values := range h {
		for _, v := range values {
			fields = append(fields, field{name, v})
		}
	}
	return fields
}

// interimGate lets interim answers pass to the client while the final one is awaited.
type interimGate struct {
	mu     sync.Mutex
	closed bool
	n      int
}

func (g *interimGate) pass(x *exchange, status int, h http.Header) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.n++; g.n > maxInterim {
		return headError("too many interim answers")
	}
	if !g.closed {
		x.interim(&answerHead{status: status, fields: fieldsOf(h), length: -1})
	}
	return nil
}

func (g *interimGate) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
}

// http2Body is a request's body as the library reads it, on a goroutine of its own, until end.
type http2Body struct {
	body     *requestBody
	ended    func() // begins the time for the answer's head
	begun    atomic.Bool
	answered atomic.Bool
	closed   atomic.Bool
	mu       sync.Mutex
}

// Read implements io.Reader.
func (b *http2Body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	b.begun.Store(true)
	n, err := b.body.Read(p)
	if err == io.EOF && !b.answered.Load() {
		b.ended()
	}
	return n, err
}

// Close implements io.Closer. The client's body is the exchange's to end.
func (b *http2Body) Close() error { return nil }

// end waits for a Read that is at work, which it interrupts, and lets no other begin.
func (b *http2Body) end() {
	b.closed.Store(true)
	if !b.body.ended.Load() {
		b.body.interrupt()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
}
