package web

import (
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/edge/cache"
	"github.com/guardyn-edge/guardyn/zone"
)

// tracedNode is a node whose traces a test takes.
func tracedNode(t testing.TB, configure ...func(*Config)) (*node, chan *Trace) {
	traces := make(chan *Trace, 100)
	return startNode(t, append(configure, func(c *Config) { c.Trace = func(tr *Trace) { traces <- tr } })...), traces
}

// sampled is a zone's trace_sampling in hundredths of a percent.
func sampled(share zone.Percent) func(*zone.Zone) {
	return settings(func(s *zone.Settings) { s.TraceSampling = &share })
}

func next(t testing.TB, traces <-chan *Trace) *Trace {
	t.Helper()
	select {
	case tr := <-traces:
		return tr
	case <-time.After(20 * time.Second):
		t.Fatal("no trace")
		return nil
	}
}

// attributes prints those of a span that begin with one of the prefixes.
func attributes(s Span, prefixes ...string) string {
	var out []string
	for _, a := range s.Attributes {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(a.Key, p) }) {
			out = append(out, a.Key+"="+a.Value.String())
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func eventNames(s Span) (names []string) {
	for _, e := range s.Events {
		names = append(names, e.Name)
	}
	return names
}

func TestTraceOfARequest(t *testing.T) {
	o := startOrigin(t)
	n, traces := tracedNode(t)
	n.publish(site(o.address(), sampled(100_00),
		rule(zone.PhaseTransformRequest, `http.path == "/a"`, zone.ActionRewrite, zone.Parameters{Path: "/b"}),
		rule(zone.PhaseCustom, `http.path == "/b"`, zone.ActionLog, zone.Parameters{}),
		rule(zone.PhaseCustom, `http.path == "/c"`, zone.ActionLog, zone.Parameters{})))
	before := time.Now()
	for i := range 2 {
		if got := n.get("/a?secret=1"); got.status != 200 {
			t.Fatalf("got %+v", got)
		}
		tr := next(t, traces)
		if len(tr.Spans) != 2 || tr.ID == [16]byte{} || tr.State != "" {
			t.Fatalf("got %+v", tr)
		}
		server, client := tr.Spans[0], tr.Spans[1]
		if server.Kind != SpanServer || server.Parent != [8]byte{} || server.ID == [8]byte{} || server.Name != "GET" || server.Failed ||
			client.Kind != SpanClient || client.Parent != server.ID || client.ID == server.ID || client.Name != "GET" || client.Failed {
			t.Errorf("server %+v, client %+v", server, client)
		}
		if want := "client.address=127.0.0.1 guardyn.generation=1 guardyn.origin=a guardyn.pool=main " +
			"guardyn.rules=[transform_request/1/rewrite custom/1/log] guardyn.version=1 guardyn.zone=example.com " +
			"http.request.method=GET http.response.body.size=6 http.response.status_code=200 network.protocol.version=1.1 " +
			"server.address=www.example.com url.path=/a url.scheme=http"; attributes(server, "") != want {
			t.Errorf("server's attributes\n%s, want\n%s", attributes(server, ""), want)
		}
		host, port, _ := net.SplitHostPort(o.address())
		if want := fmt.Sprintf("guardyn.origin=a guardyn.pool=main http.request.method=GET http.response.status_code=200 network.peer.address=%s "+
			"network.peer.port=%s network.protocol.version=1.1 server.address=%s server.port=%s url.full=http://www.example.com/b", host, port, host, port); attributes(client, "") != want {
			t.Errorf("client's attributes\n%s, want\n%s", attributes(client, ""), want)
		}
		if got := fmt.Sprint(eventNames(client), client.Events[0].Attributes); got != fmt.Sprintf("[guardyn.connected guardyn.first_byte] [guardyn.connection.reused=%v]", i == 1) {
			t.Errorf("events %s", got)
		}
		if server.Start.Before(before) || client.Start.Before(server.Start) || client.Events[1].At.Before(client.Start) ||
			client.End.Before(client.Events[1].At) || server.End.Before(client.End) {
			t.Errorf("server %v to %v, client %v to %v, first byte %v", server.Start, server.End, client.Start, client.End, client.Events[1].At)
		}
		header := o.take()[0].header
		if want := "00-" + hex.EncodeToString(tr.ID[:]) + "-" + hex.EncodeToString(client.ID[:]) + "-03"; header.Get("Traceparent") != want {
			t.Errorf("the origin got %q, want %q", header.Get("Traceparent"), want)
		}
	}
}

// Who decides, and what the origin is told.
func TestTraceDecision(t *testing.T) {
	o := startOrigin(t)
	trusting := settings(func(s *zone.Settings) { s.TrustedProxies = []string{"127.0.0.0/8"} })
	distrusting := settings(func(s *zone.Settings) { s.TrustedProxies = []string{"192.0.2.0/24"} })
	unsampled := strings.TrimSuffix(someFrom, "01") + "00"
	for _, row := range []struct {
		name      string
		share     zone.Percent
		zone      func(*zone.Zone)
		parent    string
		state     string
		traced    bool
		continued bool   // with the caller's id and parent
		toOrigin  string // of an untraced one
	}{
		{"never", 0, distrusting, "", "", false, false, ""},
		{"always", 100_00, distrusting, "", "", true, false, ""},
		{"always, continued", 100_00, distrusting, someFrom, "a=1", true, true, ""},
		{"always, continued, not sampled before", 100_00, distrusting, unsampled, "a=1", true, true, ""},
		{"never, whatever a stranger says", 0, distrusting, someFrom, "a=1", false, false, someFrom},
		{"never, and without proxies", 0, func(*zone.Zone) {}, someFrom, "a=1", false, false, someFrom},
		{"a trusted proxy says yes", 0, trusting, someFrom, "a=1", true, true, ""},
		{"a trusted proxy says no", 100_00, trusting, unsampled, "a=1", false, false, unsampled},
		{"a trusted proxy says nothing", 100_00, trusting, "", "", true, false, ""},
		{"a trusted proxy says nothing that can be read", 100_00, trusting, "00-nonsense-01", "a=1", true, false, ""},
		{"malformed, never", 0, distrusting, strings.ToUpper(someFrom), "a=1", false, false, ""},
		{"malformed, always", 100_00, distrusting, strings.ToUpper(someFrom), "a=1", true, false, ""},
		{"a state without a parent", 0, distrusting, "", "a=1", false, false, ""},
		{"a malformed state", 0, distrusting, someFrom, "A", false, false, someFrom},
		{"a malformed state, traced", 100_00, distrusting, someFrom, "A", true, true, ""},
		{"a later version, as it came", 0, distrusting, "cc" + someFrom[2:] + "-x", "a=1", false, false, "cc" + someFrom[2:] + "-x"},
	} {
		t.Run(row.name, func(t *testing.T) {
			n, traces := tracedNode(t)
			n.publish(site(o.address(), sampled(row.share), row.zone))
			var lines []string
			if row.parent != "" {
				lines = append(lines, "traceparent: "+row.parent)
			}
			if row.state != "" {
				lines = append(lines, "tracestate: "+row.state)
			}
			n.get("/", lines...)
			header := o.take()[0].header
			state := ""
			if row.state == "a=1" && (row.continued || row.toOrigin != "") {
				state = row.state
			}
			if got := strings.Join(header["Tracestate"], ","); got != state {
				t.Errorf("the origin got tracestate %q, want %q", got, state)
			}
			if !row.traced {
				n.end()
				if len(traces) > 0 || header.Get("Traceparent") != row.toOrigin {
					t.Errorf("%d traces, the origin got %q, want %q", len(traces), header.Get("Traceparent"), row.toOrigin)
				}
				return
			}
			tr := next(t, traces)
			is := hex.EncodeToString(tr.ID[:]) == someTrace && hex.EncodeToString(tr.Spans[0].Parent[:]) == someParent && tr.State == state
			if is != row.continued || !row.continued && tr.Spans[0].Parent != [8]byte{} {
				t.Errorf("got %+v", tr)
			}
			c, ok := parseTraceparent(header["Traceparent"])
			if !ok || c.trace != tr.ID || c.parent != tr.Spans[1].ID || c.flags&flagSampled == 0 || c.flags&flagRandom == 0 != row.continued {
				t.Errorf("the origin got %v", header["Traceparent"])
			}
		})
	}
}

// A zone's share is what is traced of its requests: of 4,000 at 1 % fewer than 10 or more than 90 are less likely than one in 10^9.
func TestTraceShare(t *testing.T) {
	x := &exchange{server: NewServer(Config{Trace: func(*Trace) {}}), zone: &edge.Zone{Config: &zone.Zone{}}, view: new(edge.View)}
	for _, row := range []struct {
		name        string
		share       *zone.Percent
		least, most int
	}{{"default", nil, 10, 90}, {"none", share(0), 0, 0}, {"one percent", share(1_00), 10, 90}, {"half", share(50_00), 1800, 2200}, {"all", share(100_00), 4000, 4000}} {
		x.zone.Config.Settings.TraceSampling = row.share
		n := 0
		for range 4000 {
			if picked(row.share, zone.DefaultTraceSampling) {
				n++
			}
		}
		if n < row.least || n > row.most {
			t.Errorf("%s: %d of 4,000", row.name, n)
		}
	}
}

func share(p zone.Percent) *zone.Percent { return &p }

// What a request that is not traced costs: no memory, whatever it brings.
func TestUntracedDoesNotAllocate(t *testing.T) {
	for _, row := range []struct {
		name string
		h    http.Header
	}{
		{"nothing came", http.Header{"Accept": {"*/*"}}},
		{"a context came", http.Header{"Traceparent": {someFrom}, "Tracestate": {"a=1,b=2"}}},
		{"a malformed one came", http.Header{"Traceparent": {strings.ToUpper(someFrom)}, "Tracestate": {"a=1"}}},
	} {
		z := &edge.Zone{Config: &zone.Zone{Settings: zone.Settings{TraceSampling: share(0)}}}
		x := &exchange{server: NewServer(Config{Trace: func(*Trace) {}}), zone: z, r: &http.Request{}, target: new(target)}
		now := time.Now()
		if n := testing.AllocsPerRun(1000, func() {
			x.r.Header = row.h
			x.follow(false, now)
			x.try()
			x.tryAnswered(200, now)
			x.endTrace(now)
		}); n != 0 || x.trace != nil {
			t.Errorf("%s: %g allocations", row.name, n)
		}
	}
}

func TestTraceOverHTTP2(t *testing.T) {
	o, _ := http2Origin(t, false, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Header.Get("Traceparent")) })
	a := newAuthority(t)
	n, traces := tracedNode(t, withTLS)
	n.publish(site(o.Listener.Addr().String(), scheme(zone.SchemeH2C), sampled(100_00), tlsHost("www.example.com", a.issue(false, "www.example.com"))))
	client := n.client(a, true)
	for i := range 2 {
		res, body := n.fetch(client, "https://www.example.com/x", "")
		tr := next(t, traces)
		c, ok := parseTraceparent([]string{body})
		if res.ProtoMajor != 2 || !ok || len(tr.Spans) != 2 || c.trace != tr.ID || c.parent != tr.Spans[1].ID {
			t.Fatalf("%s, the origin got %q, the trace is %+v", res.Proto, body, tr)
		}
		if got := attributes(tr.Spans[0], "network.protocol", "url.scheme", "tls"); got != "network.protocol.version=2 tls.protocol.version=1.3 url.scheme=https" {
			t.Errorf("server: %s", got)
		}
		if got := attributes(tr.Spans[1], "network.protocol", "http.response", "url.full"); got != "http.response.status_code=200 network.protocol.version=2 url.full=http://www.example.com/x" {
			t.Errorf("client: %s", got)
		}
		if got := fmt.Sprint(tr.Spans[1].Events[0].Attributes); got != fmt.Sprintf("[guardyn.connection.reused=%v]", i == 1) {
			t.Errorf("connected: %s", got)
		}
	}
}

