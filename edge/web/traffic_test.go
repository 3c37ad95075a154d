package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/zone"
)

func TestBeforeAnyView(t *testing.T) {
	n := startNode(t)
	got := n.get("/")
	if got.status != 503 || got.header.Get("Retry-After") == "" {
		t.Errorf("got %+v, want 503 with Retry-After", got)
	}
}

func TestMethodsThatAreNotServed(t *testing.T) {
	o := startOrigin(t)
	n := startNode(t)
	n.publish(site(o.address()))
	for _, line := range []string{"TRACE / HTTP/1.1", "CONNECT www.example.com:80 HTTP/1.1"} {
		got := n.exchangeRaw(line + "\r\nHost: www.example.com\r\nConnection: close\r\n\r\n")
		if len(got) != 1 || got[0].status != 405 {
			t.Errorf("%s: got %+v, want 405", line, got)
		}
	}
	if got := o.take(); len(got) != 0 {
		t.Errorf("the origin got %+v", got)
	}
}

func TestBodyCeiling(t *testing.T) {
	o := startOrigin(t)
	n := startNode(t)
	n.publish(site(o.address(), func(z *zone.Zone) { z.Ceilings.RequestBody = 1024 }))
	chunked := func(size int) string {
		return fmt.Sprintf("POST / HTTP/1.1\r\nHost: www.example.com\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", size, strings.Repeat("a", size))
	}
	counted := func(size int) string {
		return fmt.Sprintf("POST / HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: %d\r\n\r\n%s", size, strings.Repeat("a", size))
	}
	const last = "GET /last HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\n\r\n"
	for _, tc := range []struct {
		name, bytes string
		want        string
	}{
		{"counted, at the ceiling", counted(1024) + last, "200 200"},
		{"chunked, at the ceiling", chunked(1024) + last, "200 200"},
		{"counted, over it", counted(1025) + last, "413"},
		{"chunked, over it", chunked(1025) + last, "413"},
		{"counted, far over it, never sent", "POST / HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: 99999999999\r\n\r\n", "413"},
		{"expecting to be told", "POST / HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: 99999999999\r\nExpect: 100-continue\r\n\r\n", "413"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, r := range n.exchangeRaw(tc.bytes) {
				got = append(got, fmt.Sprint(r.status))
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("got %v, want %s", got, tc.want)
			}
		})
	}
	n.stop()
	o.Close()
	for _, r := range o.take() {
		if r.complete && len(r.body) > 1024 {
			t.Errorf("the origin got a body of %d octets", len(r.body))
		}
	}
}

func TestClientsThatStall(t *testing.T) {
	o := startOrigin(t)
	n := startNode(t, func(c *Config) {
		c.HeaderTimeout, c.IdleTimeout, c.BodyStall = 50*time.Millisecond, 50*time.Millisecond, 50*time.Millisecond
	})
	n.publish(site(o.address()))
	for _, tc := range []struct {
		name, bytes string
		want        int // 0: no answer
	}{
		{"says nothing", "", 0},
		{"half a head", "GET / HTTP/1.1\r\nHost: www.exam", 408},
		{"half a body", "POST / HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: 10\r\n\r\nhalf", 408},
		{"half a chunk", "POST / HTTP/1.1\r\nHost: www.example.com\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nhalf", 408},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := n.exchangeRaw(tc.bytes)
			if len(got) > 1 || len(got) == 1 && got[0].status != tc.want || len(got) == 0 && tc.want != 0 {
				t.Errorf("got %+v, want %d and the end", got, tc.want)
			}
		})
	}
}

func TestRequestsOverTheBoundAreShed(t *testing.T) {
	entered, release := make(chan struct{}, 2), make(chan struct{})
	o := startOrigin(t, func(http.ResponseWriter, *http.Request) { entered <- struct{}{}; <-release })
	n := startNode(t, func(c *Config) { c.MaxRequests = 2 })
	n.publish(site(o.address()))
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if got := n.get("/held"); got.status != 200 {
				t.Errorf("a request within the bound got %+v", got)
			}
		})
	}
	<-entered
	<-entered
	if got := n.get("/more"); got.status != 503 || got.header.Get("Retry-After") == "" {
		t.Errorf("got %+v, want 503 with Retry-After", got)
	}
	if m := n.Metrics(); m.Shed != 1 || m.InFlight != 2 {
		t.Errorf("got %+v", m)
	}
	close(release)
	wg.Wait()
	if got := n.get("/after"); got.status != 200 {
		t.Errorf("after the load: got %+v", got)
	}
}

