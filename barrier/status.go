package barrier

import "time"

// Status is what a member knows about itself, for health pages and metrics.
type Status struct {
	Member MemberID `json:"member"`
	Boot   BootID   `json:"boot"`

	// Of the newest rollout that was seen.
	Generation uint64 `json:"generation"`
	Version    uint64 `json:"version"`
	State      State  `json:"state"`
	InEpoch    bool   `json:"in_epoch"`
	Epoch      int    `json:"epoch"` // its size
	Acked      bool   `json:"acked"`
	Nacked     bool   `json:"nacked"`
	Converged  bool   `json:"converged"` // evidence stands in the store

	Running        Pointer `json:"running"`
	Confirmed      Pointer `json:"confirmed"`       // what it boots
	Applied        bool    `json:"applied"`         // it runs what is committed
	ConfirmPending bool    `json:"confirm_pending"` // it runs a trial
	TakenBack      string  `json:"taken_back,omitzero"`
	Flaps          uint64  `json:"flaps"`
	Diverged       string  `json:"diverged,omitzero"` // why the committed pointer cannot be followed

	// Observed is when the store last answered, on the member's monotonic clock, and Observation how old that is; Stale when
	// three polls have passed without an answer.
	Observed    time.Duration `json:"observed_ms"`
	Observation time.Duration `json:"observation_age_ms"`
	Stale       bool          `json:"stale"`
	Superseded  bool          `json:"superseded"`

	TerminalGeneration uint64 `json:"terminal_generation,omitzero"` // that it gave up on for now
	TerminalReason     string `json:"terminal_reason,omitzero"`
	Waiting            string `json:"waiting,omitzero"` // what for
}

// Status returns the member's state as of its last act, with the age of its observation now.
func (m *Member) Status() Status {
	m.mu.Lock()
	s := m.status
	m.mu.Unlock()
	s.Observation = m.o.Clock() - s.Observed
	s.Stale = s.Observation > 3*m.o.Timing.Poll
	return s
}

func (m *Member) publish(waiting string) {
	l, mem, v := m.sit.Local, m.sit.Memory, m.last
	s := Status{
		Member: m.o.ID, Boot: m.o.Boot, Running: l.Running, Confirmed: mem.Confirmed, Flaps: mem.Flaps,
		Applied:        !v.Committed.IsZero() && l.Running == v.Committed,
		ConfirmPending: m.sit.running(), Observed: m.seen, Superseded: l.Superseded, Waiting: waiting,
	}
	if t := mem.Trial; t != nil {
		s.TakenBack = string(t.TakenBack)
	}
	if ro := v.Rollout; ro != nil {
		s.Generation, s.Version, s.State, s.InEpoch, s.Epoch = ro.Generation, ro.Version, ro.State, v.InEpoch, ro.EpochSize
		if v.Ballot.Boot == m.o.Boot {
			s.Acked, s.Nacked = v.Ballot.Vote == Acked, v.Ballot.Vote == Nacked
			s.Converged = !v.Ballot.ConvergedSince.IsZero()
		}
	}
	if m.sit.View != nil {
		s.Diverged = m.sit.diverged()
	}
	if f := l.Failure; f.Terminal {
		s.TerminalGeneration, s.TerminalReason = f.Pointer.Generation, f.Reason
	}
	m.mu.Lock()
	m.status = s
	m.mu.Unlock()
}
