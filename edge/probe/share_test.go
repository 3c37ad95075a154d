package probe

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// The share of failures since the swap is held against the one before it.
func TestShareOfFailures(t *testing.T) {
	for name, row := range map[string]struct {
		before, since Requests
		margin        int // in hundredths of a percentage point
		converged     bool
		says          string
	}{
		"no request":                    {Requests{}, Requests{}, 100, true, "nothing to ask"},
		"none failed":                   {Requests{1000, 0}, Requests{1000, 0}, 100, true, "5xx 0.00% of 1000, 0.00% before"},
		"too few to tell":               {Requests{1000, 0}, Requests{99, 99}, 100, true, "5xx 100.00% of 99"},
		"enough to tell":                {Requests{1000, 0}, Requests{100, 2}, 100, false, "2.00% of 100 requests since the swap were answered 5xx, 0.00% before it: more than the margin of 1.00 points"},
		"exactly the margin":            {Requests{1000, 0}, Requests{100, 1}, 100, true, "5xx 1.00% of 100, 0.00% before"},
		"exactly the margin, inexactly": {Requests{1000, 70}, Requests{1000, 100}, 300, true, "5xx 10.00% of 1000, 7.00% before"},
		"just above the margin":         {Requests{1000, 0}, Requests{10_000, 101}, 100, false, "1.01% of 10000"},
		"a wider margin":                {Requests{1000, 0}, Requests{10_000, 101}, 200, true, ""},
		"as before":                     {Requests{1000, 500}, Requests{1000, 500}, 100, true, "5xx 50.00% of 1000, 50.00% before"},
		"better":                        {Requests{1000, 500}, Requests{1000, 10}, 100, true, ""},
		"worse than bad":                {Requests{1000, 500}, Requests{1000, 511}, 100, false, "51.10% of 1000"},
		"nothing before":                {Requests{}, Requests{100, 2}, 100, false, "0.00% before it"},
	} {
		t.Run(name, func(t *testing.T) {
			var now Requests
			n := startNode(t, func(c *Config) { c.Requests = func() Requests { return now } })
			one := n.snapshot(site(1, "a"))
			n.serve(one)
			now = row.before
			n.Begin(one, one, row.margin)
			now = Requests{row.before.All + row.since.All, row.before.Failed + row.since.Failed}
			n.wants(row.converged, row.says)
		})
	}
}

// Before is the last five minutes, not the node's whole life.
func TestShareBeforeIsOfTheLastMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		now := Requests{All: 1000, Failed: 1000}
		p := New(Config{Requests: func() Requests { mu.Lock(); defer mu.Unlock(); return now }})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { p.Run(ctx); close(ended) }()
		add := func(r Requests) {
			mu.Lock()
			defer mu.Unlock()
			now.All, now.Failed = now.All+r.All, now.Failed+r.Failed
		}
		before := func() float64 { return p.share.until(p.requests()) }

		synctest.Wait()
		add(Requests{100, 10})
		if s := before(); s != 0.1 {
			t.Errorf("after the first sample: %v", s)
		}
		for range shareLen {
			time.Sleep(shareEvery)
			synctest.Wait()
			add(Requests{100, 20})
		}
		if s := before(); s != 0.2 {
			t.Errorf("of the last five minutes: %v", s)
		}
		if len(p.share.samples) != shareLen {
			t.Errorf("%d samples", len(p.share.samples))
		}
		stop()
		<-ended
	})
}

func TestShareWithoutSamples(t *testing.T) {
	var s shares
	if got := s.until(Requests{200, 50}); got != 0.25 {
		t.Errorf("of the node's whole life: %v", got)
	}
	if got := s.until(Requests{}); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// What the prober asks itself is no client's, however the node counts it.
func TestOwnRequestsAreNotCounted(t *testing.T) {
	n := startNode(t)
	bad, good := startOrigin(t, 500), startOrigin(t, 200)
	one := n.snapshot(site(1, "a", bad.zone()), site(2, "a", good.zone()))
	two := n.snapshot(site(1, "a", bad.zone()), site(2, "b", good.zone()))
	n.serve(one)
	n.Prepare(t.Context(), nil, one)
	n.Begin(one, two, 100)
	base := n.requests()
	if base != (Requests{}) {
		t.Errorf("clients' requests: %+v", base)
	}
	n.serve(two)
	const each = 2 * MinRequests
	for i := range each {
		if err := n.askHost(t.Context(), "www.zone-001.example"); err == nil || !strings.Contains(err.Error(), "500") {
			t.Fatalf("own request %d: %v", i, err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+n.web.Addr().String()+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "www.zone-002.example"
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("client's request: %v %v", resp, err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	// The server counts a request a moment after its answer has left.
	end := time.NewTimer(10 * time.Second)
	defer end.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for n.requests() != (Requests{All: each}) {
		select {
		case <-tick.C:
		case <-end.C:
			t.Fatalf("clients' requests: %+v, want %d, none failed", n.requests(), each)
		}
	}
	n.wants(true, "5xx 0.00% of 200, ")
}
