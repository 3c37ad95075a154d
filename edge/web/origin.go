package web

import (
	"bufio"
	"bytes"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"sync/atomic"
)

// originTransport gives answers of origins with the Connection field that they came with. http.Transport
// deletes it where it lists "close", and with it what says which other fields end at this hop
// (RFC 9110 §7.6.1). It needs a request that has a client trace of its own, as httputil.ReverseProxy makes.
type originTransport struct{ *http.Transport }

// RoundTrip implements http.RoundTripper. Interim answers (RFC 9110 §15.2) reach the trace without fields that
// end here.
func (t originTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	x := exchangeOf(r)
	seen := &x.closing
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil {
		trace.GotConn = func(i httptrace.GotConnInfo) {
			if c, ok := i.Conn.(*originConn); ok {
				c.due.Store(seen)
			}
		}
		if pass := trace.Got1xxResponse; pass != nil {
			trace.Got1xxResponse = func(status int, header textproto.MIMEHeader) error {
				h := http.Header(header)
				restoreConnection(h, seen.values())
				dropHopByHop(h)
				dropNodeFields(h)
				return pass(status, header)
			}
		}
	}
	res, err := t.Transport.RoundTrip(r)
	if err == nil {
		restoreConnection(res.Header, seen.values())
		x.connection = res.Header["Connection"]
	}
	return res, err
}

func restoreConnection(h http.Header, values []string) {
	if len(values) > 0 && len(h["Connection"]) == 0 {
		h["Connection"] = values
	}
}

// connectionValues are the values of Connection in the answers of one exchange, interim ones included, that
// http.Transport deletes. When it takes another connection for the exchange, the reader of the one before may
// still be at work.
type connectionValues struct{ list atomic.Pointer[[]string] }

// maxConnectionValues bounds what interim answers may pile up in one exchange.
const maxConnectionValues = 64

func (v *connectionValues) values() []string {
	if list := v.list.Load(); list != nil {
		return *list
	}
	return nil
}

// add keeps values, the earlier ones too while they are few.
func (v *connectionValues) add(values []string) {
	if earlier := v.values(); len(earlier) < maxConnectionValues {
		values = slices.Concat(earlier, values)
	}
	v.list.Store(&values)
}

// originConn is a connection to an origin. It reads the head of each answer along with http.Transport, holding
// nothing back, and keeps the values of Connection where they list "close". A head that arrives in
// parts is copied; it is bounded as [http.Transport.MaxResponseHeaderBytes] says.
//
// Read is called by one goroutine at a time, as http.Transport does.
type originConn struct {
	net.Conn
	// due is where the values go, nil while no head is due. http.Transport takes a connection up for the next
	// exchange only when the answer of the one before has been read.
	due atomic.Pointer[connectionValues]

	// Of the current head.
	head    []byte // what came of it, when it comes in parts
	at      int    // where the next line begins
	fields  int    // where the fields begin, 0 before
	interim bool   // its status is 1xx, and another head follows
	field   bool   // the last line was of a field Connection
	closes  bool   // a field Connection has "close" in it
}

// Read implements net.Conn.
func (c *originConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		if due := c.due.Load(); due != nil {
			c.scan(p[:n], due)
		}
	}
	return n, err
}

// scan follows b.
func (c *originConn) scan(b []byte, due *connectionValues) {
	if len(c.head) > 0 {
		c.head = append(c.head, b...)
		b = c.head
	}
	for {
		end := bytes.IndexByte(b[c.at:], '\n')
		if end < 0 {
			if len(c.head) == 0 {
				c.head = append(c.head, b...)
			}
			return
		}
		line := bytes.TrimSuffix(b[c.at:c.at+end], []byte("\r"))
		c.at += end + 1
		switch {
		case c.fields == 0:
			c.fields = c.at
			_, status, _ := bytes.Cut(line, []byte(" "))
			status = bytes.TrimLeft(status, " ")
			c.interim = len(status) > 0 && status[0] == '1' && !bytes.HasPrefix(status, []byte("101"))
		case len(line) == 0:
			if c.closes {
				keepConnection(b[c.fields:c.at], due)
			}
			rest := b[c.at:]
			last := !c.interim
			c.head, c.at, c.fields, c.interim, c.field, c.closes = nil, 0, 0, false, false, false
			if last {
				c.due.Store(nil)
				return
			}
			b = rest
		case line[0] == ' ' || line[0] == '\t': // continues the line before (obs-fold)
			c.closes = c.closes || c.field && hasClose(line)
		default:
			const name = "Connection"
			c.field = len(line) > len(name) && line[len(name)] == ':' && bytes.EqualFold(line[:len(name)], []byte(name))
			c.closes = c.closes || c.field && hasClose(line)
		}
	}
}

// hasClose is what a line has at least that makes http.Transport find the token.
func hasClose(line []byte) bool {
	const token = "close"
	for i := 0; i+len(token) <= len(line); i++ {
		if bytes.EqualFold(line[i:i+len(token)], []byte(token)) {
			return true
		}
	}
	return false
}

// keepConnection reads fields as http.Transport does.
func keepConnection(fields []byte, due *connectionValues) {
	h, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(fields))).ReadMIMEHeader()
	if err != nil {
		return // an answer for http.Transport to refuse
	}
	due.add(h["Connection"])
}

// CloseWrite ends this side of a connection that has left HTTP.
func (c *originConn) CloseWrite() error {
	if t, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return t.CloseWrite()
	}
	return http.ErrNotSupported
}
