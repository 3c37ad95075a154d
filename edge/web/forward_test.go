package web

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/zone"
)

// scriptedOrigin serves each connection, numbered from 1, by f on a goroutine of its own, and closes it.
func scriptedOrigin(t testing.TB, f func(i int, c net.Conn, b *bufio.Reader)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for i := 1; ; i++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.SetDeadline(time.Now().Add(20 * time.Second))
			conns.Go(func() {
				defer c.Close()
				f(i, c, bufio.NewReader(c))
			})
		}
	})
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

const okAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

func TestConnectionsThatAreNotUsedAgain(t *testing.T) {
	for _, tc := range []struct {
		name, request, answer string
		again                 bool
	}{
		{"a length", "GET", okAnswer, true},
		{"chunks", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", true},
		{"no body", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", true},
		{"kept below HTTP/1.1", "GET", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", true},
		{"not kept below HTTP/1.1", "GET", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", false},
		{"close", "GET", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", false},
		{"two answers", "GET", okAnswer + okAnswer, false},
		{"a byte more", "GET", okAnswer + "\n", false},
		{"a body to HEAD", "HEAD", okAnswer, false},
		{"a body of no content", "GET", "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok", false},
		{"a body of not modified", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\nok", false},
		{"an answer after the last chunk", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + okAnswer, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var last atomic.Int64
			n := startNode(t)
			n.publish(site(scriptedOrigin(t, func(i int, c net.Conn, b *bufio.Reader) {
				for {
					if _, err := http.ReadRequest(b); err != nil {
						return
					}
					last.Store(int64(i))
					io.WriteString(c, tc.answer)
				}
			})))
			first := n.ask(tc.request, "www.example.com", "/")
			second := n.ask(tc.request, "www.example.com", "/")
			if first.status >= 300 && first.status != 304 || first.status != second.status {
				t.Errorf("got %+v and %+v", first, second)
			}
			if again := last.Load() == 1; again != tc.again {
				t.Errorf("used again: %v, want %v", again, tc.again)
			}
		})
	}
}

// restless waits until the connection that the node holds idle has something to tell it.
func (n *node) restless() {
	n.t.Helper()
	p := &n.origins.idle
	for deadline := time.Now().Add(20 * time.Second); ; runtime.Gosched() {
		p.mu.Lock()
		done := p.newest != nil && !p.newest.quiet()
		p.mu.Unlock()
		if done {
			return
		}
		if time.Now().After(deadline) {
			n.t.Fatal("the idle connection stays quiet")
		}
	}
}

func TestOriginThatSpeaksUnasked(t *testing.T) {
	// The second answer comes while nobody is asked anything: it must never be the next request's.
	speak := make(chan struct{})
	n := startNode(t)
	n.publish(site(scriptedOrigin(t, func(i int, c net.Conn, b *bufio.Reader) {
		if _, err := http.ReadRequest(b); err != nil {
			return
		}
		io.WriteString(c, okAnswer)
		if i == 1 {
			<-speak
			io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
			b.ReadByte()
		}
	})))
	if got := n.get("/"); got.body != "ok" {
		t.Errorf("got %+v", got)
	}
	close(speak)
	n.restless()
	if got := n.get("/"); got.body != "ok" {
		t.Errorf("got %+v", got)
	}
}

func TestRequestIsSentAgainOnlyWhenNothingCame(t *testing.T) {
	for _, tc := range []struct {
		name, method, partly string
		status               int
	}{
		{"nothing came", "GET", "", 200},
		{"nothing came, to HEAD", "HEAD", "", 200},
		{"a part of a head came", "GET", "HTTP/1.1 200", 502},
		{"nothing came, with an effect", "POST", "", 502},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := startNode(t)
			n.publish(site(scriptedOrigin(t, func(i int, c net.Conn, b *bufio.Reader) {
				http.ReadRequest(b)
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
				if i > 1 {
					return
				}
				http.ReadRequest(b)
				io.WriteString(c, tc.partly)
			})))
			if got := n.get("/warm"); got.status != 200 {
				t.Fatalf("got %+v", got)
			}
			if got := n.ask(tc.method, "www.example.com", "/"); got.status != tc.status {
				t.Errorf("got %+v, want %d", got, tc.status)
			}
		})
	}
}

func TestIdleConnectionThatDied(t *testing.T) {
	// Even a request with an effect is not lost to a connection that the origin closed before.
	n := startNode(t)
	n.publish(site(scriptedOrigin(t, func(_ int, c net.Conn, b *bufio.Reader) {
		http.ReadRequest(b)
		io.WriteString(c, okAnswer)
	})))
	n.get("/warm")
	n.restless()
	if got := n.ask("POST", "www.example.com", "/"); got.status != 200 {
		t.Errorf("got %+v", got)
	}
}

func TestIdleConnectionsAreBounded(t *testing.T) {
	pipe := func(key string) *originConn {
		a, b := net.Pipe()
		t.Cleanup(func() { a.Close(); b.Close() })
		return newOriginConn(a, a, originKey{host: key}, time.Second)
	}
	open := func(c *originConn) bool {
		c.Conn.SetReadDeadline(time.Unix(1, 0))
		_, err := c.Conn.Read(make([]byte, 1))
		return err != io.ErrClosedPipe
	}
	p := &idleConns{max: 3, perKey: 2, timeout: time.Hour}
	a1, a2, a3, b1, b2 := pipe("a"), pipe("a"), pipe("a"), pipe("b"), pipe("b")
	p.put(a1)
	p.put(a2)
	p.put(a3) // over the bound of its key: it goes itself
	if open(a3) || p.len() != 2 {
		t.Errorf("%d idle; the third of a key is open", p.len())
	}
	p.put(b1)
	p.put(b2) // over the bound of all: the oldest goes
	if open(a1) || !open(a2) || p.len() != 3 {
		t.Errorf("%d idle; the oldest is open: %v", p.len(), open(a1))
	}
	if got := p.get(originKey{host: "b"}); got != b2 {
		t.Error("not the newest of its key came first")
	}
	a2.expires = time.Now().Add(-time.Second)
	if p.get(originKey{host: "a"}) != nil || open(a2) {
		t.Error("an expired connection is in use")
	}
	b1.expires = time.Now().Add(-time.Second)
	p.clean()
	if open(b1) || p.len() != 0 || len(p.stacks) != 0 {
		t.Errorf("after the sweep: %d idle, %d keys", p.len(), len(p.stacks))
	}
	p.put(b2)
	p.close()
	last := pipe("c")
	p.put(last)
	if open(b2) || open(last) {
		t.Error("a connection outlives close")
	}
}

func TestEarlyAnswer(t *testing.T) {
	hungUp := make(chan error, 1)
	n := startNode(t)
	n.publish(site(scriptedOrigin(t, func(_ int, c net.Conn, b *bufio.Reader) {
		if _, err := http.ReadRequest(b); err != nil {
			return
		}
		io.WriteString(c, "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")
		_, err := io.Copy(io.Discard, b)
		hungUp <- err
	})))
	c := n.dial()
	io.WriteString(c, "POST / HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: 100000\r\n\r\nthe beginning")
	got := readReplies(t, c) // without sending the rest
	if len(got) != 1 || got[0].status != 403 || got[0].body != "no" || !got[0].closes {
		t.Errorf("got %+v, want a 403 that closes", got)
	}
	<-hungUp // the origin's connection is not kept
	if k := n.origins.idle.len(); k != 0 {
		t.Errorf("%d idle connections, the only one has half a request", k)
	}
}

func TestExpectContinue(t *testing.T) {
	for _, tc := range []struct {
		name, answer string
		status       int
		asked        bool
	}{
		{"the origin wants the body", "HTTP/1.1 100 Continue\r\n\r\n", 200, true},
		{"the origin refuses", "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n", 417, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := startNode(t)
			body := make(chan string, 1)
			n.publish(site(scriptedOrigin(t, func(_ int, c net.Conn, b *bufio.Reader) {
				r, err := http.ReadRequest(b)
				if err != nil || r.Header.Get("Expect") != "100-continue" {
					return
				}
				io.WriteString(c, tc.answer)
				got, _ := io.ReadAll(r.Body)
				body <- string(got)
				io.WriteString(c, okAnswer)
			})))
			c := n.dial()
			io.WriteString(c, "POST / HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
			b := bufio.NewReader(c)
			res, err := http.ReadResponse(b, nil)
			if err != nil {
				t.Fatal(err)
			}
			if asked := res.StatusCode == 100; asked != tc.asked {
				t.Fatalf("got %d first", res.StatusCode)
			}
			if tc.asked {
				io.WriteString(c, "data")
				if res, err = http.ReadResponse(b, nil); err != nil {
					t.Fatal(err)
				}
			}
			if got := <-body; res.StatusCode != tc.status || (got == "data") != tc.asked {
				t.Errorf("got %d; the origin got %q", res.StatusCode, got)
			}
		})
	}
}

func TestBodiesReachTheOrigin(t *testing.T) {
	o := startOrigin(t)
	n := startNode(t)
	n.publish(site(o.address()))
	for _, size := range []int{1, maxSmallBody, maxSmallBody + 1, 300 << 10} {
		data := strings.Repeat("b", size)
		for name, message := range map[string]string{
			"counted": fmt.Sprintf("Content-Length: %d\r\n\r\n%s", size, data),
			"chunked": fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n1\r\nb\r\n0\r\n\r\n", size, data),
		} {
			want := data
			if name == "chunked" {
				want += "b"
			}
			got := n.exchangeRaw("PUT / HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\n" + message)
			r := o.take()
			if len(got) != 1 || got[0].status != 200 || len(r) != 1 || r[0].body != want {
				t.Errorf("%s, %d octets: got %+v", name, size, got)
			}
		}
	}
	if k := n.origins.idle.len(); k != 1 {
		t.Errorf("%d idle connections, want one for all", k)
	}
}

func TestOriginThatTakesNothing(t *testing.T) {
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	n := startNode(t, func(c *Config) { c.WriteStall = 100 * time.Millisecond })
	n.publish(site(scriptedOrigin(t, func(_ int, c net.Conn, _ *bufio.Reader) {
		c.(*net.TCPConn).SetReadBuffer(4 << 10)
		<-release
	}), func(z *zone.Zone) { z.Ceilings.RequestBody = 1 << 30 }))
	c := n.dial()
	go func() {
		io.WriteString(c, "POST / HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: 500000000\r\n\r\n")
		piece := make([]byte, 1<<20)
		for {
			if _, err := c.Write(piece); err != nil {
				return
			}
		}
	}()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || res.StatusCode != 504 {
		t.Errorf("got %+v, %v; want 504", res, err)
	}
}

func TestClientThatLeavesAmidItsBody(t *testing.T) {
	for _, sent := range []string{"Content-Length: 10\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n10\r\nhalf", "Content-Length: 100000\r\n\r\nhalf"} {
		n := startNode(t)
		n.publish(site(scriptedOrigin(t, func(_ int, c net.Conn, b *bufio.Reader) { io.Copy(io.Discard, b) })))
		c := n.dial()
		io.WriteString(c, "POST / HTTP/1.1\r\nHost: www.example.com\r\n"+sent)
		c.(*net.TCPConn).CloseWrite()
		if got := readReplies(t, c); len(got) != 0 {
			t.Errorf("got %+v, which nobody said", got)
		}
		n.end()
		if m := n.Metrics(); m.OriginErrors != 0 || m.Requests[0] != 1 {
			t.Errorf("%q: got %+v, want one request whose client left", sent, m)
		}
	}
}

func TestClientThatLeavesAmidTheAnswer(t *testing.T) {
	gone := make(chan struct{})
	n := startNode(t)
	n.publish(site(scriptedOrigin(t, func(_ int, c net.Conn, b *bufio.Reader) {
		http.ReadRequest(b)
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
		b.ReadByte() // until the node hangs up
		close(gone)
	})))
	c := n.dial()
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n")
	if _, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil {
		t.Fatal(err)
	}
	c.Close()
	<-gone
}

func TestTunnelEndsSideBySide(t *testing.T) {
	n := startNode(t)
	n.publish(site(scriptedOrigin(t, func(_ int, c net.Conn, b *bufio.Reader) {
		if _, err := http.ReadRequest(b); err != nil {
			return
		}
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nfirst ")
		got, err := io.ReadAll(b) // until the client has ended its side
		fmt.Fprintf(c, "after %q, %v", got, err)
	})))
	c, b := n.upgrade("/")
	io.WriteString(c, "bye")
	c.(*net.TCPConn).CloseWrite()
	got, err := io.ReadAll(b)
	if want := `first after "bye", <nil>`; err != nil || string(got) != want {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

func TestTunnelOfWhichOneSideIsSilentEnds(t *testing.T) {
	n := startNode(t, func(c *Config) { c.IdleTimeout = 50 * time.Millisecond })
	ended := make(chan struct{})
	n.publish(site(scriptedOrigin(t, func(_ int, c net.Conn, b *bufio.Reader) {
		http.ReadRequest(b)
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		io.Copy(io.Discard, b)
		c.Read(make([]byte, 1)) // says nothing, and does not end its side
		<-ended
	})))
	c, b := n.upgrade("/")
	c.(*net.TCPConn).CloseWrite()
	if got, err := io.ReadAll(b); len(got) > 0 || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	close(ended)
}

// What a rule routes to a pool is not answered by another one, which the balancer has behind that.
func TestRoutedRequestStaysInItsPool(t *testing.T) {
	o := startOrigin(t)
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead.Close()
	n := startNode(t)
	n.publish(site("", rule(zone.PhaseOrigin, `http.path == "/routed"`, zone.ActionRoute, zone.Parameters{Pool: "main"}), func(z *zone.Zone) {
		z.Pools["main"] = zone.Pool{Origins: []zone.Origin{{Name: "a", Address: dead.Addr().String()}}}
		z.Pools["other"] = zone.Pool{Origins: []zone.Origin{{Name: "b", Address: o.address()}}}
		z.LoadBalancers[zone.MustName("www.example.com")] = zone.LoadBalancer{Pools: []string{"main", "other"}}
	}))
	if got := n.get("/routed"); got.status != 502 {
		t.Errorf("routed to a pool whose origin is away: %+v", got)
	}
	if got := n.get("/balanced"); got.status != 200 {
		t.Errorf("balanced: %+v", got)
	}
}

func TestOriginThatCannotBeReachedPassesToTheNext(t *testing.T) {
	o := startOrigin(t)
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead.Close()
	for _, scheme := range []zone.Scheme{zone.SchemeHTTP, zone.SchemeH2C} {
		n := startNode(t)
		n.publish(site("", func(z *zone.Zone) {
			z.Pools["main"] = zone.Pool{Origins: []zone.Origin{
				{Name: "a", Address: dead.Addr().String(), Scheme: scheme}, {Name: "b", Address: o.address()},
			}}
		}))
		for range 4 {
			got := n.exchangeRaw("POST / HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbody")
			if len(got) != 1 || got[0].status != 200 {
				t.Errorf("first %s: got %+v", scheme, got)
			}
		}
		for _, r := range o.take() {
			if r.body != "body" {
				t.Errorf("the origin got %+v", r)
			}
		}
	}
}
