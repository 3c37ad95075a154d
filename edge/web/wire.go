package web

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/guardyn-edge/guardyn/zone"
)

// The wire check reads the framing of HTTP/1.1 messages along with net/http, and stricter: what net/http
// repairs or ignores is what two servers may read differently (RFC 9112 §11.2). It holds nothing back and
// copies nothing but lines that arrive in parts. A head that it refuses is continued with lines that no
// parser accepts, so that net/http answers 400 in its turn among pipelined requests and closes; a chunked
// body that it refuses ends early, which net/http tells from its true end.
//
// Refused: a line ended by LF alone, CR inside a line, a continued line (obs-fold), white space before
// the colon, Content-Length more than once, or with Transfer-Encoding, or other than digits,
// Transfer-Encoding more than once, or other than chunked, or below HTTP/1.1, and a chunk whose size is not
// hexadecimal digits, at most maxChunkDigits, or whose line is longer than maxChunkLine, and a trailer section longer than maxTrailer.

const (
	// maxLine is more than the head that net/http answers 431 to.
	maxLine = 72 << 10
	// maxChunkLine bounds the line before a chunk: size, extension and CRLF.
	maxChunkLine = 256
	// maxChunkDigits bounds the digits of a chunk's size, as net/http does.
	maxChunkDigits = 16
	// maxTrailer bounds the trailer section of a request, which ends at the node; net/http's own bound is little above.
	maxTrailer = 4000
)

// poison continues any part of a head so that it cannot parse: whatever line it falls into, the next one has no
// colon.
const poison = "refused\r\nrefused\r\n\r\n"

type wireState uint8

const (
	stateRequestLine wireState = iota
	stateHeader
	stateBody
	stateChunkSize
	stateChunk
	stateChunkEnd
	stateTrailer
	stateRefused
)

// wireConn is a client's connection under the wire check. Read is called by one goroutine at a time, as
// net/http does.
type wireConn struct {
	net.Conn
	tls        *tls.ConnectionState // of the handshake, nil without TLS
	writeStall time.Duration
	writeUntil atomic.Int64 // write deadline that is set, in Unix nanoseconds
	// passthrough is set once the connection speaks something else than HTTP.
	passthrough atomic.Bool
	// gone is set once the client has left or ended its side; leave is called then, nil for nothing: it ends what the exchange that
	// is at work does for this client alone.
	gone  atomic.Bool
	leave atomic.Pointer[func()]
	attention
	// refused is set once what the client sent is refused.
	refused atomic.Bool

	// Of the scanner.
	state     wireState
	line      []byte // of the current line, what earlier reads brought
	remaining uint64 // bytes of the body, chunk or chunk's end
	trailer   int    // bytes of the trailer section's lines
	pending   []byte // to be delivered instead of reading

	// Of the current head.
	below11            bool
	lengths, encodings int
	length             uint64
	absolute, host     string

	// heads counts those scanned, served those that a handler took up: a connection's requests are served in
	// the order of their heads.
	heads, served int
	mismatched    atomic.Bool // whether mismatches is not empty
	mu            sync.Mutex
	mismatches    []int // heads whose absolute-form target is of another host than their Host
}

// Read implements net.Conn.
func (c *wireConn) Read(p []byte) (int, error) {
	if len(c.pending) > 0 {
		return c.deliver(p), nil
	}
	if c.state == stateRefused {
		return 0, io.EOF
	}
	if len(p) == 1 && c.state == stateRequestLine && c.asked.Load() > 0 && !c.eager.Load() && !c.passthrough.Load() {
		return 0, nil // net/http looks whether the client is there: see attention
	}
	var n int
	var err error
	if c.came {
		n, c.came = copy(p, c.octet[:]), false
	} else if n, err = c.Conn.Read(p); err != nil {
		c.lost(err)
	}
	if n == 0 || c.passthrough.Load() {
		return n, err
	}
	kept, ok := c.scan(p[:n])
	if ok {
		return n, err
	}
	c.refused.Store(true)
	if c.state <= stateHeader {
		c.pending = []byte(poison)
	}
	c.state = stateRefused
	switch {
	case kept > 0:
		return kept, nil
	case len(c.pending) > 0:
		return c.deliver(p), nil
	default:
		return 0, io.EOF
	}
}

