package control

import (
	"context"
	"fmt"
	"slices"
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

// KeysCheck tells which nodes trust the configured signing key, as they last said to any process (operator),
// by name.
func (s *Service) KeysCheck(ctx context.Context, p Principal) (KeysReport, error) {
	if err := p.operates(); err != nil {
		return KeysReport{}, err
	}
	if err := s.flushNodes(ctx); err != nil {
		return KeysReport{}, err
	}
	_, live, err := s.readLive(ctx)
	if err != nil {
		return KeysReport{}, err
	}
	nodes, err := s.store.ListNodes(ctx)
	if err != nil {
		return KeysReport{}, fmt.Errorf("listing nodes: %w", err)
	}
	r := KeysReport{Key: s.key.Public(), KeyID: s.key.ID(), Nodes: make([]NodeKeys, len(nodes))}
	if live != nil {
		r.LiveKey = live.KeyID
	}
	for i, n := range nodes {
		r.Nodes[i] = NodeKeys{
			ID: n.ID, Name: n.Name, TrustedKeys: n.TrustedKeys, ReportedAt: n.KeysAt,
			Trusts: slices.Contains(n.TrustedKeys, r.KeyID),
		}
		if !r.Nodes[i].Trusts {
			r.Missing++
		}
	}
	return r, nil
}
