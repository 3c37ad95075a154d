// Package telemetry tells an OpenTelemetry collector of rollouts, each as one trace over all processes that took part, whose id it puts
// into their logs, and of requests.
package telemetry

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Bounds of what waits to be sent. A span beyond them is dropped, and nobody waits. Spans of requests leave room for those of
// rollouts, of which there are few.
const (
	maxQueue      = 2048
	maxRequests   = maxQueue - 256
	maxBatch      = 512
	batchEvery    = time.Second
	exportTimeout = 10 * time.Second
	closeTimeout  = 3 * time.Second
)

// Config of a Tracer.
type Config struct {
	// Endpoint is the collector's base URL (http or https); spans go to v1/traces below it, by OTLP over HTTP. Headers, certificates and
	// compression are those of the OTEL_EXPORTER_OTLP_ variables.
	Endpoint string
	// Service and Instance tell processes apart: service.name and service.instance.id.
	Service, Instance string
	Logger            *slog.Logger // must be set
}

// Tracer sends spans. It is safe for concurrent use; a nil Tracer does nothing.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	requests trace.Tracer
	queue    *queue
}

// queue bounds the spans between their end and their export. The library's own queue, as long as this one, drops without a
// count, and would keep half of a trace.
type queue struct {
	waiting               atomic.Int64
	sent, dropped, failed atomic.Uint64
}

// take reserves room for n spans among at most limit.
func (q *queue) take(n int, limit int64) bool {
	if q.waiting.Add(int64(n)) <= limit {
		return true
	}
	q.waiting.Add(int64(-n))
	q.dropped.Add(uint64(n))
	return false
}

// Stats counts spans since the Tracer was made.
type Stats struct {
	// Sent were taken by the collector. Dropped never left, since too many waited; Failed did, and the collector did not take them.
	Sent, Dropped, Failed uint64
}

// Stats returns the counts, zero for a nil Tracer.
func (t *Tracer) Stats() Stats {
	if t == nil {
		return Stats{}
	}
	return Stats{Sent: t.queue.sent.Load(), Dropped: t.queue.dropped.Load(), Failed: t.queue.failed.Load()}
}

// New returns a Tracer, nil when no endpoint is given. It does not connect. The caller closes it.
func New(c Config) (*Tracer, error) {
	if c.Endpoint == "" {
		return nil, nil
	}
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("endpoint for traces: want http://host:port or https://host:port, and a path at most")
	}
	to, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(u.JoinPath("v1", "traces").String()),
		otlptracehttp.WithTimeout(exportTimeout))
	if err != nil {
		return nil, fmt.Errorf("endpoint for traces: %w", err)
	}
	q := new(queue)
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithIDGenerator(ids{}),
		sdktrace.WithSampler(sdktrace.AlwaysSample()),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", c.Service), attribute.String("service.instance.id", c.Instance))),
		sdktrace.WithBatcher(&exporter{SpanExporter: to, queue: q, log: c.Logger},
			sdktrace.WithMaxQueueSize(maxQueue), sdktrace.WithMaxExportBatchSize(maxBatch),
			sdktrace.WithBatchTimeout(batchEvery), sdktrace.WithExportTimeout(exportTimeout)),
	)
	return &Tracer{provider: provider, tracer: provider.Tracer("guardyn"), requests: provider.Tracer("guardyn/edge"), queue: q}, nil
}

// Span is something that took time, and is over.
type Span struct {
	Name       string
	Start, End time.Time
	Failed     string // why it failed; empty: it did not
	Attributes []slog.Attr
}

// Rollout sends the root span of a rollout, whose trace id is the rollout's UUID without its dashes. Sent twice it is the same span.
func (t *Tracer) Rollout(rollout string, s Span) {
	traceID, root, ok := identity(rollout)
	if t == nil || !ok {
		return
	}
	t.send(context.WithValue(context.Background(), rootKey{}, identities{traceID, root}), s, trace.WithNewRoot())
}

