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
	"testing/iotest"
)

func TestConnectionOfAnAnswer(t *testing.T) {
	const refused = "refused" // RFC 9112 §2.2, §5.2
	const fields = "X-Secret: 1\r\nX-Other: 2\r\nX-Stays: 3\r\n"
	for _, tc := range []struct {
		name, connection string
		passes           string
	}{
		{"nothing", "", "X-Other X-Secret X-Stays"},
		{"close alone", "Connection: close\r\n", "X-Other X-Secret X-Stays"},
		{"a field", "Connection: X-Secret\r\n", "X-Other X-Stays"},
		{"a field and close", "Connection: X-Secret, close\r\n", "X-Other X-Stays"},
		{"close and a field", "connection:Close,x-secret\r\n", "X-Other X-Stays"},
		{"two lines", "Connection: X-Secret\r\nConnection: close\r\n", "X-Other X-Stays"},
		{"two lines, close first", "CONNECTION: close\r\nConnection: X-Secret\r\nConnection: X-Other\r\n", "X-Stays"},
		{"a continued line", "Connection: X-Secret,\r\n close\r\n", refused},
		{"lines ended by LF", "Connection: X-Secret, close\n", refused},
		{"a field whose name has close in it", "Connection: X-Secret, X-Close\r\nX-Close: 1\r\n", "X-Other X-Stays"},
		{"the node's own names", "Connection: X-Guardyn-Version, close, X-Secret\r\nX-Guardyn-Version: 9\r\n", "X-Other X-Stays"},
	} {
		for _, place := range []string{"before", "after"} {
			t.Run(tc.name+", "+place, func(t *testing.T) {
				head := tc.connection + fields
				if place == "after" {
					head = fields + tc.connection
				}
				n := startNode(t)
				n.publish(site(rawOrigin(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"+head+"\r\nok")))
				got := n.get("/")
				if tc.passes == refused {
					if got.status != 502 {
						t.Errorf("got %+v, want 502", got)
					}
					return
				}
				if got.status != 200 || got.body != "ok" {
					t.Fatalf("got %+v", got)
				}
				if names := ownNames(got.header); names != tc.passes {
					t.Errorf("the client got %s, want %s", names, tc.passes)
				}
			})
		}
	}
}

// ownNames are the names of h that begin with X, sorted.
func ownNames(h http.Header) string {
	var names []string
	for name := range h {
		if strings.HasPrefix(name, "X") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestConnectionOfLaterAnswers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	// One connection, whose answers come in pieces of an octet, some with a body that looks like a head.
	const bodied = "HTTP/1.1 200 OK\r\nContent-Length: 46\r\nX-N: 1\r\n\r\nHTTP/1.1 200 OK\r\nConnection: X-N, X-M, close\r\n"
	answers := []string{
		bodied, bodied,
		"HTTP/1.1 204 No Content\r\nConnection: X-M, keep-alive\r\nX-M: 1\r\nX-N: 1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nConnection: X-M, close\r\nX-M: 1\r\nX-N: 1\r\n\r\n",
	}
	ended := make(chan error, 1)
	go func() {
		ended <- func() error {
			c, err := l.Accept()
			if err != nil {
				return err
			}
			defer c.Close()
			b := bufio.NewReader(c)
			for _, a := range answers {
				if _, err := http.ReadRequest(b); err != nil {
					return err
				}
				if _, err := io.Copy(struct{ io.Writer }{c}, iotest.OneByteReader(strings.NewReader(a))); err != nil {
					return err
				}
			}
			return nil
		}()
	}()
	t.Cleanup(func() { l.Close() })
	n := startNode(t)
	n.publish(site(l.Addr().String()))
	for i := range answers {
		got := n.get("/")
		if names := ownNames(got.header); names != "X-N" || got.status >= 300 {
			t.Errorf("answer %d: got %+v", i+1, got)
		}
	}
	l.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestConnectionOfInterimAndSwitchingAnswers(t *testing.T) {
	read := func(t *testing.T, answer, lines string) (heads []http.Header, statuses []int) {
		n := startNode(t)
		n.publish(site(rawOrigin(t, answer)))
		c := n.dial()
		fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: www.example.com\r\n%s\r\n", lines)
		b := bufio.NewReader(c)
		for {
			res, err := http.ReadResponse(b, nil)
			if err != nil {
				t.Fatal(err)
			}
			heads, statuses = append(heads, res.Header), append(statuses, res.StatusCode)
			if res.StatusCode >= 200 || res.StatusCode == http.StatusSwitchingProtocols {
				return heads, statuses
			}
		}
	}
	for _, connection := range []string{"X-Secret", "X-Secret, close"} {
		t.Run("interim, "+connection, func(t *testing.T) {
			heads, statuses := read(t, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: "+connection+
				"\r\nX-Secret: 1\r\nX-Guardyn-Version: 9\r\nKeep-Alive: 5\r\n\r\n"+
				"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-App: 1\r\n\r\n", "")
			if fmt.Sprint(statuses) != "[103 200]" || len(heads[0]) != 1 || heads[0].Get("Link") != "</a>" || ownNames(heads[1]) != "X-App" {
				t.Errorf("got %v, %v", statuses, heads)
			}
		})
		t.Run("final, "+connection, func(t *testing.T) {
			heads, statuses := read(t, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"+
				"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-App: 1\r\nX-Secret: 1\r\nConnection: "+connection+"\r\n\r\n", "")
			if fmt.Sprint(statuses) != "[103 200]" || ownNames(heads[1]) != "X-App" {
				t.Errorf("got %v, %v", statuses, heads)
			}
		})
		t.Run("switching, "+connection, func(t *testing.T) {
			heads, statuses := read(t, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade, "+connection+
				"\r\nX-Secret: 1\r\nX-App: 1\r\nKeep-Alive: 5\r\n\r\n", "Connection: Upgrade\r\nUpgrade: websocket\r\n")
			if strings.Contains(connection, "close") {
				if fmt.Sprint(statuses) != "[502]" { // it cannot both switch and close
					t.Errorf("got %v, %v", statuses, heads)
				}
				return
			}
			h := heads[0]
			if fmt.Sprint(statuses) != "[101]" || ownNames(h) != "X-App" || h.Get("Keep-Alive") != "" ||
				h.Get("Connection") != "Upgrade" || h.Get("Upgrade") != "websocket" {
				t.Errorf("got %v, %v", statuses, h)
			}
		})
	}
	t.Run("trailers", func(t *testing.T) {
		n := startNode(t)
		n.publish(site(rawOrigin(t, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: X-Secret, close\r\nTrailer: X-Secret\r\n\r\n0\r\nX-Secret: 1\r\nX-Sum: 2\r\n\r\n")))
		c := n.dial()
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\n\r\n")
		raw, err := io.ReadAll(c)
		if err != nil || strings.Contains(string(raw), "Secret") || !strings.Contains(string(raw), "X-Sum: 2") {
			t.Errorf("got %q, %v", raw, err)
		}
	})
}
