package http1

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// start serves h over loopback until the test's end and returns where.
func start(t testing.TB, h func(w *Response, r *http.Request), configure ...func(*Config)) (*Server, string) {
	t.Helper()
	config := Config{Handler: h, HeaderTimeout: 10 * time.Second, IdleTimeout: 10 * time.Second, WriteStall: 10 * time.Second, Linger: 10 * time.Second, Logger: slog.New(slog.DiscardHandler)}
	for _, c := range configure {
		c(&config)
	}
	s := NewServer(context.Background(), config)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepting := make(chan struct{})
	go func() {
		defer close(accepting)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go s.ServeConn(c)
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-accepting
		s.Close()
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s, l.Addr().String()
}

func dial(t testing.TB, address string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c.(*net.TCPConn)
}

// answer is one that a client got.
type answer struct {
	status int
	header http.Header
	body   string
	closes bool
	err    error // of a body that was not ended
}

// answers reads all up to the connection's end, as to requests of those methods; GET where there are none.
func answers(t testing.TB, c net.Conn, methods ...string) (got []answer) {
	t.Helper()
	b := bufio.NewReader(c)
	for {
		if _, err := b.Peek(1); err != nil {
			return got
		}
		r := &http.Request{Method: http.MethodGet}
		final := 0
		for _, a := range got {
			if a.status >= 200 {
				final++
			}
		}
		if final < len(methods) {
			r.Method = methods[final]
		}
		res, err := http.ReadResponse(b, r)
		if err != nil {
			t.Errorf("after %+v: %v", got, err)
			return got
		}
		body, err := io.ReadAll(res.Body)
		for name, values := range res.Trailer {
			res.Header["Trailer "+name] = values
		}
		got = append(got, answer{res.StatusCode, res.Header, string(body), res.Close, err})
	}
}

// told sums answers up: status, body, and a full stop where the connection ends by the answer's own word.
func told(got []answer) string {
	var b strings.Builder
	for i, a := range got {
		if i > 0 {
			b.WriteString(" | ")
		}
		fmt.Fprintf(&b, "%d", a.status)
		if a.body != "" {
			fmt.Fprintf(&b, " %s", strings.TrimSpace(a.body))
		}
		if a.err != nil {
			b.WriteString(" broken")
		}
		if a.closes {
			b.WriteString(".")
		}
	}
	return b.String()
}

// echo answers with what it got.
func echo(w *Response, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.Header().Set("Connection", "close")
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	text := fmt.Sprintf("%s %s %s %s", r.Method, r.Host, r.RequestURI, body)
	w.Header().Set("Content-Length", fmt.Sprint(len(text)))
	io.WriteString(w, text)
}
