package http1

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// refuseBody answers without having read the body, but echoes a request without one.
func refuseBody(w *Response, r *http.Request) {
	if r.Body == http.NoBody {
		echo(w, r)
		return
	}
	w.Header().Set("Content-Length", "2")
	w.WriteHeader(403)
	io.WriteString(w, "no")
}

// An answer does not wait for a body that nobody wants, and the next request is that behind it.
func TestBodyThatNobodyReads(t *testing.T) {
	_, address := start(t, refuseBody)
	for _, tc := range []struct{ name, head, body, want string }{
		{"small", post + "Content-Length: 3\r\n\r\n", "abc", "403 no" + done},
		{"in chunks", post + "Transfer-Encoding: chunked\r\n\r\n", "3\r\nabc\r\n0\r\nA: b\r\n\r\n", "403 no" + done},
		{"in chunks that are none", post + "Transfer-Encoding: chunked\r\n\r\n", "x\r\nabc\r\n0\r\n\r\n", "403 no"},
		{"of the most that is read", post + fmt.Sprintf("Content-Length: %d\r\n\r\n", maxDrain), strings.Repeat("a", maxDrain), "403 no" + done},
		{"of more than that", post + fmt.Sprintf("Content-Length: %d\r\n\r\n", maxDrain+1), strings.Repeat("a", maxDrain+1), "403 no."},
		{"waited for with an expectation", post + "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n", "", "403 no."},
	} {
		for _, early := range []bool{false, true} {
			t.Run(fmt.Sprint(tc.name, ", with the head ", early), func(t *testing.T) {
				c := dial(t, address)
				sent := tc.head
				if early {
					sent += tc.body
				}
				io.WriteString(c, sent) //nolint:errcheck // what is read tells
				b := bufio.NewReader(c)
				if line, err := b.Peek(12); string(line) != "HTTP/1.1 403" {
					t.Fatalf("got %q, %v", line, err) // before the body has come
				}
				if !early {
					io.WriteString(c, tc.body) //nolint:errcheck // as above
				}
				io.WriteString(c, last) //nolint:errcheck // as above
				if got := told(answers(t, reader(c, b))); got != tc.want {
					t.Errorf("got %q, want %q", got, tc.want)
				}
			})
		}
	}
}

// A body that does not come holds up nothing but its connection, and that for a while.
func TestBodyThatDoesNotCome(t *testing.T) {
	_, address := start(t, refuseBody, func(c *Config) { c.Linger = 50 * time.Millisecond })
	for _, framing := range []string{"Content-Length: 3\r\n\r\na", "Content-Length: 1000000\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n3\r\na"} {
		c := dial(t, address)
		io.WriteString(c, post+framing)
		if got := told(answers(t, c)); got != "403 no" && got != "403 no." {
			t.Errorf("got %q", got)
		}
	}
}

func TestExpectation(t *testing.T) {
	_, address := start(t, echo)
	c := dial(t, address)
	io.WriteString(c, post+"Expect: 100-continue\r\nContent-Length: 3\r\n\r\n")
	b := bufio.NewReader(c)
	line, err := b.ReadString('\n')
	if line != "HTTP/1.1 100 Continue\r\n" || err != nil {
		t.Fatalf("got %q, %v", line, err)
	}
	b.ReadString('\n') //nolint:errcheck // the empty line
	io.WriteString(c, "abc"+last)
	if got := told(answers(t, reader(c, b))); got != "200 POST a.example /p abc"+done {
		t.Errorf("got %q", got)
	}
}

// reader is c, of which b has read ahead.
func reader(c net.Conn, b *bufio.Reader) net.Conn {
	return struct {
		io.Reader
		connOnly
	}{b, connOnly{c}}
}

type connOnly struct{ c net.Conn }

func (c connOnly) Write(p []byte) (int, error)        { return c.c.Write(p) }
func (c connOnly) Close() error                       { return c.c.Close() }
func (c connOnly) LocalAddr() net.Addr                { return c.c.LocalAddr() }
func (c connOnly) RemoteAddr() net.Addr               { return c.c.RemoteAddr() }
func (c connOnly) SetDeadline(t time.Time) error      { return c.c.SetDeadline(t) }
func (c connOnly) SetReadDeadline(t time.Time) error  { return c.c.SetReadDeadline(t) }
func (c connOnly) SetWriteDeadline(t time.Time) error { return c.c.SetWriteDeadline(t) }

