package web

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/guardyn-edge/guardyn/zone"
)

// A client of HTTP/2 that gives no window takes nothing of an answer; it loses the stream, and the slot is free.
func TestStreamThatTakesNothingIsReset(t *testing.T) {
	a := newAuthority(t)
	for _, tc := range []struct {
		name   string
		answer http.HandlerFunc
	}{
		{"a small answer", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "small") }},
		{"a large one", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("a", 1<<20)) }},
		{"one of the node's own", nil},
		{"a stream", func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "first")
			w.(http.Flusher).Flush()
			io.WriteString(w, "second")
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			answers := []http.HandlerFunc{}
			path := ":path: /own"
			if tc.answer != nil {
				answers, path = append(answers, tc.answer), ":path: /"
			}
			o := startOrigin(t, answers...)
			n := startNode(t, withTLS, func(c *Config) { c.MaxRequests, c.WriteStall = 2, 50*time.Millisecond })
			n.publish(site(o.address(), tlsHost("www.example.com", a.issue(false, "www.example.com")),
				rule(zone.PhaseCustom, `http.path == "/own"`, zone.ActionBlock, zone.Parameters{})))
			c := n.http2(a, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
			for range 2 {
				c.request(true, ":method: GET", ":scheme: https", ":authority: www.example.com", path)
			}
			c.resets(2)
			waitFor(t, "the slots are free", func() bool { return n.Metrics().InFlight == 0 })
			if got := n.get("/own"); got.status != 403 {
				t.Errorf("after it: %+v", got)
			}
		})
	}
}

// heldResponse is one whose client takes nothing until release is closed.
type heldResponse struct {
	*httptest.ResponseRecorder
	flushing, release chan struct{}
}

func (w heldResponse) Flush() {
	close(w.flushing)
	<-w.release
}

// The end of an answer by HTTP/2 is sent while its request has a slot: else a client that takes nothing would hold up what no slot bounds.
func TestStreamEndsWithinItsSlot(t *testing.T) {
	o := startOrigin(t)
	n := startNode(t)
	n.publish(site(o.address()))
	w := heldResponse{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://www.example.com/", nil)
	r.RequestURI, r.ProtoMajor, r.ProtoMinor = "/", 2, 0
	r.URL.Scheme, r.URL.Host = "", ""
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.serveHTTP2(w, r)
	}()
	<-w.flushing
	if in := n.Metrics().InFlight; in != 1 {
		t.Errorf("%d requests have a slot", in)
	}
	close(w.release)
	<-done
	if in := n.Metrics().InFlight; in != 0 {
		t.Errorf("%d have one behind it", in)
	}
}

// resets reads until n streams were reset.
func (c *http2Client) resets(n int) {
	c.t.Helper()
	for n > 0 {
		f, err := c.ReadFrame()
		if err != nil {
			c.t.Fatalf("%d streams are not reset: %v", n, err)
		}
		switch f := f.(type) {
		case *http2.RSTStreamFrame:
			n--
		case *http2.SettingsFrame:
			if !f.IsAck() {
				c.WriteSettingsAck() //nolint:errcheck // the next read fails
			}
		}
	}
}

// A slow reader that takes something keeps its stream.
func TestStreamThatTakesALittleGoesOn(t *testing.T) {
	a := newAuthority(t)
	const size = 20_000
	o := startOrigin(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("a", size)) })
	n := startNode(t, withTLS, func(c *Config) { c.WriteStall = 500 * time.Millisecond })
	n.publish(site(o.address(), tlsHost("www.example.com", a.issue(false, "www.example.com"))))
	c := n.http2(a, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	s := c.request(true, ":method: GET", ":scheme: https", ":authority: www.example.com", ":path: /")
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for got := 0; got < size; {
		<-tick.C // in all it takes twice the stall
		if err := c.WriteWindowUpdate(s, 1000); err != nil {
			t.Fatal(err)
		}
		for step := got + min(1000, size-got); got < step; {
			f, err := c.ReadFrame()
			if err != nil {
				t.Fatal(err)
			}
			switch f := f.(type) {
			case *http2.DataFrame:
				got += len(f.Data())
			case *http2.RSTStreamFrame:
				t.Fatalf("reset after %d octets: %s", got, f.ErrCode)
			}
		}
	}
}

