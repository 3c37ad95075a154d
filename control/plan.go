package control

import (
	"context"

	"github.com/guardyn-edge/guardyn/snapshot"
)

// PlanReport is what an apply would do. Live is nil when nothing was published yet.
type PlanReport struct {
	Plan *snapshot.Plan // warnings of the build included
	Live *SnapshotRow
}

// Plan builds from the rows and compares with what is live (operator). A *ProblemsError says why it cannot
// be built.
func (s *Service) Plan(ctx context.Context, p Principal) (PlanReport, error) { panic("unbuilt") }
