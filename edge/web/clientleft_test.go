package web

import (
	"bufio"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/guardyn-edge/guardyn/zone"
)

// Of a client that leaves, however it does, nobody says that the origin failed: no record, no count, and no ejection.
func TestClientThatLeavesIsNotTheOriginsFault(t *testing.T) {
	a := newAuthority(t)
	h1 := func(text string) func(*node) (leave func()) {
		return func(n *node) func() {
			c := n.dial()
			if _, err := io.WriteString(c, text); err != nil {
				t.Error(err)
			}
			return func() { c.Close() }
		}
	}
	h2 := func(body string, reset bool) func(*node) (leave func()) {
		return func(n *node) func() {
			c := n.http2(a)
			fields := pseudo("content-length: 10")
			if body == "" {
				fields = replaced(":method: GET")
			}
			stream := c.request(body == "", fields...)
			if body != "" {
				if err := c.WriteData(stream, false, []byte(body)); err != nil {
					t.Error(err)
				}
			}
			if !reset {
				return func() { c.conn.Close() }
			}
			return func() {
				if err := c.WriteRSTStream(stream, http2.ErrCodeCancel); err != nil {
					t.Error(err)
				}
			}
		}
	}
	const head = " / HTTP/1.1\r\nHost: www.example.com\r\n"
	for _, tt := range []struct {
		name   string
		begin  func(*node) (leave func())
		scheme zone.Scheme // whose handshake never ends, when it is https
	}{
		{"before the answer", h1("GET" + head + "\r\n"), ""},
		{"while the origin is connected to", h1("GET" + head + "\r\n"), zone.SchemeHTTPS},
		{"amid a small body", h1("POST" + head + "Content-Length: 10\r\n\r\nhalf"), ""},
		{"amid a large body", h1("POST" + head + "Content-Length: 100000\r\n\r\nhalf"), ""},
		{"amid a body in chunks", h1("POST" + head + "Transfer-Encoding: chunked\r\n\r\n10\r\nhalf"), ""},
		{"behind its body", h1("POST" + head + "Content-Length: 4\r\n\r\nbody"), ""},
		{"amid the opening of a WebSocket", h1("GET" + head + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"), ""},
		{"by HTTP/2, before the answer, by a reset", h2("", true), ""},
		{"by HTTP/2, before the answer, without a word", h2("", false), ""},
		{"by HTTP/2, amid its body, by a reset", h2("half", true), ""},
		{"by HTTP/2, amid its body, without a word", h2("half", false), ""},
		{"by HTTP/2, while the origin is connected to", h2("", true), zone.SchemeHTTPS},
	} {
		t.Run(tt.name, func(t *testing.T) {
			reached := make(chan struct{}, 1)
			silent := scriptedOrigin(t, func(_ int, c net.Conn, b *bufio.Reader) {
				if _, err := b.Peek(1); err == nil {
					reached <- struct{}{}
				}
				io.Copy(io.Discard, b) //nolint:errcheck // until the node hangs up
			})
			var records logBuffer
			n := startNode(t, withTLS, func(c *Config) { c.AccessLog = slog.New(slog.NewJSONHandler(&records, nil)) })
			view := n.publish(site(silent, scheme(tt.scheme), tlsHost("www.example.com", a.issue(false, "www.example.com")), func(z *zone.Zone) {
				p := z.Pools["main"]
				p.OutlierDetection = &zone.OutlierDetection{ConsecutiveFailures: 1, MaxEjectionPercent: 100}
				p.Origins = append(p.Origins, zone.Origin{Name: "b", Address: silent, HostHeader: "b", Scheme: tt.scheme})
				z.Pools["main"] = p
			}))
			leave := tt.begin(n)
			if !strings.Contains(tt.name, "small body") && !strings.Contains(tt.name, "amid its body") { // which are collected first
				<-reached
			} else {
				waitFor(t, "the request", func() bool { return n.Metrics().InFlight == 1 })
			}
			leave()
			waitFor(t, "the request's end", func() bool { return n.Metrics().Requests[0] == 1 })
			n.end()
			var record struct {
				Status int
				Error  string
			}
			if err := json.Unmarshal([]byte(records.lines()[0]), &record); err != nil || record.Status != statusClientGone || record.Error != "" {
				t.Errorf("the record is %s (%v)", records.lines()[0], err)
			}
			if m := n.Metrics(); m.OriginErrors != 0 {
				t.Errorf("%d errors of origins are counted", m.OriginErrors)
			}
			for _, o := range view.Host("www.example.com").Pools.Pool("main") {
				if !o.Usable() || o.Inflight() != 0 {
					t.Errorf("origin %s is usable: %v, with %d requests on their way", o.Name, o.Usable(), o.Inflight())
				}
			}
		})
	}
}

// An origin that hangs up is ejected for it, unless it waited for its client.
func TestOriginThatHangsUpIsEjected(t *testing.T) {
	const head = "POST / HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\n"
	for _, tt := range []struct {
		name, request string
		ejected       int
	}{
		{"without a body", "GET / HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\n\r\n", 1},
		{"behind the body", head + "Content-Length: 4\r\n\r\nbody", 1},
		{"behind a body in chunks", head + "Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n", 1},
		{"amid a body of which more is awaited", head + "Content-Length: 100000\r\n\r\nhalf", 0},
		{"amid one in chunks", head + "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := startNode(t)
			hangsUp := scriptedOrigin(t, func(_ int, c net.Conn, b *bufio.Reader) {
				r, err := http.ReadRequest(b)
				if err != nil {
					return
				}
				io.ReadFull(r.Body, make([]byte, 4)) //nolint:errcheck // of what comes
				if tt.ejected > 0 {
					io.Copy(io.Discard, r.Body) //nolint:errcheck // likewise
				}
			})
			view := n.publish(site(hangsUp, func(z *zone.Zone) {
				p := z.Pools["main"]
				p.OutlierDetection = &zone.OutlierDetection{ConsecutiveFailures: 1, BaseEjectionTime: zone.Duration(time.Hour)}
				p.Origins = append(p.Origins, zone.Origin{Name: "b", Address: hangsUp, HostHeader: "b"})
				z.Pools["main"] = p
			}))
			if got := n.exchangeRaw(tt.request); len(got) != 1 || got[0].status != 502 {
				t.Errorf("got %+v, want 502", got)
			}
			n.end()
			ejected := 0
			for _, o := range view.Host("www.example.com").Pools.Pool("main") {
				if !o.Usable() {
					ejected++
				}
			}
			if ejected != tt.ejected {
				t.Errorf("%d origins are ejected, want %d", ejected, tt.ejected)
			}
		})
	}
}
