package host

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/internal/telemetry"
)

// rolloutTrace sends the root span of each rollout that this process ended, or its database in a call of its, once it took place.
type rolloutTrace struct {
	rollouts *telemetry.Rollouts
	tracer   *telemetry.Tracer

	mu    sync.Mutex
	ended barrier.RolloutID // that a transaction of this process would end
}

// step is told within each step's transaction, which may still fail.
func (t *rolloutTrace) step(ro *barrier.Rollout) {
	if ro == nil {
		return
	}
	t.rollouts.Note(string(ro.ID), ro.Generation)
	if !ro.Open() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.ended = ro.ID
	}
}

// saw is told what stands.
func (t *rolloutTrace) saw(ro *barrier.Rollout) {
	if ro == nil {
		return
	}
	t.rollouts.Note(string(ro.ID), ro.Generation)
	t.mu.Lock()
	mine := t.ended == ro.ID && !ro.Open()
	if mine {
		t.ended = ""
	}
	t.mu.Unlock()
	if mine {
		t.send(*ro)
	}
}

func (t *rolloutTrace) send(ro barrier.Rollout) {
	end, failed := ro.DecidedAt, ""
	if ro.State == barrier.Aborted || ro.State == barrier.Reverted {
		failed = ro.Reason
		if failed == "" {
			failed = string(ro.State)
		}
	}
	attributes := []slog.Attr{
		slog.Uint64("generation", ro.Generation), slog.Uint64("version", ro.Version), slog.String("state", string(ro.State)),
		slog.Int("members", ro.EpochSize), slog.String("decided_by", ro.DecidedBy),
	}
	t.tracer.Rollout(string(ro.ID), telemetry.Span{Name: "rollout", Start: ro.ProposedAt, End: end, Failed: failed, Attributes: attributes})
	votes := telemetry.Span{Name: "votes", Start: ro.ProposedAt, End: end, Attributes: attributes[:2]}
	if ro.State == barrier.Aborted {
		votes.Failed = failed
	} else {
		votes.End = ro.CommittedAt
	}
	t.tracer.Part(string(ro.ID), votes)
	if ro.Window > 0 && ro.State != barrier.Aborted {
		t.tracer.Part(string(ro.ID), telemetry.Span{Name: "trial", Start: ro.CommittedAt, End: end, Failed: failed, Attributes: attributes[:2]})
	}
}

// follow looks at what stands, whenever the cohort's head changes, until ctx ends.
func (t *rolloutTrace) follow(ctx context.Context, cohort barrier.Reader) {
	heads := cohort.Watch(ctx, barrier.TopicHead)
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		if row, err := cohort.Look(ctx, ""); err == nil {
			t.saw(row.Rollout)
		}
		select {
		case <-ctx.Done():
			return
		case _, ok := <-heads:
			if !ok {
				heads = nil
			}
		case <-tick.C:
		}
	}
}

// followEvery is how often it looks when nothing hints at a change.
const followEvery = 5 * time.Second

// noting tells the logs which rollout a coordinator is about to decide.
type noting struct {
	barrier.Store
	rollouts *telemetry.Rollouts
}

func (n noting) Current(ctx context.Context) (barrier.Row, error) {
	row, err := n.Store.Current(ctx)
	if err == nil && row.Rollout != nil {
		n.rollouts.Note(string(row.Rollout.ID), row.Rollout.Generation)
	}
	return row, err
}
