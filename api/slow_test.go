package api_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/api"
)

// Clients that do not get on with it are cut off.
func TestSlowClients(t *testing.T) {
	var open atomic.Int64
	p := newPlane(t, func(c *planeConfig) {
		c.server = func(s *http.Server) {
			for name, d := range map[string]time.Duration{
				"ReadHeaderTimeout": s.ReadHeaderTimeout, "ReadTimeout": s.ReadTimeout, "WriteTimeout": s.WriteTimeout, "IdleTimeout": s.IdleTimeout,
			} {
				if d <= 0 || d > 5*time.Minute {
					t.Errorf("%s is %s", name, d)
				}
			}
			if s.MaxHeaderBytes != 64<<10 {
				t.Errorf("MaxHeaderBytes is %d", s.MaxHeaderBytes)
			}
			s.ReadHeaderTimeout, s.ReadTimeout, s.IdleTimeout = 100*time.Millisecond, 200*time.Millisecond, 150*time.Millisecond
			s.WriteTimeout = 500 * time.Millisecond
			s.ConnState = func(_ net.Conn, st http.ConnState) {
				switch st {
				case http.StateNew:
					open.Add(1)
				case http.StateClosed, http.StateHijacked:
					open.Add(-1)
				}
			}
		}
	})
	authorization := "Authorization: Bearer " + p.tokens["editor"] + "\r\n"
	for name, sent := range map[string]string{
		"nothing":         "",
		"half a line":     "GET /v1/zo",
		"half the header": "GET /v1/zones HTTP/1.1\r\nHost: x\r\nX-A: ",
		"half a body":     "POST /v1/zones HTTP/1.1\r\nHost: x\r\n" + authorization + "Content-Length: 100\r\n\r\n{\"name\":",
		"idle after one":  "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", p.addr)
			p.must(err)
			defer conn.Close()
			_, err = io.WriteString(conn, sent)
			p.must(err)
			p.must(conn.SetReadDeadline(time.Now().Add(10 * time.Second)))
			if _, err := io.Copy(io.Discard, conn); err != nil {
				t.Errorf("the server did not close: %v", err)
			}
		})
	}
	// A poll may wait for longer than a request may take.
	start := time.Now()
	if a := p.request("node", "GET", "/v1/node/config?have=0&wait=1", ""); a.status != 204 || time.Since(start) < time.Second {
		t.Errorf("a poll that waits for a second: %d after %s", a.status, time.Since(start))
	}
	p.until("every connection is gone", func() bool { return open.Load() <= 1 })
	t.Run("header too large", func(t *testing.T) {
		conn, err := net.Dial("tcp", p.addr)
		p.must(err)
		defer conn.Close()
		_, _ = fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\nX-A: %s\r\n\r\n", strings.Repeat("a", 80<<10))
		buf := make([]byte, 12)
		if _, err := io.ReadFull(conn, buf); err == nil && string(buf) != "HTTP/1.1 431" {
			t.Errorf("answered %q", buf)
		}
	})
}

func TestHealthAndMetrics(t *testing.T) {
	reasons := make(chan []api.Problem, 1)
	p := newPlane(t, func(c *planeConfig) {
		c.ready = func(context.Context) []api.Problem {
			select {
			case r := <-reasons:
				return r
			default:
				return nil
			}
		}
	})
	if a := p.request("anonymous", "GET", "/healthz", ""); a.status != 200 || a.body != "ok\n" {
		t.Errorf("healthz %s", a.wire)
	}
	if a := p.request("anonymous", "GET", "/readyz", ""); a.status != 200 || a.body != "ready\n" {
		t.Errorf("readyz %s", a.wire)
	}
	reasons <- []api.Problem{{Object: "live artefact", Code: "signing_key_mismatch", Message: "it does not open"}}
	if a := p.request("anonymous", "GET", "/readyz", ""); a.status != 503 || !strings.Contains(a.body, "signing_key_mismatch") {
		t.Errorf("not ready: %s", a.wire)
	}
	p.publish("one")
	p.request("node", "GET", "/v1/node/config?have=0", "")
	p.request("node", "GET", "/v1/node/config?have=1", "")
	p.request("node", "GET", "/v1/node/config?have=bad", "")
	a := p.request("anonymous", "GET", "/metrics", "")
	for _, line := range []string{
		`guardyn_polls_total{result="artefact"} 1`, `guardyn_polls_total{result="current"} 1`, `guardyn_polls_total{result="refused"} 1`,
		`guardyn_applies_total{outcome="applied"} 1`, "guardyn_nodes 2", "guardyn_nodes_behind 2", "guardyn_live_version 1", "guardyn_builds_total",
		`guardyn_http_requests_total{method="POST",route="/v1/zones",status="201"} 1`,
	} {
		if !strings.Contains(a.body, line) {
			t.Errorf("metrics lack %s", line)
		}
	}
	if a := p.request("anonymous", "POST", "/metrics", ""); a.status != 401 {
		t.Errorf("POST /metrics: %d", a.status)
	}
}
