package api

import (
	"time"

	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/snapshot"
)

// Page is a part of a listing in its documented order. Next is the cursor of the part after it, empty on
// the last one.
type Page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}

// PageOptions selects a part of a listing: Limit items (1 to 1,000; 0 means 100) after Cursor, which is a
// Next of the same listing, or empty for the start.
type PageOptions struct {
	Limit  int
	Cursor string
}

// WriteOptions makes a write conditional. The zero value does not.
type WriteOptions struct {
	// IfRevision is the revision that must still stand, else the answer is 412.
	IfRevision int64
	// IfAbsent refuses with 412 when the object exists.
	IfAbsent bool
}

// Whoami is whom a token speaks for.
type Whoami struct {
	TokenID       string `json:"token_id"`
	Email         string `json:"email,omitempty"`
	Operator      bool   `json:"operator"`
	Workspace     string `json:"workspace,omitempty"`
	WorkspaceName string `json:"workspace_name,omitempty"`
	Role          string `json:"role,omitempty"` // viewer, editor or admin, in Workspace
}

// LiveVersion is the snapshot that is served.
type LiveVersion struct {
	Version     uint64     `json:"version"`
	Generation  uint64     `json:"generation"`
	ContentHash string     `json:"content_hash"`
	CreatedBy   string     `json:"created_by"`
	Message     string     `json:"message"`
	Zones       int        `json:"zones"`
	Bytes       int64      `json:"bytes"` // of the payload
	KeyID       seal.KeyID `json:"key_id"`
	ActivatedAt time.Time  `json:"activated_at"`
	CreatedAt   time.Time  `json:"created_at"`
}

// ConfigStatus tells a customer whether everything they saved is served (GET /v1/config).
type ConfigStatus struct {
	Live                  *LiveVersion `json:"live"` // nil: nothing was ever published
	HasUnpublishedChanges bool         `json:"has_unpublished_changes"`
	Message               string       `json:"message"`
	Workspace             string       `json:"workspace"` // its name
}

// Plan is what an apply would publish now.
type Plan struct {
	snapshot.Plan
	// Text is the plan as people read it, without the hint about --accept-disruption.
	Text string `json:"text"`
	// Live is what it was compared with, nil when nothing was ever published.
	Live *LiveVersion `json:"live,omitempty"`
	// Held lists the problems of zones that are kept at their published content (hold_broken).
	Held []Problem `json:"held,omitempty"`
}

// PlanOptions are the questions that a plan answers.
type PlanOptions struct {
	HoldBroken bool
}

// ApplyRequest publishes.
type ApplyRequest struct {
	Message          string `json:"message,omitempty"`
	AcceptDisruption bool   `json:"accept_disruption,omitzero"`
	HoldBroken       bool   `json:"hold_broken,omitzero"`
	Reseal           bool   `json:"reseal,omitzero"`
	// ExpectedContentHash is the hash of the plan that was reviewed; when what would be published differs,
	// the answer is 409 plan_changed.
	ExpectedContentHash string `json:"expected_content_hash,omitempty"`
	// Rollout names a staged rollout. This build publishes to every node at once and refuses any.
	Rollout string `json:"rollout,omitempty"`
}

// ApplyResult tells what an apply did. When Applied is false, Reason is no_changes and Version the live one.
type ApplyResult struct {
	Applied     bool   `json:"applied"`
	Reason      string `json:"reason,omitempty"`
	Version     uint64 `json:"version"`
	Generation  uint64 `json:"generation,omitzero"`
	ContentHash string `json:"content_hash,omitempty"`
	Zones       int    `json:"zones,omitzero"`
	Plan        *Plan  `json:"plan,omitempty"`
}

// HistoryEntry is one published snapshot.
type HistoryEntry struct {
	Version       uint64     `json:"version"`
	ParentVersion uint64     `json:"parent_version,omitzero"`
	Generations   []uint64   `json:"generations"` // of its activations, oldest first
	ContentHash   string     `json:"content_hash"`
	CreatedBy     string     `json:"created_by"`
	Message       string     `json:"message"`
	Zones         int        `json:"zones"`
	Bytes         int64      `json:"bytes"`
	KeyID         seal.KeyID `json:"key_id"`
	CreatedAt     time.Time  `json:"created_at"`
	// ActivatedAt is absent unless this is the live version.
	ActivatedAt time.Time `json:"activated_at,omitzero"`
}
