package node

import (
	"fmt"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/snapshot"
)

// order is what the cohort has decided that this node installs. The store's word is not signed, so it selects: nothing is
// installed without an activation that says the same.
type order struct {
	pointer barrier.Pointer
	trial   barrier.RolloutID // whose trial it is; "": it is decided for good
	begin   func(before, after *snapshot.Snapshot)
}

// allows refuses an activation that is not what was ordered. Without an order only what is live for everybody is: a
// provisional activation could be a replay of a trial that ended long ago.
func (o *order) allows(act seal.Activation) error {
	no := func(format string, args ...any) error {
		return &seal.Refusal{Code: codeNotOnTrial, Message: fmt.Sprintf(format, args...)}
	}
	provisional := act.Kind == seal.KindProvisional
	switch {
	case o == nil && provisional:
		return no("the activation of generation %d is provisional, and was not asked for by a rollout that this node takes part in", act.Generation)
	case o == nil:
		return nil
	case provisional != (o.trial != ""):
		return no("the activation of generation %d is of kind %s, the rollout's is not", act.Generation, act.Kind)
	case provisional && act.Rollout != string(o.trial):
		return no("the activation of generation %d is of rollout %q, not of %s", act.Generation, act.Rollout, o.trial)
	case act.Generation != o.pointer.Generation:
		return no("the activation is of generation %d, the cohort decided for generation %d", act.Generation, o.pointer.Generation)
	case !names(o.pointer, act.Version, act.ContentHash):
		return no("the activation of generation %d is of version %d, content %s; the cohort decided for %s", act.Generation, act.Version, act.ContentHash, o.pointer)
	}
	return nil
}

// names tells whether p points to this content.
func names(p barrier.Pointer, version uint64, contentHash string) bool {
	return p.Version == version && string(p.Digest) == nodeproto.CandidateDigest(contentHash)
}
