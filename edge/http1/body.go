package http1

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"sync/atomic"
)

const (
	// MaxChunkLine bounds the line before a chunk: size, extension and CRLF.
	MaxChunkLine = 256
	// maxChunkDigits bounds the digits of a chunk's size.
	maxChunkDigits = 16
	// maxFraming bounds the octets that frame a body's chunks, beyond 8 for each octet in them, which a chunk of one octet needs.
	maxFraming = 16 << 10
	// maxTrailer bounds the trailer section of a request, which ends here.
	maxTrailer = 4000
)

type bodyState uint8

const (
	bodyEnded bodyState = iota
	bodyCounted
	bodyChunkSize
	bodyChunk
	bodyChunkEnd
	bodyTrailer
	bodyFailed
)

// ErrBody is the error of a body whose framing is refused.
var ErrBody = errors.New("the framing of the request's body is malformed")

// body is that of the request at hand. One goroutine at a time reads it, the handler's or another's.
type body struct {
	conn    *Conn
	state   bodyState
	left    int64 // of the body, or of the chunk
	trailer int   // octets of the trailer section
	// lines and content count the octets that frame chunks, and that are in them.
	lines, content int64
	err            error // of bodyFailed
	// ended is set once the end was read: from then on nobody reads.
	ended atomic.Bool
	// expects says that the client waits to be told to send the body, continued that it was, or sent some unasked.
	expects   bool
	continued atomic.Bool
}

func (b *body) none() {
	b.state, b.left, b.err, b.expects = bodyEnded, 0, nil, false
	b.continued.Store(false)
	b.ended.Store(true)
}

func (b *body) begin(state bodyState, length int64) {
	b.state, b.left, b.lines, b.content = state, length, 0, 0
	b.ended.Store(false)
}

// Read implements io.Reader. The error is io.EOF together with the last octets, [ErrBody] for framing that is refused, and
// io.ErrUnexpectedEOF when the client has ended its side before.
func (b *body) Read(p []byte) (int, error) {
	if b.state == bodyEnded {
		return 0, io.EOF
	}
	if b.state == bodyFailed {
		return 0, b.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	if b.expects && !b.continued.Swap(true) {
		if b.conn.start == b.conn.end && !b.conn.response.proceed() {
			return 0, b.fail(errAnswered)
		}
	}
	for b.state != bodyCounted && b.state != bodyChunk {
		if err := b.framing(); err != nil {
			return 0, b.fail(err)
		}
		if b.state == bodyEnded {
			b.conn.bodyEnded()
			return 0, io.EOF
		}
	}
	n, err := b.take(p[:min(int64(len(p)), b.left)])
	if b.left -= int64(n); b.left > 0 {
		if err != nil {
			return n, b.fail(err)
		}
		return n, nil
	}
	if b.state == bodyCounted {
		b.state = bodyEnded
		b.conn.bodyEnded()
		return n, io.EOF
	}
	b.state = bodyChunkEnd
	if b.conn.start < b.conn.end {
		// What is here already may be the body's end.
		for b.state != bodyChunk && b.lineHere() {
			if err := b.framing(); err != nil {
				return n, b.fail(err)
			}
			if b.state == bodyEnded {
				b.conn.bodyEnded()
				return n, io.EOF
			}
		}
	}
	return n, nil
}

var errAnswered = errors.New("the request was answered before its body was asked for")

func (b *body) fail(err error) error {
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	b.state, b.err = bodyFailed, err
	return err
}

// Close implements io.Closer. What is left of a body is the connection's.
func (b *body) Close() error { return nil }

// take brings octets of the body.
func (b *body) take(p []byte) (int, error) {
	c := b.conn
	if c.start < c.end {
		n := copy(p, c.in[c.start:c.end])
		c.start += n
		return n, nil
	}
	n, err := c.nc.Read(p)
	if err != nil {
		c.lost(err)
		if n > 0 {
			return n, nil // the error comes again
		}
	}
	return n, err
}

// framing reads a line of what stands between chunks (RFC 9112 §7.1).
func (b *body) framing() error {
	switch b.state {
	case bodyChunkEnd:
		line, err := b.line(2)
		if err != nil {
			return err
		}
		if len(line) > 0 {
			return ErrBody
		}
		b.state = bodyChunkSize
	case bodyChunkSize:
		line, err := b.line(MaxChunkLine)
		if err != nil {
			return err
		}
		size, ok := ChunkSize(line, false)
		if !ok {
			return ErrBody
		}
		b.content += min(size, maxDrain)
		if b.lines += int64(len(line)) + 4; b.lines > maxFraming+8*b.content {
			return ErrBody
		}
		if b.left = size; size > 0 {
			b.state = bodyChunk
		} else {
			b.state, b.trailer = bodyTrailer, 0
		}
	case bodyTrailer:
		line, err := b.line(maxTrailer + 2 - b.trailer)
		if err != nil {
			return err
		}
		if len(line) == 0 {
			b.state = bodyEnded
			return nil
		}
		b.trailer += len(line) + 2
		if badLine(line) || !IsToken(string(line[:bytes.IndexByte(line, ':')])) {
			return ErrBody
		}
	}
	return nil
}

// ChunkSize reads the line before a chunk, without its CRLF; extensions (RFC 9112 §7.1.1) are passed over. padded lets white space stand
// behind the size, which some servers write and no client does.
func ChunkSize(line []byte, padded bool) (size int64, ok bool) {
	digits := line
	if i := bytes.IndexAny(line, "; \t"); i >= 0 {
		digits = line[:i]
		rest := bytes.TrimLeft(line[i:], " \t")
		if len(rest) == 0 && !padded || len(rest) > 0 && rest[0] != ';' {
			return 0, false
		}
		for _, c := range rest {
			if c < ' ' && c != '\t' || c == 0x7f {
				return 0, false
			}
		}
	}
	if len(digits) > maxChunkDigits {
		return 0, false
	}
	// ParseUint would take a sign of neither kind, nor underscores at base 16.
	n, err := strconv.ParseUint(string(digits), 16, 62)
	return int64(n), err == nil
}

// lineHere reports whether the next line has come as a whole, or as far as to be refused.
func (b *body) lineHere() bool {
	in := b.conn.in[b.conn.start:b.conn.end]
	return bytes.IndexByte(in, '\n') >= 0
}

// line takes the next line, of at most limit octets with its CRLF, and returns it without that, in memory that is good until the next
// read.
func (b *body) line(limit int) ([]byte, error) {
	c := b.conn
	for at := 0; ; {
		in := c.in[c.start:c.end]
		if i := bytes.IndexByte(in[at:], '\n'); i >= 0 {
			end := at + i
			if end >= limit || end == 0 || in[end-1] != '\r' || bytes.IndexByte(in[:end-1], '\r') >= 0 {
				return nil, ErrBody
			}
			c.start += end + 1
			return in[:end-1], nil
		}
		if at = len(in); at >= limit {
			return nil, ErrBody
		}
		if c.end == len(c.in) {
			c.end = copy(c.in, in)
			c.start = 0
		}
		n, err := c.nc.Read(c.in[c.end:])
		c.end += n
		if err != nil && n == 0 {
			c.lost(err)
			return nil, err
		}
	}
}

// buffered takes what is left of the body, if all of it has come.
func (b *body) buffered() bool {
	c := b.conn
	if b.state == bodyCounted && b.left <= int64(c.end-c.start) {
		c.start += int(b.left)
		b.state = bodyEnded
		return true
	}
	return false
}
