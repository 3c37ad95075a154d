package remote_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/memory"
	"github.com/guardyn-edge/guardyn/barrier/remote"
)

// watch polls once, as p, and returns the status and what to have seen next.
func watch(t *testing.T, address string, p remote.Principal, topic barrier.Topic, seen string) (int, string) {
	t.Helper()
	path := "GET /watch?topic=" + string(topic)
	if seen != "" {
		path += "&seen=" + seen
	}
	status, answer, _ := (request{path: path}).send(t, address, credential(p))
	var a struct{ Seen string }
	if status == 200 {
		if err := json.Unmarshal([]byte(answer), &a, json.MatchCaseInsensitiveNames(true)); err != nil || a.Seen == "" {
			t.Fatalf("%s: %q", path, answer)
		}
	}
	return status, a.Seen
}

// What happens between two polls, or while one waits, is told by the next, or by that one.
func TestNoChangeIsLost(t *testing.T) {
	s := memory.New(memory.Options{})
	server, _ := serve(t, remote.Backend{Store: s}, remote.Options{Wait: 50 * time.Millisecond})
	change := func(i int) {
		if _, err := s.SetRoster(t.Context(), uint64(i), []barrier.MemberID{longID(i)}); err != nil {
			t.Fatal(err)
		}
	}
	status, seen := watch(t, server.URL, memberOf("a"), barrier.TopicHead, "")
	if status != 200 {
		t.Fatalf("the first poll: %d", status)
	}
	if status, _ := watch(t, server.URL, memberOf("a"), barrier.TopicHead, seen); status != 204 {
		t.Errorf("nothing happened: %d", status)
	}
	for i := range 5 {
		change(i) // between two polls
		// The store's hint is on its way: at the latest a poll that waits gets it.
		if status, seen = watch(t, server.URL, memberOf("a"), barrier.TopicHead, seen); status != 200 {
			t.Fatalf("change %d: %d", i, status)
		}
	}
	for _, odd := range []string{"x", "..", "a.b.c", "a.1", strings.Repeat("a", 1000), "%00"} {
		if status, _ := watch(t, server.URL, memberOf("a"), barrier.TopicHead, odd); status != 200 {
			t.Errorf("seen %q: %d", odd, status)
		}
	}
}

// With several handlers of one cohort a client that comes to another is not told of what it has seen already.
func TestTwoHandlers(t *testing.T) {
	s := memory.New(memory.Options{})
	one, _ := serve(t, remote.Backend{Store: s}, remote.Options{Wait: 20 * time.Millisecond})
	two, _ := serve(t, remote.Backend{Store: s}, remote.Options{Wait: 20 * time.Millisecond})
	servers := []*httptest.Server{one, two}
	seen := ""
	for i := range 5 {
		if i > 0 {
			if _, err := s.SetRoster(t.Context(), uint64(i-1), []barrier.MemberID{longID(i)}); err != nil {
				t.Fatal(err)
			}
		}
		told := 0
		for turn := range 8 {
			status, next := watch(t, servers[turn%2].URL, memberOf("a"), barrier.TopicHead, seen)
			if status == 200 {
				told++
				seen = next
			}
			if status == 204 && told == 0 {
				t.Fatalf("change %d was not told", i)
			}
		}
		if told > 3 {
			t.Errorf("change %d was told %d times", i, told)
		}
	}
	// A store that does not say whether anything happened is no reason to wait.
	s2 := newSpy()
	s2.err = context.DeadlineExceeded
	three, _ := serve(t, s2.backend(), remote.Options{})
	if status, _ := watch(t, three.URL, memberOf("a"), barrier.TopicHead, seen); status != 500 {
		t.Errorf("the store does not answer: %d", status)
	}
}

func TestWaitingIsBounded(t *testing.T) {
	s := newSpy()
	server, h := serve(t, s.backend(), remote.Options{MaxWaiting: 3, MaxWaitingEach: 2})
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	start := func(p remote.Principal) {
		_, seen := watch(t, server.URL, p, barrier.TopicHead, "")
		wg.Go(func() {
			for refused := true; refused; { // while what asks whether there is room takes it
				req, _ := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+prefix+"/watch?topic=head&seen="+seen, nil)
				req.Header.Set("Authorization", "Bearer "+credential(p))
				resp, err := http.DefaultTransport.RoundTrip(req)
				if err != nil {
					return
				}
				resp.Body.Close()
				refused = resp.StatusCode == http.StatusServiceUnavailable
			}
		})
	}
	refused := func(p remote.Principal) bool {
		status, answer, head := (request{path: "GET /watch?topic=head"}).send(t, server.URL, credential(p))
		if status == 503 && (head.Get("Retry-After") == "" || !strings.Contains(answer, `"unavailable"`)) {
			t.Errorf("%v %s", head, answer)
		}
		return status == 503
	}
	start(memberOf("a"))
	start(memberOf("a"))
	until(t, "a's are full", func() bool { return refused(memberOf("a")) })
	if refused(memberOf("b")) {
		t.Error("b is refused for what a does")
	}
	start(memberOf("b"))
	until(t, "all are full", func() bool { return refused(memberOf("c")) })
	c := client(t, server.URL, memberOf("c"), remote.ClientOptions{})
	if _, err := c.Look(ctx, "c"); err != nil {
		t.Errorf("other calls: %v", err)
	}
	s.hint(barrier.TopicHead) // lets all go
	wg.Wait()
	until(t, "there is room again", func() bool { return !refused(memberOf("c")) })
	h.Close()
	if !refused(memberOf("c")) {
		t.Error("a closed handler takes watches")
	}
}

