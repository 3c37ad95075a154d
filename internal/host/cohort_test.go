package host_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/sqlstore"
	"github.com/guardyn-edge/guardyn/internal/host"
	"github.com/guardyn-edge/guardyn/internal/testpg"
	"github.com/guardyn-edge/guardyn/store"
)

// A control plane that is stopped gives the coordinator's lease back, so that no other has to wait for its end.
func TestControlGivesTheLeaseBack(t *testing.T) {
	cfg := controlConfig(t)
	cfg.Lease = time.Minute
	c := startControl(t, cfg)
	other, err := sqlstore.Open(t.Context(), cfg.DatabaseURL, "nodes")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		// A lease that this test got before the coordinator did ends within milliseconds.
		_, err := other.Acquire(t.Context(), "test", barrier.MinLease)
		if errors.Is(err, barrier.ErrHeld) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("the coordinator does not take the lease")
		}
	}
	if err := c.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Acquire(t.Context(), "test", time.Second); err != nil {
		t.Errorf("after the stop: %v", err)
	}
}

// A backup has the rollouts and the cohort, and a control plane starts on what was restored from it.
func TestRolloutsAreRestored(t *testing.T) {
	for name, url := range map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "guardyn.db") },
		"postgres": func(t *testing.T) string { return testpg.URL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := controlConfig(t)
			cfg.DatabaseURL, cfg.Migrate = url(t), true
			c := startControl(t, cfg)
			op := operator(t, c)
			publish(t, op)
			if _, err := op.CreateNode(t.Context(), api.NewNode{Name: "edge", Cohort: true}); err != nil {
				t.Fatal(err)
			}
			if _, err := op.AddRecord(t.Context(), "example.com", api.RecordEdit{Name: "v", Type: "TXT", Content: "2"}); err != nil {
				t.Fatal(err)
			}
			res, err := op.Apply(t.Context(), api.ApplyRequest{Rollout: &api.RolloutOptions{Mode: "coordinated"}})
			if err != nil || res.Rollout == nil {
				t.Fatalf("%+v, %v", res, err)
			}
			if _, err := op.AbortRollout(t.Context(), res.Rollout.ID, "to be restored"); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "backup")
			if err := store.Backup(t.Context(), cfg.DatabaseURL, file); err != nil {
				t.Fatal(err)
			}

			restored := cfg
			restored.DatabaseURL = url(t)
			if err := store.Restore(t.Context(), restored.DatabaseURL, file); err != nil {
				t.Fatal(err)
			}
			if err := host.Migrate(t.Context(), restored.DatabaseURL); err != nil {
				t.Fatal(err)
			}
			cohort, err := sqlstore.Open(t.Context(), restored.DatabaseURL, "nodes")
			if err != nil {
				t.Fatal(err)
			}
			defer cohort.Close()
			row, err := cohort.Current(t.Context())
			if err != nil || len(row.Roster.Members) != 1 || row.Rollout == nil || string(row.Rollout.ID) != res.Rollout.ID ||
				row.Rollout.State != barrier.Aborted || row.Committed.Generation != 1 {
				t.Errorf("restored: %+v, %v", row, err)
			}
			restored.Migrate = false
			again := startControl(t, restored)
			if status, body := get(t, "http://"+again.Addr()+"/readyz"); status != 200 {
				t.Errorf("readyz %d %s", status, body)
			}
		})
	}
}
