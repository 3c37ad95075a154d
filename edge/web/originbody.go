package web

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/guardyn-edge/guardyn/edge/http1"
)

type bodyState uint8

const (
	bodyEnded bodyState = iota
	bodyCounted
	bodyToTheEnd // of the connection
	bodyChunkSize
	bodyChunk
	bodyChunkEnd
	bodyTrailer
)

// originBody brings the body of an answer by HTTP/1.1 (RFC 9112 §6, §7.1), whose framing is read as strictly as the
// head's.
type originBody struct {
	from io.Reader
	// buf is read into; in is what of it has come and is not taken.
	buf, in []byte
	state   bodyState
	left    int64 // octets of the body or of the chunk
	// trailer is what came after the last chunk.
	trailer []field
	// waits is called before a read that may wait, nil when nobody wants to know.
	waits func()
}

// begin says where the body of an answer to a request of method ends. in is what came behind the head, within buf.
func (b *originBody) begin(from io.Reader, h *answerHead, method string, buf, in []byte) {
	*b = originBody{from: from, buf: buf, in: in}
	switch {
	case method == http.MethodHead || h.status == http.StatusNoContent || h.status == http.StatusNotModified || h.length == 0:
	case h.chunked:
		b.state = bodyChunkSize
	case h.length > 0:
		b.state, b.left = bodyCounted, h.length
	default:
		b.state = bodyToTheEnd
	}
}

// next returns what there is of the body next, in memory that is the caller's until the next call. The error is
// io.EOF after the body's end, and another when the body is broken off or malformed.
func (b *originBody) next() ([]byte, error) {
	for {
		switch b.state {
		case bodyEnded:
			return nil, io.EOF
		case bodyToTheEnd:
			if len(b.in) == 0 {
				if err := b.fill(); err == io.EOF {
					b.state = bodyEnded
					return nil, io.EOF
				} else if err != nil {
					return nil, err
				}
			}
			p := b.in
			b.in = nil
			return p, nil
		case bodyCounted, bodyChunk:
			if len(b.in) == 0 {
				if err := b.fill(); err != nil {
					return nil, brokenOff(err)
				}
			}
			n := min(b.left, int64(len(b.in)))
			p := b.in[:n]
			b.in = b.in[n:]
			if b.left -= n; b.left == 0 {
				if b.state == bodyCounted {
					b.state = bodyEnded
				} else {
					b.state = bodyChunkEnd
				}
			}
			return p, nil
		default:
			if err := b.framing(); err != nil {
				return nil, err
			}
		}
	}
}

// framing reads what stands between chunks.
func (b *originBody) framing() error {
	switch b.state {
	case bodyChunkEnd:
		line, err := b.line(2)
		if err != nil {
			return err
		}
		if len(line) > 0 {
			return errChunk
		}
		b.state = bodyChunkSize
	case bodyChunkSize:
		line, err := b.line(http1.MaxChunkLine)
		if err != nil {
			return err
		}
		size, ok := http1.ChunkSize(line, true)
		if !ok {
			return errChunk
		}
		if b.left = size; size > 0 {
			b.state = bodyChunk
		} else {
			b.state = bodyTrailer
		}
	case bodyTrailer:
		var scanned, total int
		for {
			line, err := b.lineAfter(scanned, maxHeaderBytes-total)
			if err != nil {
				return err
			}
			scanned += len(line) + 2
			total = scanned
			if len(line) == 0 {
				break
			}
		}
		if scanned > 2 {
			var err error
			if b.trailer, err = parseFields(nil, string(b.in[:scanned])); err != nil {
				return err
			}
		}
		b.in = b.in[scanned:]
		b.state = bodyEnded
	}
	return nil
}

var errChunk = errors.New("a chunk of the origin's answer is malformed")

// line takes the next line, of at most limit octets with its CRLF, and returns it without that.
func (b *originBody) line(limit int) ([]byte, error) {
	line, err := b.lineAfter(0, limit)
	if err == nil {
		b.in = b.in[len(line)+2:]
	}
	return line, err
}

// lineAfter returns the line that begins at an offset of in, which it leaves there.
func (b *originBody) lineAfter(offset, limit int) ([]byte, error) {
	at := offset
	for {
		if i := bytes.IndexByte(b.in[at:], '\n'); i >= 0 {
			end := at + i
			if end-offset >= limit || end == offset || b.in[end-1] != '\r' {
				return nil, errChunk
			}
			line := b.in[offset : end-1]
			if bytes.IndexByte(line, '\r') >= 0 {
				return nil, errChunk
			}
			return line, nil
		}
		if at = len(b.in); at-offset >= limit {
			return nil, errChunk
		}
		if err := b.fill(); err != nil {
			return nil, brokenOff(err)
		}
	}
}

// fill reads more behind what is in, moving it to the front of buf, or to a larger one when it has filled that.
func (b *originBody) fill() error {
	if b.waits != nil {
		b.waits()
	}
	if len(b.in) == len(b.buf) {
		b.buf = make([]byte, max(2*len(b.buf), 4<<10)) // a trailer section, which is bounded
	}
	n := copy(b.buf, b.in)
	for {
		m, err := b.from.Read(b.buf[n:])
		if m > 0 {
			b.in = b.buf[:n+m]
			return nil
		}
		if err != nil {
			b.in = b.buf[:n]
			return err
		}
	}
}

// brokenOff is err, or what an end of the connection before the body's is.
func brokenOff(err error) error {
	if err == io.EOF {
		return fmt.Errorf("the connection ended: %w", io.ErrUnexpectedEOF)
	}
	return err
}
