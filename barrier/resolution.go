package barrier

import "strings"

// Resolution is how a rollout ended, in few enough words for a metric's labels.
type Resolution struct {
	Outcome State
	Reason  string // of aborted and reverted: "nack", "deadline", "restarted", "roster", "build", "operator", "deadman", "failed" or "other"
}

// Resolution of a rollout that is over.
func (r Rollout) Resolution() Resolution {
	out := Resolution{Outcome: r.State}
	if r.State != Aborted && r.State != Reverted {
		return out
	}
	for _, c := range []struct {
		reason string
		is     bool
	}{
		{"operator", strings.HasPrefix(r.DecidedBy, "operator ")},
		{"deadman", strings.HasPrefix(r.DecidedBy, "deadman of ")},
		{"roster", r.DecidedBy == "roster change" || strings.HasPrefix(r.Reason, "the roster changed")},
		{"deadline", strings.HasPrefix(r.Reason, "the deadline passed") || strings.HasPrefix(r.Reason, "not confirmed in time")},
		{"nack", strings.Contains(r.Reason, "refused by ")},
		{"restarted", strings.Contains(r.Reason, "started after the proposal") || strings.Contains(r.Reason, ": restarted in the window")},
		{"failed", strings.Contains(r.Reason, "failed on ")},
		{"build", strings.Contains(r.Reason, " built ")},
		{"other", true},
	} {
		if c.is {
			out.Reason = c.reason
			break
		}
	}
	return out
}
