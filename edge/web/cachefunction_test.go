package web

import (
	"bufio"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/guardyn-edge/guardyn/internal/wat"
	"github.com/guardyn-edge/guardyn/zone"
)

// TestCacheOfFunctions: what a function answers is kept as what an origin answers is.
func TestCacheOfFunctions(t *testing.T) {
	for _, tc := range []struct {
		name, head string
		kept       bool
	}{
		{"it says for how long", "Cache-Control: max-age=60\nContent-Type: text/plain\n", true},
		{"it says nothing", "Content-Type: text/plain\n", false},
		{"it is private", "Cache-Control: private\nContent-Type: text/plain\n", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n, _, _ := cachingNode(t, with(t, "f", answers(tc.head+"\nanswered")))
			for i, want := range []string{"uri-miss", map[bool]string{true: "hit", false: "uri-miss"}[tc.kept]} {
				if got := n.get("/f"); got.status != 200 || got.body != "answered" || ownCacheStatus(got.header) != want {
					t.Errorf("answer %d: %+v, want %s", i+1, got, want)
				}
			}
		})
	}
}

// TestCacheOverHTTP2: from a client by HTTP/2 to an origin by HTTP/2.
func TestCacheOverHTTP2(t *testing.T) {
	var asked atomic.Int64
	big := strings.Repeat("0123456789abcdef", 1<<14)
	o, _ := http2Origin(t, false, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Etag", `"a"`)
		switch r.URL.Path {
		case "/known":
			w.Header().Set("Content-Length", strconv.Itoa(len(big)))
			io.WriteString(w, big)
		case "/unknown":
			for at := 0; at < len(big); at += 1 << 14 {
				io.WriteString(w, big[at:at+1<<14])
				w.(http.Flusher).Flush()
			}
		case "/broken":
			io.WriteString(w, big)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
	})
	a := newAuthority(t)
	n := startNode(t, append(withCache(64<<20), withTLS)...)
	n.publish(site(o.Listener.Addr().String(), scheme(zone.SchemeH2C), tlsHost("www.example.com", a.issue(false, "www.example.com"))))
	client := n.client(a, true)
	for _, path := range []string{"/known", "/unknown", "/empty"} {
		want := map[string]string{"/known": big, "/unknown": big}[path]
		before := asked.Load()
		for _, says := range []string{"uri-miss", "hit"} {
			res, body := n.fetch(client, "https://www.example.com"+path, "www.example.com")
			if res.ProtoMajor != 2 || body != want || ownCacheStatus(res.Header) != says {
				t.Errorf("%s: %s with %d octets, %v", path, res.Proto, len(body), res.Header)
			}
		}
		if n := asked.Load() - before; n != 1 {
			t.Errorf("%s: the origin was asked %d times", path, n)
		}
	}
	res, err := client.Get("https://www.example.com/broken")
	if err == nil {
		_, err = io.ReadAll(res.Body)
		res.Body.Close()
	}
	if err == nil {
		t.Error("an answer without its end was taken for the whole")
	}
	if stored := n.config.Cache.Stats().Stored; stored != 3 {
		t.Errorf("%d answers are stored", stored)
	}
}

// TestCacheKeyHasWhatFunctionsSee: what a client can say without being asked for another key does not reach a function whose answer is kept.
func TestCacheKeyHasWhatFunctionsSee(t *testing.T) {
	n := startNode(t)
	n.publish(site("192.0.2.1:1", with(t, "f", wat.Echo)))
	seen := func(request string) string {
		c := n.dial()
		defer c.Close()
		io.WriteString(c, request+"Connection: close\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		variables, _ := environment(t, string(body))
		slices.Sort(variables)
		return strings.Join(variables, "\n")
	}
	want := seen("GET /f?q HTTP/1.1\r\nHost: www.example.com\r\n")
	for _, tc := range []struct{ name, request string }{
		{"a port", "GET /f?q HTTP/1.1\r\nHost: www.example.com:6666\r\n"},
		{"the host in another case", "GET /f?q HTTP/1.1\r\nHost: WWW.example.COM\r\n"},
		{"an absolute target", "GET http://www.example.com:6666/f?q HTTP/1.1\r\nHost: www.example.com\r\n"},
		{"an older version", "GET /f?q HTTP/1.0\r\nHost: www.example.com\r\n"},
		{"the path in another form", "GET /x/../%66?q HTTP/1.1\r\nHost: www.example.com\r\n"},
		{"whom it is forwarded for", "GET /f?q HTTP/1.1\r\nHost: www.example.com\r\nX-Forwarded-Host: other.example\r\nX-Forwarded-Port: 6666\r\nForwarded: host=other.example\r\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := seen(tc.request); got != want {
				t.Errorf("the function saw\n%s\nwant\n%s", got, want)
			}
		})
	}
}
