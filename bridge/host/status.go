package host

import (
	"fmt"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/bridge"
	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/source"
)

// Status is what a member knows about itself, as /deephealth tells it.
type Status struct {
	Member  string          `json:"member,omitzero"`
	Rung    Rung            `json:"rung"`
	Phase   Phase           `json:"phase"`
	Ready   bool            `json:"ready"` // it runs a document, and intake is not stopped
	Version uint64          `json:"version"`
	Digest  document.Digest `json:"digest"` // of what runs
	// Degraded is everything that is not as it should be, for people.
	Degraded []string `json:"degraded"`

	Source   SourceStatus           `json:"source"`
	Rollout  *RolloutStatus         `json:"rollout,omitzero"` // of a member of a cohort
	Sessions []bridge.SessionStatus `json:"sessions"`
	Routes   []bridge.RouteStatus   `json:"routes"`
}

// SourceStatus is what the source holds, and what the member does about it.
type SourceStatus struct {
	Home       string          `json:"home"`
	State      source.State    `json:"state"` // "": not looked at yet
	Version    uint64          `json:"version"`
	Digest     document.Digest `json:"digest,omitzero"` // of a valid document
	Verb       string          `json:"verb"`
	Reason     string          `json:"reason,omitzero"`
	Pending    bool            `json:"pending"`              // it is valid, does not run, and is not merely older than what the cohort has
	ObservedAt time.Time       `json:"observed_at,omitzero"` // when this was first seen
	AnsweredAt time.Time       `json:"answered_at,omitzero"` // when the source last answered
}

// RolloutStatus is the member's part in rollouts.
type RolloutStatus struct {
	Generation         uint64                  `json:"generation"`
	Version            uint64                  `json:"version"`
	State              barrier.State           `json:"state"`
	Epoch              int                     `json:"epoch"`
	InEpoch            bool                    `json:"in_epoch"`
	Acked              bool                    `json:"acked"`
	Nacked             bool                    `json:"nacked"`
	Converged          bool                    `json:"converged"`
	Applied            bool                    `json:"applied"`
	ConfirmPending     bool                    `json:"confirm_pending"`
	ObservedAt         time.Time               `json:"observed_at,omitzero"`
	ObservationAge     int64                   `json:"observation_age_ms"`
	Stale              bool                    `json:"stale"`
	TerminalGeneration uint64                  `json:"terminal_generation"`
	TerminalReason     string                  `json:"terminal_reason"`
	BaselineOutcome    barrier.BaselineOutcome `json:"baseline_outcome"`
	BaselineReason     string                  `json:"baseline_reason"`
	Running            barrier.Pointer         `json:"running"`
	Confirmed          barrier.Pointer         `json:"confirmed"`
	TakenBack          string                  `json:"taken_back,omitzero"`
	Flaps              uint64                  `json:"flaps"`
	Diverged           string                  `json:"diverged,omitzero"`
	Superseded         bool                    `json:"superseded"`
	Waiting            string                  `json:"waiting,omitzero"`
}

// Running is the document that runs, nil when none does.
func (h *Host) Running() *document.Document {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.running
}

// Source is where this member's document lives.
func (h *Host) Source() source.Source { return h.cfg.Source }

// Status returns what is known now; it waits for nobody.
func (h *Host) Status() Status {
	h.mu.Lock()
	s := Status{
		Member: h.cfg.Process.MemberID, Rung: h.rung, Phase: h.phase, Ready: h.phase == Active, Degraded: []string{},
		Source: SourceStatus{
			Home: h.cfg.Source.String(), State: h.seen.State, Version: h.seen.Stored.Version, Verb: string(h.seen.verb), Reason: h.seen.reason,
			ObservedAt: h.seen.At,
		},
	}
	running, doc, c, b, problem := h.running, h.seen.doc, h.cohort, h.baseline, h.problem
	h.mu.Unlock()
	s.Source.AnsweredAt = h.observer.Answered()
	if running != nil {
		s.Version, s.Digest = running.Version, running.Digest()
	}
	if doc != nil {
		s.Source.Digest = doc.Digest()
		s.Source.Pending = s.Source.Digest != s.Digest && s.Source.Verb != string(behind)
	}
	if problem != "" {
		s.Degraded = append(s.Degraded, problem)
	}
	if v := judgement(s.Source.Verb); s.Source.Reason != "" && s.Source.Reason != problem && v != underway && v != behind {
		s.Degraded = append(s.Degraded, "source: "+s.Source.Reason)
	}
	if c != nil {
		s.Rollout = h.rolloutStatus(c.member.Status(), b)
		if h.watched.emptied() && !s.Rollout.Confirmed.IsZero() {
			s.Rollout.Diverged = fmt.Sprintf("%s, and this member has confirmed %v: it is another store than the cohort's, or was emptied; give every member the cohort's, or start all of them with another --cohort",
				nothingCommitted, s.Rollout.Confirmed)
		}
		s.Degraded = append(s.Degraded, s.Rollout.degraded()...)
	}
	r := h.cfg.Runner.Status()
	s.Sessions, s.Routes = r.Sessions, r.Routes
	if running != nil {
		if health := converged(s.Digest, r); !health.Converged {
			s.Degraded = append(s.Degraded, health.Detail)
		}
	}
	return s
}

func (h *Host) rolloutStatus(m barrier.Status, b baseline) *RolloutStatus {
	r := &RolloutStatus{
		Generation: m.Generation, Version: m.Version, State: m.State, Epoch: m.Epoch, InEpoch: m.InEpoch, Acked: m.Acked, Nacked: m.Nacked,
		Converged: m.Converged, Applied: m.Applied, ConfirmPending: m.ConfirmPending, ObservationAge: m.Observation.Milliseconds(), Stale: m.Stale,
		TerminalGeneration: m.TerminalGeneration, TerminalReason: m.TerminalReason, BaselineOutcome: b.outcome, BaselineReason: b.reason,
		Running: m.Running, Confirmed: m.Confirmed, TakenBack: m.TakenBack, Flaps: m.Flaps, Diverged: m.Diverged, Superseded: m.Superseded, Waiting: m.Waiting,
	}
	if m.Observed != 0 {
		r.ObservedAt = h.cfg.Now().Add(-m.Observation).UTC().Truncate(time.Millisecond)
	}
	return r
}

// degraded is what is not as it should be with the member's part in rollouts.
func (r *RolloutStatus) degraded() []string {
	var all []string
	if r.Stale {
		all = append(all, "the rollout store does not answer")
	}
	if r.TerminalReason != "" {
		all = append(all, "cannot run what is decided: "+r.TerminalReason)
	}
	if r.Diverged != "" {
		all = append(all, r.Diverged)
	}
	if r.BaselineOutcome == barrier.BaselineFailed {
		all = append(all, "baseline: "+r.BaselineReason)
	}
	return all
}
