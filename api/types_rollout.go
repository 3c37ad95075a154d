package api

import (
	"fmt"
	"time"

	"github.com/guardyn-edge/guardyn/zone"
)

// Duration is a time span. Its text form, which JSON holds, is that of time.ParseDuration: "90s", "1m30s".
type Duration time.Duration

// String prints as time.Duration does.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads as time.ParseDuration does.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is not a time span; write it as 90s or 1m30s", clip(string(b)))
	}
	*d = Duration(v)
	return nil
}

// RolloutOptions say how one apply or rollback is to be published. What is absent is as the cluster's settings have it.
type RolloutOptions struct {
	Mode string `json:"mode,omitempty"` // direct or coordinated
	// ConfirmWindow is for how long the cohort runs the change on trial, at least twice the soak; 0s: it is not tried.
	ConfirmWindow *Duration `json:"confirm_window,omitempty"`
	// Deadline is how long the votes may take.
	Deadline *Duration `json:"deadline,omitempty"`
	// Soak is for how long a trial must work without a break.
	Soak *Duration `json:"soak,omitempty"`
	// Margin is by how much the share of 5xx answers may rise on trial, in percentage points.
	Margin *zone.Percent `json:"margin,omitempty"`
}

// ClusterSettings say how the platform publishes when a request does not.
type ClusterSettings struct {
	Rollout       string       `json:"rollout"`        // direct or coordinated
	ConfirmWindow Duration     `json:"confirm_window"` // 0s: none
	Deadline      Duration     `json:"deadline"`
	Soak          Duration     `json:"soak"`
	Margin        zone.Percent `json:"margin"`
}

// ClusterSettingsEdit replaces the cluster's settings. What is absent gets its default; what is given counts as it is, and a zero that is
// not allowed is a problem, no default.
type ClusterSettingsEdit struct {
	Rollout       *string       `json:"rollout,omitzero"`
	ConfirmWindow *Duration     `json:"confirm_window,omitzero"`
	Deadline      *Duration     `json:"deadline,omitzero"`
	Soak          *Duration     `json:"soak,omitzero"`
	Margin        *zone.Percent `json:"margin,omitzero"`
}

// Edit asks for exactly s.
func (s ClusterSettings) Edit() ClusterSettingsEdit {
	return ClusterSettingsEdit{Rollout: &s.Rollout, ConfirmWindow: &s.ConfirmWindow, Deadline: &s.Deadline, Soak: &s.Soak, Margin: &s.Margin}
}

// Rollout is a change that was put to the cohort. Times are the database's.
type Rollout struct {
	ID         string `json:"id"`
	Generation uint64 `json:"generation"` // of the activation that it leads to
	Version    uint64 `json:"version"`
	// State is proposed, staging, committed, aborted, confirmed or reverted.
	State string `json:"state"`
	// Open tells that no other can be proposed yet, OnTrial that it is so because the confirm window is open.
	Open    bool `json:"open"`
	OnTrial bool `json:"on_trial"`

	Kind          string       `json:"kind,omitempty"` // apply or rollback
	ContentHash   string       `json:"content_hash,omitempty"`
	Message       string       `json:"message,omitempty"`
	ProposedBy    string       `json:"proposed_by"`
	EpochSize     int          `json:"epoch_size"` // nodes that must agree
	ConfirmWindow Duration     `json:"confirm_window"`
	Soak          Duration     `json:"soak"`
	Margin        zone.Percent `json:"margin,omitzero"`

	ProposedAt      time.Time `json:"proposed_at"`
	Deadline        time.Time `json:"deadline"` // of the votes
	CommittedAt     time.Time `json:"committed_at,omitzero"`
	ConfirmDeadline time.Time `json:"confirm_deadline,omitzero"` // of the trial
	DecidedAt       time.Time `json:"decided_at,omitzero"`       // of the last decision
	DecidedBy       string    `json:"decided_by,omitempty"`
	Reason          string    `json:"reason,omitempty"` // why it was aborted or reverted

	// Members are the nodes that must agree, by id; absent in listings and in errors.
	Members []RolloutMember `json:"members,omitempty"`
	// WaitingFor are the names of those whose vote or evidence is missing.
	WaitingFor []string `json:"waiting_for,omitempty"`
	// Now is the database's time of this answer; absent in listings and in errors.
	Now time.Time `json:"now,omitzero"`
	// Seen stands for what this answer says: see [Client.AwaitRollout]. It is opaque.
	Seen string `json:"seen,omitempty"`
}

// RolloutMember is one node's part in a rollout.
type RolloutMember struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Vote    string    `json:"vote,omitempty"`   // ack: it has built the change; nack: it cannot
	Reason  string    `json:"reason,omitempty"` // of a nack
	VotedAt time.Time `json:"voted_at,omitzero"`
	// BuildDigest says what it built: the same on every node.
	BuildDigest string `json:"build_digest,omitempty"`
	// Restarted tells that its process is not the one that voted.
	Restarted bool `json:"restarted,omitzero"`
	// Serves tells that it acknowledged the rollout's generation last, or a later one of a rollout that was not taken back.
	Serves bool `json:"serves"`
	// Converged tells that evidence of it stands, or stood when the trial was decided, that the trial works there, since
	// ConvergedSince. Evidence that had expired, or is of a process that restarted, is none.
	Converged      bool      `json:"converged"`
	ConvergedSince time.Time `json:"converged_since,omitzero"`
	RenewedAt      time.Time `json:"renewed_at,omitzero"`
	Detail         string    `json:"detail,omitempty"`    // what its checks saw
	Withdrawn      string    `json:"withdrawn,omitempty"` // why the trial does not work there
	WithdrawnAt    time.Time `json:"withdrawn_at,omitzero"`
}

// EndRollout aborts or reverts a rollout.
type EndRollout struct {
	Reason string `json:"reason,omitempty"`
}
