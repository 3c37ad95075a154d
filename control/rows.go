package control

import (
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/zone"
)

// ZoneRow is a zone without what it holds. Revision rises with every edit of anything in the zone.
type ZoneRow struct {
	ID        zone.ID
	Workspace string
	Name      zone.Name
	Revision  int64
	Records   int // how many
	CreatedAt time.Time
}

// RecordRow is a record with the identity that edits name it by (UUIDv7).
type RecordRow struct {
	ID string
	zone.Record
}

// RecordFilter narrows a listing; zero members do not.
type RecordFilter struct {
	Name zone.Name
	Type zone.RRType
}

// RecordChange is one edit of a zone's records.
type RecordChange struct {
	Delete []string
	Update []RecordRow
	Insert []RecordRow
	// Settings, when not nil, replaces the zone's settings body in the same transaction.
	Settings []byte
	// Tell, when not nil, completes the audit entry, inside the transaction, with what the deleted and the
	// updated records were. It may be called more than once, each time with a fresh entry.
	Tell func(a *AuditEntry, was []RecordRow)
}

// ObjectKind names a kind of object that a zone holds beside its records.
type ObjectKind string

// The kinds. The name of a ruleset is its phase; of a load balancer and a TLS host the host name; of
// settings and cache policy the word "zone".
const (
	KindRuleset      ObjectKind = "ruleset"       // body: []zone.Rule
	KindList         ObjectKind = "list"          // zone.List
	KindPool         ObjectKind = "pool"          // zone.Pool
	KindLoadBalancer ObjectKind = "load_balancer" // zone.LoadBalancer
	KindCachePolicy  ObjectKind = "cache_policy"  // zone.CachePolicy
	KindTLSHost      ObjectKind = "tls_host"      // zone.TLSHost
	KindFunction     ObjectKind = "function"      // zone.Function
	KindSettings     ObjectKind = "settings"      // zone.Settings
)

// ObjectRow is an object with its body, the JSON of its zone type in normal form.
type ObjectRow struct {
	Kind     ObjectKind
	Name     string
	Body     []byte
	Revision int64
}

// Platform is the one row that says what this control plane is.
type Platform struct {
	ID         string // UUID
	Epoch      uint64 // from 1
	Generation uint64 // last one taken, 0: none yet
	// Ahead is what a node proved to have and this database does not know, nil: nothing.
	Ahead *AheadNode
}

// EpochBump is one recovery.
type EpochBump struct {
	SeenEpoch  uint64
	Epoch      uint64 // greater
	Version    uint64 // versions up to here are never given out again
	Generation uint64 // rollouts have generations above it from now on
	Audit      AuditEntry
}

// Replay is the first answer of a request that may be repeated.
type Replay struct {
	UserID  string
	Key     string
	Request [32]byte // hash of the request
	Answer  []byte   // JSON
	At      time.Time
}

// SnapshotRow is a stored snapshot without its payload.
type SnapshotRow struct {
	Version       uint64
	ParentVersion uint64
	ContentHash   string
	CreatedBy     string
	Message       string
	CreatedAt     time.Time
	Zones         int
	Bytes         int64 // of the payload
	KeyID         seal.KeyID
	// Of its latest activation: ActivatedAt is zero when it is not the active row. Generations lists all,
	// oldest first.
	ActivatedAt time.Time
	Generations []uint64
	// Epoch, Activation and Kind of the latest activation, empty when it never was active.
	Epoch      uint64
	Activation seal.SignedActivation
	Kind       seal.ActivationKind
}

// Publication is one move of the live pointer.
type Publication struct {
	SeenGeneration uint64
	Insert         *NewSnapshot // nil: activate a stored version
	Reseal         *seal.Sealed // nil: as it is stored; of the stored version's own content
	Activation     seal.Activation
	Signed         seal.SignedActivation
	By             string
	At             time.Time
	Audit          AuditEntry
	Also           []AuditEntry // what else the log keeps of it
	Replay         *Replay      // nil: nothing to keep
}

// NewSnapshot is a row to insert.
type NewSnapshot struct {
	Row    SnapshotRow
	Sealed seal.Sealed
}

// Revisions tells what stands: the live generation, a counter of changes to tokens, nodes and memberships, one
// of steps of rollouts, and the end of the log of purges.
type Revisions struct {
	Epoch      uint64
	Generation uint64
	Directory  uint64
	Rollouts   uint64
	Purges     seal.PurgeMark
	// Now is the database's own time; zero: that of the machine that asks.
	Now time.Time
}

