package telemetry

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Request is the trace of one request, as far as this process knows it.
type Request struct {
	Trace [16]byte
	// State is the tracestate that came with it (W3C Trace Context §3.3), empty for none.
	State string
	// Spans go out together or not at all. The parent of the first is the caller's, zero where the trace begins.
	Spans []RequestSpan
}

// Kind tells what a span is of: a request that was answered, one that was made, or work within the process.
type Kind uint8

// The kinds.
const (
	Server Kind = iota
	Client
	Internal
)

// RequestSpan is something that took time, and is over, within a request.
type RequestSpan struct {
	Span
	ID, Parent [8]byte
	Kind       Kind
	// Error is whether it failed; Failed is then why, as far as there are words for it.
	Error  bool
	Events []Event
}

// Event is a moment in a RequestSpan.
type Event struct {
	Name       string
	At         time.Time
	Attributes []slog.Attr
}

// Request sends the spans of a request. It does not wait: without room for all of them they are dropped, and counted.
func (t *Tracer) Request(r Request) {
	if t == nil || !t.queue.take(len(r.Spans), maxRequests) {
		return
	}
	state, err := trace.ParseTraceState(r.State)
	if err != nil {
		state = trace.TraceState{} // the library is stricter than Level 2
	}
	for i := range r.Spans {
		s := &r.Spans[i]
		kind := [...]trace.SpanKind{Server: trace.SpanKindServer, Client: trace.SpanKindClient, Internal: trace.SpanKindInternal}[s.Kind]
		opts := []trace.SpanStartOption{trace.WithSpanKind(kind), trace.WithTimestamp(s.Start), trace.WithAttributes(convert(s.Attributes)...)}
		ctx := context.Background()
		if s.Parent == [8]byte{} {
			ctx = context.WithValue(ctx, rootKey{}, identities{r.Trace, s.ID})
			opts = append(opts, trace.WithNewRoot())
		} else {
			ctx = trace.ContextWithSpanContext(context.WithValue(ctx, spanKey{}, trace.SpanID(s.ID)), trace.NewSpanContext(trace.SpanContextConfig{
				TraceID: r.Trace, SpanID: s.Parent, TraceFlags: trace.FlagsSampled, TraceState: state, Remote: i == 0,
			}))
		}
		_, span := t.requests.Start(ctx, s.Name, opts...)
		for _, e := range s.Events {
			span.AddEvent(e.Name, trace.WithTimestamp(e.At), trace.WithAttributes(convert(e.Attributes)...))
		}
		if s.Error {
			span.SetStatus(codes.Error, s.Failed)
		}
		span.End(trace.WithTimestamp(later(s.Start, s.End)))
	}
}
