package web

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/edge/cache"
	"github.com/guardyn-edge/guardyn/zone"
)

// gatedOrigin answers each request, numbered from 1, by f.
func gatedOrigin(t testing.TB, f func(n int64, w http.ResponseWriter, r *http.Request)) (*origin, *atomic.Int64) {
	var n atomic.Int64
	return startOrigin(t, func(w http.ResponseWriter, r *http.Request) { f(n.Add(1), w, r) }), &n
}

func withCache(memory int64, configure ...func(*Config)) []func(*Config) {
	return append([]func(*Config){func(c *Config) { c.Cache = cache.New(memory) }}, configure...)
}

// serve asks the server without a connection.
func (n *node) serve(ctx context.Context, path string, fields ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://www.example.com"+path, nil)
	r.RequestURI = path
	r.URL.Scheme, r.URL.Host = "", ""
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	w := httptest.NewRecorder()
	n.Server.serve(w, r, nil)
	return w
}

// TestTenThousandClients: one of them asks the origin for what has expired.
func TestTenThousandClients(t *testing.T) {
	const clients = 10_000
	for _, tc := range []struct {
		name   string
		again  int // status of the origin's second answer
		status int
	}{{"validated", 304, 200}, {"replaced", 200, 200}, {"the origin fails", 503, 503}} {
		t.Run(tc.name, func(t *testing.T) {
			var c clock
			entered, release := make(chan struct{}, 1), make(chan struct{})
			o, asked := gatedOrigin(t, func(n int64, w http.ResponseWriter, _ *http.Request) {
				w.Header()["Date"] = nil
				w.Header().Set("Etag", `"a"`)
				w.Header().Set("Cache-Control", "max-age=60")
				if n == 1 {
					io.WriteString(w, "body")
					return
				}
				entered <- struct{}{}
				<-release
				if tc.again == 503 {
					w.Header().Del("Cache-Control")
				}
				w.WriteHeader(tc.again)
				if tc.again == 200 {
					io.WriteString(w, "body")
				}
			})
			n := startNode(t, withCache(0, func(cfg *Config) { cfg.Now, cfg.MaxRequests = c.now, 2*clients; cfg.CacheWait = time.Minute })...)
			n.publish(site(o.address(), func(z *zone.Zone) { z.Ceilings.RequestRate = 1_000_000 }))
			if got := n.serve(t.Context(), "/"); got.Code != 200 {
				t.Fatalf("the first: %+v", got)
			}
			c.Add(int64(time.Minute))
			var all sync.WaitGroup
			var right atomic.Int64
			for range clients {
				all.Go(func() {
					if got := n.serve(t.Context(), "/"); got.Code == tc.status && (tc.status != 200 || got.Body.String() == "body") {
						right.Add(1)
					}
				})
			}
			<-entered
			waitFor(t, "the others", func() bool { return n.config.Cache.Stats().Collapsed == clients-1 })
			close(release)
			all.Wait()
			if asked.Load() != 2 || right.Load() != clients {
				t.Errorf("the origin was asked %d times, %d of %d clients were answered right", asked.Load(), right.Load(), clients)
			}
		})
	}
}