// RolloutRow is what is kept of a rollout beside what the cohort keeps.
type RolloutRow struct {
	ID          barrier.RolloutID
	Epoch       uint64
	Generation  uint64
	Kind        seal.ActivationKind // apply or rollback
	Version     uint64
	ContentHash string
	Message     string
	By          string
	Margin      int
	CreatedAt   time.Time
	// Provisional is the activation of its trial, empty until one was decided.
	Provisional seal.SignedActivation
}

// NewRollout is a candidate with its proposal.
type NewRollout struct {
	Row            RolloutRow // Generation is for the cohort to give
	Proposal       barrier.Proposal
	SeenGeneration uint64
	Insert         *NewSnapshot // nil: propose a stored version
	Reseal         *seal.Sealed // nil: as it is stored
	// Complete gives the audit entry, and what to keep for a repetition (nil: nothing), of what was proposed. It may be
	// called more than once.
	Complete func(barrier.Rollout) (AuditEntry, *Replay, error)
}

// StoredSeal is what an activation says of a stored snapshot.
type StoredSeal struct {
	Version       uint64
	ContentHash   string
	KeyID         seal.KeyID
	PayloadBLAKE3 string
	Bytes         int64
}

// DecisionFacts is all that Service.Decided judges by, read in the deciding transaction.
type DecisionFacts struct {
	Before, After barrier.Head
	Platform      Platform
	Live          *StoredSeal // nil: nothing is live
	Row           RolloutRow  // of After.Rollout
	Candidate     StoredSeal  // what it carries
	Node          string      // name of the node whose deadman decided, empty: none did
}

// Decision is what the control plane's rows take over of a step of a rollout, in the step's own transaction.
type Decision struct {
	Rollout     barrier.RolloutID
	Publish     *Publication // nil: what is live stays
	Provisional seal.SignedActivation
	Audit       []AuditEntry
}

// Workspace is a tenant.
type Workspace struct {
	ID        string
	Name      string
	Plan      string
	CreatedAt time.Time
}

// User is a person or a robot. Operator is the platform's role.
type User struct {
	ID        string
	Email     string
	Operator  bool
	CreatedAt time.Time
}

// Role is what a user may do in a workspace; each includes the ones before it.
type Role string

// The roles.
const (
	RoleViewer Role = "viewer"
	RoleEditor Role = "editor"
	RoleAdmin  Role = "admin"
)

// Membership gives a user a role in a workspace; an empty role takes it away.
type Membership struct {
	UserID    string
	Workspace string
	Role      Role
}

// Token is a credential; only its BLAKE3-256 hash is stored. It speaks for a user in one workspace, or for
// a node.
type Token struct {
	ID        string
	Name      string
	Hash      [32]byte
	UserID    string // or NodeID
	NodeID    string
	Workspace string // empty for a node's
	CreatedAt time.Time
	ExpiresAt time.Time // zero: never
	RevokedAt time.Time // zero: stands
}

// Principal is whom a request speaks for.
type Principal struct {
	TokenID       string
	UserID        string // empty for a node
	Email         string
	Operator      bool
	Workspace     string
	WorkspaceName string
	Role          Role // in Workspace
	NodeID        string
	NodeName      string
	// From is the remote address, for the audit log; whoever received the request sets it.
	From string
}

// Node is an edge node as the fleet knows it.
type Node struct {
	ID        string
	Name      string
	Address   string // as last seen
	CreatedAt time.Time
	LastSeen  time.Time
	// Acked is what it last acknowledged, nil when it never did; LastError stays until a good ack.
	Acked     *nodeproto.Ack
	AckedAt   time.Time
	LastError *nodeproto.AckError
	// TrustedKeys are the ids of the keys that it trusts, in order, as it last said at KeysAt; nil when it never
	// did. FreshAt is when it last got a proof of what is live.
	TrustedKeys []seal.KeyID
	KeysAt      time.Time
	FreshAt     time.Time
	// Cohort: it takes part in rollouts. The store reads it in CreateNode and never fills it in.
	Cohort bool
}

// NodeReport is news of a node: that it was seen, and what else is not zero. All of its times are the database's.
type NodeReport struct {
	NodeID  string
	Address string
	SeenAt  time.Time
	Ack     *nodeproto.Ack
	FreshAt time.Time
	// Now is when it is written. What is stored of a later time is from a clock that was wrong; zero: nothing is.
	Now time.Time
	// TrustedKeys, in order. KeysAudit is written when they take the place of others.
	TrustedKeys []seal.KeyID
	KeysAudit   AuditEntry
}

// AuditEntry is one line of the log: append-only.
type AuditEntry struct {
	ID        string // UUIDv7
	At        time.Time
	Workspace string // empty: the platform's own
	Actor     string // email, "node NAME", or "system"
	From      string // remote address
	Action    string // zone.create, record.add, config.apply, config.node_rejected
	Target    string
	Outcome   string // ok, or the error's code
	Detail    string // JSON object, or empty
}
