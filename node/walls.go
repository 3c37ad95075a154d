// Package node is the agent of an edge node: it polls for sealed snapshots, verifies them, keeps them on
// disk, has the host swap to them, and reports what it serves.
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
	Ack(ctx context.Context, a nodeproto.Ack) error
}

// Host is what the agent installs into: the data plane.
type Host interface {
	// Prepare compiles v beside what is served. It changes nothing.
	Prepare(ctx context.Context, v *seal.Verified) (Prepared, error)
}

// Prepared is a compiled view, ready to be swapped in.
type Prepared interface {
	// Swap makes it what is served. It cannot fail.
	Swap()
}
