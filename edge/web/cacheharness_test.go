package web

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/edge/cache"
	"github.com/guardyn-edge/guardyn/zone"
)

// turn is one request in a case of the cache, parts of whose texts are separated by " | ".
type turn struct {
	wait int // seconds that pass before
	// ask is method, path and fields; by default GET /.
	ask string
	// origin is what the origin answers: status, fields, "body=" and what it is, "trailer=" and a field that follows it, "broken": it has no end; "fail" hangs up. Empty: the origin must not be
	// asked.
	origin string
	// want is what Cache-Status says of this cache (hit, or the reason to forward), and then of the client's answer: a status, fields,
	// "-" before a field that must not be there, "body=".
	want string
	// sent is the same of the fields that the origin got.
	sent string
}

// cacheCase is a case of the cache, named by the section that it is of.
type cacheCase struct {
	name  string
	zone  []func(*zone.Zone)
	turns []turn
}

// scriptOrigin is an origin that answers as a turn says, at the time of the test's clock.
type scriptOrigin struct {
	address string
	clock   *clock
	mu      sync.Mutex
	answer  string
	asked   []*http.Request
	n       int
	empty   bool // chunked answers have no body
}

func startScript(t testing.TB, c *clock) *scriptOrigin {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := &scriptOrigin{address: l.Addr().String(), clock: c}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() {
				defer c.Close()
				b := bufio.NewReader(c)
				for {
					r, err := http.ReadRequest(b)
					if err != nil {
						return
					}
					io.Copy(io.Discard, r.Body)
					if out := o.respond(r); out == "" {
						return
					} else if _, err := io.WriteString(c, out); err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() { l.Close() })
	return o
}

func (o *scriptOrigin) respond(r *http.Request) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.asked = append(o.asked, r)
	o.n++
	if o.answer == "fail" || o.answer == "" {
		return ""
	}
	parts := strings.Split(o.answer, " | ")
	status, _ := strconv.Atoi(parts[0])
	body, trailer, broken, date, framed := fmt.Sprintf("body %d", o.n), "", false, true, false
	var head strings.Builder
	fmt.Fprintf(&head, "HTTP/1.1 %d %s\r\n", status, http.StatusText(status))
	for _, p := range parts[1:] {
		switch {
		case strings.HasPrefix(p, "body="):
			body = p[len("body="):]
			continue
		case strings.HasPrefix(p, "trailer="):
			trailer += p[len("trailer="):] + "\r\n"
			continue
		case p == "broken":
			broken = true
			continue
		case p == "-Date":
			date = false
			continue
		}
		name, value, _ := strings.Cut(p, ": ")
		switch {
		case strings.HasPrefix(value, "now"): // a date, so many seconds from now
			offset, _ := strconv.Atoi(value[len("now"):])
			value = o.clock.now().Add(time.Duration(offset) * time.Second).UTC().Format(http.TimeFormat)
		case strings.HasPrefix(value, "at"): // a date, so many seconds from the test's beginning
			offset, _ := strconv.Atoi(value[len("at"):])
			value = new(clock).now().Add(time.Duration(offset) * time.Second).UTC().Format(http.TimeFormat)
		}
		date = date && name != "Date"
		framed = framed || name == "Transfer-Encoding"
		fmt.Fprintf(&head, "%s: %s\r\n", name, value)
	}
	if date {
		fmt.Fprintf(&head, "Date: %s\r\n", o.clock.now().UTC().Format(http.TimeFormat))
	}
	switch {
	case status == http.StatusNotModified || status == http.StatusNoContent:
		return head.String() + "\r\n"
	case framed && o.empty:
		return head.String() + "\r\n0\r\n" + trailer + "\r\n"
	case framed && broken:
		return head.String() + fmt.Sprintf("\r\n%x\r\n%s\r\nx\r\n", len(body), body)
	case framed:
		return head.String() + fmt.Sprintf("\r\n%x\r\n%s\r\n0\r\n%s\r\n", len(body), body, trailer)
	}
	fmt.Fprintf(&head, "Content-Length: %d\r\n\r\n", len(body))
	if r.Method == http.MethodHead {
		body = ""
	}
	return head.String() + body
}

// next is what the origin answers from now on, and returns what it was asked since the last call.
func (o *scriptOrigin) next(answer string) []*http.Request {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.answer = answer
	asked := o.asked
	o.asked = nil
	return asked
}

// cachingNode is a node with a cache, at the time of a clock, before an origin that a test scripts.
func cachingNode(t testing.TB, change ...func(*zone.Zone)) (*node, *scriptOrigin, *clock) {
	t.Helper()
	c := new(clock)
	o := startScript(t, c)
	n := startNode(t, func(cfg *Config) { cfg.Now, cfg.Cache = c.now, cache.New(cache.MinMemory) })
	n.publish(site(o.address, change...))
	return n, o, c
}

func runCacheCases(t *testing.T, cases []cacheCase) {
	t.Helper()
	seen := make(map[string]bool)
	for _, tc := range cases {
		if seen[tc.name] {
			t.Errorf("two cases are named %q", tc.name)
		}
		seen[tc.name] = true
		t.Run(tc.name, func(t *testing.T) {
			n, o, c := cachingNode(t, tc.zone...)
			for i, turn := range tc.turns {
				runTurn(t, i+1, turn, n, o, c)
			}
		})
	}
}

