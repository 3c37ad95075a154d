package api_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// BenchmarkPoll204 asks over real loopback connections, authenticated, for what is current; the clients share
// the machine. It reports requests/s over all connections.
func BenchmarkPoll204(b *testing.B) {
	for _, conns := range []int{1, 64} {
		b.Run(fmt.Sprintf("connections=%d", conns), func(b *testing.B) { benchPoll(b, conns) })
	}
}

func benchPoll(b *testing.B, conns int) {
	p := newPlane(b)
	res := p.publish("one")
	request := fmt.Sprintf("GET /v1/node/config?have=%d&generation=%d&epoch=1 HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nUser-Agent: gdn\r\n\r\n",
		res.Version, res.Generation, p.addr, p.tokens["node"])
	var (
		left    atomic.Int64
		clients sync.WaitGroup
	)
	left.Store(int64(b.N))
	b.ReportAllocs()
	b.ResetTimer()
	for range conns {
		clients.Go(func() {
			conn, err := net.Dial("tcp", p.addr)
			if err != nil {
				b.Error(err)
				return
			}
			defer conn.Close()
			r := bufio.NewReader(conn)
			for left.Add(-1) >= 0 {
				if _, err := io.WriteString(conn, request); err != nil {
					b.Error(err)
					return
				}
				status, err := r.ReadString('\n')
				if err != nil || !strings.HasPrefix(status, "HTTP/1.1 204 ") {
					b.Errorf("%q, %v", status, err)
					return
				}
				for {
					line, err := r.ReadSlice('\n')
					if err != nil {
						b.Error(err)
						return
					}
					if len(line) == 2 {
						break
					}
				}
			}
		})
	}
	clients.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "requests/s")
}
