package telemetry

import (
	"context"
	"log/slog"
	"sync"
)

// Rollouts remembers which rollout has which generation, for the logs. The zero value is ready; it is safe for concurrent use.
type Rollouts struct {
	mu    sync.Mutex
	known [maxKnown]rollout // the newest first
}

// maxKnown is how many rollouts are remembered.
const maxKnown = 8

type rollout struct {
	id         string
	generation uint64
}

// Note remembers a rollout.
func (r *Rollouts) Note(id string, generation uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := (rollout{id, generation}); r.known[0] != n {
		copy(r.known[1:], r.known[:])
		r.known[0] = n
	}
}

func (r *Rollouts) of(generation uint64) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.known {
		if k.generation == generation && generation != 0 {
			return k.id
		}
	}
	return ""
}

// Logs returns a handler that passes on to h, and adds trace_id to a record about a rollout: one with its UUID as
// the attribute "rollout", or with the generation of a known one as "generation".
func (r *Rollouts) Logs(h slog.Handler) slog.Handler { return &handler{h, r} }

type handler struct {
	slog.Handler
	rollouts *Rollouts
}

func (h *handler) Handle(ctx context.Context, rec slog.Record) error {
	id := ""
	rec.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "trace_id":
			id = ""
			return false
		case "rollout":
			id = TraceID(a.Value.Resolve().String())
		case "generation":
			if v := a.Value.Resolve(); id == "" && v.Kind() == slog.KindUint64 {
				id = TraceID(h.rollouts.of(v.Uint64()))
			}
		}
		return true
	})
	if id != "" {
		rec = rec.Clone()
		rec.AddAttrs(slog.String("trace_id", id))
	}
	return h.Handler.Handle(ctx, rec)
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.Handler.WithAttrs(attrs), h.rollouts}
}

func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.Handler.WithGroup(name), h.rollouts}
}
