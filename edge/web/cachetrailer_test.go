package web

import (
	"bufio"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/guardyn-edge/guardyn/edge/cache"
)

// trailed is an answer with what came behind it.
func trailed(t *testing.T, n *node) (status, body string, trailer http.Header) {
	t.Helper()
	conn := n.dial()
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: www.example.com\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return ownCacheStatus(res.Header), string(b), res.Trailer
}

// TestCacheTrailers: an answer with a trailer is not stored, whether or not it was announced, and who asked has it.
func TestCacheTrailers(t *testing.T) {
	for _, tc := range []struct{ name, answer string }{
		{"announced", maxAge + " | Transfer-Encoding: chunked | Trailer: X-Sum | trailer=X-Sum: 1"},
		{"unannounced", maxAge + " | Transfer-Encoding: chunked | trailer=X-Sum: 1"},
		{"of an answer without a body", maxAge + " | Transfer-Encoding: chunked | trailer=X-Sum: 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n, o, _ := cachingNode(t)
			if tc.name == "of an answer without a body" {
				o.empty = true
			}
			for i := range 3 {
				o.next(tc.answer)
				status, body, trailer := trailed(t, n)
				want := "body " + strconv.Itoa(i+1)
				if o.empty {
					want = ""
				}
				if status != "uri-miss" || body != want || trailer.Get("X-Sum") != "1" {
					t.Errorf("answer %d: %s %q, trailer %v", i+1, status, body, trailer)
				}
			}
		})
	}
	t.Run("beside a stale answer", func(t *testing.T) {
		n, o, c := cachingNode(t)
		for i, turn := range []turn{
			{origin: "200 | Cache-Control: max-age=60, stale-while-revalidate=60", want: "uri-miss"},
			{wait: 60, origin: maxAge + " | Transfer-Encoding: chunked | trailer=X-Sum: 1", want: "hit | body=body 1"},
			{origin: maxAge, want: "uri-miss | body=body 3"},
		} {
			runTurn(t, i+1, turn, n, o, c)
		}
	})
}

// TestCacheTrailersOverHTTP2: behind a body whose length was told, too.
func TestCacheTrailersOverHTTP2(t *testing.T) {
	var asked atomic.Int64
	o, _ := http2Origin(t, false, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Cache-Control", "max-age=60")
		if r.URL.Path == "/known" {
			w.Header().Set("Content-Length", "4")
		}
		io.WriteString(w, "body")
		w.(http.Flusher).Flush()
		w.Header().Set(http.TrailerPrefix+"X-Sum", "1")
	})
	a := newAuthority(t)
	n := startNode(t, append(withCache(cache.MinMemory), withTLS)...)
	n.publish(site(o.Listener.Addr().String(), scheme("h2c"), tlsHost("www.example.com", a.issue(false, "www.example.com"))))
	client := n.client(a, true)
	for _, path := range []string{"/known", "/unknown"} {
		before := asked.Load()
		for range 2 {
			res, body := n.fetch(client, "https://www.example.com"+path, "www.example.com")
			if body != "body" || res.Trailer.Get("X-Sum") != "1" {
				t.Errorf("%s: %q, trailer %v", path, body, res.Trailer)
			}
		}
		if got := asked.Load() - before; got != 2 {
			t.Errorf("%s: the origin was asked %d times", path, got)
		}
	}
}
