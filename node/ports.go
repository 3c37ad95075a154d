package node

import (
	"context"

	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

// Source is where a node gets its configuration and reports to; api.NodeClient is the HTTP one.
type Source interface {
	// Poll returns an error for anything but 204, 200 and their honest content. A *seal.Refusal means that
	// the answer came but its envelope is malformed. It never buffers more than seal.MaxPayload+1 bytes.
	Poll(ctx context.Context, p nodeproto.Poll) (nodeproto.Answer, error)
	// Ack is idempotent: the same report twice is the same as once.
	Ack(ctx context.Context, a nodeproto.Ack) error
}

// Host is what the agent installs into: the data plane.
type Host interface {
	// Prepare compiles v beside what is served. It changes nothing. A panic in it counts as an error.
	Prepare(ctx context.Context, v *seal.Verified) (Prepared, error)
}

// Prepared is a compiled view, ready to be swapped in.
type Prepared interface {
	// Swap makes it what is served. It cannot fail.
	Swap()
}
