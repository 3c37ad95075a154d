package web

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/zone"
)

// The origin takes longer than what a client is left unattended for, and the client does not wait for it with what it has to
// say next.
func TestSlowOriginOfAPipeliningClient(t *testing.T) {
	o := startOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		<-time.After(2 * attendAfter)
		fmt.Fprintf(w, "%s %s", r.Method, r.RequestURI)
	})
	n := startNode(t)
	n.publish(site(o.address()))
	c := n.dial()
	const last = "POST /third HTTP/1.1\r\nHost: www.example.com\r\nContent-Length: 1\r\nConnection: close\r\n\r\nx"
	for _, text := range []string{"GET /first HTTP/1.1\r\nHost: www.example.com\r\n\r\nG", "ET /second HTTP/1.1\r\nHost: www.example.com\r\n\r\n", last} {
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, r := range readReplies(t, c) {
		got = append(got, r.body)
	}
	if want := "GET /first, GET /second, POST /third"; strings.Join(got, ", ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A client may send before the origin has agreed to leave HTTP, though it should not.
func TestSlowOriginOfATunnel(t *testing.T) {
	n := startNode(t)
	n.publish(site(scriptedOrigin(t, func(_ int, c net.Conn, b *bufio.Reader) {
		if _, err := http.ReadRequest(b); err != nil {
			return
		}
		<-time.After(2 * attendAfter)
		io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		io.CopyN(c, b, 5) //nolint:errcheck // the client tells
	})))
	c := n.dial()
	if _, err := io.WriteString(c, "GET /ws HTTP/1.1\r\nHost: www.example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nearly"); err != nil {
		t.Fatal(err)
	}
	b := bufio.NewReader(c)
	if res, err := http.ReadResponse(b, nil); err != nil || res.StatusCode != 101 {
		t.Fatalf("%+v, %v", res, err)
	}
	echo := make([]byte, 5)
	if _, err := io.ReadFull(b, echo); err != nil || string(echo) != "early" {
		t.Errorf("%q, %v", echo, err)
	}
}

// A client that leaves ends what is waited for on its behalf: a connection to the origin, by either protocol.
func TestClientThatLeavesAmidTheConnecting(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	for _, lines := range []string{"", "Content-Type: application/grpc\r\n"} {
		n := startNode(t)
		n.publish(site(silent.Addr().String(), scheme(zone.SchemeHTTPS)))
		c := n.dial()
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: www.example.com\r\n"+lines+"\r\n")
		origin, err := silent.Accept() // and never shakes hands
		if err != nil {
			t.Fatal(err)
		}
		c.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, origin) // until the node hangs up
		origin.Close()
		if got := readReplies(t, c); len(got) != 0 {
			t.Errorf("%q: got %+v, which nobody said", lines, got)
		}
		n.end()
		if m := n.Metrics(); m.OriginErrors != 0 || m.Requests[0] != 1 {
			t.Errorf("%q: got %+v, want one request whose client left", lines, m)
		}
	}
}
