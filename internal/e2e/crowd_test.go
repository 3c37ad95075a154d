package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// crowd plays every node of a fleet on one thread: a keep-alive connection for each, epoll over all of them, and
// one buffer that every answer is read into, byte by byte of it, and forgotten, but by the few that keep it. What it uses itself is taken from the
// two cores that it measures on, so it is as lean as a client can be that reads what it is sent.
type crowd struct {
	epoll  int
	lines  []nodeLine
	buf    []byte
	events []syscall.EpollEvent
	failed error
}

// nodeLine is one connection and the answer that is being read from it.
type nodeLine struct {
	fd     int
	head   []byte // read so far; whole when body >= 0
	body   int64  // bytes of the body that are still to come; -1 while the head is
	length int64
	asked  bool // an answer is owed
	keeps  bool // the body of its answers
	kept   []byte
}

// answer is one that was read wholly. head is the crowd's own and gone with the next one.
type answer struct {
	status int
	head   []byte
	length int64  // of the body
	body   []byte // of a line that keeps it; the crowd's own, too
}

// header returns a header's value.
func (a answer) header(name string) []byte {
	_, rest, ok := bytes.Cut(a.head, []byte("\r\n"+http.CanonicalHeaderKey(name)+": "))
	if !ok {
		return nil
	}
	value, _, _ := bytes.Cut(rest, []byte("\r\n"))
	return value
}

// maxAnswerHead bounds the head of an answer in bytes.
const maxAnswerHead = 8 << 10

// newCrowd opens n connections.
func newCrowd(b *testing.B, addr string, n int) *crowd {
	b.Helper()
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		b.Fatal(err)
	}
	g := &crowd{lines: make([]nodeLine, n), buf: make([]byte, 256<<10), events: make([]syscall.EpollEvent, 256)}
	if g.epoll, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		for _, l := range g.lines {
			if l.fd > 0 {
				_ = syscall.Close(l.fd)
			}
		}
		_ = syscall.Close(g.epoll)
	})
	for i := range g.lines {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			b.Fatal(err)
		}
		g.lines[i].fd = fd
		err = errors.Join(
			syscall.Connect(fd, &syscall.SockaddrInet4{Port: int(to.Port()), Addr: to.Addr().As4()}),
			syscall.SetNonblock(fd, true),
			// As net.Dial does.
			syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1),
			syscall.EpollCtl(g.epoll, syscall.EPOLL_CTL_ADD, fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(i)}),
		)
		if err != nil {
			b.Fatalf("connection %d: %v", i, err)
		}
	}
	return g
}

// ask sends a request, which is small: it fits the socket's buffer.
func (g *crowd) ask(i int, request []byte) {
	l := &g.lines[i]
	if l.asked {
		g.fail(i, errors.New("its last request is still not answered"))
		return
	}
	l.asked, l.body, l.kept = true, -1, l.kept[:0]
	n, err := syscall.Write(l.fd, request)
	if err == nil && n < len(request) {
		err = fmt.Errorf("%d of %d bytes sent", n, len(request))
	}
	if err != nil {
		g.fail(i, err)
	}
}

func (g *crowd) fail(i int, err error) {
	if g.failed == nil {
		g.failed = fmt.Errorf("node %d: %w", i, err)
	}
}

// run waits at most so long for something to read, reads it, and returns. head is called when an answer's head is
// there, whole when all of it is; they may ask.
func (g *crowd) run(atMost time.Duration, head, whole func(i int, a answer)) error {
	at := syscall.NsecToTimespec(int64(max(atMost, 0)))
	// epoll_pwait2(2): epoll_wait counts in milliseconds.
	n, _, errno := syscall.Syscall6(sysEpollPwait2, uintptr(g.epoll), uintptr(unsafe.Pointer(&g.events[0])), uintptr(len(g.events)),
		uintptr(unsafe.Pointer(&at)), 0, 0)
	if errno != 0 && errno != syscall.EINTR {
		return fmt.Errorf("epoll_pwait2: %w", errno)
	}
	if errno == syscall.EINTR {
		n = 0
	}
	for _, e := range g.events[:n] {
		if err := g.read(int(e.Fd), head, whole); err != nil {
			g.fail(int(e.Fd), err)
		}
	}
	return g.failed
}

const sysEpollPwait2 = 441 // on every architecture

// read takes what one connection has.
func (g *crowd) read(i int, head, whole func(int, answer)) error {
	l := &g.lines[i]
	n, err := syscall.Read(l.fd, g.buf)
	switch {
	case errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR):
		return nil
	case err != nil:
		return err
	case n == 0:
		return errors.New("the control plane closed the connection")
	case !l.asked:
		return fmt.Errorf("%d bytes that were not asked for: %.100q", n, g.buf[:n])
	}
	data := g.buf[:n]
	if l.body < 0 {
		had := len(l.head)
		l.head = append(l.head, data[:min(n, maxAnswerHead-had)]...)
		end := bytes.Index(l.head[max(0, had-3):], []byte("\r\n\r\n"))
		if end < 0 {
			if len(l.head) == maxAnswerHead {
				return errors.New("the head of the answer is too long")
			}
			return nil
		}
		end += max(0, had-3) + 4
		l.head, data = l.head[:end], data[end-had:]
		a, err := parseHead(l.head)
		if err != nil {
			return err
		}
		l.length, l.body = a.length, a.length
		head(i, a)
	}
	if l.keeps {
		l.kept = append(l.kept, data...)
	}
	if l.body -= int64(len(data)); l.body < 0 {
		return fmt.Errorf("%d bytes after the end of the answer", -l.body)
	}
	if l.body == 0 {
		a, _ := parseHead(l.head)
		a.body = l.kept
		l.asked = false
		whole(i, a)
		l.head = l.head[:0]
	}
	return nil
}

// parseHead reads the status and the length, which every answer to a node has or, without a body, needs not.
func parseHead(head []byte) (answer, error) {
	a := answer{head: head}
	rest, ok := bytes.CutPrefix(head, []byte("HTTP/1.1 "))
	if !ok || len(rest) < 3 {
		return a, fmt.Errorf("not an answer: %.100q", head)
	}
	var err error
	if a.status, err = strconv.Atoi(string(rest[:3])); err != nil {
		return a, fmt.Errorf("not a status: %.100q", head)
	}
	if length := a.header("Content-Length"); length != nil {
		a.length, err = strconv.ParseInt(string(length), 10, 64)
	} else if a.status != 204 {
		err = errors.New("no Content-Length")
	}
	return a, err
}
