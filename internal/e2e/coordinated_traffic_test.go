package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// cohortTraffic asks every node over DNS (UDP and TCP) and HTTP as long as the test runs. Every answer must be whole, and wholly of one
// version; what is not is a failure, whatever the cohort goes through.
type cohortTraffic struct {
	c        *cohortFleet
	pace     time.Duration   // of each client; a node has one of each kind
	answers  [3]atomic.Int64 // UDP, TCP, HTTP
	broken   atomic.Int64    // pages that the origin failed, as it was told to
	ignored  atomic.Int64    // that failed while their node was down
	failures atomic.Int64
	mu       sync.Mutex
	told     []string // the first failures
}

func startTraffic(t testing.TB, c *cohortFleet, pace time.Duration) *cohortTraffic {
	t.Helper()
	tr := &cohortTraffic{c: c, pace: pace}
	ctx, stop := context.WithCancel(context.Background())
	var clients sync.WaitGroup
	t.Cleanup(func() { stop(); clients.Wait() })
	for _, n := range c.members {
		udp, tcp := &dns.Client{Net: "udp", Timeout: 10 * time.Second}, &dns.Client{Net: "tcp", Timeout: 10 * time.Second}
		web := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{}}
		t.Cleanup(web.CloseIdleConnections)
		for kind, ask := range []func() error{
			func() error {
				_, err := askMark(udp, n.dns, dns.Question{Name: "alias.one.test.", Qtype: dns.TypeTXT})
				return err
			},
			func() error {
				_, err := askMark(tcp, n.dns, dns.Question{Name: "one.test.", Qtype: dns.TypeTXT})
				return err
			},
			func() error { return tr.page(web, n) },
		} {
			clients.Go(func() { tr.ask(ctx, n, kind, ask) })
		}
	}
	return tr
}

// errBroken is a page that the origin was told to fail.
var errBroken = errors.New(brokenPage)

func (tr *cohortTraffic) page(web *http.Client, n *cohortNode) error {
	_, err := askPage(web, n.http)
	if err != nil && strings.Contains(err.Error(), brokenPage) {
		return errBroken
	}
	return err
}

func (tr *cohortTraffic) ask(ctx context.Context, n *cohortNode, kind int, ask func() error) {
	tick := time.NewTicker(tr.pace)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		downs := n.downs.Load()
		err := ask()
		switch {
		case err == nil:
			tr.answers[kind].Add(1)
		case downs%2 == 1 || n.downs.Load() != downs:
			tr.ignored.Add(1)
		case errors.Is(err, errBroken) && tr.c.breaks.Load() != "":
			tr.broken.Add(1)
		default:
			tr.failures.Add(1)
			tr.mu.Lock()
			if len(tr.told) < 10 {
				tr.told = append(tr.told, fmt.Sprintf("%s %s: %v", n.name, []string{"DNS over UDP", "DNS over TCP", "HTTP"}[kind], err))
			}
			tr.mu.Unlock()
		}
	}
}

// check fails the test for every failure since the last check, and when a kind had too few answers to prove anything.
func (tr *cohortTraffic) check(t testing.TB, since [3]int64) {
	t.Helper()
	tr.mu.Lock()
	told := tr.told
	tr.told = nil
	tr.mu.Unlock()
	if n := tr.failures.Swap(0); n > 0 {
		t.Errorf("%d client requests failed:\n%s", n, strings.Join(told, "\n"))
	}
	now := tr.count()
	for kind := range now {
		if now[kind]-since[kind] < 10 {
			t.Errorf("only %d answers of kind %d: this proves little", now[kind]-since[kind], kind)
		}
	}
	t.Logf("answers: %d DNS over UDP, %d over TCP, %d HTTP; none failed but %d that the origin was told to, %d of nodes that were down",
		now[0]-since[0], now[1]-since[1], now[2]-since[2], tr.broken.Swap(0), tr.ignored.Swap(0))
}

func (tr *cohortTraffic) count() (n [3]int64) {
	for kind := range n {
		n[kind] = tr.answers[kind].Load()
	}
	return n
}
