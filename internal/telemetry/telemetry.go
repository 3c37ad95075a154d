// Package telemetry tells an OpenTelemetry collector what became of a rollout, as one trace over all processes that took part, and
// names that trace in their logs.
package telemetry

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Bounds of what waits to be sent. A span beyond them is dropped, and nobody waits.
const (
	maxQueue      = 2048
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
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithIDGenerator(ids{}),
		sdktrace.WithSampler(sdktrace.AlwaysSample()),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", c.Service), attribute.String("service.instance.id", c.Instance))),
		sdktrace.WithBatcher(&exporter{SpanExporter: to, log: c.Logger},
			sdktrace.WithMaxQueueSize(maxQueue), sdktrace.WithMaxExportBatchSize(maxBatch),
			sdktrace.WithBatchTimeout(batchEvery), sdktrace.WithExportTimeout(exportTimeout)),
	)
	return &Tracer{provider: provider, tracer: provider.Tracer("guardyn")}, nil
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
	attributes := make([]attribute.KeyValue, len(s.Attributes))
	for i, a := range s.Attributes {
		switch v := a.Value.Resolve(); v.Kind() {
		case slog.KindInt64:
			attributes[i] = attribute.Int64(a.Key, v.Int64())
		case slog.KindUint64:
			attributes[i] = attribute.Int64(a.Key, int64(v.Uint64())) //nolint:gosec // generations and versions are below 2^63
		case slog.KindBool:
			attributes[i] = attribute.Bool(a.Key, v.Bool())
		default:
			attributes[i] = attribute.String(a.Key, v.String())
		}
	}
	_, span := t.tracer.Start(ctx, s.Name, append(opts, trace.WithTimestamp(s.Start), trace.WithAttributes(attributes...))...)
	if s.Failed != "" {
		span.SetStatus(codes.Error, s.Failed)
	}
	span.End(trace.WithTimestamp(later(s.Start, s.End)))
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

// ids gives root spans the identity that is derived, and others a random one.
type ids struct{}

type (
	rootKey    struct{}
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

func (ids) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	for !id.IsValid() {
		_, _ = rand.Read(id[:])
	}
	return id
}

// exporter logs what it could not send, once until it can again.
type exporter struct {
	sdktrace.SpanExporter
	log     *slog.Logger
	failing bool // the batcher makes one call at a time
}

func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case err != nil && !e.failing:
		e.log.Warn("traces of rollouts are not taken by the collector, and are dropped", "error", err)
	case err == nil && e.failing:
		e.log.Info("traces of rollouts are taken again")
	}
	e.failing = err != nil
	return nil // else the library logs it too, in its own way
}
