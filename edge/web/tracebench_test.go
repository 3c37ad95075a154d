package web

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/guardyn-edge/guardyn/zone"
)

// BenchmarkTrace is a request through a node that traces none, knows nobody who takes traces, or traces shares of all. Client, node
// and origin are in one process.
func BenchmarkTrace(b *testing.B) {
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	o := scriptedOrigin(b, func(_ int, c net.Conn, in *bufio.Reader) {
		for {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			io.Copy(io.Discard, r.Body)
			c.Write(answer)
		}
	})
	for _, row := range []struct {
		name  string
		takes bool
		share zone.Percent
		head  string
	}{
		{"nobody", false, 0, ""},
		{"none", true, 0, ""},
		{"none_continued", true, 0, "traceparent: " + someFrom + "\r\ntracestate: a=1\r\n"},
		{"1%", true, 1_00, ""},
		{"all", true, 100_00, ""},
	} {
		b.Run(row.name, func(b *testing.B) {
			n := startNode(b, func(c *Config) {
				if row.takes {
					c.Trace = func(*Trace) {}
				}
			})
			n.publish(site(o, sampled(row.share)))
			c, err := net.Dial("tcp", n.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			request := []byte("GET / HTTP/1.1\r\nHost: www.example.com\r\n" + row.head + "\r\n")
			in := make([]byte, 4096)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Write(request); err != nil {
					b.Fatal(err)
				}
				if n, err := c.Read(in); err != nil || n < 12 || string(in[9:12]) != "200" {
					b.Fatalf("%q, %v", in[:n], err)
				}
			}
		})
	}
}