// lost takes note of an error of reading. One of a deadline tells nothing of the client.
func (c *wireConn) lost(err error) {
	if t, ok := err.(net.Error); ok && t.Timeout() {
		return
	}
	c.gone.Store(true)
	if leave := c.leave.Load(); leave != nil {
		(*leave)()
	}
	if cancel := c.cancel.Load(); cancel != nil {
		(*cancel)()
	}
}

func (c *wireConn) deliver(p []byte) int {
	n := copy(p, c.pending)
	c.pending = c.pending[n:]
	return n
}

// scan follows b. It returns false when it refuses, with how many bytes of b came before the line that is
// refused.
func (c *wireConn) scan(b []byte) (kept int, ok bool) {
	for at := 0; at < len(b); {
		switch c.state {
		case stateBody, stateChunk:
			take := min(c.remaining, uint64(len(b)-at))
			at += int(take)
			if c.remaining -= take; c.remaining > 0 {
				continue
			}
			if c.state == stateBody {
				c.nextHead()
			} else {
				c.state, c.remaining = stateChunkEnd, 2
			}
		case stateChunkEnd:
			if b[at] != "\n\r"[c.remaining-1] {
				return at, false
			}
			at++
			if c.remaining--; c.remaining == 0 {
				c.state = stateChunkSize
			}
		default:
			end := bytes.IndexByte(b[at:], '\n')
			if end < 0 {
				c.line = append(c.line, b[at:]...)
				return at, len(c.line) <= maxLine && (c.state != stateChunkSize || len(c.line) <= maxChunkLine)
			}
			line := b[at : at+end+1]
			if len(c.line) > 0 {
				c.line = append(c.line, line...)
				line = c.line
			}
			if len(line) > maxLine || !c.readLine(line) {
				return at, false
			}
			if cap(c.line) > 4<<10 {
				c.line = nil
			}
			c.line = c.line[:0]
			at += end + 1
		}
	}
	return len(b), true
}

// readLine takes one whole line, its end included.
func (c *wireConn) readLine(line []byte) bool {
	if len(line) < 2 || bytes.IndexByte(line, '\r') != len(line)-2 {
		return false
	}
	line = line[:len(line)-2]
	switch c.state {
	case stateRequestLine:
		return c.readRequestLine(line)
	case stateChunkSize:
		return c.readChunkSize(line)
	}
	if len(line) == 0 {
		if c.state == stateTrailer {
			c.nextHead()
			return true
		}
		return c.endHead()
	}
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 || bytes.ContainsAny(line[:colon], " \t") {
		return false
	}
	if c.state == stateTrailer {
		c.trailer += len(line) + 2
		return c.trailer <= maxTrailer
	}
	name, value := line[:colon], bytes.Trim(line[colon+1:], " \t")
	switch {
	case len(name) == len("Host") && bytes.EqualFold(name, []byte("Host")):
		if c.absolute != "" {
			c.host = string(value)
		}
	case len(name) == len("Content-Length") && bytes.EqualFold(name, []byte("Content-Length")):
		c.lengths++
		return c.readLength(value)
	case len(name) == len("Transfer-Encoding") && bytes.EqualFold(name, []byte("Transfer-Encoding")):
		c.encodings++
		return c.encodings == 1 && isChunked(string(value))
	}
	return true
}

func (c *wireConn) readRequestLine(line []byte) bool {
	if len(line) == 0 {
		return true // RFC 9112 §2.2; whether to accept it is for net/http
	}
	c.below11 = bytes.HasSuffix(line, []byte(" HTTP/1.0"))
	c.lengths, c.encodings, c.length, c.absolute, c.host = 0, 0, 0, "", ""
	if _, target, found := bytes.Cut(line, []byte(" ")); found && len(target) > 0 && target[0] != '/' {
		if _, rest, found := bytes.Cut(target, []byte("://")); found {
			if end := bytes.IndexAny(rest, "/?# "); end >= 0 {
				c.absolute = string(rest[:end])
			}
		}
	}
	c.state = stateHeader
	return true
}

