package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// startOrigin runs demo origin 7 until the test ends.
func startOrigin(t *testing.T) *demoOrigin {
	t.Helper()
	o, err := startDemoOrigin(t.Context(), 7, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := o.Wait(); err != nil {
			t.Error(err)
		}
	})
	return o
}

// askOrigin sends one request, with fields as "Name: value".
func askOrigin(t *testing.T, o *demoOrigin, method, target string, fields ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+o.Addr()+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		req.Header.Set(name, value)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func TestDemoOriginAnswersByPath(t *testing.T) {
	o := startOrigin(t)
	const help = 400
	tests := []struct {
		name, method, target string
		fields               []string
		status               int
		says                 string
	}{
		{"any path", "GET", "/a/b?c=d", []string{"X-Forwarded-For: 192.0.2.1"}, 200, "Hello from demo origin 7.\nGET \"/a/b?c=d\" for host \"" + o.Addr() + "\", forwarded for \"192.0.2.1\" by 127.0.0.1:"},
		{"any method", "DELETE", "/", nil, 200, "DELETE \"/\""},
		{"fields", "GET", "/headers", []string{"B-Field: two", "A-Field: one"}, 200, "Host: " + o.Addr() + "\nA-Field: one\n"},
		{"health", "GET", "/healthz", nil, 200, "ok\n"},
		{"status", "GET", "/status/418", nil, 418, "Demo origin 7 answers 418.\n"},
		{"a status without a body", "GET", "/status/204", nil, 204, ""},
		{"no status", "GET", "/status/99", nil, help, "want 200 to 599"},
		{"no number", "GET", "/status/ok", nil, help, "want 200 to 599"},
		{"slow", "GET", "/slow?for=1ms", nil, 200, "answers after 1ms"},
		{"too slow", "GET", "/slow?for=61s", nil, help, "want a duration of 0s to 1m0s"},
		{"slow for less than no time", "GET", "/slow?for=-1s", nil, help, "want a duration"},
		{"events", "GET", "/events?count=2&every=10ms", nil, 200, "id: 1\ndata: event 1 of 2 from demo origin 7\n\nid: 2\ndata: event 2 of 2 from demo origin 7\n\n"},
		{"all that is wrong with events", "GET", "/events?count=0&every=1ms", nil, help, "count \"0\": want 1 to 1000\nevery \"1ms\": want"},
		{"an upgrade that is none", "GET", "/websocket", nil, 426, "WebSocket"},
		{"cached", "GET", "/cached", nil, 200, "Answer 1 of demo origin 7.\n"},
		{"cached, again", "GET", "/cached", nil, 200, "Answer 2 of demo origin 7.\n"},
		{"told by GET", "GET", "/demo/fail", nil, 405, "by POST"},
		{"told through a node", "POST", "/demo/fail", []string{"X-Forwarded-For: 192.0.2.1"}, 403, "at its own address"},
		{"told what it cannot", "POST", "/demo/fail?status=200", nil, help, "want 500 to 599"},
		{"told what is too slow", "POST", "/demo/slow?by=2m", nil, help, "want a duration"},
		{"told nothing", "POST", "/demo/dance", nil, 200, "Hello"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			resp, body := askOrigin(t, o, tt.method, tt.target, tt.fields...)
			if resp.StatusCode != tt.status || !strings.Contains(body, tt.says) {
				t.Errorf("answered %d %q, want %d %q", resp.StatusCode, body, tt.status, tt.says)
			}
			if got := resp.Header.Get("Demo-Origin"); got != "7" {
				t.Errorf("Demo-Origin is %q", got)
			}
		})
	}
	if resp, _ := askOrigin(t, o, "GET", "/cached"); resp.Header.Get("Cache-Control") != "public, max-age=60" || resp.Header.Get("Cache-Tag") != "demo" {
		t.Errorf("what may be kept has %v", resp.Header)
	}
}

func TestDemoOriginDoesAsItIsTold(t *testing.T) {
	o := startOrigin(t)
	status := func() int {
		t.Helper()
		resp, _ := askOrigin(t, o, "GET", "/healthz")
		return resp.StatusCode
	}
	askOrigin(t, o, "POST", "/demo/fail")
	if got := status(); got != 503 {
		t.Errorf("told to fail it answers %d", got)
	}
	askOrigin(t, o, "POST", "/demo/fail?status=500")
	if got := status(); got != 500 {
		t.Errorf("told to fail with 500 it answers %d", got)
	}
	askOrigin(t, o, "POST", "/demo/slow?by=50ms")
	if began := time.Now(); status() != 500 || time.Since(began) < 50*time.Millisecond {
		t.Errorf("told to be slow it answered after %s", time.Since(began))
	}
	askOrigin(t, o, "POST", "/demo/mend")
	if got := status(); got != 200 {
		t.Errorf("mended it answers %d", got)
	}
}

func TestDemoOriginSpeaksWebSocket(t *testing.T) {
	o, err := startDemoOrigin(t.Context(), 7, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := websocket.Dial(t.Context(), "ws://"+o.Addr()+"/websocket", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	for _, kind := range []websocket.MessageType{websocket.MessageText, websocket.MessageBinary} {
		if err := c.Write(t.Context(), kind, []byte("hello")); err != nil {
			t.Fatal(err)
		}
		got, answer, err := c.Read(t.Context())
		if err != nil || got != kind || string(answer) != "demo origin 7: hello" {
			t.Errorf("answered %v %q %v", got, answer, err)
		}
	}
	closed := make(chan error, 1)
	go func() { closed <- o.Close(context.Background()) }()
	_, _, err = c.Read(t.Context())
	var end websocket.CloseError
	if !errors.As(err, &end) || end.Code != websocket.StatusGoingAway {
		t.Errorf("the end is told as %v", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// TestDemoOriginDoesNotWaitForTheDeaf closes an origin whose client has a WebSocket and reads nothing.
func TestDemoOriginDoesNotWaitForTheDeaf(t *testing.T) {
	o, err := startDemoOrigin(t.Context(), 7, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := websocket.Dial(t.Context(), "ws://"+o.Addr()+"/websocket", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	if err := o.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, _, err := c.Read(t.Context()); err == nil {
		t.Error("the connection is open")
	}
}

// TestDemoOriginEndsWhatStreams closes an origin in the middle of an answer that is slow and of one that streams.
func TestDemoOriginEndsWhatStreams(t *testing.T) {
	for _, target := range []string{"/events?count=1000&every=1m", "/slow?for=1m"} {
		t.Run(target, func(t *testing.T) {
			o, err := startDemoOrigin(t.Context(), 7, "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			conn, err := net.Dial("tcp", o.Addr())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, "GET "+target+" HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			in := bufio.NewReader(conn)
			if strings.HasPrefix(target, "/events") {
				if _, err := in.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
			if err := o.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := io.ReadAll(in); err != nil {
				t.Error(err)
			}
		})
	}
}