// until waits for what becomes true by itself.
func until(t *testing.T, what string, true func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !true(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("it never came to it that %s", what)
		}
	}
}

// One request for each topic and one subscription to the store, however many watch, and nothing is left of them.
func TestManyWatchers(t *testing.T) {
	s := newSpy()
	var mu sync.Mutex
	polls := map[string]int{}
	most := map[string]int{}
	h := remote.NewHandler(s.backend(), authorize, remote.Options{})
	server := httptest.NewServer(http.StripPrefix(prefix, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		topic := r.URL.Query().Get("topic")
		mu.Lock()
		polls[topic]++
		most[topic] = max(most[topic], polls[topic])
		mu.Unlock()
		defer func() {
			mu.Lock()
			polls[topic]--
			mu.Unlock()
		}()
		h.ServeHTTP(w, r)
	})))
	defer server.Close()
	defer h.Close()
	before := runtime.NumGoroutine()
	c := client(t, server.URL, coordinator, remote.ClientOptions{})
	for range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		var watchers []<-chan struct{}
		for range 200 {
			watchers = append(watchers, c.Watch(ctx, barrier.TopicHead), c.Watch(ctx, barrier.TopicVotes))
		}
		for range 3 {
			s.hint(barrier.TopicHead)
			s.hint(barrier.TopicVotes)
			for _, w := range watchers {
				<-w
			}
		}
		cancel()
		for _, w := range watchers {
			for range w { // until it is closed
			}
		}
	}
	mu.Lock()
	for topic, n := range most {
		// A poll that was given up may still be ending when the next begins.
		if n > 3 {
			t.Errorf("%d polls of %s at once", n, topic)
		}
	}
	mu.Unlock()
	if calls := s.took(); len(calls) != 2 {
		t.Errorf("the store was asked: %v", calls)
	}
	c.Close()
	if _, open := <-c.Watch(t.Context(), barrier.TopicHead); open {
		t.Error("a closed client watches")
	}
	h.Close()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	settled(t, before+1)
}

// scripted answers polls in process, with what a test says.
type scripted func(r *http.Request, n int) *http.Response

type transport struct {
	mu     sync.Mutex
	n      int
	at     []time.Time
	gaveUp int // polls that their client ended
	script scripted
}

func (s *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.n++
	s.at = append(s.at, time.Now())
	n := s.n
	s.mu.Unlock()
	if resp := s.script(r, n); resp != nil {
		return resp, nil
	}
	<-r.Context().Done()
	s.mu.Lock()
	s.gaveUp++
	s.mu.Unlock()
	return nil, r.Context().Err()
}

// gaps returns the times between polls.
func (s *transport) gaps() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var gaps []time.Duration
	for i := 1; i < len(s.at); i++ {
		gaps = append(gaps, s.at[i].Sub(s.at[i-1]))
	}
	return gaps
}

func reply(r *http.Request, status int, contentType, body string) *http.Response {
	h := http.Header{"Barrier-Answer": r.Header["Barrier-Request"], "Content-Type": {contentType}}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
}

func scriptedClient(t *testing.T, script scripted) (*remote.Client, *transport) {
	tr := &transport{script: script}
	c, err := remote.NewClient("http://control.example/b", remote.ClientOptions{HTTP: &http.Client{Transport: tr}})
	if err != nil {
		t.Fatal(err)
	}
	return c, tr
}

// A handler that is away is asked less and less often, and again at once when it is back, from where it was left.
func TestBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lastSeen string
		c, tr := scriptedClient(t, func(r *http.Request, n int) *http.Response {
			switch {
			case n == 1:
				return reply(r, 200, "application/json", `{"seen":"one"}`)
			case n <= 40:
				return reply(r, 502, "text/html", "<html>")
			case n == 41:
				lastSeen = r.URL.Query().Get("seen")
				return reply(r, 200, "application/json", `{"seen":"two"}`)
			}
			return nil
		})
		defer c.Close()
		hints := c.Watch(t.Context(), barrier.TopicHead)
		<-hints
		<-hints // after the outage
		if lastSeen != "one" {
			t.Errorf("after an outage the client had seen %q", lastSeen)
		}
		gaps := tr.gaps()
		var late time.Duration
		for i, g := range gaps {
			if g > remote.MaxBackoff {
				t.Errorf("gap %d is %s", i, g)
			}
			if i >= 20 {
				late += g
			}
		}
		if mean := late / time.Duration(len(gaps)-20); mean < remote.MaxBackoff/5 || mean > remote.MaxBackoff*4/5 {
			t.Errorf("the mean gap in a long outage is %s", mean)
		}
	})
}

