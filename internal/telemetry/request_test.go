package telemetry

import (
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// playedCollector takes spans as an OpenTelemetry collector does, once it may, and answers with status.
type playedCollector struct {
	t *testing.T
	*httptest.Server
	may    chan struct{} // closed: it may
	status int

	mu    sync.Mutex
	spans []*otlp.Span
}

func startCollector(t *testing.T, status int) *playedCollector {
	c := &playedCollector{t: t, may: make(chan struct{}), status: status}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *playedCollector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var req collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &req)
	}
	if err != nil {
		c.t.Error(err)
	}
	<-c.may
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rs := range req.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			c.spans = append(c.spans, ss.Spans...)
		}
	}
	w.WriteHeader(c.status)
}

func newTracer(t *testing.T, c *playedCollector) *Tracer {
	t.Helper()
	tr, err := New(Config{Endpoint: c.URL, Service: "s", Instance: "i", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func id(n byte) (id [8]byte) { id[0] = n; return id }

func TestRequest(t *testing.T) {
	c := startCollector(t, http.StatusOK)
	close(c.may)
	tr := newTracer(t, c)
	at := time.Unix(1_700_000_000, 0)
	request := func(trace byte, parent [8]byte, state string) Request {
		return Request{Trace: [16]byte{trace}, State: state, Spans: []RequestSpan{
			{ID: id(1), Parent: parent, Error: true, Span: Span{Name: "GET", Start: at, End: at.Add(time.Second), Attributes: []slog.Attr{
				slog.Int("n", 1), slog.Bool("b", true), slog.Float64("f", 0.5), slog.String("s", "x"), slog.Any("list", []string{"a", "b"}),
			}}},
			{ID: id(2), Parent: id(1), Kind: Client, Span: Span{Name: "try", Start: at, End: at.Add(-time.Second)}, Events: []Event{
				{Name: "connected", At: at.Add(time.Millisecond), Attributes: []slog.Attr{slog.Bool("reused", true)}},
			}},
		}}
	}
	tr.Request(request(1, [8]byte{}, ""))
	tr.Request(request(2, id(9), "a=1,b=2"))
	tr.Request(request(3, id(9), "not a state"))
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	if s := tr.Stats(); s != (Stats{Sent: 6}) || tr.queue.waiting.Load() != 0 {
		t.Errorf("%+v, %d wait", s, tr.queue.waiting.Load())
	}
	got := map[string]*otlp.Span{}
	for _, s := range c.spans {
		got[hex.EncodeToString(s.TraceId[:1])+hex.EncodeToString(s.SpanId[:1])] = s
	}
	if len(c.spans) != 6 || len(got) != 6 {
		t.Fatalf("got %v", c.spans)
	}
	const sampled, hasRemote, remote = 1, 0x100, 0x200
	for name, want := range map[string]struct {
		parent, state string
		flags         uint32
	}{
		"0101": {"", "", sampled | hasRemote}, "0102": {"01", "", sampled | hasRemote},
		"0201": {"09", "a=1,b=2", sampled | hasRemote | remote}, "0202": {"01", "a=1,b=2", sampled | hasRemote},
		"0301": {"09", "", sampled | hasRemote | remote}, "0302": {"01", "", sampled | hasRemote},
	} {
		s := got[name]
		parent := ""
		if len(s.ParentSpanId) > 0 {
			parent = hex.EncodeToString(s.ParentSpanId[:1])
		}
		if parent != want.parent || s.TraceState != want.state || s.Flags != want.flags {
			t.Errorf("%s: parent %s, state %q, flags %x, want %+v", name, parent, s.TraceState, s.Flags, want)
		}
	}
	server, client := got["0101"], got["0102"]
	if server.Kind != otlp.Span_SPAN_KIND_SERVER || server.Status.GetCode() != otlp.Status_STATUS_CODE_ERROR || len(server.Attributes) != 5 ||
		server.Attributes[4].Value.GetArrayValue().GetValues()[1].GetStringValue() != "b" || server.EndTimeUnixNano-server.StartTimeUnixNano != 1e9 {
		t.Errorf("server %v", server)
	}
	if client.Kind != otlp.Span_SPAN_KIND_CLIENT || client.Status.GetCode() == otlp.Status_STATUS_CODE_ERROR || client.EndTimeUnixNano != client.StartTimeUnixNano ||
		len(client.Events) != 1 || client.Events[0].TimeUnixNano-client.StartTimeUnixNano != 1e6 || len(client.Events[0].Attributes) != 1 {
		t.Errorf("client %v", client)
	}
}

// While the collector takes nothing, requests fill what they may; the rest is counted, whole traces at a time, and a rollout still has room.
func TestQueueIsBounded(t *testing.T) {
	c := startCollector(t, http.StatusOK)
	tr := newTracer(t, c)
	now := time.Now()
	const n = 2000
	for range n {
		tr.Request(Request{Trace: [16]byte{1}, Spans: []RequestSpan{{ID: id(1), Span: Span{Name: "a", Start: now, End: now}}, {ID: id(2), Parent: id(1), Span: Span{Name: "b", Start: now, End: now}}}})
	}
	s := tr.Stats()
	if waiting := tr.queue.waiting.Load(); waiting > maxRequests || s.Dropped < 2*n-maxRequests || s.Dropped%2 != 0 {
		t.Errorf("%d wait, %+v", waiting, s)
	}
	tr.Part(uuid, Span{Name: "swap", Start: now, End: now})
	if after := tr.Stats(); after.Dropped != s.Dropped {
		t.Error("the rollout's span was dropped")
	}
	close(c.may)
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	names := map[string]int{}
	for _, s := range c.spans {
		names[s.Name]++
	}
	if s = tr.Stats(); names["swap"] != 1 || names["a"] != names["b"] || s.Sent != uint64(len(c.spans)) || s.Sent+s.Dropped != 2*n+1 || s.Failed != 0 {
		t.Errorf("%v arrived, %+v", names, s)
	}
}

// What a collector refuses is counted, and makes room.
func TestCollectorThatRefuses(t *testing.T) {
	c := startCollector(t, http.StatusBadRequest)
	close(c.may)
	tr := newTracer(t, c)
	now := time.Now()
	for range 10 {
		tr.Request(Request{Trace: [16]byte{1}, Spans: []RequestSpan{{ID: id(1), Span: Span{Name: "a", Start: now, End: now}}}})
	}
	if err := tr.Close(); err != nil {
		t.Fatal(err)
	}
	if s := tr.Stats(); s != (Stats{Failed: 10}) || tr.queue.waiting.Load() != 0 {
		t.Errorf("%+v, %d wait", s, tr.queue.waiting.Load())
	}
	var none *Tracer
	none.Request(Request{Spans: make([]RequestSpan, 1)})
	if none.Stats() != (Stats{}) {
		t.Error("nobody counts")
	}
}

func BenchmarkRequest(b *testing.B) {
	tr, err := New(Config{Endpoint: "http://127.0.0.1:1", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer tr.Close()
	now := time.Now()
	attributes := make([]slog.Attr, 12)
	for i := range attributes {
		attributes[i] = slog.String("some.attribute", "value")
	}
	r := Request{Trace: [16]byte{1}, Spans: []RequestSpan{
		{ID: id(1), Span: Span{Name: "GET", Start: now, End: now, Attributes: attributes}},
		{ID: id(2), Parent: id(1), Span: Span{Name: "GET", Start: now, End: now, Attributes: attributes}},
	}}
	b.ReportAllocs()
	for b.Loop() {
		tr.Request(r)
		tr.queue.waiting.Store(0) // as if it had gone
	}
}
