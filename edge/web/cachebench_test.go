package web

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/zone"
)

// BenchmarkCacheHit compares a node that has 1 KiB in its cache with the library's server that has it in a map, over loopback, the
// client in the same process. Compare the two figures of one run.
func BenchmarkCacheHit(b *testing.B) {
	body := []byte(strings.Repeat("x", 1024))
	o := startOrigin(b, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		w.Header().Set("Content-Type", "text/plain")
		w.Write(body)
	})
	pages := map[string][]byte{"/index.html": body}
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=3600")
		w.Header().Set("Content-Type", "text/plain")
		w.Write(pages[r.URL.Path])
	}))
	b.Cleanup(plain.Close)
	n := startNode(b, withCache(0)...)
	n.publish(site(o.address(), func(z *zone.Zone) { z.Ceilings.RequestRate = 100_000_000 }))
	n.get("/index.html")
	for _, server := range []struct{ name, addr string }{{"library", plain.Listener.Addr().String()}, {"node", n.Addr().String()}} {
		b.Run(server.name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				conn, err := net.Dial("tcp", server.addr)
				if err != nil {
					b.Error(err)
					return
				}
				defer conn.Close()
				in := bufio.NewReader(conn)
				request := []byte("GET /index.html HTTP/1.1\r\nHost: www.example.com\r\n\r\n")
				for pb.Next() {
					if _, err := conn.Write(request); err != nil {
						b.Error(err)
						return
					}
					if err := skimAnswer(in, 1024); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// skimAnswer reads an answer whose body has n octets, with as little as can be done.
func skimAnswer(in *bufio.Reader, n int) error {
	line, err := in.ReadSlice('\n')
	if err != nil || !strings.HasPrefix(string(line), "HTTP/1.1 200") {
		return fmt.Errorf("%q, %w", line, err)
	}
	for len(line) > 2 {
		if line, err = in.ReadSlice('\n'); err != nil {
			return err
		}
	}
	_, err = io.CopyN(io.Discard, in, int64(n))
	return err
}
