package host

import (
	"github.com/guardyn-edge/guardyn/edge/web"
	"github.com/guardyn-edge/guardyn/internal/telemetry"
)

// requestTraces returns what sends traces of requests to the collector, nil when there is none.
func (e *Edge) requestTraces() func(*web.Trace) {
	if e.tracer == nil {
		return nil
	}
	return func(t *web.Trace) {
		r := telemetry.Request{Trace: t.ID, State: t.State, Spans: make([]telemetry.RequestSpan, len(t.Spans))}
		for i := range t.Spans {
			s := &t.Spans[i]
			r.Spans[i] = telemetry.RequestSpan{
				Span: telemetry.Span{Name: s.Name, Start: s.Start, End: s.End, Failed: s.Error, Attributes: s.Attributes},
				ID:   s.ID, Parent: s.Parent, Kind: telemetry.Kind(s.Kind), Error: s.Failed,
				Events: make([]telemetry.Event, len(s.Events)),
			}
			for j, ev := range s.Events {
				r.Spans[i].Events[j] = telemetry.Event(ev)
			}
		}
		e.tracer.Request(r)
	}
}
