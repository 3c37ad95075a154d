package web

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
)

func TestAnswersThatTheOriginBreaksOff(t *testing.T) {
	for _, tc := range []struct {
		name, answer string
		want         string // of the answer, all that the client gets after the header's fields
		status       int
		broken       bool
	}{
		{"a length, some octets", "HTTP/1.1 200 OK\r\nX-App: 1\r\nContent-Length: 200\r\n\r\nab", "ab", 200, true},
		{"a length, no octet", "HTTP/1.1 404 Not Found\r\nX-App: 1\r\nContent-Length: 200\r\n\r\n", "", 404, true},
		{"many octets", "HTTP/1.1 200 OK\r\nX-App: 1\r\nContent-Length: 100001\r\n\r\n" + strings.Repeat("a", 100000), strings.Repeat("a", 100000), 200, true},
		{"chunks", "HTTP/1.1 200 OK\r\nX-App: 1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", "2\r\nab\r\n", 200, true},
		{"within a chunk", "HTTP/1.1 200 OK\r\nX-App: 1\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nab", "2\r\nab\r\n", 200, true},
		{"a bad chunk", "HTTP/1.1 200 OK\r\nX-App: 1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\nzz\r\n", "2\r\nab\r\n", 200, true},
		{"events", "HTTP/1.1 200 OK\r\nX-App: 1\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", "2\r\nab\r\n", 200, true},
		{"whole", "HTTP/1.1 200 OK\r\nX-App: 1\r\nContent-Length: 2\r\n\r\nab", "ab", 200, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var access, operator logBuffer
			n := startNode(t, func(c *Config) {
				c.AccessLog = slog.New(slog.NewTextHandler(&access, nil))
				c.Logger = slog.New(slog.NewTextHandler(&operator, nil))
			})
			n.publish(site(rawOrigin(t, tc.answer)))
			c := n.dial()
			lines := "Host: www.example.com\r\n"
			if !tc.broken {
				lines += "Connection: close\r\n"
			}
			io.WriteString(c, "GET / HTTP/1.1\r\n"+lines+"\r\n")
			raw, err := io.ReadAll(c)
			if err != nil {
				t.Fatal(err)
			}
			head, body, _ := strings.Cut(string(raw), "\r\n\r\n")
			if !strings.HasPrefix(head, fmt.Sprintf("HTTP/1.1 %d ", tc.status)) || !strings.Contains(head, "X-App: 1") || body != tc.want {
				t.Errorf("got %.300q", raw)
			}
			n.stop()
			if err := <-n.ended; err != nil {
				t.Error(err)
			}
			n.ended <- nil
			m := n.Metrics()
			if told := strings.Contains(access.b.String(), "the origin broke off its answer after "); told != tc.broken || (m.OriginErrors == 1) != tc.broken {
				t.Errorf("%d errors of origins; logged %s", m.OriginErrors, access.b.String())
			}
			if m.Requests[tc.status/100] != 1 || operator.b.Len() > 0 {
				t.Errorf("got %+v; the operator is told %s", m, operator.b.String())
			}
		})
	}
}

func TestAnswerBrokenOffBeforeItsHead(t *testing.T) {
	for _, answer := range []string{"", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"} {
		n := startNode(t)
		n.publish(site(rawOrigin(t, answer)))
		if got := n.get("/"); got.status != 502 || n.Metrics().OriginErrors != 1 {
			t.Errorf("%q: got %+v", answer, got)
		}
	}
}
