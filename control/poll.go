package control

import (
	"context"

	"github.com/guardyn-edge/guardyn/internal/nodeproto"
)

// Poll answers a node from memory (node). Answer.Artefact is nil when the node is current (204);
// Answer.Version is 0 when nothing was published. With Generation and Epoch 0 it compares versions for
// equality, else (epoch, generation) by order: ErrNodeAhead for a node that is ahead. With q.Wait it waits
// that long for something newer, until ctx is done, when it returns the 204 answer. The artefact is
// shared and must not be changed.
func (s *Service) Poll(ctx context.Context, p Principal, q nodeproto.Poll) (PollAnswer, error) {
	panic("unbuilt")
}

// PollAnswer is nodeproto.Answer with the live generation, which a 204 tells too.
type PollAnswer struct {
	nodeproto.Answer
	Generation uint64
}
