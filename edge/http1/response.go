package http1

import (
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// writeSize is what an answer is gathered in before it is sent. A larger piece of a body is sent from where it is.
const writeSize = 8 << 10

func (s *Server) buffer() *[writeSize]byte {
	if b, ok := s.writers.Get().(*[writeSize]byte); ok {
		return b
	}
	return new([writeSize]byte)
}

// Response is the answer to a request. It is an [http.ResponseWriter] and [http.Flusher] with two differences to net/http's: an answer
// without Content-Length goes in chunks however short it is, and no Content-Type is guessed.
type Response struct {
	conn   *Conn
	header http.Header
	mem    *[writeSize]byte
	out    []byte // to be sent, within mem
	pair   [2][]byte
	pieces net.Buffers
	keys   []string

	status   int // of the final head, 0 before
	length   int64
	written  int64
	bodyless bool // whatever is written is thrown away
	chunked  bool
	closes   bool
	trailers []string // that were announced
	err      error    // of the first write that failed
	// Whose request's body may be read on another goroutine: whether it is too late to tell the client to send it.
	telling sync.Mutex
	late    bool
}

// begin makes w the answer to the connection's request.
func (w *Response) begin() {
	w.mem = w.conn.server.buffer()
	w.out = w.mem[:0]
	w.status, w.length, w.written, w.bodyless, w.chunked, w.trailers, w.err, w.late = 0, -1, 0, false, false, nil, nil, false
	w.closes = w.conn.closes
}

func (w *Response) release() {
	w.conn.server.writers.Put(w.mem)
	w.mem, w.out = nil, nil
}

// Conn is the connection that the request came by.
func (w *Response) Conn() *Conn { return w.conn }

// Header implements [http.ResponseWriter]. It is the server's again once the handler has returned.
func (w *Response) Header() http.Header { return w.header }

// WriteHeader implements [http.ResponseWriter]: an interim status but 101 is sent at once, for 100 when the client waits for it; of
// others the first one counts, and waits for the body, [Response.Flush] or the handler's end.
func (w *Response) WriteHeader(status int) {
	if w.status != 0 {
		return
	}
	switch {
	case status == http.StatusContinue:
		w.proceed()
		return
	case status < 200:
		if w.conn.request.ProtoMinor > 0 { // RFC 9110 §15.2
			w.statusLine(status)
			w.fields(true)
			w.out = append(w.out, "\r\n"...)
			w.Flush()
		}
		return
	}
	w.head(status)
}

// head gathers the final head.
func (w *Response) head(status int) {
	c, r := w.conn, &w.conn.request
	w.statusLine(status)
	h := w.header
	length := h["Content-Length"]
	nothing := status == http.StatusNoContent || status == http.StatusNotModified
	switch n, ok := int64(0), false; {
	case status == http.StatusNoContent:
		delete(h, "Content-Length") // RFC 9110 §8.6
	case len(length) == 0:
	default:
		if n, ok = ParseLength(length[0]); ok {
			w.length = n
		}
		if !ok || len(length) > 1 {
			delete(h, "Content-Length")
			w.length = -1
		}
	}
	w.bodyless = nothing || r.Method == http.MethodHead
	if connection := h["Connection"]; len(connection) > 0 && Lists(connection, "close") {
		w.closes = true
	}
	if w.length < 0 && !w.bodyless {
		w.chunked = r.ProtoMinor > 0
		w.closes = w.closes || !w.chunked
	}
	if c.body.expects {
		w.telling.Lock()
		w.late = true
		w.telling.Unlock()
	}
	if !c.body.ended.Load() && (r.ContentLength > maxDrain || c.body.expects && !c.body.continued.Load()) {
		w.closes = true
	}
	if c.server.closing.Load() {
		w.closes = true
	}
	w.fields(false)
	if _, ok := h["Date"]; !ok {
		w.out = append(w.out, "Date: "...)
		w.out = append(append(w.out, *c.server.date.Load()...), "\r\n"...)
	}
	if len(h["Upgrade"]) > 0 && Lists(h["Connection"], "upgrade") { // RFC 9110 §7.8
		w.out = append(w.out, "Connection: Upgrade\r\n"...)
	}
	switch {
	case w.closes:
		w.out = append(w.out, "Connection: close\r\n"...)
	case r.ProtoMinor == 0:
		w.out = append(w.out, "Connection: keep-alive\r\n"...)
	}
	if w.chunked {
		w.out = append(w.out, "Transfer-Encoding: chunked\r\n"...)
		for _, v := range h["Trailer"] {
			for name := range strings.SplitSeq(v, ",") {
				w.trailers = append(w.trailers, http.CanonicalHeaderKey(Trim(name)))
			}
		}
	}
	w.out = append(w.out, "\r\n"...)
	w.status = status
}

func (w *Response) statusLine(status int) {
	if status == http.StatusOK {
		w.out = append(w.out, "HTTP/1.1 200 OK\r\n"...)
		return
	}
	w.out = append(w.out, "HTTP/1.1 "...)
	w.out = append(strconv.AppendInt(w.out, int64(status), 10), ' ')
	w.out = append(append(w.out, http.StatusText(status)...), "\r\n"...)
}

// fields gathers the header, in the order of its names, but for what the server tells of the connection and the framing itself.
func (w *Response) fields(interim bool) {
	keys := w.keys[:0]
	for name, values := range w.header {
		switch {
		case len(values) == 0 || name == "Connection" || name == "Transfer-Encoding" || !IsToken(name) || interim && name == "Content-Length":
			continue
		}
		at := len(keys)
		keys = append(keys, name)
		for ; at > 0 && keys[at-1] > name; at-- {
			keys[at] = keys[at-1]
		}
		keys[at] = name
	}
	for _, name := range keys {
		w.field(name, w.header[name])
	}
	w.keys = keys
}

// field gathers the lines of one field. Ends of lines within a value become spaces: what a rule or a function made of a value does not
// end the head.
func (w *Response) field(name string, values []string) {
	for _, v := range values {
		w.out = append(append(w.out, name...), ": "...)
		at := len(w.out)
		w.out = append(append(w.out, v...), "\r\n"...)
		for i := at; i < len(w.out)-2; i++ {
			if b := w.out[i]; b == '\r' || b == '\n' || b == 0 {
				w.out[i] = ' '
			}
		}
	}
}

// Write implements [http.ResponseWriter].
func (w *Response) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	switch {
	case w.err != nil:
		return 0, w.err
	case len(p) == 0:
		return 0, nil
	case w.bodyless:
		if w.conn.request.Method != http.MethodHead {
			return 0, http.ErrBodyNotAllowed
		}
		return len(p), nil
	case w.length >= 0 && int64(len(p)) > w.length-w.written:
		return 0, http.ErrContentLength
	}
	w.written += int64(len(p))
	if w.chunked {
		w.out = strconv.AppendInt(w.out, int64(len(p)), 16)
		w.out = append(w.out, "\r\n"...)
	}
	if err := w.piece(p); err != nil {
		return 0, err
	}
	if w.chunked {
		w.out = append(w.out, "\r\n"...)
	}
	return len(p), nil
}

