package api

import (
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/control"
)

// Evidence counts as it did when the rollout was decided, and until then as it does now.
func TestEvidenceOfARollout(t *testing.T) {
	renewed := time.Date(2026, 3, 1, 12, 0, 10, 0, time.UTC)
	for _, tt := range []struct {
		name             string
		state            barrier.State
		decided, now     time.Duration // after it was renewed
		withdrawn        string
		restarted, works bool
	}{
		{"on trial, renewed lately", barrier.Committed, 0, 5 * time.Second, "", false, true},
		{"on trial, expired", barrier.Committed, 0, 5*time.Second + 1, "", false, false},
		{"on trial, dated in the future", barrier.Committed, 0, -6 * time.Second, "", false, false},
		{"on trial, restarted", barrier.Committed, 0, time.Second, "", true, false},
		{"confirmed long ago", barrier.Confirmed, 3 * time.Second, 24 * time.Hour, "", false, true},
		{"reverted while it stood", barrier.Reverted, 3 * time.Second, time.Hour, "", false, true},
		{"reverted when it had expired", barrier.Reverted, 10 * time.Second, 10 * time.Second, "", false, false},
		{"reverted for its restart", barrier.Reverted, time.Second, time.Second, "", true, false},
		{"withdrawn", barrier.Reverted, time.Second, time.Second, "502", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := control.Rollout{Now: renewed.Add(tt.now)}
			r.State, r.Window, r.EvidenceTTL = tt.state, time.Minute, 5*time.Second
			if tt.decided != 0 {
				r.DecidedAt = renewed.Add(tt.decided)
			}
			m := control.RolloutMember{Restarted: tt.restarted}
			m.Ballot = barrier.Ballot{Vote: barrier.Acked, ConvergedSince: renewed, RenewedAt: renewed, Withdrawn: tt.withdrawn}
			if got := rolloutMember(r, m).Converged; got != tt.works {
				t.Errorf("converged: %t", got)
			}
		})
	}
}
