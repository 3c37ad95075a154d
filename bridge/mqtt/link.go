package mqtt

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/eclipse/paho.golang/packets"

	"github.com/guardyn-edge/guardyn/bridge/session"
)

// The kinds of packets that are spoken of outside the codecs.
const (
	connack    = packets.CONNACK
	publish    = packets.PUBLISH
	puback     = packets.PUBACK
	pubrec     = packets.PUBREC
	pubrel     = packets.PUBREL
	pubcomp    = packets.PUBCOMP
	suback     = packets.SUBACK
	unsuback   = packets.UNSUBACK
	pingresp   = packets.PINGRESP
	disconnect = packets.DISCONNECT
)

// readBuffer is how much is read at once; keepBuffer is the most that a write's buffer keeps for the next.
const (
	readBuffer = 32 << 10
	keepBuffer = 1 << 20
)

// link is one connection. Its buffer is the session's mutex's; who writes into it signals.
type link struct {
	nc   net.Conn
	r    *bufio.Reader
	buf  bytes.Buffer // to be written
	wake chan struct{}
	done chan struct{} // closed when the connection is lost
	once sync.Once

	window    int // the receive maximum that was announced
	keepAlive time.Duration

	leaving bool
	old     bool        // MQTT 3.1.1
	flushed []*outgoing // of QoS 0, in buf

	// What the broker allows.
	receiveMaximum int
	maximumQoS     int
	noRetain       bool
	maximumPacket  uint32
}

func newLink(nc net.Conn, window int, keepAlive time.Duration) *link {
	l := &link{nc: nc, wake: make(chan struct{}, 1), done: make(chan struct{}), window: window, keepAlive: keepAlive}
	l.r = bufio.NewReaderSize(&deadlineReader{l}, readBuffer)
	return l
}

// deadlineReader gives up on a broker that has been silent for one and a half of the keep alive, within which it is pinged.
type deadlineReader struct{ l *link }

func (d *deadlineReader) Read(p []byte) (int, error) {
	if k := d.l.keepAlive; k > 0 {
		if err := d.l.nc.SetReadDeadline(time.Now().Add(k + k/2)); err != nil {
			return 0, err
		}
	}
	return d.l.nc.Read(p)
}

// signal has what is in the buffer written.
func (l *link) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *link) close() {
	l.once.Do(func() {
		close(l.done)
		_ = l.nc.Close() // the reader and the writer say what was wrong
	})
}

// write writes what others put into the buffer, as much at once as there is, until the connection is lost or has been left.
func (s *Session) write(l *link) {
	var spare bytes.Buffer
	for {
		select {
		case <-l.wake:
		case <-l.done:
			return
		}
		s.mu.Lock()
		spare, l.buf = l.buf, spare
		flushed := l.flushed
		l.flushed = nil
		leaving := l.leaving
		s.mu.Unlock()
		if spare.Len() > 0 {
			if !leaving {
				_ = l.nc.SetWriteDeadline(time.Now().Add(writeTimeout)) // Write tells when the connection is gone
			}
			if _, err := l.nc.Write(spare.Bytes()); err != nil {
				s.lose(l, fmt.Errorf("write: %w", err))
				return
			}
		}
		if len(flushed) > 0 {
			s.wrote(flushed)
		}
		if spare.Cap() > keepBuffer {
			spare = bytes.Buffer{}
		}
		spare.Reset()
		if leaving {
			l.close()
			return
		}
	}
}

// ping asks the broker for a sign of life.
func (s *Session) ping(l *link) {
	if l.keepAlive <= 0 {
		return
	}
	t := time.NewTicker(l.keepAlive * 3 / 4)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			s.mu.Lock()
			putPing(&l.buf)
			s.mu.Unlock()
			l.signal()
		case <-l.done:
			return
		}
	}
}

// errLeft is of a connection that was closed on purpose.
var errLeft = errors.New("it was left")

// read serves what comes until the connection is lost.
func (s *Session) read(l *link) error {
	for {
		if !s.awaitRoom(l) {
			return errLeft
		}
		p, err := s.codec.read(l.r, s.cfg.Now)
		if err != nil {
			return fmt.Errorf("the connection is lost: %w", err)
		}
		if err := s.handle(l, p); err != nil {
			return err
		}
	}
}

func (s *Session) handle(l *link, p packet) error {
	switch p.kind {
	case publish:
		s.take(l, p)
	case puback, pubrec, pubcomp:
		s.confirmed(p)
	case pubrel:
		s.mu.Lock()
		delete(s.in.received, p.id)
		putAck(&l.buf, pubcomp, p.id)
		s.mu.Unlock()
		l.signal()
	case suback:
		s.granted(p)
	case unsuback:
		s.mu.Lock()
		s.subs.gone(p.id)
		s.mu.Unlock()
	case pingresp:
	case disconnect:
		s.mu.Lock()
		blamed := s.out.suspect(p.reason)
		s.mu.Unlock()
		if blamed != nil {
			blamed.Done(&session.Refusal{Reason: "the broker ended the connection over it: " + s.codec.why(p.kind, p.reason, p.text)})
		}
		return fmt.Errorf("the broker ended the connection: %s", s.codec.why(p.kind, p.reason, p.text))
	default:
		return fmt.Errorf("%w: one of type %d", errMalformed, p.kind)
	}
	return nil
}
