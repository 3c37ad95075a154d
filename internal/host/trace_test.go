package host_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/internal/host"
)

// playedCollector takes spans as an OpenTelemetry collector does.
type playedCollector struct {
	t *testing.T
	*httptest.Server
	mu    sync.Mutex
	spans map[string]map[string][]taken // by trace and name
	more  chan struct{}
}

type taken struct {
	*otlp.Span
	service string
}

func startCollector(t *testing.T) *playedCollector {
	c := &playedCollector{t: t, spans: map[string]map[string][]taken{}, more: make(chan struct{}, 1)}
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
	if err != nil || r.URL.Path != "/otlp/v1/traces" {
		c.t.Errorf("%s %s: %v", r.Method, r.URL, err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	for _, rs := range req.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				trace := hex.EncodeToString(s.TraceId)
				if c.spans[trace] == nil {
					c.spans[trace] = map[string][]taken{}
				}
				c.spans[trace][s.Name] = append(c.spans[trace][s.Name], taken{s, attribute(rs.Resource.Attributes, "service.name")})
			}
		}
	}
	c.mu.Unlock()
	select {
	case c.more <- struct{}{}:
	default:
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
	answer, err := proto.Marshal(&collector.ExportTraceServiceResponse{})
	if err != nil {
		c.t.Error(err)
	}
	_, _ = w.Write(answer)
}

func attribute(all []*common.KeyValue, key string) string {
	for _, a := range all {
		if a.Key == key {
			switch v := a.Value.Value.(type) {
			case *common.AnyValue_StringValue:
				return v.StringValue
			case *common.AnyValue_IntValue:
				return string(rune('0' + v.IntValue))
			}
		}
	}
	return ""
}

// await returns a trace once it has that many spans of each name, at least one where none is told, and no other.
func (c *playedCollector) await(trace string, want map[string]int) map[string][]taken {
	c.t.Helper()
	end := time.NewTimer(30 * time.Second)
	defer end.Stop()
	for {
		c.mu.Lock()
		have := map[string]int{}
		for name, spans := range c.spans[trace] {
			if have[name] = len(spans); want[name] == 0 {
				have[name] = 0
			}
		}
		spans := maps.Clone(c.spans[trace])
		c.mu.Unlock()
		if maps.Equal(have, want) {
			return spans
		}
		select {
		case <-c.more:
		case <-end.C:
			c.t.Fatalf("trace %s has %v, want %v", trace, have, want)
		}
	}
}

// A rollout is one trace over the control plane and the nodes, whose id is in the logs of all.
func TestRolloutIsOneTrace(t *testing.T) {
	c := startCollector(t)
	var logs lockedBuffer
	cfg := controlConfig(t)
	cfg.TraceEndpoint = c.URL + "/otlp/"
	cfg.Logger = slog.New(slog.NewJSONHandler(&logs, nil))
	f := startFleet(t, cfg)
	one := origin(t, "one")
	f.edit("1", one)
	f.apply(nil)
	f.serves("1", "one")
	f.tells(map[string]any{"cohort": true, "stale": false})

	f.edit("2", one)
	confirmed := f.apply(toConfirm())
	if confirmed.State != "confirmed" {
		t.Fatalf("%+v", confirmed)
	}
	trace := traceOf(confirmed)
	spans := c.await(trace, map[string]int{"rollout": 1, "votes": 1, "trial": 1, "build": 3, "vote": 3, "swap": 3, "converge": 3})
	root := spans["rollout"][0]
	if len(root.ParentSpanId) != 0 || root.service != "guardyn-control" || attribute(root.Attributes, "state") != "confirmed" ||
		attribute(root.Attributes, "generation") != "2" || attribute(root.Attributes, "version") != "2" {
		t.Errorf("the root: %v of %s", root.Span, root.service)
	}
	var members []string
	for _, m := range confirmed.Members {
		members = append(members, m.ID)
	}
	slices.Sort(members)
	for name, all := range spans {
		var nodes []string
		for _, s := range all {
			if name != "rollout" && !bytes.Equal(s.ParentSpanId, root.SpanId) {
				t.Errorf("%s has another parent: %v", name, s.Span)
			}
			if s.EndTimeUnixNano < s.StartTimeUnixNano || s.StartTimeUnixNano < root.StartTimeUnixNano || s.Status.GetCode() == otlp.Status_STATUS_CODE_ERROR ||
				attribute(s.Attributes, "generation") != "2" || attribute(s.Attributes, "version") != "2" {
				t.Errorf("%s: %v", name, s.Span)
			}
			if s.service == "guardyn-edge" {
				nodes = append(nodes, attribute(s.Attributes, "node"))
			}
		}
		if slices.Sort(nodes); len(nodes) > 0 && !slices.Equal(nodes, members) {
			t.Errorf("%s of %v, want one of each of %v", name, nodes, members)
		}
	}
	// It is in the lines of the one that proposed, of the one that decides and of those that build and swap.
	said := map[string]bool{}
	for line := range strings.Lines(logs.String()) {
		var l struct {
			Msg, Verb, Act string
			Trace          string `json:"trace_id"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if l.Trace == trace {
			said[l.Msg+" "+l.Verb+l.Act] = true
		}
	}
	for _, want := range []string{"a rollout was proposed ", "rollout commit", "rollout confirm", "rollout build", "rollout ack", "rollout swap", "serving "} {
		if !said[want] {
			t.Errorf("no line %q has the trace's id; those that have: %v", want, slices.Sorted(maps.Keys(said)))
		}
	}

	f.edit("3", "127.0.0.1:1")
	reverted := f.apply(toRevert())
	if reverted.State != "reverted" {
		t.Fatalf("%+v", reverted)
	}
	spans = c.await(traceOf(reverted), map[string]int{"rollout": 1, "votes": 1, "trial": 1, "build": 3, "vote": 3, "swap": 3, "converge": 0, "revert": 3})
	for _, s := range spans["converge"] {
		if s.Status.GetCode() != otlp.Status_STATUS_CODE_ERROR || !strings.Contains(s.Status.GetMessage(), "www.example.com") {
			t.Errorf("what did not work: %v", s.Span)
		}
	}
	if s := spans["rollout"][0]; s.Status.GetCode() != otlp.Status_STATUS_CODE_ERROR || s.Status.GetMessage() == "" {
		t.Errorf("the root: %v", s.Span)
	}
}

func traceOf(ro *api.Rollout) string { return strings.ReplaceAll(ro.ID, "-", "") }

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A collector that is away, or takes nothing, keeps nothing from working and from stopping.
func TestCollectorIsAway(t *testing.T) {
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then is it seen that the client has left
		<-r.Context().Done()
	}))
	t.Cleanup(silent.Close)
	for name, endpoint := range map[string]string{"refuses": "http://127.0.0.1:1", "silent": silent.URL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := controlConfig(t)
			cfg.TraceEndpoint = endpoint
			f := startFleet(t, cfg)
			one := origin(t, "one")
			f.edit("1", one)
			f.apply(nil)
			f.tells(map[string]any{"cohort": true, "stale": false})
			f.edit("2", one)
			if ro := f.apply(&api.RolloutOptions{Mode: "coordinated"}); ro.State != "committed" {
				t.Fatalf("%+v", ro)
			}
			f.serves("2", "one")
		})
	}
	cfg := controlConfig(t)
	cfg.TraceEndpoint = "collector:4318"
	if _, err := host.StartControl(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "endpoint for traces") {
		t.Error(err)
	}
}