// Over its bound a request by HTTP/2 is answered without a body, which nothing has to wait for.
func TestShedStreams(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	a := newAuthority(t)
	o := startOrigin(t, func(http.ResponseWriter, *http.Request) { entered <- struct{}{}; <-release })
	n := startNode(t, withTLS, func(c *Config) { c.MaxRequests = 1 })
	n.publish(site(o.address(), tlsHost("www.example.com", a.issue(false, "www.example.com"))))
	c := n.http2(a, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	c.request(true, pseudo()...)
	<-entered
	s := c.request(true, pseudo()...)
	for {
		f, err := c.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		h, ok := f.(*http2.MetaHeadersFrame)
		if !ok || h.StreamID != s {
			continue
		}
		retry := ""
		for _, f := range h.RegularFields() {
			if f.Name == "retry-after" {
				retry = f.Value
			}
		}
		if h.PseudoValue("status") != "503" || retry != "1" || !h.StreamEnded() {
			t.Errorf("got %v, ended %v", h.Fields, h.StreamEnded())
		}
		break
	}
	close(release)
}

// What one zone may have of the slots leaves some to the others; the bound is over views.
func TestRequestsOfOneZoneAreBounded(t *testing.T) {
	entered, release := make(chan struct{}, 3), make(chan struct{})
	o := startOrigin(t, func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			entered <- struct{}{}
			<-release
		}
	})
	n := startNode(t, func(c *Config) { c.MaxRequests = 4 })
	other := site(o.address())
	other.Name, other.Records, other.LoadBalancers = zone.MustName("example.net"), []zone.Record{record("www.example.net", "192.0.2.1")},
		map[zone.Name]zone.LoadBalancer{zone.MustName("www.example.net"): {Pools: []string{"main"}}}
	n.publish(site(o.address()), other)
	held := make(chan reply)
	for range 3 {
		go func() { held <- n.get("/held") }()
		<-entered
	}
	n.publish(site(o.address(), settings(func(s *zone.Settings) { s.VersionHeader = true })), other) // a swap forgets none of them
	if got := n.get("/"); got.status != 503 || got.header.Get("Retry-After") != "1" || n.Metrics().Shed != 1 {
		t.Errorf("the fourth of the zone got %+v", got)
	}
	if got := n.ask("GET", "www.example.net", "/"); got.status != 200 {
		t.Errorf("another zone got %+v", got)
	}
	close(release)
	for range 3 {
		if got := <-held; got.status != 200 {
			t.Errorf("got %+v", got)
		}
	}
	if got := n.get("/"); got.status != 200 {
		t.Errorf("after it: %+v", got)
	}
}

// A WebSocket over which nothing passes ends; one over which anything does, either way, goes on.
func TestTunnelIdle(t *testing.T) {
	o := startOrigin(t, echoUpgrade)
	n := startNode(t, func(c *Config) { c.StreamIdleTimeout = 300 * time.Millisecond })
	n.publish(site(o.address()))
	began := time.Now()
	c, b := n.upgrade("/ws")
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for i := range 8 {
		<-tick.C
		fmt.Fprintf(c, "%d", i)
		if got, err := b.ReadByte(); err != nil || got != byte('0'+i) {
			t.Fatalf("%d: %q, %v", i, got, err)
		}
	}
	if got, err := io.ReadAll(b); len(got) > 0 || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if took := time.Since(began); took < 800*time.Millisecond+300*time.Millisecond-10*time.Millisecond {
		t.Errorf("it ended after %s", took)
	}
	waitFor(t, "its slot is free", func() bool { return n.Metrics().InFlight == 0 })
}