func (c *wireConn) readLength(value []byte) bool {
	if c.lengths > 1 || len(value) == 0 || len(value) > 18 {
		return false
	}
	c.length = 0
	for _, d := range value {
		if d < '0' || d > '9' {
			return false
		}
		c.length = c.length*10 + uint64(d-'0')
	}
	return true
}

func (c *wireConn) endHead() bool {
	if c.encodings > 0 && (c.lengths > 0 || c.below11) {
		return false
	}
	c.heads++
	c.asked.Add(1)
	if c.absolute != "" && !sameHost(c.absolute, c.host) {
		c.mu.Lock()
		c.mismatches = append(c.mismatches, c.heads)
		c.mismatched.Store(true)
		c.mu.Unlock()
	}
	switch {
	case c.encodings > 0:
		c.state = stateChunkSize
	case c.length > 0:
		c.state, c.remaining = stateBody, c.length
	default:
		c.nextHead()
	}
	return true
}

func (c *wireConn) nextHead() { c.state = stateRequestLine }

func (c *wireConn) readChunkSize(line []byte) bool {
	if len(line) > maxChunkLine-2 {
		return false
	}
	digits := line
	if i := bytes.IndexAny(line, "; \t"); i >= 0 {
		digits = line[:i]
		if rest := bytes.TrimLeft(line[i:], " \t"); len(rest) > 0 && rest[0] != ';' {
			return false
		}
	}
	if len(digits) > maxChunkDigits {
		return false
	}
	// ParseUint would take a sign of neither kind, nor underscores at base 16.
	size, err := strconv.ParseUint(string(digits), 16, 62)
	if err != nil {
		return false
	}
	if size == 0 {
		c.state, c.trailer = stateTrailer, 0
	} else {
		c.state, c.remaining = stateChunk, size
	}
	return true
}

// sameHost reports whether two authorities are of one host, whatever their ports.
func sameHost(a, b string) bool {
	x, err := zone.NormalizeHost(a)
	if err != nil {
		return false
	}
	y, err := zone.NormalizeHost(b)
	return err == nil && x == y
}

// take is called by the handler of each request, in order. It reports whether the request's absolute-form
// target is of another host than its Host header.
func (c *wireConn) take() (mismatch bool) {
	c.served++
	if !c.mismatched.Load() {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.mismatches) > 0 && c.mismatches[0] == c.served {
		c.mismatches = c.mismatches[1:]
		c.mismatched.Store(len(c.mismatches) > 0)
		return true
	}
	return false
}

// Write implements net.Conn. A client that takes nothing for writeStall loses its connection.
func (c *wireConn) Write(p []byte) (int, error) {
	if now := time.Now(); now.Add(c.writeStall/2).UnixNano() > c.writeUntil.Load() {
		until := now.Add(c.writeStall)
		if err := c.Conn.SetWriteDeadline(until); err != nil {
			return 0, err
		}
		c.writeUntil.Store(until.UnixNano())
	}
	return c.Conn.Write(p)
}

// SetWriteDeadline implements net.Conn for net/http, which clears it between requests.
func (c *wireConn) SetWriteDeadline(t time.Time) error {
	c.writeUntil.Store(0)
	return c.Conn.SetWriteDeadline(t)
}

// SetDeadline implements net.Conn.
func (c *wireConn) SetDeadline(t time.Time) error {
	c.writeUntil.Store(0)
	return c.Conn.SetDeadline(t)
}

// CloseWrite ends this side, so that a client that is still sending can read the answer before the
// connection goes.
func (c *wireConn) CloseWrite() error {
	if t, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return t.CloseWrite()
	}
	return nil
}

// isChunked reports whether a transfer coding is chunked, in letters of ASCII: others fold to some of its own.
func isChunked(coding string) bool {
	return len(coding) == len("chunked") && strings.EqualFold(coding, "chunked")
}

// isToken reports whether header lists token in its comma-separated values, in any case.
func isToken(values []string, token string) bool {
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(part), token) {
				return true
			}
		}
	}
	return false
}
