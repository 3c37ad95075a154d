package api_test

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/net/http2"

	"github.com/guardyn-edge/guardyn/api"
)

// Bodies that are held as a whole are bounded, and so is one user's part of them; small ones pass beside them.
func TestLargeBodiesAreBounded(t *testing.T) {
	p := newPlane(t)
	_, err := p.client("editor").CreateZone(t.Context(), apiNewZone("example.com"))
	p.must(err)
	// upload begins to send a large list and holds it.
	upload := func() net.Conn {
		c, err := net.Dial("tcp", p.addr)
		p.must(err)
		t.Cleanup(func() { c.Close() })
		_, err = fmt.Fprintf(c, "PUT /v1/zones/example.com/lists/big HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n",
			p.tokens["editor"], 2<<20)
		p.must(err)
		return c
	}
	status := func(c net.Conn) int {
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		p.must(err)
		return res.StatusCode
	}
	var held []net.Conn
	for range 4 {
		c := upload()
		if got := status(c); got != http.StatusContinue { // it is being read
			t.Fatalf("a large body within the bound: %d", got)
		}
		held = append(held, c)
	}
	if got := status(upload()); got != http.StatusServiceUnavailable {
		t.Errorf("one beyond it: %d", got)
	}
	if a := p.request("editor", "PUT", "/v1/zones/example.com/lists/small", `{"kind":"ip","items":["192.0.2.1"]}`); a.status != http.StatusOK {
		t.Errorf("a small one beside them: %d %s", a.status, a.body)
	}
	for _, segment := range []string{"lists/big", "functions/big"} {
		a := p.request("editor", "PUT", "/v1/zones/example.com/"+segment, "", fmt.Sprintf("Content-Length: %d", api.MaxLargeBody+1))
		if a.status != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: a body over its own bound: %d", segment, a.status)
		}
	}
	body := `{"kind":"string","items":["` + strings.Repeat("x", 1000) + `"` + strings.Repeat(" ", 2<<20)
	_, err = io.WriteString(held[0], body[:2<<20-2]+"]}")
	p.must(err)
	if got := status(held[0]); got != http.StatusOK {
		t.Errorf("a body that came: %d", got)
	}
	held[1].Close()
	for range 2 {
		c := upload()
		p.until("a place is free", func() bool {
			got := status(c)
			if got != http.StatusContinue {
				c = upload()
			}
			return got == http.StatusContinue
		})
	}
}

// By HTTP/2 a connection has a bound of requests under way.
func TestStreamsOfTheAPI(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config = api.NewHTTPServer(http.NotFoundHandler(), nil)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	conn, err := tls.Dial("tcp", s.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	framer := http2.NewFramer(conn, conn)
	if _, err = io.WriteString(conn, http2.ClientPreface); err == nil {
		err = framer.WriteSettings()
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := framer.ReadFrame()
	if err != nil {
		t.Fatal(err)
	}
	settings, ok := f.(*http2.SettingsFrame)
	if !ok {
		t.Fatalf("got %v", f)
	}
	if n, ok := settings.Value(http2.SettingMaxConcurrentStreams); !ok || n != 64 {
		t.Errorf("%d streams, want 64", n)
	}
}