func TestConnectionsOverTheBoundWait(t *testing.T) {
	o := startOrigin(t)
	n := startNode(t, func(c *Config) { c.MaxConnections = 1 })
	n.publish(site(o.address()))
	first := n.dial()
	io.WriteString(first, "GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n")
	if res, err := http.ReadResponse(bufio.NewReader(first), nil); err != nil || res.StatusCode != 200 {
		t.Fatalf("got %v, %v", res, err)
	}
	second := make(chan reply)
	go func() { second <- n.get("/") }()
	if m := n.Metrics(); m.Connections != 1 {
		t.Errorf("%d connections, the bound is 1", m.Connections)
	}
	select {
	case got := <-second:
		t.Fatalf("the second connection was served beside the first: %+v", got)
	default:
	}
	first.Close()
	if got := <-second; got.status != 200 {
		t.Errorf("got %+v", got)
	}
}

func TestStreaming(t *testing.T) {
	next := make(chan struct{})
	o := startOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 3 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			w.(http.Flusher).Flush()
			<-next
		}
	})
	n := startNode(t)
	n.publish(site(o.address()))
	res, err := http.DefaultTransport.RoundTrip(newRequest(t, n, "/events"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b := bufio.NewReader(res.Body)
	for i := range 3 {
		line, err := b.ReadString('\n')
		if err != nil || line != fmt.Sprintf("data: %d\n", i) {
			t.Fatalf("event %d: %q, %v", i, line, err)
		}
		b.ReadString('\n')
		next <- struct{}{} // the origin says no more until this event has arrived
	}
}

func newRequest(t testing.TB, n *node, path string) *http.Request {
	r, err := http.NewRequestWithContext(context.Background(), "GET", "http://"+n.Addr().String()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "www.example.com"
	return r
}

// echoUpgrade is an origin that takes the WebSocket handshake and sends every octet back.
func echoUpgrade(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "websocket" || r.Header.Get("Connection") != "Upgrade" {
		http.Error(w, "not a handshake", http.StatusUpgradeRequired)
		return
	}
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n")
	rw.Flush()
	io.Copy(conn, rw)
}

func (n *node) upgrade(path string) (net.Conn, *bufio.Reader) {
	n.t.Helper()
	c := n.dial()
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: www.example.com\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n", path)
	b := bufio.NewReader(c)
	res, err := http.ReadResponse(b, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols || res.Header.Get("Upgrade") != "websocket" {
		n.t.Fatalf("handshake: %+v, %v", res, err)
	}
	return c, b
}

func TestWebSocket(t *testing.T) {
	o := startOrigin(t, echoUpgrade)
	n := startNode(t)
	n.publish(site(o.address()))
	c, b := n.upgrade("/ws")
	// Octets that the wire check would refuse if it still looked.
	for _, message := range []string{"hello", "GET / HTTP/1.1\n\n", "\x81\x85\x00\r\n \n", strings.Repeat("x", 100<<10)} {
		go io.WriteString(c, message)
		got := make([]byte, len(message))
		if _, err := io.ReadFull(b, got); err != nil || string(got) != message {
			t.Fatalf("sent %.40q, got %.40q, %v", message, got, err)
		}
	}
	n.publish(site("192.0.2.1:1")) // another view does not end what runs
	io.WriteString(c, "still")
	if got := make([]byte, 5); true {
		if _, err := io.ReadFull(b, got); err != nil || string(got) != "still" {
			t.Fatalf("after a swap: %q, %v", got, err)
		}
	}
	n.stop()
	if _, err := b.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection outlived the server: %v", err)
	}
}

func TestUpgradeThatTheOriginRefuses(t *testing.T) {
	o := startOrigin(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUpgradeRequired) })
	n := startNode(t)
	n.publish(site(o.address()))
	handshake := "GET /ws HTTP/1.1\r\nHost: www.example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
	got := n.exchangeRaw(handshake + "POST /p HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na")
	if len(got) != 2 || got[0].status != 426 || got[1].status != 400 {
		t.Errorf("got %+v, want 426 and, the connection still being HTTP, 400", got)
	}
}

