package control

import (
	"context"

	"github.com/guardyn-edge/guardyn/snapshot"
)

// ApplyRequest asks to publish what the rows say.
type ApplyRequest struct {
	// Message for the history, at most MaxMessage bytes of UTF-8.
	Message string
	// AcceptDisruption lets a plan through that can interrupt traffic.
	AcceptDisruption bool
	// Reseal publishes under the present key even when the content is what is live.
	Reseal bool
	// ExpectedContentHash, when not empty, is the only content that may be published: that of the plan
	// which was reviewed.
	ExpectedContentHash string
}

// ReasonNoChanges is the ApplyResult.Reason of an apply that had nothing to do.
const ReasonNoChanges = "no_changes"

// ApplyResult tells what an apply did.
type ApplyResult struct {
	Applied     bool
	Reason      string // when not applied: ReasonNoChanges
	Version     uint64 // live now; 0: nothing is published
	Generation  uint64
	ContentHash string
	Zones       int
	Plan        *snapshot.Plan
}

// Apply publishes (operator). Errors: *ProblemsError (it cannot be built), *PlanChangedError,
// *DisruptiveError, *StaleError (which is ErrConflict), ErrKeyMismatch. With any error nothing was
// published, except when the store's answer to the commit was lost; history tells then.
func (s *Service) Apply(ctx context.Context, p Principal, r ApplyRequest) (ApplyResult, error) {
	panic("unbuilt")
}
