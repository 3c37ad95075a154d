package control

import (
	"context"

	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

// NodeStatus is a node with how far it is from what is published.
type NodeStatus struct {
	Node
	// VersionsBehind is the newest snapshot version less the one last acknowledged, GenerationsBehind the
	// live generation less the node's; nil when it never acknowledged anything. Never negative.
	VersionsBehind    *uint64
	GenerationsBehind *uint64
	Freshness         string // "", "fresh", "stale"
	TrustedKeys       []seal.KeyID
}

// NewNode is a node with its token's secret, which is shown this once.
type NewNode struct {
	Node
	Secret string
}

// ListNodes lists by name (operator), what this process heard and has not yet recorded included.
func (s *Service) ListNodes(ctx context.Context, p Principal) ([]NodeStatus, error) {
	panic("unbuilt")
}

// CreateNode registers a node and makes its token (operator). ErrExists when the name is taken.
func (s *Service) CreateNode(ctx context.Context, p Principal, name string) (NewNode, error) {
	panic("unbuilt")
}

// DeleteNode removes a node, by id or name, and ends its tokens (operator).
func (s *Service) DeleteNode(ctx context.Context, p Principal, ref string) error { panic("unbuilt") }

// Ack records what a node says that it serves (node, for itself alone); it is durable when Ack returns
// nil. ErrNodeAhead for an epoch, generation or version that was never issued. An error in a is logged and
// audited as config.node_rejected.
func (s *Service) Ack(ctx context.Context, p Principal, a nodeproto.Ack) error { panic("unbuilt") }
