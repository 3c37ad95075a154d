package web

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/zone"
)

func TestTraceOfTries(t *testing.T) {
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead.Close()
	status := func(code int) string {
		return startOrigin(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }).address()
	}
	hangsUp := scriptedOrigin(t, func(i int, c net.Conn, b *bufio.Reader) {
		http.ReadRequest(b)
		io.WriteString(c, okAnswer)
		if i == 1 {
			http.ReadRequest(b) // and closes without a word
		}
	})
	origins := func(all ...string) func(*zone.Zone) {
		return func(z *zone.Zone) {
			p := zone.Pool{}
			for i, a := range all {
				p.Origins = append(p.Origins, zone.Origin{Name: string(rune('a' + i)), Address: a})
			}
			z.Pools["main"] = p
		}
	}
	for _, row := range []struct {
		name    string
		origins func(*zone.Zone)
		warm    bool // a request before
		status  int
		server  string // "ok", or "failed" with error.type
		tries   []string
	}{
		{"an origin's 404 is the client's affair", origins(status(404)), false, 404, "ok", []string{"a failed error.type=404 http.response.status_code=404"}},
		{"an origin's 503", origins(status(503)), false, 503, "failed error.type=503", []string{"a failed error.type=503 http.response.status_code=503"}},
		{"nobody is there", origins(dead.Addr().String()), false, 502, "failed error.type=502", []string{"a failed error.type=connect"}},
		{"the next one is", origins(dead.Addr().String(), status(200)), false, 200, "ok", []string{"a failed error.type=connect", "b ok http.response.status_code=200"}},
		{"an idle connection was closed", origins(hangsUp), true, 200, "ok", []string{"a failed error.type=_OTHER", "a ok http.response.status_code=200"}},
		{"no HTTP", origins(rawOrigin(t, "nonsense\r\n\r\n")), false, 502, "failed error.type=502", []string{"a failed error.type=_OTHER"}},
		{
			"broken off", origins(rawOrigin(t, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab")), false, 200, "failed error.type=broken_off",
			[]string{"a failed error.type=broken_off http.response.status_code=200"},
		},
		{"slow", origins(scriptedOrigin(t, func(_ int, _ net.Conn, b *bufio.Reader) { io.Copy(io.Discard, b) })), false, 504, "failed error.type=504", []string{"a failed error.type=timeout"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			n, traces := tracedNode(t, func(c *Config) { c.OriginHeaderTimeout = 200 * time.Millisecond })
			n.publish(site("", row.origins, sampled(100_00)))
			if row.warm {
				n.get("/")
				next(t, traces)
			}
			c := n.dial()
			fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\n\r\n")
			res, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil || res.StatusCode != row.status {
				t.Fatalf("%v, %v", res, err)
			}
			tr := next(t, traces)
			say := func(s Span, prefixes ...string) string {
				state := "ok"
				if s.Failed {
					state = "failed"
				}
				return strings.TrimSpace(state + " " + attributes(s, prefixes...))
			}
			if got := say(tr.Spans[0], "error.type"); got != row.server {
				t.Errorf("the server's: %s, want %s", got, row.server)
			}
			var got []string
			ids := map[[8]byte]bool{}
			for i, s := range tr.Spans[1:] {
				name := strings.TrimPrefix(attributes(s, "guardyn.origin"), "guardyn.origin=")
				got = append(got, name+" "+say(s, "error.type", "http.response.status"))
				want := ""
				if i > 0 {
					want = fmt.Sprintf("http.request.resend_count=%d", i)
				}
				if ids[s.ID] || s.Parent != tr.Spans[0].ID || s.End.IsZero() || attributes(s, "http.request.resend") != want {
					t.Errorf("got %+v", s)
				}
				ids[s.ID] = true
			}
			// Which of two origins comes first is the balancer's choice.
			if len(row.tries) == 2 && len(got) == 1 && got[0] == row.tries[1] {
				return
			}
			if !slices.Equal(got, row.tries) {
				t.Errorf("tries %q, want %q", got, row.tries)
			}
		})
	}
}

// Each try tells its origin another parent, a connection that died between two requests included.
func TestEachTryHasItsParent(t *testing.T) {
	got := make(chan string, 4)
	n, traces := tracedNode(t)
	n.publish(site(scriptedOrigin(t, func(i int, c net.Conn, b *bufio.Reader) {
		r, err := http.ReadRequest(b)
		if err != nil {
			return
		}
		got <- r.Header.Get("Traceparent")
		io.WriteString(c, okAnswer)
		if i == 1 {
			if r, err := http.ReadRequest(b); err == nil {
				got <- r.Header.Get("Traceparent")
			}
		}
	}), sampled(100_00)))
	for range 2 {
		n.get("/")
	}
	spans := append(next(t, traces).Spans[1:], next(t, traces).Spans[1:]...)
	if len(spans) != 3 {
		t.Fatalf("%d tries", len(spans))
	}
	for _, s := range spans {
		if c, ok := parseTraceparent([]string{<-got}); !ok || c.parent != s.ID {
			t.Errorf("an origin was told %s, want %x", c, s.ID)
		}
	}
}
