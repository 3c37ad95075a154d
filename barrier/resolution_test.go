package barrier_test

import (
	"testing"

	"github.com/guardyn-edge/guardyn/barrier"
)

func TestResolution(t *testing.T) {
	const claim = "coordinator 3"
	for _, tt := range []struct {
		name      string
		state     barrier.State
		by, given string // decided by, reason
		want      string
	}{
		{"committed", barrier.Committed, claim, "", ""},
		{"confirmed", barrier.Confirmed, claim, "", ""},
		{"operator", barrier.Aborted, "operator olga", "refused by olga", "operator"},
		{"deadman", barrier.Reverted, "deadman of m1", "m1: not confirmed in time", "deadman"},
		{"roster", barrier.Aborted, "roster change", "", "roster"},
		{"roster, seen by a coordinator", barrier.Aborted, claim, "the roster changed from revision 1 to 2", "roster"},
		{"deadline", barrier.Aborted, claim, "the deadline passed: waits for m2", "deadline"},
		{"deadline of a trial", barrier.Reverted, claim, "not confirmed in time: m2 has not converged", "deadline"},
		{"nack", barrier.Aborted, claim, "refused by m2: it does not build", "nack"},
		{"restarted before its vote", barrier.Aborted, claim, "started after the proposal: m2", "restarted"},
		{"restarted on trial", barrier.Reverted, claim, "m2: restarted in the window", "restarted"},
		{"failed", barrier.Reverted, claim, "failed on m2: 502", "failed"},
		{"builds", barrier.Aborted, claim, "m1 built a, m2 b", "build"},
		{"other", barrier.Aborted, claim, "", "other"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := barrier.Rollout{State: tt.state, DecidedBy: tt.by, Reason: tt.given}.Resolution()
			if got != (barrier.Resolution{Outcome: tt.state, Reason: tt.want}) {
				t.Errorf("is %+v, want %q", got, tt.want)
			}
		})
	}
}