// A WebSocket's trace is told once the connection has switched, not at its end.
func TestTraceOfAWebSocket(t *testing.T) {
	o := httptest.NewServer(http.HandlerFunc(echoUpgrade))
	t.Cleanup(o.Close)
	n, traces := tracedNode(t)
	n.publish(site(o.Listener.Addr().String(), sampled(100_00)))
	c, b := n.upgrade("/")
	tr := next(t, traces)
	if len(tr.Spans) != 2 || attributes(tr.Spans[0], "http.response.status") != "http.response.status_code=101" ||
		attributes(tr.Spans[1], "http.response.status") != "http.response.status_code=101" || tr.Spans[0].Failed || tr.Spans[1].Failed {
		t.Errorf("got %+v", tr)
	}
	io.WriteString(c, "hello")
	if got := make([]byte, 5); true {
		if _, err := io.ReadFull(b, got); err != nil || string(got) != "hello" {
			t.Errorf("got %q, %v", got, err)
		}
	}
	c.Close()
	n.end()
	if len(traces) != 0 {
		t.Errorf("told again: %+v", next(t, traces))
	}
}

// What is answered from the cache has no try, and says so; what a function answers has its call.
func TestTraceOfTheCacheAndFunctions(t *testing.T) {
	o := startOrigin(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Cache-Control", "max-age=60") })
	n, traces := tracedNode(t, func(c *Config) { c.Cache = cache.New(cache.MinMemory) })
	n.publish(site(o.address(), sampled(100_00),
		with(t, "page", answers("Content-Type: text/plain\n\nhi")), with(t, "none", answers("no head"))))
	for _, row := range []struct{ path, cache, spans string }{
		{"/", "guardyn.cache=miss", "GET ok"},
		{"/", "guardyn.cache=hit", ""},
		{"/page", "guardyn.cache=miss", "function page ok guardyn.function.output=28"},
		{"/none", "guardyn.cache=miss", "function none failed error.type=answer guardyn.function.output=7"},
	} {
		n.get(row.path)
		tr := next(t, traces)
		var spans []string
		for _, s := range tr.Spans[1:] {
			state := "ok"
			if s.Failed {
				state = "failed"
			}
			if kind := SpanInternal; s.Parent != tr.Spans[0].ID || s.End.Before(s.Start) || (s.Kind == kind) != strings.HasPrefix(s.Name, "function") {
				t.Errorf("%s: %+v", row.path, s)
			}
			spans = append(spans, strings.TrimSpace(s.Name+" "+state+" "+attributes(s, "error.type", "guardyn.function.output")))
		}
		if got := attributes(tr.Spans[0], "guardyn.cache"); got != row.cache || strings.Join(spans, "; ") != row.spans {
			t.Errorf("%s: %s, %q, want %s, %q", row.path, got, spans, row.cache, row.spans)
		}
	}
}

// What the node answers by itself has no try; what is refused before its zone is known, or is too much for it, no trace.
func TestTraceWithoutAnOrigin(t *testing.T) {
	n, traces := tracedNode(t)
	n.publish(site("127.0.0.1:1", sampled(100_00), rule(zone.PhaseCustom, `http.path == "/no"`, zone.ActionBlock, zone.Parameters{})))
	n.ask("GET", "www.example.org", "/")
	n.ask("PURGE-ALL", "www.example.com", "/no")
	tr := next(t, traces)
	if len(tr.Spans) != 1 || tr.Spans[0].Failed || tr.Spans[0].Name != "HTTP" || attributes(tr.Spans[0], "http.request", "http.response.status", "guardyn.rules") !=
		"guardyn.rules=[custom/1/block] http.request.method=_OTHER http.request.method_original=PURGE-ALL http.response.status_code=403" {
		t.Errorf("got %+v", tr)
	}
	n.end()
	if len(traces) > 0 {
		t.Errorf("and %+v", next(t, traces))
	}
}

func TestTraceOfAClientThatLeft(t *testing.T) {
	entered := make(chan struct{})
	o := startOrigin(t, func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	})
	n, traces := tracedNode(t)
	n.publish(site(o.address(), sampled(100_00)))
	c := n.dial()
	io.WriteString(c, "GET / HTTP/1.1\r\nHost: www.example.com\r\n\r\n")
	<-entered
	c.Close()
	tr := next(t, traces)
	if tr.Spans[0].Failed || attributes(tr.Spans[0], "guardyn.client", "http.response") != "guardyn.client_left=true" {
		t.Errorf("got %+v", tr)
	}
}