// A client is seen to leave while its request is handled, with a body or without, and what it sends meanwhile is not lost.
func TestAttention(t *testing.T) {
	attended := make(chan *Conn, 1)
	left := make(chan struct{}, 8)
	answering := make(chan struct{})
	_, address := start(t, func(w *Response, r *http.Request) {
		if r.RequestURI == "/last" {
			echo(w, r)
			return
		}
		leave := func() { left <- struct{}{} }
		w.Conn().OnLeave(&leave)
		w.Conn().Attend()
		w.Conn().Attend() // once is enough
		if r.Body != http.NoBody {
			if body, err := io.ReadAll(r.Body); len(body) != 3 || err != nil {
				t.Errorf("got %q, %v", body, err)
			}
		}
		attended <- w.Conn()
		<-answering
	})
	for _, tc := range []struct{ name, sent, rest string }{{"no body", get + "\r\n", ""}, {"a body", post + "Content-Length: 3\r\n\r\n", "abc"}} {
		t.Run(tc.name, func(t *testing.T) {
			c := dial(t, address)
			io.WriteString(c, tc.sent+tc.rest)
			conn := <-attended
			io.WriteString(c, last)
			answering <- struct{}{}
			if got := told(answers(t, c)); got != "200"+done {
				t.Errorf("got %q", got)
			}
			if conn.Gone() || len(left) > 0 {
				t.Error("a client that stays is gone")
			}
			c = dial(t, address)
			io.WriteString(c, tc.sent+tc.rest)
			conn = <-attended
			c.Close()
			<-left
			if !conn.Gone() {
				t.Error("a client that leaves is there")
			}
			late := func() { left <- struct{}{} }
			conn.OnLeave(&late)
			<-left // at once
			answering <- struct{}{}
		})
	}
}

func TestTimeouts(t *testing.T) {
	var refused atomic.Int64
	_, address := start(t, echo, func(c *Config) {
		c.HeaderTimeout, c.IdleTimeout = 80*time.Millisecond, 80*time.Millisecond
		c.Refused = func(_ *Conn, status int) { refused.Store(int64(status)) }
	})
	for _, tc := range []struct{ name, sent, want string }{
		{"nothing", "", ""},
		{"an empty line", "\r\n", ""},
		{"half a head", get, "408 408 Request Timeout."},
		{"nothing behind a request", get + "\r\n", "200 GET a.example /p"},
		{"half a head behind a request", get + "\r\n" + get, "200 GET a.example /p | 408 408 Request Timeout."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			refused.Store(0)
			c := dial(t, address)
			io.WriteString(c, tc.sent)
			if got := told(answers(t, c)); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if status := refused.Load(); (status == 408) != strings.Contains(tc.want, "408") {
				t.Errorf("told of %d", status)
			}
		})
	}
	t.Run("a head of many pieces", func(t *testing.T) {
		c := dial(t, address)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		closed := make(chan string)
		go func() { closed <- told(answers(t, c)) }()
		for i := 0; ; i++ {
			select {
			case <-tick.C:
				io.WriteString(c, fmt.Sprintf("%.1s", get[i%len(get):])) //nolint:errcheck // closed tells
			case got := <-closed:
				if got != "408 408 Request Timeout." {
					t.Errorf("got %q", got)
				}
				return
			}
		}
	})
}