// Part sends a span of something that belongs to a rollout, whoever sends the root.
func (t *Tracer) Part(rollout string, s Span) {
	traceID, root, ok := identity(rollout)
	if t == nil || !ok {
		return
	}
	t.send(trace.ContextWithRemoteSpanContext(context.Background(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: traceID, SpanID: root, TraceFlags: trace.FlagsSampled, Remote: true,
	})), s)
}

func (t *Tracer) send(ctx context.Context, s Span, opts ...trace.SpanStartOption) {
	if !t.queue.take(1, maxQueue) {
		return
	}
	_, span := t.tracer.Start(ctx, s.Name, append(opts, trace.WithTimestamp(s.Start), trace.WithAttributes(convert(s.Attributes)...))...)
	if s.Failed != "" {
		span.SetStatus(codes.Error, s.Failed)
	}
	span.End(trace.WithTimestamp(later(s.Start, s.End)))
}

func convert(from []slog.Attr) []attribute.KeyValue {
	attributes := make([]attribute.KeyValue, len(from))
	for i, a := range from {
		switch v := a.Value.Resolve(); v.Kind() {
		case slog.KindInt64:
			attributes[i] = attribute.Int64(a.Key, v.Int64())
		case slog.KindUint64:
			attributes[i] = attribute.Int64(a.Key, int64(v.Uint64())) //nolint:gosec // generations and versions are below 2^63
		case slog.KindBool:
			attributes[i] = attribute.Bool(a.Key, v.Bool())
		case slog.KindFloat64:
			attributes[i] = attribute.Float64(a.Key, v.Float64())
		default:
			if list, ok := v.Any().([]string); ok {
				attributes[i] = attribute.StringSlice(a.Key, list)
				continue
			}
			attributes[i] = attribute.String(a.Key, v.String())
		}
	}
	return attributes
}

// later is end, unless a clock that stepped back put it before start.
func later(start, end time.Time) time.Time {
	if end.Before(start) {
		return start
	}
	return end
}

// Close sends what waits, for a few seconds at most.
func (t *Tracer) Close() error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return t.provider.Shutdown(ctx)
}

// TraceID is the trace of a rollout in logs, "" of what is no UUID.
func TraceID(rollout string) string {
	id, _, ok := identity(rollout)
	if !ok {
		return ""
	}
	return id.String()
}

// identity derives the trace and its root span from the rollout's UUID, whose second half is random, so that processes need not tell
// each other.
func identity(rollout string) (id trace.TraceID, root trace.SpanID, ok bool) {
	if len(rollout) != 36 {
		return id, root, false
	}
	id, err := trace.TraceIDFromHex(strings.ReplaceAll(rollout, "-", ""))
	if err != nil {
		return id, root, false
	}
	copy(root[:], id[8:])
	return id, root, root.IsValid()
}

// ids gives spans the identity that the context has for them, and others a random one.
type ids struct{}

type (
	rootKey    struct{} // of identities
	spanKey    struct{} // of a trace.SpanID, below a parent
	identities struct {
		trace trace.TraceID
		span  trace.SpanID
	}
)

func (g ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if i, ok := ctx.Value(rootKey{}).(identities); ok {
		return i.trace, i.span
	}
	var id trace.TraceID
	_, _ = rand.Read(id[:])
	return id, g.NewSpanID(ctx, id)
}

func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) (id trace.SpanID) {
	if id, ok := ctx.Value(spanKey{}).(trace.SpanID); ok {
		return id
	}
	for !id.IsValid() {
		_, _ = rand.Read(id[:])
	}
	return id
}

// exporter logs what it could not send, once until it can again.
type exporter struct {
	sdktrace.SpanExporter
	queue   *queue
	log     *slog.Logger
	failing bool // the batcher makes one call at a time
}

func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	e.queue.waiting.Add(int64(-len(spans)))
	if err != nil {
		e.queue.failed.Add(uint64(len(spans)))
	} else {
		e.queue.sent.Add(uint64(len(spans)))
	}
	switch {
	case err != nil && !e.failing:
		e.log.Warn("traces are not taken by the collector, and are dropped", "error", err)
	case err == nil && e.failing:
		e.log.Info("traces are taken again")
	}
	e.failing = err != nil
	return nil // else the library logs it too, in its own way
}