// Only one side of a tunnel speaks: the other one's silence does not end it.
func TestTunnelOfOneSide(t *testing.T) {
	n := startNode(t, func(c *Config) { c.StreamIdleTimeout = 300 * time.Millisecond })
	n.publish(site(scriptedOrigin(t, func(_ int, c net.Conn, b *bufio.Reader) {
		if _, err := http.ReadRequest(b); err != nil {
			return
		}
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for i := range 8 {
			<-tick.C
			fmt.Fprint(c, i)
		}
	})))
	_, b := n.upgrade("/ws")
	if got, err := io.ReadAll(b); string(got) != "01234567" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// An origin that falls silent amid its answer loses it, and its slot; one that says something from time to time does not.
func TestAnswerThatFallsSilent(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("HTTP/2 %v", h2), func(t *testing.T) {
			silent := make(chan struct{})
			answer := func(w http.ResponseWriter, r *http.Request) {
				tick := time.NewTicker(100 * time.Millisecond)
				defer tick.Stop()
				for i := range 8 {
					fmt.Fprint(w, i)
					w.(http.Flusher).Flush()
					<-tick.C
				}
				if r.URL.Path == "/silent" {
					<-silent
				}
			}
			var address string
			change := scheme(zone.SchemeHTTP)
			if h2 {
				o, _ := http2Origin(t, false, answer)
				address, change = o.Listener.Addr().String(), scheme(zone.SchemeH2C)
			} else {
				address = startOrigin(t, answer).address()
			}
			t.Cleanup(func() { close(silent) })
			var log logBuffer
			n := startNode(t, func(c *Config) {
				c.StreamIdleTimeout, c.AccessLog = 300*time.Millisecond, slog.New(slog.NewTextHandler(&log, nil))
			})
			n.publish(site(address, change))
			if got := n.get("/whole"); got.body != "01234567" {
				t.Errorf("got %+v", got)
			}
			c := n.dial()
			io.WriteString(c, "GET /silent HTTP/1.1\r\nHost: www.example.com\r\n\r\n")
			raw, err := io.ReadAll(c)
			if err != nil || strings.HasSuffix(string(raw), "0\r\n\r\n") || !strings.Contains(string(raw), "\r\n7\r\n") {
				t.Errorf("got %q, %v", raw, err)
			}
			n.end()
			if m := n.Metrics(); m.OriginErrors != 1 || !strings.Contains(log.b.String(), errIdle.Error()) {
				t.Errorf("%d errors of origins; logged %s", m.OriginErrors, log.b.String())
			}
		})
	}
}

// Once an answer has begun, a stream of both directions may be silent in one of them for as long as anything passes in the other.
func TestStreamsOfBothDirections(t *testing.T) {
	var heard atomic.Int64
	o, _ := http2Origin(t, false, func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		switch r.URL.Path {
		case "/listens": // the client says one thing, and then nothing
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for i := range 8 {
				<-tick.C
				fmt.Fprint(w, i)
				w.(http.Flusher).Flush()
			}
		case "/speaks": // the origin says nothing
			n, _ := io.Copy(io.Discard, r.Body)
			heard.Store(n)
		case "/silent":
			<-r.Context().Done()
		}
	})
	a := newAuthority(t)
	n := startNode(t, withTLS, func(c *Config) { c.StreamIdleTimeout, c.BodyStall = 300*time.Millisecond, 150*time.Millisecond })
	n.publish(site(o.Listener.Addr().String(), scheme(zone.SchemeH2C), tlsHost("www.example.com", a.issue(false, "www.example.com"))))
	client := n.client(a, true)
	call := func(path string) (*http.Response, *io.PipeWriter) {
		body, in := io.Pipe()
		r, err := http.NewRequestWithContext(context.Background(), "POST", "https://www.example.com"+path, body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/grpc")
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return res, in
	}
	res, in := call("/listens")
	if got, err := io.ReadAll(res.Body); string(got) != "01234567" || err != nil {
		t.Errorf("a client that listens got %q, %v", got, err)
	}
	in.Close()
	res, in = call("/speaks")
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for range 8 {
		<-tick.C
		io.WriteString(in, "x")
	}
	in.Close()
	if _, err := io.ReadAll(res.Body); err != nil || heard.Load() != 8 {
		t.Errorf("of a client that speaks %d octets were heard, %v", heard.Load(), err)
	}
	res, in = call("/silent")
	if _, err := io.ReadAll(res.Body); err == nil {
		t.Error("a stream over which nothing passes ends well")
	}
	in.Close()
	waitFor(t, "its slot is free", func() bool { return n.Metrics().InFlight == 0 })
}
