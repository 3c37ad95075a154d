package control

import (
	"fmt"
	"time"

	"github.com/guardyn-edge/guardyn/seal"
)

// AheadNode is what a node proved: an activation that was signed with the control plane's own key and is
// newer than what this database knows. It is kept until the epoch is raised.
type AheadNode struct {
	Node       string // its name
	Epoch      uint64
	Generation uint64
	Version    uint64
	Activation seal.SignedActivation
	SeenAt     time.Time
}

// AheadNodeError refuses to sign: a node has what a database restored from an old backup forgot, and would
// refuse whatever is signed next. Hint: gdn recover --bump-epoch. It is ErrNodeAhead (409).
type AheadNodeError struct{ Ahead AheadNode }

func (e *AheadNodeError) Error() string {
	return fmt.Sprintf("node %s serves epoch %d, generation %d (version %d), signed with this control plane's key and newer than all that its database knows: the database was restored from an older backup; nothing is signed until the epoch is raised",
		e.Ahead.Node, e.Ahead.Epoch, e.Ahead.Generation, e.Ahead.Version)
}

func (e *AheadNodeError) Is(target error) bool { return target == ErrNodeAhead }

// RecoverRequest asks for a recovery. BumpEpoch is the only kind there is and must be set.
type RecoverRequest struct {
	BumpEpoch bool
	// Message for the audit log, at most MaxMessage bytes of UTF-8.
	Message string
}

// RecoverResult tells what a recovery did. Ahead is the refusal that it lifted, nil when none stood.
type RecoverResult struct {
	EpochBefore uint64
	Epoch       uint64
	Ahead       *AheadNode
}
