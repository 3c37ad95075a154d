package control

import (
	"time"

	"github.com/guardyn-edge/guardyn/seal"
)

// NodeKeys is what a node said of the keys that it trusts.
type NodeKeys struct {
	ID   string
	Name string
	// TrustedKeys is nil when the node never told.
	TrustedKeys []seal.KeyID
	ReportedAt  time.Time // zero when it never told
	Trusts      bool      // the configured key is among them
}

// KeysReport tells who trusts the configured key. LiveKey is the id of the key that what is live is sealed
// with, empty when nothing is published.
type KeysReport struct {
	Key     seal.PublicKey
	KeyID   seal.KeyID
	LiveKey seal.KeyID
	Nodes   []NodeKeys
	Missing int // nodes that do not trust the key, or never told
}