// A handler that is full is left alone for longer.
func TestFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tr := scriptedClient(t, func(r *http.Request, n int) *http.Response {
			if n > 20 {
				return nil
			}
			resp := reply(r, 503, "application/problem+json", `{"title":"","status":503,"code":"unavailable"}`)
			resp.Header.Set("Retry-After", []string{"5", "600"}[n%2])
			return resp
		})
		c.Watch(t.Context(), barrier.TopicHead)
		time.Sleep(time.Hour) // of the bubble
		for i, g := range tr.gaps()[:19] {
			asked := []time.Duration{remote.MaxBackoff, 5 * time.Second}[i%2]
			if g < asked || g > asked+remote.MaxBackoff {
				t.Errorf("gap %d is %s", i, g)
			}
		}
		c.Close()
	})
}

// Hints without end are merged, and a handler that does not wait is not flooded.
func TestFloods(t *testing.T) {
	for name, tt := range map[string]struct {
		status, most int
		body         string
	}{
		"hints":             {200, 21, `{"seen":"x"}`},
		"nothing":           {204, 2, ""},
		"a mark of 1 KiB":   {200, 12, `{"seen":"` + strings.Repeat("x", 1024) + `"}`},
		"an answer of null": {200, 12, `null`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, tr := scriptedClient(t, func(r *http.Request, _ int) *http.Response {
					return reply(r, tt.status, "application/json", tt.body)
				})
				ctx, cancel := context.WithCancel(t.Context())
				hints := c.Watch(ctx, barrier.TopicHead)
				time.Sleep(time.Second) // of the bubble
				if n := len(tr.gaps()) + 1; n > tt.most {
					t.Errorf("%d polls in a second", n)
				}
				if n := len(hints); n > 1 {
					t.Errorf("%d hints wait", n)
				}
				cancel()
				for range hints { // until it is closed
				}
				c.Close()
			})
		})
	}
}

// Close, and the end of the last watcher's context, end a poll that waits.
func TestWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, tr := scriptedClient(t, func(*http.Request, int) *http.Response { return nil })
		ctx, cancel := context.WithCancel(t.Context())
		a, b := c.Watch(ctx, barrier.TopicHead), c.Watch(t.Context(), barrier.TopicHead)
		synctest.Wait()
		cancel()
		if _, open := <-a; open {
			t.Error("a hint without cause")
		}
		synctest.Wait()
		if n := len(tr.gaps()) + 1; n != 1 {
			t.Errorf("%d polls", n)
		}
		if tr.gaveUp != 0 {
			t.Error("the poll ended, and somebody watches")
		}
		ctx2, cancel2 := context.WithCancel(t.Context())
		c.Watch(ctx2, barrier.TopicVotes)
		synctest.Wait()
		cancel2()
		synctest.Wait()
		if tr.gaveUp != 1 {
			t.Error("nobody watches, and the poll goes on")
		}
		c.Close()
		if _, open := <-b; open {
			t.Error("a hint without cause")
		}
		if _, open := <-c.Watch(ctx, barrier.TopicHead); open {
			t.Error("a closed client watches")
		}
		c.Close()
	})
}

// A store that ends its hints before their time is watched again, with a hint for what it withheld.
func TestStoreThatStopsHinting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &quitter{spy: newSpy()}
		h := remote.NewHandler(remote.Backend{Store: s}, authorize, remote.Options{})
		poll := func(seen string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(http.MethodGet, "/watch?topic=head&seen="+seen, nil)
			r.Header.Set("Authorization", "Bearer "+credential(coordinator))
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w
		}
		first := poll("")
		var a struct {
			Seen string `json:"seen"`
		}
		if err := json.Unmarshal(first.Body.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if w := poll(a.Seen); w.Code != 200 || time.Since(began) > 10*time.Second {
			t.Errorf("%d after %s", w.Code, time.Since(began))
		}
		time.Sleep(time.Minute) // of the bubble
		if n := s.watched.Load(); n < 10 || n > 20 {
			t.Errorf("the store was watched %d times in a minute", n)
		}
		h.Close()
		if w := poll(a.Seen); w.Code != 503 {
			t.Errorf("a closed handler answers %d", w.Code)
		}
	})
}

type quitter struct {
	*spy
	watched atomic.Int64
}

func (q *quitter) Watch(context.Context, barrier.Topic) <-chan struct{} {
	q.watched.Add(1)
	ch := make(chan struct{})
	close(ch)
	return ch
}
