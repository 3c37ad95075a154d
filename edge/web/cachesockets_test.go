package web

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/zone"
)

// clientsVariable has this test binary be clients: the address to ask, and how many there are.
const clientsVariable = "GUARDYN_TEST_CLIENTS"

// TestClientsProcess is no test when it is run by itself, but the clients of TestTenThousandConnections: a process of their own has
// descriptors of its own. It says how many were answered right.
func TestClientsProcess(t *testing.T) {
	address, count, asked := strings.Cut(os.Getenv(clientsVariable), " ")
	if !asked {
		return
	}
	clients, err := strconv.Atoi(count)
	if err != nil {
		t.Fatal(err)
	}
	conns := make([]net.Conn, clients)
	var dialing, waiting sync.WaitGroup
	for worker := range 64 {
		dialing.Go(func() {
			for i := worker; i < clients; i += 64 {
				c, err := net.Dial("tcp", address)
				if err != nil {
					t.Error(err)
					return
				}
				conns[i] = c
			}
		})
	}
	dialing.Wait()
	var right atomic.Int64
	for _, c := range conns {
		if c == nil {
			continue
		}
		waiting.Go(func() {
			defer c.Close()
			if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n"); err != nil {
				return
			}
			res, err := http.ReadResponse(bufio.NewReaderSize(c, 512), nil)
			if err != nil {
				return
			}
			defer res.Body.Close()
			if body, err := io.ReadAll(res.Body); err == nil && res.StatusCode == http.StatusOK && string(body) == "body" {
				right.Add(1)
			}
		})
	}
	waiting.Wait()
	fmt.Printf("right %d\n", right.Load())
}

// TestTenThousandConnections: of as many clients, each with a connection of its own over loopback and all there at one time, one asks
// the origin for what has expired.
func TestTenThousandConnections(t *testing.T) {
	const clients = 10_000
	var c clock
	entered, release := make(chan struct{}, 1), make(chan struct{})
	o, asked := gatedOrigin(t, func(n int64, w http.ResponseWriter, _ *http.Request) {
		w.Header()["Date"] = nil
		w.Header().Set("Cache-Control", "max-age=60")
		if n > 1 {
			entered <- struct{}{}
			<-release
		}
		io.WriteString(w, "body")
	})
	n := startNode(t, withCache(0, func(cfg *Config) {
		cfg.Now, cfg.MaxConnections, cfg.MaxRequests, cfg.MaxRequestsPerZone = c.now, 2*clients, 2*clients, 2*clients
		cfg.CacheWait, cfg.HeaderTimeout, cfg.OriginHeaderTimeout = 5*time.Minute, 5*time.Minute, 5*time.Minute
	})...)
	n.publish(site(o.address(), func(z *zone.Zone) { z.Ceilings.RequestRate = 1_000_000 }))
	if got := n.get("/"); got.body != "body" {
		t.Fatalf("the first: %+v", got)
	}
	c.Add(int64(time.Minute))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestClientsProcess$")
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d", clientsVariable, n.Addr(), clients))
	child.Stderr = os.Stderr
	said, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	<-entered
	most, tick := uint64(0), time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for most < clients-1 {
		select {
		case <-tick.C:
			most = n.config.Cache.Stats().Collapsed
		case <-ctx.Done():
			t.Fatalf("%d of %d wait", most, clients-1)
		}
	}
	t.Logf("%d connections wait for one answer", most+1)
	close(release)
	output, err := io.ReadAll(said)
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	if err != nil || !strings.Contains(string(output), fmt.Sprintf("right %d\n", clients)) || asked.Load() != 2 {
		t.Errorf("the origin was asked %d times; the clients say %q, %v", asked.Load(), output, err)
	}
}
