package node

import (
	"context"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/snapshot"
)

// Source is where a node gets its configuration and reports to; api.NodeClient is the HTTP one. It is safe for
// concurrent use: the agent and its part in a rollout poll each for itself.
type Source interface {
	// Poll returns an error for anything but 204, 200 and their honest content. A *seal.Refusal means that
	// the answer came but its envelope is malformed. It never buffers more than seal.MaxPayload+1 bytes.
	Poll(ctx context.Context, p nodeproto.Poll) (nodeproto.Answer, error)
	// Ack is idempotent: the same report twice is the same as once.
	Ack(ctx context.Context, a nodeproto.Ack) error
}

// RolloutSource is what a node asks the control plane for rollouts; api.NodeClient is the HTTP one.
type RolloutSource interface {
	// Self returns who the node is, and whether it takes part in rollouts.
	Self(ctx context.Context) (nodeproto.Self, error)
	// Candidate returns the sealed snapshot that the open rollout carries under digest, unverified. It is a
	// barrier.ErrNoArtefact when there is none for this node. It never buffers more than seal.MaxPayload+1 bytes.
	Candidate(ctx context.Context, digest string) (nodeproto.Candidate, error)
}

// Host is what the agent installs into: the data plane. Calls come one at a time.
type Host interface {
	// Prepare compiles c beside what is served, to be served as that generation of that epoch. It changes nothing,
	// and does not say that c ever will be served. A panic in it counts as an error.
	Prepare(ctx context.Context, c *seal.Candidate, epoch, generation uint64) (Prepared, error)
}

// Prepared is a compiled view, ready to be swapped in.
type Prepared interface {
	// Swap makes it what is served. It cannot fail.
	Swap()
}

// Prober judges whether what was swapped in on trial works. Calls come one at a time.
type Prober interface {
	// Begin is called just before the swap from before to after. margin is by how much the share of 5xx answers
	// may rise, in hundredths of a percentage point.
	Begin(before, after *snapshot.Snapshot, margin int)
	// Check judges what Begin was told of last. Its Detail says what was seen; it returns soon after ctx ends.
	Check(ctx context.Context) barrier.Health
}

// Preparer is a Prober that looks at what a change concerns before it takes place.
type Preparer interface {
	Prober
	// Prepare is called while before is served (nil: nothing), once the candidate after is compiled and before the node votes for
	// it. It returns within the Deadline of ctx.
	Prepare(ctx context.Context, before, after *snapshot.Snapshot)
}
