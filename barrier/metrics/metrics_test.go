package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/memory"
	"github.com/guardyn-edge/guardyn/barrier/metrics"
)

// counted is a store that counts how often its row is read, and that can be away.
type counted struct {
	barrier.Store
	reads int
	away  bool
}

func (c *counted) Current(ctx context.Context) (barrier.Row, error) {
	c.reads++
	if c.away {
		return barrier.Row{}, errors.New("away")
	}
	return c.Store.Current(ctx)
}

// told is what a scrape has, by name and label.
func told(t *testing.T, reg *prometheus.Registry) string {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			name := f.GetName()
			if len(m.Label) > 0 {
				name += " " + m.Label[0].GetValue()
			}
			if v := m.Gauge.GetValue(); v != 0 {
				out[name] = v
			}
		}
	}
	return fmt.Sprint(out)
}

func TestRow(t *testing.T) {
	store, now := &counted{Store: memory.New(memory.Options{})}, time.Now()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(metrics.NewRow(store, func() time.Time { return now }))
	if _, err := store.SetRoster(t.Context(), 0, []barrier.MemberID{"a", "b"}); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name  string
		do    func()
		later time.Duration
		want  string
		reads int
	}{
		{"no rollout yet", func() {}, 0, "map[guardyn_rollout_roster_size:2]", 1},
		{"a moment later", func() { store.propose(t) }, 999 * time.Millisecond, "map[guardyn_rollout_roster_size:2]", 1},
		{"a second later", func() {}, time.Millisecond, "map[guardyn_rollout_acks:1 guardyn_rollout_epoch_size:2 guardyn_rollout_roster_size:2 guardyn_rollout_state proposed:1]", 2},
		{"the store is away", func() { store.away = true }, time.Second, "map[]", 3},
		{"what could not be read is read again at once", func() { store.away = false }, 0, "map[guardyn_rollout_acks:1 guardyn_rollout_epoch_size:2 guardyn_rollout_roster_size:2 guardyn_rollout_state proposed:1]", 4},
		{"the clock was set back", func() {}, -time.Hour, "map[guardyn_rollout_acks:1 guardyn_rollout_epoch_size:2 guardyn_rollout_roster_size:2 guardyn_rollout_state proposed:1]", 5},
	} {
		step.do()
		now = now.Add(step.later)
		if got := told(t, reg); got != step.want || store.reads != step.reads {
			t.Errorf("%s: %s after %d reads, want %s after %d", step.name, got, store.reads, step.want, step.reads)
		}
	}
}

// propose puts a rollout to both members, and one acknowledges it.
func (c *counted) propose(t *testing.T) {
	t.Helper()
	for _, m := range []barrier.MemberID{"a", "b"} {
		if _, err := c.Join(t.Context(), m, "boot-"+barrier.BootID(m), 0); err != nil {
			t.Fatal(err)
		}
	}
	ro, err := c.Propose(t.Context(), barrier.Proposal{
		ID: barrier.NewRolloutID(), Proposer: "somebody", Digest: barrier.Digest("text:x"), Version: 1, RosterRevision: 1, Deadline: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Ack(t.Context(), ro.Ref, "a", "boot-a", ""); err != nil {
		t.Fatal(err)
	}
}
