package api

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/control"
)

// A panic in one request is that request's failure: 500 when nothing was answered, a cut connection when part
// of an answer is out. The server goes on.
func TestPanic(t *testing.T) {
	h, err := NewHandler(&control.Service{}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	h.routes.add(&route{method: http.MethodGet, pattern: "/before", access: public, serve: func(*call) error { panic("secret of the program") }})
	h.routes.add(&route{method: http.MethodGet, pattern: "/after", access: public, serve: func(c *call) error {
		w := &exportWriter{c: c}
		if _, err := w.Write(make([]byte, exportChunk+1)); err != nil {
			return err
		}
		panic("half way")
	}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := NewHTTPServer(h, nil)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	defer func() {
		s.Close()
		<-served
	}()
	for range 2 {
		resp, err := http.Get("http://" + l.Addr().String() + "/before")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusInternalServerError || strings.Contains(string(body), "secret") || !strings.Contains(string(body), `"internal"`) {
			t.Errorf("%d %s, %v", resp.StatusCode, body, err)
		}
		resp, err = http.Get("http://" + l.Addr().String() + "/after")
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.ReadAll(resp.Body)
		resp.Body.Close()
		if err == nil {
			t.Error("half an answer looks whole")
		}
	}
}
