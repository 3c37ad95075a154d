package control

import (
	"context"
	"errors"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

// Errors that every port returns, tested with errors.Is. Adapters wrap them with what was asked for.
var (
	// ErrNotFound: no such row, or one of another workspace; the two cannot be told apart.
	ErrNotFound = errors.New("not found")
	// ErrExists: a row with this identity stands already.
	ErrExists = errors.New("exists already")
	// ErrConflict: the row changed since its revision was read; read again and decide anew.
	ErrConflict = errors.New("changed meanwhile")
)

// Page selects a part of a listing in its documented order: at most Limit rows (1 to 1,000) after the row
// whose key is After ("" from the start).
type Page struct {
	After string
	Limit int
}

// EditStore holds the rows that editing changes. Each method is one transaction, durable when it returns
// nil, and writes its audit entry in the same transaction. ws scopes every call: a zone of another
// workspace is ErrNotFound.
type EditStore interface {
	// CreateZone: ErrExists when the workspace has a zone of that name; *ZoneClashError when it could not be published beside a zone
	// of another workspace, whoever creates or deletes others at the same time.
	CreateZone(ctx context.Context, ws string, z ZoneRow, a AuditEntry) error
	DeleteZone(ctx context.Context, ws string, id zone.ID, a AuditEntry) error
	// ZoneByName and ZoneByID: ErrNotFound.
	ZoneByName(ctx context.Context, ws string, name zone.Name) (ZoneRow, error)
	ZoneByID(ctx context.Context, ws string, id zone.ID) (ZoneRow, error)
	// ListZones is ordered by name; the page key is the name.
	ListZones(ctx context.Context, ws string, p Page) ([]ZoneRow, error)
	// ListRecords is ordered by (name, type, content, id); the page key is the record id of the last row.
	ListRecords(ctx context.Context, ws string, id zone.ID, f RecordFilter, p Page) ([]RecordRow, error)
	// ReadRecords returns all records of a zone with the zone's revision, from one read.
	ReadRecords(ctx context.Context, ws string, id zone.ID) ([]RecordRow, int64, error)
	// ChangeRecords deletes, updates and inserts, in this order, all or nothing. ifRevision other than 0 is
	// the zone revision that must still hold (ErrConflict). A record with the name, type and content of
	// another is ErrExists; an id that is not in the zone is ErrNotFound.
	ChangeRecords(ctx context.Context, ws string, id zone.ID, ch RecordChange, ifRevision int64, a AuditEntry) error
	// Object: ErrNotFound. ListObjects is ordered by name.
	Object(ctx context.Context, ws string, id zone.ID, kind ObjectKind, name string) (ObjectRow, error)
	ListObjects(ctx context.Context, ws string, id zone.ID, kind ObjectKind) ([]ObjectRow, error)
	// PutObject inserts or replaces and returns the new revision. ifRevision: 0 any, -1 must not exist
	// (ErrExists), else the object's revision that must still hold (ErrConflict).
	PutObject(ctx context.Context, ws string, id zone.ID, o ObjectRow, ifRevision int64, a AuditEntry) (int64, error)
	DeleteObject(ctx context.Context, ws string, id zone.ID, kind ObjectKind, name string, ifRevision int64, a AuditEntry) error
}

// PublishStore holds snapshots, their activations and the generation counter.
type PublishStore interface {
	// ReadConfiguration returns every zone of every workspace as rows hold them, with the ceilings of
	// each workspace's plan, from one consistent read, ordered by zone id.
	ReadConfiguration(ctx context.Context) ([]snapshot.ZoneInput, error)
	Platform(ctx context.Context) (Platform, error)
	// RecordAhead keeps what a node proved, unless it is not newer than the platform's epoch and generation or
	// than what is kept already; recorded tells. The audit entry is written only then.
	RecordAhead(ctx context.Context, n AheadNode, a AuditEntry) (recorded bool, err error)
	// BumpEpoch moves the epoch, forgets what RecordAhead kept of the epochs before the new one, and moves the
	// version sequence to b.Version when it is behind. ErrConflict, and nothing done, when the epoch is not
	// b.SeenEpoch.
	BumpEpoch(ctx context.Context, b EpochBump) error
	// Live returns the active row without its payload; ErrNotFound when nothing was published.
	Live(ctx context.Context) (SnapshotRow, error)
	// Sealed returns a stored artefact by version, payload included; ErrNotFound.
	Sealed(ctx context.Context, version uint64) (seal.Sealed, error)
	// SnapshotByVersion returns a row without its payload; ErrNotFound.
	SnapshotByVersion(ctx context.Context, version uint64) (SnapshotRow, error)
	// Activated returns the version that an activation made live, or put on trial, with its content hash; ErrNotFound.
	Activated(ctx context.Context, epoch, generation uint64) (version uint64, contentHash string, err error)
	// NextVersion takes a version from the sequence; it is never given out again.
	NextVersion(ctx context.Context) (uint64, error)
	// Publish inserts p.Insert or replaces the seal by p.Reseal when they are not nil, deactivates the active
	// row, activates p.Activation's version, moves the generation counter from p.SeenGeneration to
	// p.Activation.Generation, keeps p.Replay and writes the audit entries, in one transaction. ErrConflict, and
	// nothing done, when the counter is not p.SeenGeneration; ErrNodeAhead while something is kept by
	// RecordAhead.
	Publish(ctx context.Context, p Publication) error
	// History is ordered newest version first; the page key is the version in decimal.
	History(ctx context.Context, p Page) ([]SnapshotRow, error)
	// Revisions is one cheap read that tells whether anything that is held in memory is out of date.
	Revisions(ctx context.Context) (Revisions, error)
	// Changes hints that Revisions changed, by whichever process where the database can tell. Hints may be
	// missing, late, or for nothing; several may come as one. The channel is closed when ctx is done and
	// nothing of it runs any more.
	Changes(ctx context.Context) <-chan struct{}
}

// ReplayStore holds first answers of requests that may be repeated, for ReplayAge each and MaxReplays at most,
// the newest.
type ReplayStore interface {
	// Replay returns what is kept under a user's key and is younger than ReplayAge at now; ErrNotFound.
	Replay(ctx context.Context, userID, key string, now time.Time) (Replay, error)
	// PutReplay keeps r; ErrExists when something younger than ReplayAge at r.At is kept under its key.
	PutReplay(ctx context.Context, r Replay) error
}

// DirectoryStore holds who there is.
type DirectoryStore interface {
	CreateWorkspace(ctx context.Context, w Workspace, a AuditEntry) error
	ListWorkspaces(ctx context.Context, p Page) ([]Workspace, error) // by name
	WorkspaceByID(ctx context.Context, id string) (Workspace, error)
	WorkspaceByName(ctx context.Context, name string) (Workspace, error)
	UpdateWorkspace(ctx context.Context, w Workspace, a AuditEntry) error // name, plan
	PutPlan(ctx context.Context, p zone.Plan, a AuditEntry) error
	ListPlans(ctx context.Context) ([]zone.Plan, error)
	CreateUser(ctx context.Context, u User, a AuditEntry) error
	ListUsers(ctx context.Context, p Page) ([]User, error) // by email
	UserByEmail(ctx context.Context, email string) (User, error)
	SetMembership(ctx context.Context, m Membership, a AuditEntry) error
	ListMemberships(ctx context.Context, userID string) ([]Membership, error)
	CreateToken(ctx context.Context, t Token, a AuditEntry) error
	// ListTokens of a workspace, or of every one when ws is empty, newest first; page key is the id.
	ListTokens(ctx context.Context, ws string, p Page) ([]Token, error)
	// RevokeToken writes its audit entry to the log of the token's own workspace, whoever revokes it.
	RevokeToken(ctx context.Context, ws, id string, at time.Time, a AuditEntry) error
	// TokenByHash returns a token that is not revoked with whom it speaks for; ErrNotFound. Expiry is the caller's.
	TokenByHash(ctx context.Context, hash [32]byte) (Token, Principal, error)
	CreateNode(ctx context.Context, n Node, t Token, a AuditEntry) error
	ListNodes(ctx context.Context) ([]Node, error)                 // by name
	DeleteNode(ctx context.Context, id string, a AuditEntry) error // its tokens too
	// RecordNodes writes what was heard of nodes since the last call, in one transaction; ids that are
	// gone are passed over.
	RecordNodes(ctx context.Context, seen []NodeReport, a []AuditEntry) error
}

// AuditStore reads the log; each entry is written by the method whose deed it tells, or by Append.
type AuditStore interface {
	Append(ctx context.Context, a AuditEntry) error
	// ListAudit of a workspace, or everything when ws is empty, newest first; the page key is the id.
	ListAudit(ctx context.Context, ws string, p Page) ([]AuditEntry, error)
}

// RolloutStore holds what the control plane knows of rollouts beside what the Cohort does. A store that was joined to a
// cohort changes both in one transaction, and takes the cohort's lock first: Publish makes what it activates the cohort's
// committed pointer, and is *RolloutOpenError while a rollout is open, ErrConflict when the cohort's generation is not below
// the activation's; BumpEpoch is *RolloutOpenError too; DeleteNode takes the node out of the roster, CreateNode puts it in when
// Node.Cohort says so: *RolloutOpenError while a rollout is on trial.
type RolloutStore interface {
	// ClusterSettings returns how the platform publishes, no member of it zero but ConfirmWindow.
	ClusterSettings(ctx context.Context) (ClusterSettings, error)
	// PutClusterSettings replaces them when their revision is c.Revision, else ErrConflict, and returns the new revision.
	PutClusterSettings(ctx context.Context, c ClusterSettings, a AuditEntry) (int64, error)
	// ProposeRollout inserts n.Insert, which nothing makes live yet, or replaces the seal by n.Reseal, proposes it to the
	// cohort, keeps n.Row and what n.Complete gives, in one transaction. Errors: ErrConflict when the platform's generation
	// or epoch is not what n saw, or the roster changed; ErrNodeAhead; *RolloutOpenError; barrier.ErrNoBaseline, barrier.ErrInvalid.
	ProposeRollout(ctx context.Context, n NewRollout) (barrier.Rollout, error)
	// RolloutRows returns those of ids that there are, in any order, without what is not kept here.
	RolloutRows(ctx context.Context, ids []barrier.RolloutID) ([]RolloutRow, error)
	// SetCohort puts a node into the roster or takes it out; changed tells whether it was elsewhere, and only then the entry
	// is written. Errors: ErrNotFound of a node, *RolloutOpenError while a rollout is on trial, barrier.ErrInvalid when the
	// roster is full.
	SetCohort(ctx context.Context, nodeID string, member bool, a AuditEntry) (changed bool, err error)
	// AdoptLive makes what is live the committed pointer of a cohort that has none, as after a migration.
	AdoptLive(ctx context.Context) error
}

// Store is all ports; one adapter gives them all.
type Store interface {
	EditStore
	PublishStore
	RolloutStore
	ReplayStore
	DirectoryStore
	AuditStore
	PurgeStore
	Close() error
}
