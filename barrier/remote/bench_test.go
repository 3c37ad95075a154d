package remote_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/memory"
	"github.com/guardyn-edge/guardyn/barrier/remote"
)

// connections is how many requests are under way at once in a benchmark.
const connections = 8

// cpu returns the processor time of this process, of clients and server together.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cost is what one request took.
type cost struct{ wall, cpu float64 } // in µs

// load makes n requests over some connections.
func load(b *testing.B, n int, request func() error) cost {
	b.Helper()
	var (
		wg   sync.WaitGroup
		left atomic.Int64
	)
	left.Store(int64(n))
	began, used := time.Now(), cpu(b)
	for range connections {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				if err := request(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	return cost{float64(time.Since(began).Microseconds()) / float64(n), float64((cpu(b) - used).Microseconds()) / float64(n)}
}

// onTrial is a cohort in the middle of a rollout, and a member's view of it as the handler answers it.
func onTrial(b *testing.B) (*memory.Store, *httptest.Server, []byte) {
	b.Helper()
	s := memory.New(memory.Options{})
	ctx := context.Background()
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	_, err := s.SetRoster(ctx, 0, []barrier.MemberID{"node-a"})
	must(err)
	_, err = s.AdoptBaseline(ctx, barrier.Pointer{Digest: barrier.Digest("sha256:" + strings.Repeat("ab", 32)), Version: 1})
	must(err)
	_, err = s.Join(ctx, "node-a", "boot-1", 0)
	must(err)
	ro, err := s.Propose(ctx, barrier.Proposal{
		ID: barrier.NewRolloutID(), Proposer: "alice", Digest: barrier.Digest("sha256:" + strings.Repeat("cd", 32)), Version: 2, RosterRevision: 1, Window: time.Hour,
	})
	must(err)
	must(s.Ack(ctx, ro.Ref, "node-a", "boot-1", "sha256:"+strings.Repeat("ef", 32)))
	must(s.Claim(ctx, 1))
	must(s.Commit(ctx, ro.Ref, 1))
	must(s.Converge(ctx, ro.Ref, "node-a", "boot-1", "all probes answered"))
	server, _ := serve(b, remote.Backend{Store: s}, remote.Options{})
	var body []byte
	must(get(server.URL+prefix+"/view?member=node-a", func(r io.Reader) (err error) {
		body, err = io.ReadAll(r)
		return err
	}))
	return s, server, body
}

var pooled = func() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = connections
	return &http.Client{Transport: t}
}()

// get makes a member's request as a plain HTTP client does.
func get(url string, read func(io.Reader) error) error {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+credential(memberOf("node-a")))
	req.Header.Set("Barrier-Request", "word")
	resp, err := pooled.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return read(resp.Body)
}

func discard(r io.Reader) error { _, err := io.Copy(io.Discard, r); return err }

// BenchmarkLook polls a member's view over HTTP, by the Client and by a plain client, and the same bytes from a
// bare handler.
func BenchmarkLook(b *testing.B) {
	_, server, body := onTrial(b)
	bare := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body)
	}))
	defer bare.Close()
	c := client(b, server.URL, memberOf("node-a"), remote.ClientOptions{HTTP: pooled})

	by := map[string]func() error{
		"bare":    func() error { return get(bare.URL, discard) },
		"handler": func() error { return get(server.URL+prefix+"/view?member=node-a", discard) },
		"client":  func() error { _, err := c.Look(context.Background(), "node-a"); return err },
	}
	spent := map[string]cost{}
	for _, what := range []string{"bare", "handler", "client"} {
		load(b, 200, by[what]) // connections are made
		// In turns, so that other load on the machine hits all alike.
		spent[what] = cost{}
	}
	b.ResetTimer()
	const turns = 10
	each := max(b.N/turns/len(by), 1)
	for range turns {
		for what, request := range by {
			got := load(b, each, request)
			spent[what] = cost{spent[what].wall + got.wall/turns, spent[what].cpu + got.cpu/turns}
		}
	}
	b.StopTimer()
	for what, took := range spent {
		b.ReportMetric(1e6/took.wall, what+"-req/s")
		b.ReportMetric(took.cpu, what+"-cpu-µs")
	}
	b.ReportMetric(spent["handler"].cpu/spent["bare"].cpu, "handler/bare")
	b.ReportMetric(spent["client"].cpu/spent["bare"].cpu, "client/bare")
	b.ReportMetric(float64(len(body)), "answer-B")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkLookHandler is the handler's part alone, without a network.
func BenchmarkLookHandler(b *testing.B) {
	s, _, _ := onTrial(b)
	h := remote.NewHandler(remote.Backend{Store: s}, authorize, remote.Options{})
	defer h.Close()
	r := httptest.NewRequest(http.MethodGet, "/view?member=node-a", nil)
	r.Header.Set("Authorization", "Bearer "+credential(memberOf("node-a")))
	r.Header.Set("Barrier-Request", "word")
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(&counting{header: http.Header{}, first: func() {}}, r)
	}
}