// Who connects and says nothing is not as who has been served and keeps the connection.
func TestFirstHead(t *testing.T) {
	_, address := start(t, echo, func(c *Config) { c.HeaderTimeout, c.IdleTimeout = 50*time.Millisecond, time.Hour })
	if got := told(answers(t, dial(t, address))); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestShutdown(t *testing.T) {
	entered, answering := make(chan struct{}), make(chan struct{})
	s, address := start(t, func(w *Response, r *http.Request) {
		if r.RequestURI == "/held" {
			entered <- struct{}{}
			<-answering
		}
		echo(w, r)
	})
	idle, held, late := dial(t, address), dial(t, address), dial(t, address)
	io.WriteString(idle, get+"\r\n")
	if line, err := bufio.NewReader(idle).ReadString('\n'); line != "HTTP/1.1 200 OK\r\n" {
		t.Fatal(line, err)
	}
	io.WriteString(held, "GET /held HTTP/1.1\r\nHost: a.example\r\n\r\n")
	<-entered
	io.WriteString(late, "GET /held HTTP/1.1\r\nHost: a.example\r\n\r\n")
	<-entered
	ended := make(chan error)
	go func() { ended <- s.Shutdown(context.Background()) }()
	if _, err := io.Copy(io.Discard, idle); err != nil {
		t.Error(err) // it ends by itself
	}
	select {
	case err := <-ended:
		t.Errorf("it did not wait: %v", err)
	default:
	}
	answering <- struct{}{}
	answering <- struct{}{}
	for _, c := range []net.Conn{held, late} {
		if got := told(answers(t, c)); got != "200 GET a.example /held." {
			t.Errorf("got %q", got)
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	c := dial(t, address)
	if got := told(answers(t, c)); got != "" {
		t.Errorf("after it: %q", got)
	}
}

// A request that is on its way when the server shuts down is served.
func TestShutdownServesWhatIsOnItsWay(t *testing.T) {
	s, address := start(t, echo)
	c := dial(t, address)
	io.WriteString(c, get+"\r\n")
	b := bufio.NewReader(c)
	if res, err := http.ReadResponse(b, nil); err != nil {
		t.Fatal(err)
	} else if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock() // Shutdown waits for it, and is ahead of what the client sends by a moment
	ended := make(chan error)
	go func() { ended <- s.Shutdown(context.Background()) }()
	s.mu.Unlock()
	io.WriteString(c, post+"Content-Length: 3\r\n\r\n")
	io.WriteString(c, "abc")
	if got := told(answers(t, reader(c, b))); got != "200 POST a.example /p abc." && got != "" { // by chance it came after the farewell
		t.Errorf("got %q", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestShutdownThatIsNotWaitedFor(t *testing.T) {
	entered, answering := make(chan struct{}), make(chan struct{})
	s, address := start(t, func(*Response, *http.Request) {
		entered <- struct{}{}
		<-answering
	})
	c := dial(t, address)
	io.WriteString(c, get+"\r\n")
	<-entered
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	s.Close()
	if got := told(answers(t, c)); got != "" {
		t.Errorf("got %q", got)
	}
	close(answering)
}

// Who takes a connection over reads what came behind the request first; the server forgets it.
func TestHijack(t *testing.T) {
	s, address := start(t, func(w *Response, _ *http.Request) {
		w.Conn().Attend()
		c := w.Hijack()
		io.WriteString(c, "taken ")
		go func() {
			defer c.Close()
			buf := make([]byte, 16)
			n, _ := io.ReadFull(c, buf[:5])
			c.Write(buf[:n])
			n, _ = c.Read(buf)
			c.Write(buf[:n])
		}()
	})
	c := dial(t, address)
	io.WriteString(c, get+"\r\nearly")
	buf := make([]byte, 11)
	if _, err := io.ReadFull(c, buf); err != nil || string(buf) != "taken early" {
		t.Fatalf("got %q, %v", buf, err)
	}
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err) // it does not wait for what is not its own
	}
	io.WriteString(c, "late")
	if rest, err := io.ReadAll(c); string(rest) != "late" || err != nil {
		t.Errorf("got %q, %v", rest, err)
	}
}

func TestOverTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS()
	defer server.Close()
	large := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	s, _ := start(t, func(w *Response, r *http.Request) {
		if r.TLS == nil || r.TLS.ServerName != "example.com" {
			t.Errorf("%+v", r.TLS)
		}
		w.Write(large[:100])
		w.Write(large[100:])
		w.Write(large[:writeSize])
	})
	a, b := net.Pipe()
	go func() {
		c := tls.Server(b, &tls.Config{Certificates: server.TLS.Certificates})
		if err := c.HandshakeContext(context.Background()); err != nil {
			t.Error(err)
		}
		s.ServeConn(c)
	}()
	c := tls.Client(a, &tls.Config{ServerName: "example.com", RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs})
	defer c.Close()
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n")
	got := answers(t, c)
	if len(got) != 1 || got[0].body != string(large)+string(large[:writeSize]) {
		t.Errorf("got %d answers", len(got))
	}
}

// A client that takes nothing of an answer loses its connection.
func TestClientThatTakesNothing(t *testing.T) {
	failed := make(chan error)
	_, address := start(t, func(w *Response, _ *http.Request) {
		piece := make([]byte, 1<<20)
		for {
			if _, err := w.Write(piece); err != nil {
				failed <- err
				return
			}
		}
	}, func(c *Config) { c.WriteStall = 50 * time.Millisecond })
	c := dial(t, address)
	if err := c.SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	io.WriteString(c, get+"\r\n")
	if err := <-failed; !errors.Is(err, context.DeadlineExceeded) && !strings.Contains(err.Error(), "timeout") {
		t.Error(err)
	}
}

// A body may be read beside the answer; it ends when reading is interrupted, and then so does the connection.
func TestBothWaysAtOnce(t *testing.T) {
	_, address := start(t, func(w *Response, r *http.Request) {
		buf := make([]byte, 16)
		for {
			n, err := r.Body.Read(buf)
			if n > 0 {
				w.Write(buf[:n])
				w.Flush()
			}
			if string(buf[:n]) == "stop" {
				time.AfterFunc(time.Millisecond, w.Conn().InterruptRead)
			}
			if err != nil {
				fmt.Fprint(w, err == io.EOF)
				return
			}
		}
	})
	for _, tc := range []struct{ end, want string }{{"0\r\n\r\n", "true"}, {"4\r\nstop\r\n", "stopfalse"}} {
		c := dial(t, address)
		io.WriteString(c, post+"Transfer-Encoding: chunked\r\n\r\n")
		res := make(chan *http.Response)
		b := bufio.NewReader(c)
		for i := range 3 {
			io.WriteString(c, "2\r\nab\r\n")
			if i == 0 {
				go func() {
					r, err := http.ReadResponse(b, nil)
					if err != nil {
						t.Error(err)
					}
					res <- r
				}()
				r := <-res
				defer r.Body.Close()
				go func() { res <- r }()
			}
		}
		r := <-res
		six := make([]byte, 6)
		if _, err := io.ReadFull(r.Body, six); string(six) != "ababab" {
			t.Fatalf("got %q, %v", six, err)
		}
		io.WriteString(c, tc.end+last)
		rest, _ := io.ReadAll(r.Body)
		if string(rest) != tc.want {
			t.Errorf("got %q, want %q", rest, tc.want)
		}
		next, err := http.ReadResponse(b, nil)
		if (err == nil) != (tc.want == "true") {
			t.Errorf("after it: %v, %v", next, err)
		}
	}
}