// tail is what is kept free behind a piece for what frames it.
const tail = 64

// piece gathers a piece, or sends it behind what was gathered when there is no room.
func (w *Response) piece(p []byte) error {
	if len(w.out)+len(p) <= writeSize-tail {
		w.out = append(w.out, p...)
		return nil
	}
	if w.conn.tcp == nil {
		// Over TLS each write is a record or more: they are filled.
		n := copy(w.out[len(w.out):max(len(w.out), writeSize-tail)], p)
		w.out = w.out[:len(w.out)+n]
		p = p[n:]
		if w.Flush(); w.err == nil && len(p) > 0 {
			if len(p) <= writeSize-tail {
				w.out = append(w.out, p...)
			} else {
				_, err := w.conn.Write(p)
				w.failed(err)
			}
		}
		return w.err
	}
	if w.err = w.conn.stall(); w.err != nil {
		return w.err
	}
	w.pair = [2][]byte{w.out, p}
	w.pieces = w.pair[:]
	_, err := w.pieces.WriteTo(w.conn.tcp)
	w.pair = [2][]byte{}
	w.out = w.mem[:0]
	w.failed(err)
	return w.err
}

// WriteString implements [io.StringWriter].
func (w *Response) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

// Flush implements [http.Flusher].
func (w *Response) Flush() {
	if w.err != nil || len(w.out) == 0 {
		return
	}
	_, err := w.conn.Write(w.out)
	w.out = w.mem[:0]
	w.failed(err)
}

func (w *Response) failed(err error) {
	if err == nil {
		return
	}
	if w.err == nil {
		w.err = fmt.Errorf("send the answer: %w", err)
	}
	w.conn.lost(err)
}

// proceed tells the client to send its body, when it waits for that. false: the answer has begun, or the client left.
func (w *Response) proceed() bool {
	b := &w.conn.body
	if !b.expects {
		return true
	}
	w.telling.Lock()
	defer w.telling.Unlock()
	if w.late {
		return false
	}
	b.continued.Store(true)
	_, err := w.conn.Write(continues)
	if err != nil {
		w.conn.lost(err)
	}
	return err == nil
}

var continues = []byte("HTTP/1.1 100 Continue\r\n\r\n")

// finish ends the answer and sends it.
func (w *Response) finish() {
	if w.status == 0 {
		if len(w.header["Content-Length"]) == 0 {
			w.header["Content-Length"] = []string{"0"}
		}
		w.head(http.StatusOK)
	}
	if w.chunked {
		w.out = append(w.out, "0\r\n"...)
		w.trailer()
		w.out = append(w.out, "\r\n"...)
	}
	w.Flush()
	if w.length > w.written && !w.bodyless {
		w.closes = true // it was not ended
	}
}

// trailer gathers the fields behind the body: those that were announced, and those under [http.TrailerPrefix].
func (w *Response) trailer() {
	for _, name := range w.trailers {
		w.field(name, w.header[name])
	}
	for name, values := range w.header {
		if name, ok := strings.CutPrefix(name, http.TrailerPrefix); ok && IsToken(name) {
			w.field(name, values)
		}
	}
}

// refused sends the answer to a head that is none.
func (w *Response) refused(status int) {
	text := strconv.Itoa(status) + " " + http.StatusText(status) + "\n"
	w.closes = true
	w.header["Content-Type"] = []string{"text/plain; charset=utf-8"}
	w.header["Content-Length"] = []string{strconv.Itoa(len(text))}
	w.header["Cache-Control"] = []string{"no-store"}
	w.head(status)
	w.out = append(w.out, text...)
	w.Flush()
}

// EnableFullDuplex implements what [http.ResponseController] asks for: an answer never waits for the request's body.
func (w *Response) EnableFullDuplex() error { return nil }

// Hijack gives the connection away, of which no answer was begun. What the client has sent behind its request is read first. The server does not know it any more.
func (w *Response) Hijack() *Conn {
	c := w.conn
	c.unattend()
	c.taken = true
	c.server.remove(c)
	c.nc.SetReadDeadline(time.Time{}) //nolint:errcheck // who took it over sees
	return c
}