// TestUpgradeRequired sees that who has to upgrade is told to what (RFC 9110 §15.5.22), and nobody else is.
func TestUpgradeRequired(t *testing.T) {
	a := newAuthority(t)
	for _, tc := range []struct {
		name, answer, upgrade string
	}{
		{"426", "426 Upgrade Required\r\nConnection: upgrade\r\nUpgrade: websocket, foo/2", "websocket, foo/2"},
		{"426 of an origin that does not list it", "426 Upgrade Required\r\nUpgrade: websocket", "websocket"},
		{"426 without", "426 Upgrade Required\r\nConnection: upgrade", ""},
		{"another status", "400 Bad Request\r\nConnection: upgrade\r\nUpgrade: websocket", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			status, _ := strconv.Atoi(tc.answer[:3])
			n := startNode(t, withTLS)
			n.publish(site(rawOrigin(t, "HTTP/1.1 "+tc.answer+"\r\nContent-Length: 0\r\n\r\n"), tlsHost("www.example.com", a.issue(false, "www.example.com"))))
			c := n.dial()
			io.WriteString(c, "GET / HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\n\r\n")
			got, err := io.ReadAll(c)
			head := string(got)
			if err != nil || !strings.HasPrefix(head, "HTTP/1.1 "+tc.answer[:3]) || strings.Contains(head, "\r\nConnection: Upgrade\r\n") != (tc.upgrade != "") ||
				strings.Contains(head, "\r\nUpgrade: ") != (tc.upgrade != "") || !strings.Contains(head, tc.upgrade+"\r\n") || !strings.Contains(head, "\r\nConnection: close\r\n") {
				t.Errorf("got %q (%v), want Upgrade: %s", head, err, tc.upgrade)
			}
			res, _ := n.fetch(n.client(a, true), "https://www.example.com/", "")
			if res.StatusCode != status || res.ProtoMajor != 2 || len(res.Header["Upgrade"])+len(res.Header["Connection"]) > 0 {
				t.Errorf("by HTTP/2 %+v", res)
			}
		})
	}
}

func TestEachRequestIsOneViewsToItsEnd(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	o := startOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			entered <- struct{}{}
			<-release
		}
	})
	versioned := func(i int) *zone.Zone {
		return site(o.address(), func(z *zone.Zone) { z.Settings.VersionHeader = true },
			rule(zone.PhaseTransformRequest, `true`, zone.ActionSetHeader, zone.Parameters{Name: "X-V", Value: fmt.Sprint(i)}),
			rule(zone.PhaseTransformResponse, `true`, zone.ActionSetHeader, zone.Parameters{Name: "X-V", Value: fmt.Sprint(i)}))
	}
	n := startNode(t)
	n.publish(versioned(1))
	t.Run("held over a swap", func(t *testing.T) {
		held := make(chan reply)
		go func() { held <- n.get("/held") }()
		<-entered
		n.publish(versioned(2))
		if got := n.get("/"); got.header.Get("X-V") != "2" {
			t.Errorf("a new request got %v", got.header)
		}
		close(release)
		if got := <-held; got.header.Get("X-V") != "1" || got.header.Get("X-Guardyn-Version") != "1" {
			t.Errorf("the held request got %v", got.header)
		}
	})
	t.Run("under load", func(t *testing.T) {
		o.take()
		stop := make(chan struct{})
		var wg sync.WaitGroup
		var served atomic.Int64
		for range 4 {
			wg.Go(func() {
				transport := &http.Transport{}
				defer transport.CloseIdleConnections()
				for {
					select {
					case <-stop:
						return
					default:
					}
					res, err := transport.RoundTrip(newRequest(t, n, "/"))
					if err != nil {
						t.Error(err)
						return
					}
					io.Copy(io.Discard, res.Body)
					res.Body.Close()
					if v := res.Header.Get("X-V"); res.StatusCode != 200 || v != res.Header.Get("X-Guardyn-Version") {
						t.Errorf("got %d with rules of %s under version %s", res.StatusCode, v, res.Header.Get("X-Guardyn-Version"))
						return
					}
					served.Add(1)
				}
			})
		}
		for i := 3; i < 53; i++ {
			n.publish(versioned(i))
		}
		for target := served.Load() + 20; served.Load() < target && !t.Failed(); {
			n.publish(versioned(int(n.version) + 1))
		}
		close(stop)
		wg.Wait()
	})
}

