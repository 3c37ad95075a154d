package api

import (
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

// Workspace is a tenant.
type Workspace struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Plan      string    `json:"plan"`
	CreatedAt time.Time `json:"created_at"`
}

// NewWorkspace creates a workspace.
type NewWorkspace struct {
	Name string `json:"name"`
	Plan string `json:"plan,omitempty"` // empty: the default plan
}

// WorkspacePatch changes what is not nil.
type WorkspacePatch struct {
	Name *string `json:"name,omitempty"`
	Plan *string `json:"plan,omitempty"`
}

// User is a person or a robot.
type User struct {
	ID        string    `json:"id"`
	Email     string    `json:"email"`
	Operator  bool      `json:"operator"`
	CreatedAt time.Time `json:"created_at"`
}

// NewUser creates a user.
type NewUser struct {
	Email    string `json:"email"`
	Operator bool   `json:"operator,omitzero"`
}

// Membership gives a user a role in a workspace (its name or id): viewer, editor or admin; an empty role
// takes the membership away.
type Membership struct {
	Workspace string `json:"workspace"`
	Role      string `json:"role"`
}

// Token is a credential without its secret.
type Token struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	User      string    `json:"user,omitempty"` // id of the user, or Node
	Node      string    `json:"node,omitempty"` // id of the node
	Workspace string    `json:"workspace,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at,omitzero"` // absent: never
	RevokedAt time.Time `json:"revoked_at,omitzero"` // absent: it stands
}

// NewToken makes a token for a user (an email) in a workspace (a name or id). Both are the caller's own when
// empty; only an operator names others' workspaces.
type NewToken struct {
	Name      string    `json:"name"`
	User      string    `json:"user,omitempty"`
	Workspace string    `json:"workspace,omitempty"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
}

// CreatedToken is a token with its secret, which is shown this once.
type CreatedToken struct {
	Token
	Secret string `json:"secret"`
}

// Node is an edge node as the fleet knows it.
type Node struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Cohort     bool   `json:"cohort"`            // it must agree to what is put to the cohort
	Address    string `json:"address,omitempty"` // as last seen
	Version    uint64 `json:"version"`           // last acknowledged, 0: nothing
	Generation uint64 `json:"generation"`
	// VersionsBehind is the newest version less the acknowledged one, nil when the node acknowledged
	// none; it is not zero after a rollback. GenerationsBehind counts activations.
	VersionsBehind    *uint64             `json:"versions_behind"`
	GenerationsBehind *uint64             `json:"generations_behind"`
	LastSeen          time.Time           `json:"last_seen,omitzero"`
	AckedAt           time.Time           `json:"acked_at,omitzero"`
	LastError         *nodeproto.AckError `json:"last_error,omitempty"`
	Freshness         string              `json:"freshness,omitempty"`
	// FreshnessStale is the alarm: the node says so itself, or has proven for too long not what is live.
	FreshnessStale bool         `json:"freshness_stale"`
	TrustedKeys    []seal.KeyID `json:"trusted_keys"`
	// Ahead is what the node shows that is newer than all that the database knows, absent for any other node.
	Ahead     *NodeAhead `json:"ahead,omitempty"`
	CreatedAt time.Time  `json:"created_at"`
}

// NodeAhead is an activation that the database does not know. Proven: the control plane's own key signed it, and
// nothing more is signed until the epoch is raised.
type NodeAhead struct {
	Epoch      uint64 `json:"epoch"`
	Generation uint64 `json:"generation"`
	Proven     bool   `json:"proven"`
}

// NewNode registers a node.
type NewNode struct {
	Name string `json:"name"`
	// Cohort has it take part in rollouts from the start.
	Cohort bool `json:"cohort,omitzero"`
}

// CreatedNode is a node with the secret of its token, which is shown this once.
type CreatedNode struct {
	Node
	Secret string `json:"secret"`
}

// AuditEntry is one line of the audit log.
type AuditEntry struct {
	ID        string         `json:"id"`
	At        time.Time      `json:"at"`
	Workspace string         `json:"workspace,omitempty"` // empty: the platform's own
	Actor     string         `json:"actor"`
	From      string         `json:"from,omitempty"` // remote address
	Action    string         `json:"action"`
	Target    string         `json:"target,omitempty"`
	Outcome   string         `json:"outcome"`
	Detail    jsontext.Value `json:"detail,omitempty"`
}
