package control

import (
	"context"

	"github.com/guardyn-edge/guardyn/zone"
)

// ListWorkspaces lists by name (operator).
func (s *Service) ListWorkspaces(ctx context.Context, p Principal, page Page) (Listing[Workspace], error) {
	panic("unbuilt")
}

// CreateWorkspace adds a tenant on a plan (operator). ErrExists when the name is taken; a plan that does
// not exist is a *ProblemsError.
func (s *Service) CreateWorkspace(ctx context.Context, p Principal, name, plan string) (Workspace, error) {
	panic("unbuilt")
}

// WorkspacePatch changes what is not nil.
type WorkspacePatch struct {
	Name *string
	Plan *string
}

// UpdateWorkspace changes a workspace, named by id or name (operator). Another plan's ceilings are served from the
// next apply.
func (s *Service) UpdateWorkspace(ctx context.Context, p Principal, ref string, patch WorkspacePatch) (Workspace, error) {
	panic("unbuilt")
}

// ListPlans lists the plans that workspaces subscribe to (operator), by name.
func (s *Service) ListPlans(ctx context.Context, p Principal) ([]zone.Plan, error) { panic("unbuilt") }

// PlanByName returns one (operator).
func (s *Service) PlanByName(ctx context.Context, p Principal, name string) (zone.Plan, error) {
	panic("unbuilt")
}

// PutPlan writes a plan under its name (operator).
func (s *Service) PutPlan(ctx context.Context, p Principal, plan zone.Plan) (zone.Plan, error) {
	panic("unbuilt")
}