func TestServeEndsRequestsThenConnections(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	o := startOrigin(t, func(http.ResponseWriter, *http.Request) { entered <- struct{}{}; <-release })
	live := startNode(t)
	live.publish(site(o.address()))
	n := NewServer(Config{View: live.live.Load, Addr: "127.0.0.1:0", AllowedOrigins: loopback})
	if err := n.Serve(t.Context()); err == nil {
		t.Error("served without listening")
	}
	if err := n.Listen(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.Serve(ctx) }()
	answered := make(chan reply)
	other := &node{Server: n, t: t}
	go func() { answered <- other.get("/") }()
	<-entered
	cancel()
	select {
	case err := <-ended:
		t.Fatalf("Serve ended before the request did: %v", err)
	default:
	}
	close(release)
	if got := <-answered; got.status != 200 {
		t.Errorf("the request in flight got %+v", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := net.Dial("tcp", n.Addr().String()); err == nil {
		t.Error("still listening")
	}
	if err := n.Close(); err != nil {
		t.Errorf("Close after Serve: %v", err)
	}
}

func TestAddressInUse(t *testing.T) {
	n := startNode(t)
	if err := NewServer(Config{Addr: n.Addr().String()}).Listen(); err == nil || !strings.Contains(err.Error(), n.Addr().String()) {
		t.Errorf("got %v, want an error that names the address", err)
	}
}

func TestClientThatLeavesIsNotAnOriginsError(t *testing.T) {
	entered, gone := make(chan struct{}), make(chan struct{})
	o := startOrigin(t, func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
		close(gone)
	})
	n := startNode(t)
	n.publish(site(o.address()))
	c := n.dial()
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n")
	<-entered
	c.(*net.TCPConn).CloseWrite()
	<-gone
	if got := readReplies(t, c); len(got) != 0 {
		t.Errorf("got %+v, which nobody said", got)
	}
	n.end()
	if m := n.Metrics(); m.OriginErrors != 0 || m.Requests[0] != 1 {
		t.Errorf("got %+v, want one request whose client left", m)
	}
}

// logBuffer is a log's destination that tests may read while it is written.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Split(strings.TrimSuffix(l.b.String(), "\n"), "\n")
}

func TestAccessLog(t *testing.T) {
	o := startOrigin(t)
	var log logBuffer
	var clock atomic.Int64
	n := startNode(t, func(c *Config) {
		c.AccessLog = slog.New(slog.NewJSONHandler(&log, nil))
		c.Now = func() time.Time { return time.Unix(1e9, clock.Add(1e6)) }
	})
	none := zone.Percent(0)
	quiet := site(o.address(), func(z *zone.Zone) { z.Settings.LogSampling = &none })
	quiet.Name = zone.MustName("example.net")
	quiet.Records = []zone.Record{record("www.example.net", "192.0.2.1")}
	quiet.LoadBalancers = map[zone.Name]zone.LoadBalancer{zone.MustName("www.example.net"): {Pools: []string{"main"}}}
	n.publish(site(o.address(), rule(zone.PhaseCustom, `http.path == "/x"`, zone.ActionLog, zone.Parameters{})), quiet)
	n.ask("GET", "www.example.net", "/")
	n.get("/x?secret=1", "X-Forwarded-For: 203.0.113.9")
	n.end()
	lines := log.lines()
	if len(lines) != 1 {
		t.Fatalf("got %q, want one record", lines)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(lines[0]), &got); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{
		"client": "127.0.0.1", "host": "www.example.com", "method": "GET", "protocol": "HTTP/1.1", "path": "/x", "status": 200.0, "bytes": 6.0,
		"zone": "example.com", "version": 1.0, "origin": "main/a", "msg": "request",
	} {
		if got[name] != want {
			t.Errorf("%s: %v, want %v", name, got[name], want)
		}
	}
	if fmt.Sprint(got["rules"]) != "[custom/1/log]" || strings.Contains(lines[0], "secret") {
		t.Errorf("got %s", lines[0])
	}
}

func TestMetrics(t *testing.T) {
	o := startOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/missing" {
			w.WriteHeader(404)
		}
	})
	n := startNode(t)
	n.publish(site(o.address(),
		rule(zone.PhaseRedirect, `http.path == "/r"`, zone.ActionRedirect, zone.Parameters{Location: "/"}),
		rule(zone.PhaseCustom, `int(http.headers["x-n"]) == 0`, zone.ActionBlock, zone.Parameters{})))
	n.get("/", "X-N: 1")
	n.get("/r")
	n.get("/missing", "X-N: 1")
	n.get("/", "X-N: 0")
	n.get("/", "X-N: rubbish")
	n.end()
	m := n.Metrics()
	if m.Requests != [6]uint64{2: 2, 3: 1, 4: 2} || m.RuleMatches != 2 || m.RuleErrors != 1 {
		t.Errorf("got %+v", m)
	}
}