func runTurn(t *testing.T, number int, turn turn, n *node, o *scriptOrigin, c *clock) {
	t.Helper()
	c.Add(int64(time.Duration(turn.wait) * time.Second))
	method, path, lines := "GET", "/", []string(nil)
	if turn.ask != "" {
		parts := strings.Split(turn.ask, " | ")
		method, path, _ = strings.Cut(parts[0], " ")
		for _, p := range parts[1:] {
			name, value, _ := strings.Cut(p, ": ")
			if strings.HasPrefix(value, "at") {
				offset, _ := strconv.Atoi(value[len("at"):])
				value = new(clock).now().Add(time.Duration(offset) * time.Second).UTC().Format(http.TimeFormat)
			}
			lines = append(lines, name+": "+value)
		}
	}
	o.next(turn.origin)
	got := n.askBody(method, "www.example.com", path, lines...)
	n.fetching.Wait()
	asked := o.next("")
	fail := func(format string, args ...any) {
		t.Helper()
		t.Errorf("turn %d, %s %s %v: %s\ngot %d %v %q", number, method, path, lines, fmt.Sprintf(format, args...), got.status, got.header, got.body)
	}
	switch {
	case turn.origin == "" && len(asked) > 0:
		fail("the origin was asked: %v", asked[0].Header)
	case turn.origin != "" && len(asked) == 0:
		fail("the origin was not asked")
	}
	for i, w := range strings.Split(turn.want, " | ") {
		name, value, isField := strings.Cut(w, ": ")
		switch status, err := strconv.Atoi(w); {
		case i == 0:
			if own := ownCacheStatus(got.header); own != w {
				fail("Cache-Status says %q, want %q", own, w)
			}
		case err == nil:
			if got.status != status {
				fail("want %d", status)
			}
		case strings.HasPrefix(w, "body="):
			if got.body != w[len("body="):] {
				fail("want %s", w)
			}
		case strings.HasPrefix(w, "-"):
			if got.header.Get(w[1:]) != "" {
				fail("want no %s", w[1:])
			}
		case isField:
			if strings.Join(got.header[http.CanonicalHeaderKey(name)], ", ") != value {
				fail("want %s", w)
			}
		default: // a parameter of Cache-Status
			if !strings.Contains(strings.Join(got.header["Cache-Status"], ", ")+";", "; "+w+";") {
				fail("Cache-Status lacks %s", w)
			}
		}
	}
	if turn.sent == "" || len(asked) == 0 {
		return
	}
	for _, w := range strings.Split(turn.sent, " | ") {
		if absent, ok := strings.CutPrefix(w, "-"); ok {
			if asked[0].Header.Get(absent) != "" {
				fail("the origin got %s: %s", absent, asked[0].Header.Get(absent))
			}
			continue
		}
		name, value, isField := strings.Cut(w, ": ")
		if !isField {
			if asked[0].Method+" "+asked[0].RequestURI != w {
				fail("the origin got %s %s, want %s", asked[0].Method, asked[0].RequestURI, w)
			}
			continue
		}
		if asked[0].Header.Get(name) != value {
			fail("the origin got %s: %q, want %q", name, asked[0].Header.Get(name), value)
		}
	}
}

// askBody is ask, which reads answers to HEAD too, and sends a body when its last line is one that begins with "body=".
func (n *node) askBody(method, host, path string, lines ...string) reply {
	n.t.Helper()
	var head strings.Builder
	fmt.Fprintf(&head, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n", method, path, host)
	body := ""
	for _, l := range lines {
		if rest, ok := strings.CutPrefix(l, "body: "); ok {
			body = rest
			l = "Content-Length: " + strconv.Itoa(len(body))
		}
		head.WriteString(l + "\r\n")
	}
	conn := n.dial()
	defer conn.Close()
	if _, err := io.WriteString(conn, head.String()+"\r\n"+body); err != nil {
		n.t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		n.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		return reply{res.StatusCode, res.Header, string(got) + " (broken off)", res.Close}
	}
	return reply{res.StatusCode, res.Header, string(got), res.Close}
}

// ownCacheStatus is what this cache says: hit, or why it forwarded; empty when it says nothing.
func ownCacheStatus(h http.Header) string {
	all := h["Cache-Status"]
	if len(all) == 0 {
		return ""
	}
	for part := range strings.SplitSeq(strings.TrimPrefix(all[len(all)-1], cache.Name), "; ") {
		if part == "hit" {
			return part
		}
		if fwd, ok := strings.CutPrefix(part, "fwd="); ok {
			return fwd
		}
	}
	return all[len(all)-1]
}

// stored is a case in which the answer is served again, kept one in which it is not.
func stored(name, answer string, zone ...func(*zone.Zone)) cacheCase {
	return cacheCase{name, zone, []turn{{origin: answer, want: "uri-miss | stored"}, {wait: 1, want: "hit"}}}
}

func notStored(name, answer string, zone ...func(*zone.Zone)) cacheCase {
	return cacheCase{name, zone, []turn{{origin: answer, want: "uri-miss"}, {wait: 1, origin: answer, want: "uri-miss"}}}
}

// fresh is a case in which the answer is fresh for so many seconds and no longer.
func fresh(name, answer string, seconds int, zone ...func(*zone.Zone)) cacheCase {
	return cacheCase{name, zone, []turn{
		{origin: answer, want: "uri-miss | stored"},
		{wait: seconds - 1, want: "hit"},
		{wait: 1, origin: answer, want: "stale"},
	}}
}

func policy(p zone.CachePolicy) func(*zone.Zone) {
	return func(z *zone.Zone) { z.CachePolicy = p }
}

func cacheRule(expression string, p zone.Parameters) func(*zone.Zone) {
	return rule(zone.PhaseCache, expression, zone.ActionCache, p)
}