// TestAnswersOnTheirWay is what becomes of a request that waits for another's answer.
func TestAnswersOnTheirWay(t *testing.T) {
	for _, tc := range []struct {
		name    string
		first   func(w http.ResponseWriter, r *http.Request) // answers the request that leads, once the other waits
		leader  []string
		waiter  []string
		asked   int64
		status  int
		body    string
		says    string // of Cache-Status
		memory  int64
		waiting time.Duration
	}{
		{
			name: "it is stored", asked: 1, status: 200, body: "first", says: "fwd=uri-miss; collapsed; ttl=",
			first: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Cache-Control", "max-age=60")
				io.WriteString(w, "first")
			},
		},
		{
			name: "its length is not known", asked: 1, status: 200, body: "first first", says: "fwd=uri-miss; collapsed",
			first: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Cache-Control", "max-age=60")
				io.WriteString(w, "first ")
				w.(http.Flusher).Flush()
				io.WriteString(w, "first")
			},
		},
		{
			name: "a part of it", asked: 1, status: 206, body: "irs", says: "fwd=uri-miss; fwd-status=200; collapsed; ttl=", waiter: []string{"Range", "bytes=1-3"},
			first: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Cache-Control", "max-age=60")
				io.WriteString(w, "first")
			},
		},
		{
			name: "the client has it", asked: 1, status: 304, says: "fwd=uri-miss; fwd-status=200; collapsed; ttl=", waiter: []string{"If-None-Match", `"a"`},
			first: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Cache-Control", "max-age=60")
				w.Header().Set("Etag", `"a"`)
				io.WriteString(w, "first")
			},
		},
		{
			name: "it is private", asked: 2, status: 200, body: "second", says: "fwd=uri-miss; collapsed=?0; detail=",
			first: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Cache-Control", "private")
				io.WriteString(w, "first")
			},
		},
		{
			name: "it is another variant's", asked: 2, status: 200, body: "second", says: "fwd=vary-miss; collapsed=?0", leader: []string{"X-A", "1"}, waiter: []string{"X-A", "2"},
			first: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Cache-Control", "max-age=60")
				w.Header().Set("Vary", "X-A")
				io.WriteString(w, "first")
			},
		},
		{
			name: "the origin is not available", asked: 1, status: 503, says: "fwd=uri-miss; collapsed",
			first: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) },
		},
		{
			name: "an error that may be of that request alone", asked: 2, status: 200, body: "second", says: "fwd=uri-miss",
			first: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		},
		{
			name: "no answer", asked: 1, status: 502, says: "collapsed",
			first: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		},
		{
			name: "it is larger than one object may be", asked: 2, status: 200, body: "second", says: "fwd=uri-miss", memory: cache.MinMemory,
			first: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Cache-Control", "max-age=60")
				w.Header().Set("Content-Length", "1000000")
				w.Write(make([]byte, 1_000_000))
			},
		},
		{
			name: "it becomes larger than one object may be", asked: 2, status: 200, body: "second", says: "fwd=uri-miss", memory: cache.MinMemory,
			first: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Cache-Control", "max-age=60")
				for range 10 {
					w.Write(make([]byte, 100_000))
					w.(http.Flusher).Flush()
				}
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			entered, release := make(chan struct{}), make(chan struct{})
			o, asked := gatedOrigin(t, func(n int64, w http.ResponseWriter, r *http.Request) {
				if n == 1 {
					entered <- struct{}{}
					<-release
					tc.first(w, r)
					return
				}
				io.WriteString(w, "second")
			})
			n := startNode(t, withCache(tc.memory)...)
			n.publish(site(o.address()))
			var lead, wait *httptest.ResponseRecorder
			var both sync.WaitGroup
			both.Go(func() { lead = n.serve(t.Context(), "/", tc.leader...) })
			<-entered
			both.Go(func() { wait = n.serve(t.Context(), "/", tc.waiter...) })
			waitFor(t, "the second to wait", func() bool { return n.config.Cache.Stats().Collapsed == 1 })
			close(release)
			both.Wait()
			if wait.Code != tc.status || tc.body != "" && wait.Body.String() != tc.body || asked.Load() != tc.asked {
				t.Errorf("got %d %.40q, the origin was asked %d times", wait.Code, wait.Body, asked.Load())
			}
			if got := wait.Header().Get("Cache-Status"); !strings.Contains(got, tc.says) {
				t.Errorf("Cache-Status: %s, want %s", got, tc.says)
			}
			if lead.Code == 200 && tc.memory > 0 && lead.Body.Len() != 1_000_000 {
				t.Errorf("who led got %d octets", lead.Body.Len())
			}
			if s := n.config.Cache.Stats(); s.FillBytes != 0 {
				t.Errorf("%d bytes are on their way yet", s.FillBytes)
			}
		})
	}
}

// TestReleasedTogether: requests that waited for an answer which is not to be shared do not wait for one another then, nor do
// those that come in the next two minutes.
func TestReleasedTogether(t *testing.T) {
	const waiters = 50
	var c clock
	first, inside, release := make(chan struct{}), make(chan struct{}, waiters), make(chan struct{})
	o, _ := gatedOrigin(t, func(n int64, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "private")
		if n == 1 {
			<-first
			return
		}
		inside <- struct{}{}
		<-release
	})
	n := startNode(t, withCache(0, func(cfg *Config) { cfg.Now = c.now })...)
	n.publish(site(o.address()))
	var all sync.WaitGroup
	for range waiters + 1 {
		all.Go(func() { n.serve(t.Context(), "/") })
	}
	waitFor(t, "all to wait", func() bool { return n.config.Cache.Stats().Collapsed == waiters })
	close(first)
	for range waiters {
		<-inside // all of them at once
	}
	c.Add(int64(time.Minute))
	for range 2 {
		all.Go(func() { n.serve(t.Context(), "/") })
		<-inside
	}
	close(release)
	all.Wait()
	if s := n.config.Cache.Stats(); s.Released != waiters || s.Collapsed != waiters {
		t.Errorf("%+v", s)
	}
}

// TestSlowAnswer: a request that has waited for as long as it should asks by itself.
func TestSlowAnswer(t *testing.T) {
	release := make(chan struct{})
	o, asked := gatedOrigin(t, func(n int64, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		if n == 1 {
			<-release
		}
		io.WriteString(w, strconv.FormatInt(n, 10))
	})
	n := startNode(t, withCache(0, func(c *Config) { c.CacheWait = 20 * time.Millisecond })...)
	n.publish(site(o.address()))
	var lead sync.WaitGroup
	lead.Go(func() { n.serve(t.Context(), "/") })
	waitFor(t, "the first", func() bool { return asked.Load() == 1 })
	if got := n.serve(t.Context(), "/"); got.Body.String() != "2" || n.config.Cache.Stats().TimedOut != 1 {
		t.Errorf("got %q", got.Body)
	}
	if got := n.serve(t.Context(), "/"); got.Body.String() != "2" || got.Header().Get("Cache-Status") != "guardyn; hit; ttl=60" && got.Header().Get("Cache-Status") != "guardyn; hit; ttl=59" {
		t.Errorf("what it got was not stored: %q %v", got.Body, got.Header())
	}
	close(release)
	lead.Wait()
}
