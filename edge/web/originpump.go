package web

import (
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/guardyn-edge/guardyn/edge/http1"
)

// pump sends the body of a request on while its answer is awaited, which may come before the body's end. One goroutine
// runs it; the exchange waits for it before it ends.
type pump struct {
	x       *exchange
	conn    *originConn
	chunked bool
	// proceed is closed when an origin that was told Expect: 100-continue (RFC 9110 §10.1.1) asks for the body; nil
	// when it was not told.
	proceed   chan struct{}
	continues bool // proceed is closed; the exchange's own
	stop      chan struct{}
	done      chan struct{}

	mu       sync.Mutex
	answered bool  // the head of the answer is here
	err      error // sending the body failed

	whole bool // the body was sent to its end; of a pump that is done
}

// expectWait is how long an origin that was asked whether it wants the body may say nothing before it gets it.
const expectWait = time.Second

func (x *exchange) startPump(c *originConn, chunked bool) {
	p := &pump{x: x, conn: c, chunked: chunked, stop: make(chan struct{}), done: make(chan struct{})}
	if http1.Lists(x.r.Header["Expect"], "100-continue") {
		p.proceed = make(chan struct{})
	}
	// Else net/http would read the body's rest, which is the pump's, before it sends an answer.
	http.NewResponseController(x.w.ResponseWriter).EnableFullDuplex() //nolint:errcheck // HTTP/2 always is
	x.pump, x.stopBody = p, func() { p.end() }
	go p.run()
}

func (p *pump) run() {
	defer close(p.done)
	defer p.await()
	if p.proceed != nil {
		timer := time.NewTimer(expectWait)
		defer timer.Stop()
		select {
		case <-p.proceed:
		case <-timer.C:
		case <-p.stop:
			return
		}
	}
	const room = 8 // for the line before a chunk
	buf := p.x.server.buffers.Get()
	defer p.x.server.buffers.Put(buf)
	for {
		n, err := p.x.body.Read(buf[room : len(buf)-2])
		if n > 0 {
			piece := buf[room : room+n]
			if p.chunked {
				piece = chunk(buf, room, n)
			}
			if !p.write(piece) {
				return
			}
		}
		if p.x.body.ended.Load() {
			break
		}
		if err != nil {
			p.conn.release() // the origin must not take what it has for the whole
			return
		}
	}
	p.whole = !p.chunked || p.write([]byte("0\r\n\r\n"))
}

// write sends a piece. An origin that refuses it may have said why; one that took nothing for too long is left.
func (p *pump) write(piece []byte) bool {
	_, err := p.conn.Write(piece)
	if err == nil {
		return true
	}
	p.mu.Lock()
	p.err = err
	p.mu.Unlock()
	if timedOut(err) {
		p.conn.release()
	}
	return false
}

// failure is why the body could not be sent, nil while it can.
func (p *pump) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// chunk makes n octets at room in buf a chunk (RFC 9112 §7.1). There are room octets before them and 2 after.
func chunk(buf []byte, room, n int) []byte {
	var line [16]byte
	head := append(strconv.AppendInt(line[:0], int64(n), 16), "\r\n"...)
	at := room - len(head)
	copy(buf[at:], head)
	copy(buf[room+n:], "\r\n")
	return buf[at : room+n+2]
}

// await begins the time that the origin has for its answer.
func (p *pump) await() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.answered {
		p.conn.SetReadDeadline(time.Now().Add(p.x.server.origins.headerTimeout)) //nolint:errcheck // a closed connection ends the read too
	}
}

// continued is told that the origin wants the body.
func (p *pump) continued() {
	if p.proceed != nil && !p.continues {
		close(p.proceed)
		p.continues = true
	}
}

// answer is told that the head of the answer is here. early: the client has not sent all of the body yet.
func (p *pump) answer() (early bool) {
	p.mu.Lock()
	p.answered = true
	p.mu.Unlock()
	return !p.x.body.ended.Load()
}

// drainWait is how long an origin that has answered may take to accept the body's last piece, before its connection is
// given up.
const drainWait = 50 * time.Millisecond

// end waits for the pump, which it stops when the body has not been sent. It reports whether it has.
func (p *pump) end() (whole bool) {
	if p.x.body.ended.Load() {
		timer := time.NewTimer(drainWait)
		defer timer.Stop()
		select {
		case <-p.done:
			return p.whole
		case <-timer.C:
		}
	}
	select {
	case <-p.done:
		return p.whole
	default:
	}
	close(p.stop)
	p.conn.release()
	p.x.body.interrupt()
	<-p.done
	return false
}
