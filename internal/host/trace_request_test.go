package host_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/guardyn-edge/guardyn/edge/perzone"
	"github.com/guardyn-edge/guardyn/internal/host"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/zone"
)

// startAlone starts a node that serves example.test, after change, of a control plane that is played.
func startAlone(t *testing.T, origin string, change func(*zone.Zone), configure func(*host.EdgeConfig)) (*host.Edge, *playedControlPlane) {
	t.Helper()
	key := signingKey(t)
	trusted, err := seal.Trust(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	plane := &playedControlPlane{t: t, key: key, origin: origin, change: change}
	server := httptest.NewServer(plane)
	t.Cleanup(server.Close)
	cfg := host.EdgeConfig{
		APIURL: server.URL, Token: "gdn_" + fmt.Sprintf("%064x", 1), PublicKeys: trusted, StateDir: t.TempDir(),
		DNSAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0", AdminAddr: "127.0.0.1:0",
		AllowedOrigins: loopback(), RateLimitExempt: loopback(), Interval: time.Millisecond, Wait: 50 * time.Second,
	}
	configure(&cfg)
	node, err := host.StartEdge(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := node.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	plane.publish(1)
	plane.served(1)
	return node, plane
}

func traced(z *zone.Zone) {
	all := zone.Percent(100_00)
	z.Settings.TraceSampling = &all
}

// ask asks a node for a path of www.example.test, with fields of its own.
func ask(t *testing.T, node *host.Edge, path string, fields ...string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+node.HTTPAddr()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "www.example.test"
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode
}

// all returns the spans of each trace that has come, once there are n traces.
func (c *playedCollector) all(n int) map[string][]taken {
	c.t.Helper()
	end := time.NewTimer(30 * time.Second)
	defer end.Stop()
	for {
		c.mu.Lock()
		traces := map[string][]taken{}
		for id, named := range c.spans {
			for _, spans := range named {
				traces[id] = append(traces[id], spans...)
			}
		}
		c.mu.Unlock()
		if len(traces) >= n {
			return traces
		}
		select {
		case <-c.more:
		case <-end.C:
			c.t.Fatalf("%d traces, want %d", len(traces), n)
		}
	}
}

const callersTrace, callersSpan = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"

// What a collector gets of requests, by sockets on both sides: who is whose parent, and what failed.
func TestRequestTraces(t *testing.T) {
	told := make(chan string, 100) // traceparent and tracestate, as the origin got them
	origin := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			_ = rw.Flush()
			_, _ = rw.ReadByte()
			return
		}
		told <- r.Header.Get("Traceparent") + " " + r.Header.Get("Tracestate")
		if r.URL.Path == "/503" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	origin.Config.Protocols = new(http.Protocols)
	origin.Config.Protocols.SetHTTP1(true)
	origin.Config.Protocols.SetUnencryptedHTTP2(true)
	origin.Start()
	defer origin.Close()
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = dead.Close()
	address := origin.Listener.Addr().String()
	for _, row := range []struct {
		name, path string
		fields     []string
		trusted    bool
		share      zone.Percent
		origins    []zone.Origin
		status     int
		traced     bool
		parent     string   // of the server's span
		failed     []string // names of spans: SERVER or CLIENT
		clients    int
	}{
		{name: "begins here", share: 100_00, status: 200, traced: true, clients: 1},
		{name: "goes on", share: 100_00, fields: []string{"traceparent", "00-" + callersTrace + "-" + callersSpan + "-00", "tracestate", "a=1"}, status: 200, traced: true, parent: callersSpan, clients: 1},
		{name: "a stranger cannot decide", share: 0, fields: []string{"traceparent", "00-" + callersTrace + "-" + callersSpan + "-01"}, status: 200},
		{name: "a trusted proxy can", trusted: true, share: 0, fields: []string{"traceparent", "00-" + callersTrace + "-" + callersSpan + "-01"}, status: 200, traced: true, parent: callersSpan, clients: 1},
		{name: "and against", trusted: true, share: 100_00, fields: []string{"traceparent", "00-" + callersTrace + "-" + callersSpan + "-00"}, status: 200},
		{name: "malformed", share: 100_00, fields: []string{"traceparent", "00-" + callersTrace + "-0000000000000000-01", "tracestate", "a=1"}, status: 200, traced: true, clients: 1},
		{name: "a 503", path: "503", share: 100_00, status: 503, traced: true, failed: []string{"CLIENT", "SERVER"}, clients: 1},
		{name: "HTTP/2", share: 100_00, origins: []zone.Origin{{Name: "a", Address: address, Scheme: zone.SchemeH2C}}, status: 200, traced: true, clients: 1},
		{name: "nobody there", share: 100_00, origins: []zone.Origin{{Name: "a", Address: dead.Addr().String()}}, status: 502, traced: true, failed: []string{"CLIENT", "SERVER"}, clients: 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := startCollector(t)
			node, _ := startAlone(t, address, func(z *zone.Zone) {
				z.Settings.TraceSampling = &row.share
				if row.trusted {
					z.Settings.TrustedProxies = []string{"127.0.0.0/8"}
				}
				if row.origins != nil {
					z.Pools["default"] = zone.Pool{Origins: row.origins}
				}
			}, func(cfg *host.EdgeConfig) { cfg.TraceEndpoint = c.URL + "/otlp" })
			if got := ask(t, node, "/"+row.path, row.fields...); got != row.status {
				t.Fatalf("answered %d", got)
			}
			parent, state := "", ""
			if len(told) > 0 {
				parent, state, _ = strings.Cut(<-told, " ")
			}
			if !row.traced {
				if err := node.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				if len(c.all(0)) > 0 || parent != row.fields[1] {
					t.Errorf("traced %v, the origin was told %q", c.all(0), parent)
				}
				return
			}
			var server taken
			var clients []taken
			var failed []string
			var trace string
			for id, spans := range c.all(1) {
				trace = id
				for _, s := range spans {
					if s.Kind == otlp.Span_SPAN_KIND_SERVER {
						server = s
					} else {
						clients = append(clients, s)
					}
					if s.Status.GetCode() == otlp.Status_STATUS_CODE_ERROR {
						failed = append(failed, strings.TrimPrefix(s.Kind.String(), "SPAN_KIND_"))
					}
				}
			}
			if slices.Sort(failed); !slices.Equal(failed, row.failed) || server.Span == nil || len(clients) != row.clients || server.service != "guardyn-edge" {
				t.Fatalf("server %v, clients %v, failed %q", server.Span, clients, failed)
			}
			if got := hex.EncodeToString(server.ParentSpanId); got != row.parent || row.parent != "" && trace != callersTrace {
				t.Errorf("trace %s, parent %q", trace, got)
			}
			for _, s := range clients {
				if !bytes.Equal(s.ParentSpanId, server.SpanId) || s.StartTimeUnixNano < server.StartTimeUnixNano || s.EndTimeUnixNano > server.EndTimeUnixNano {
					t.Errorf("%v is not within %v", s.Span, server.Span)
				}
			}
			if want := fmt.Sprintf("00-%s-%x-01 a=1", trace, clients[len(clients)-1].SpanId); row.name == "goes on" && parent+" "+state != want {
				t.Errorf("the origin was told %s %s, want %s", parent, state, want)
			}
			if got := attribute(server.Attributes, "url.path"); got != "/"+row.path {
				t.Errorf("path %q", got)
			}
		})
	}
	t.Run("a retried origin, and a WebSocket", func(t *testing.T) {
		c := startCollector(t)
		node, _ := startAlone(t, address, func(z *zone.Zone) {
			traced(z)
			z.Pools["default"] = zone.Pool{Origins: []zone.Origin{{Name: "a", Address: dead.Addr().String()}, {Name: "b", Address: address}}}
			off := false
			p := z.Pools["default"]
			p.OutlierDetection = &zone.OutlierDetection{Enabled: &off}
			z.Pools["default"] = p
			z.LoadBalancers = map[zone.Name]zone.LoadBalancer{zone.MustName("www.example.test"): {Pools: []string{"default"}}}
		}, func(cfg *host.EdgeConfig) { cfg.TraceEndpoint = c.URL + "/otlp" })
		for range 2 { // one of both begins with a
			if got := ask(t, node, "/"); got != 200 {
				t.Fatalf("answered %d", got)
			}
		}
		tries := map[int]int{}
		for _, spans := range c.all(2) {
			tries[len(spans)-1]++
			failed := 0
			for _, s := range spans {
				if s.Status.GetCode() == otlp.Status_STATUS_CODE_ERROR {
					failed++
				}
			}
			if failed != len(spans)-2 {
				t.Errorf("%d of %v failed", failed, spans)
			}
		}
		if tries[1] != 1 || tries[2] != 1 {
			t.Errorf("tries %v", tries)
		}
		ws, err := net.Dial("tcp", node.HTTPAddr())
		if err != nil {
			t.Fatal(err)
		}
		defer ws.Close()
		fmt.Fprint(ws, "GET /ws HTTP/1.1\r\nHost: www.example.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		if res, err := http.ReadResponse(bufio.NewReader(ws), nil); err != nil || res.StatusCode != 101 {
			t.Fatalf("%v, %v", res, err)
		}
		c.all(3) // while it is open
	})
}

