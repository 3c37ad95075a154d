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

// SecretRecipient is whom private keys are sealed to (GET /v1/secrets/recipient).
type SecretRecipient struct {
	Recipient string `json:"recipient"` // an age recipient, age1…; empty: the control plane was given none
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
	// Ahead is the node that stops the control plane from signing anything, nil when nothing does.
	Ahead *AheadNode `json:"ahead,omitempty"`
}

// PlanOptions are the questions that a plan answers.
type PlanOptions struct {
	// HoldBroken keeps zones that have problems as they are published; the plan tells which in Held.
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
	// DryRun answers with what the request would be refused for, but not for a plan that can interrupt traffic, which the plan tells; or with
	// the plan. It changes nothing.
	DryRun bool `json:"dry_run,omitzero"`
	// Rollout is how it is to be published; absent: as the cluster's settings say.
	Rollout *RolloutOptions `json:"rollout,omitempty"`
}

// ApplyResult tells what an apply did. When Applied is false, Reason is no_changes and Version the live one, or Reason is
// rollout and Version and Generation are those of Rollout, which was proposed, or Reason is dry_run.
// gdn apply --wait tells what became of it: Applied is true once it is what the fleet serves.
type ApplyResult struct {
	Applied     bool   `json:"applied"`
	Reason      string `json:"reason,omitempty"`
	Version     uint64 `json:"version"`
	Generation  uint64 `json:"generation,omitzero"`
	ContentHash string `json:"content_hash,omitempty"`
	Zones       int    `json:"zones,omitzero"`
	Plan        *Plan  `json:"plan,omitempty"`
	// Rollout is what was put to the cohort, as it stands; absent when nothing was.
	Rollout *Rollout `json:"rollout,omitempty"`
}

// RollbackRequest makes an older snapshot live again.
type RollbackRequest struct {
	// Version to go back to; absent: the recorded parent of the live one.
	Version          uint64 `json:"version,omitzero"`
	Message          string `json:"message,omitempty"`
	AcceptDisruption bool   `json:"accept_disruption,omitzero"`
	// ExpectedContentHash is the hash of the plan that was reviewed; when what would be activated differs, the
	// answer is 409 plan_changed.
	ExpectedContentHash string `json:"expected_content_hash,omitempty"`
	// ExpectedGeneration is the live one that the reviewed plan was compared with (the generation of a dry run's
	// answer); when another is live, the answer is 409 plan_changed.
	ExpectedGeneration uint64 `json:"expected_generation,omitzero"`
	// DryRun answers as that of an ApplyRequest does, and changes nothing.
	DryRun bool `json:"dry_run,omitzero"`
	// Rollout is how it is to be published; absent: as the cluster's settings say.
	Rollout *RolloutOptions `json:"rollout,omitempty"`
}

// RollbackResult tells what a rollback did, or with a dry run would do.
type RollbackResult struct {
	RolledBack  bool   `json:"rolled_back"` // false for a dry run, and for what was put to the cohort
	Version     uint64 `json:"version"`     // the target
	Generation  uint64 `json:"generation"`  // of the activation; of a dry run the live one
	ContentHash string `json:"content_hash"`
	Zones       int    `json:"zones"`
	// Resealed tells that the target had another key's signature and got the present one's.
	Resealed bool  `json:"resealed,omitzero"`
	Plan     *Plan `json:"plan,omitempty"` // from what was live to the target
	// Rollout is what was put to the cohort, as it stands; absent when nothing was.
	Rollout *Rollout `json:"rollout,omitempty"`
}

// RecoverRequest tells how to recover after the database was restored from an old backup. BumpEpoch must be set.
type RecoverRequest struct {
	BumpEpoch bool   `json:"bump_epoch"`
	Message   string `json:"message,omitempty"`
}

// RecoverResult tells what a recovery did.
type RecoverResult struct {
	EpochBefore uint64 `json:"epoch_before"`
	Epoch       uint64 `json:"epoch"`
	// Ahead is the node that made the recovery necessary, absent when none was known.
	Ahead *AheadNode `json:"ahead,omitempty"`
}

// AheadNode is a node that proved to serve something newer than the database knows.
type AheadNode struct {
	Node       string    `json:"node"`
	Epoch      uint64    `json:"epoch"`
	Generation uint64    `json:"generation"`
	Version    uint64    `json:"version"`
	SeenAt     time.Time `json:"seen_at"`
}

// KeysReport tells who trusts the configured signing key.
type KeysReport struct {
	Public string     `json:"public"`
	KeyID  seal.KeyID `json:"key_id"`
	// LiveKeyID is the key that what is live is sealed with, empty when nothing is published.
	LiveKeyID seal.KeyID `json:"live_key_id"`
	Nodes     []NodeKeys `json:"nodes"`   // by name
	Missing   int        `json:"missing"` // nodes that do not trust the key, or never told
}

// NodeKeys is what a node said of the keys that it trusts.
type NodeKeys struct {
	ID          string       `json:"id"`
	Name        string       `json:"name"`
	TrustedKeys []seal.KeyID `json:"trusted_keys"`
	ReportedAt  time.Time    `json:"reported_at,omitzero"` // absent: it never told
	Trusts      bool         `json:"trusts"`               // the configured key is among them
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