// A trace is bounded, whatever is added to it.
func TestTraceIsBounded(t *testing.T) {
	o := startOrigin(t)
	n, traces := tracedNode(t)
	z := site(o.address(), sampled(100_00))
	for range 40 {
		rule(zone.PhaseCustom, "true", zone.ActionLog, zone.Parameters{})(z)
	}
	n.publish(z)
	n.get("/")
	tr := next(t, traces)
	for _, a := range tr.Spans[0].Attributes {
		if a.Key == "guardyn.rules" && len(a.Value.Any().([]string)) != maxLogged {
			t.Errorf("%d rules", len(a.Value.Any().([]string)))
		}
	}
	r := &requestTrace{Trace: Trace{Spans: make([]Span, 1)}}
	for i := range 100 {
		r.attribute(slog.Int("n", i), slog.Int("m", i))
		r.event(time.Now(), "e")
	}
	if s := r.Spans[0]; len(s.Attributes) != maxAttributes || len(s.Events) != maxEvents {
		t.Errorf("%d attributes, %d events", len(s.Attributes), len(s.Events))
	}
	x := &exchange{trace: r, target: new(target), r: &http.Request{Header: http.Header{}}, server: NewServer(Config{})}
	for range 100 {
		x.try()
	}
	if len(r.Spans) != maxSpans {
		t.Errorf("%d spans", len(r.Spans))
	}
}