// A collector that takes nothing slows no request, and what it missed is counted.
func TestRequestsOutliveTheCollector(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer origin.Close()
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer silent.Close()
	node, _ := startAlone(t, origin.Listener.Addr().String(), traced, func(cfg *host.EdgeConfig) { cfg.TraceEndpoint = silent.URL })
	lost := regexp.MustCompile(`(?m)^guardyn_edge_trace_spans_lost_total\{reason="dropped"\} (\S+)$`)
	dropped := func() float64 {
		m := lost.FindStringSubmatch(metricsOf(t, "http://"+node.AdminAddr()))
		if m == nil {
			t.Fatal("nothing tells of lost spans")
		}
		n, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for asked := 0; dropped() == 0; asked += 100 {
		if asked > 4000 {
			t.Fatal("nothing is dropped")
		}
		for range 100 {
			if got := ask(t, node, "/"); got != 200 {
				t.Fatalf("answered %d", got)
			}
		}
	}
}

func metricsOf(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v", res.Status, err)
	}
	return string(text)
}

// Counts of single zones go on when the zone changes, and are there for zones that were named alone.
func TestMetricsOfZones(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer origin.Close()
	for _, row := range []struct {
		name      string
		selection perzone.Selection
		want      []string // lines, those of buckets left out
	}{
		{"none", perzone.Selection{}, nil},
		{"all", perzone.Selection{All: true}, []string{
			`guardyn_edge_zone_dns_queries_total{rcode="NOERROR",zone="example.test"} 2`, `guardyn_edge_zone_http_request_duration_seconds_count{zone="example.test"} 2`,
			`guardyn_edge_zone_http_request_duration_seconds_count{zone="other"} 0`, `guardyn_edge_zone_http_requests_total{class="2xx",zone="example.test"} 2`,
		}},
		{"another", perzone.Selection{Names: []string{"example.org"}}, []string{
			`guardyn_edge_zone_dns_queries_total{rcode="NOERROR",zone="other"} 2`, `guardyn_edge_zone_http_request_duration_seconds_count{zone="example.org"} 0`,
			`guardyn_edge_zone_http_request_duration_seconds_count{zone="other"} 2`, `guardyn_edge_zone_http_requests_total{class="2xx",zone="other"} 2`,
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			node, plane := startAlone(t, origin.Listener.Addr().String(), nil, func(cfg *host.EdgeConfig) { cfg.MetricsZones = row.selection })
			for v := uint64(1); v <= 2; v++ {
				if v > 1 {
					plane.publish(v)
					plane.served(v)
				}
				passingDNS(t, node)
				ask(t, node, "/")
			}
			var got []string
			// A request is counted a moment after its answer.
			tick, end := time.NewTicker(10*time.Millisecond), time.NewTimer(20*time.Second)
			defer tick.Stop()
			defer end.Stop()
			for {
				got = nil
				for line := range strings.Lines(metricsOf(t, "http://"+node.AdminAddr())) {
					if strings.HasPrefix(line, "guardyn_edge_zone_") && !strings.Contains(line, "_bucket{") && !strings.Contains(line, "_sum{") {
						got = append(got, strings.TrimSpace(line))
					}
				}
				if slices.Sort(got); slices.Equal(got, row.want) {
					return
				}
				select {
				case <-tick.C:
				case <-end.C:
					t.Fatalf("got %q, want %q", got, row.want)
				}
			}
		})
	}
}

// The trace of a request is named in its record of the access log.
func TestTraceInTheAccessLog(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer origin.Close()
	c := startCollector(t)
	path := filepath.Join(t.TempDir(), "access.log")
	node, _ := startAlone(t, origin.Listener.Addr().String(), traced, func(cfg *host.EdgeConfig) {
		cfg.TraceEndpoint, cfg.AccessLog = c.URL+"/otlp", path
	})
	ask(t, node, "/")
	for id := range c.all(1) {
		if err := node.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		log, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(log), `"trace_id":"`+id+`"`) {
			t.Errorf("no %s in %s: %v", id, log, err)
		}
	}
}
