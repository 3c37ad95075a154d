package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/guardyn-edge/guardyn/zone"
)

// ListWorkspaces lists by name (operator).
func (s *Service) ListWorkspaces(ctx context.Context, p Principal, page Page) (Listing[Workspace], error) {
	if err := p.operates(); err != nil {
		return Listing[Workspace]{}, err
	}
	page, err := bounded(page)
	if err != nil {
		return Listing[Workspace]{}, err
	}
	rows, err := s.store.ListWorkspaces(ctx, page)
	if err != nil {
		return Listing[Workspace]{}, fmt.Errorf("listing workspaces: %w", err)
	}
	return listing(rows, page, func(w Workspace) string { return w.Name }), nil
}

// CreateWorkspace adds a tenant on a plan (operator). ErrExists when the name is taken; a plan that does
// not exist is a *ProblemsError.
func (s *Service) CreateWorkspace(ctx context.Context, p Principal, name, plan string) (Workspace, error) {
	if err := p.operates(); err != nil {
		return Workspace{}, err
	}
	w := Workspace{ID: newID(), Name: strings.TrimSpace(name), Plan: plan, CreatedAt: s.now().UTC()}
	if err := s.checkWorkspace(ctx, w); err != nil {
		return Workspace{}, err
	}
	if err := s.store.CreateWorkspace(ctx, w, s.entry(p, w.ID, "workspace.create", w.Name)); err != nil {
		return Workspace{}, fmt.Errorf("workspace %q: %w", w.Name, unrepeated(err))
	}
	return w, nil
}

// WorkspacePatch changes what is not nil.
type WorkspacePatch struct {
	Name *string
	Plan *string
}

// UpdateWorkspace changes a workspace, named by id or name (operator). Another plan's ceilings are served
// from the next apply.
func (s *Service) UpdateWorkspace(ctx context.Context, p Principal, ref string, patch WorkspacePatch) (Workspace, error) {
	if err := p.operates(); err != nil {
		return Workspace{}, err
	}
	w, err := s.findWorkspace(ctx, ref)
	if err != nil {
		return Workspace{}, err
	}
	before := w
	if patch.Name != nil {
		w.Name = strings.TrimSpace(*patch.Name)
	}
	if patch.Plan != nil {
		w.Plan = *patch.Plan
	}
	if w == before {
		return w, nil
	}
	if err := s.checkWorkspace(ctx, w); err != nil {
		return Workspace{}, err
	}
	a := s.entry(p, w.ID, "workspace.update", before.Name)
	a.Detail = detail(map[string]any{"name": w.Name, "plan": w.Plan})
	if err := s.store.UpdateWorkspace(ctx, w, a); err != nil {
		return Workspace{}, fmt.Errorf("workspace %q: %w", w.Name, unrepeated(err))
	}
	return w, nil
}

// checkWorkspace reports all that is wrong with w.
func (s *Service) checkWorkspace(ctx context.Context, w Workspace) error {
	var problems []Problem
	if msg := badTitle(w.Name); msg != "" {
		problems = append(problems, Problem{Object: "workspace", Code: "name_invalid", Message: msg})
	} else if _, err := zone.ParseID(w.Name); err == nil {
		problems = append(problems, Problem{Object: "workspace", Code: "name_invalid", Message: "a name cannot look like an id"})
	}
	switch _, err := s.plan(ctx, w.Plan); {
	case errors.Is(err, ErrNotFound):
		problems = append(problems, Problem{
			Object: "plan", Code: "plan_unknown",
			Message: fmt.Sprintf("there is no plan %q; GET /v1/plans lists them, PUT /v1/plans/NAME makes one", w.Plan),
		})
	case err != nil:
		return err
	}
	if problems != nil {
		return &ProblemsError{Problems: problems}
	}
	return nil
}

// maxTitle is the length in bytes of the longest name of a workspace, token or node.
const maxTitle = 100

// badTitle says what is wrong with a name for people, "" when nothing is.
func badTitle(name string) string {
	switch {
	case strings.TrimSpace(name) == "":
		return "a name cannot be empty"
	case len(name) > maxTitle:
		return fmt.Sprintf("a name is at most %d bytes long", maxTitle)
	case !printable(name):
		return "a name holds printable characters only"
	}
	return ""
}

// printable reports whether s is UTF-8 without control characters.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// findWorkspace reads a workspace by id or name.
func (s *Service) findWorkspace(ctx context.Context, ref string) (Workspace, error) {
	var (
		w   Workspace
		err error
	)
	if id, idErr := zone.ParseID(ref); idErr == nil {
		w, err = s.store.WorkspaceByID(ctx, string(id))
	} else {
		w, err = s.store.WorkspaceByName(ctx, ref)
	}
	if err != nil {
		return Workspace{}, fmt.Errorf("workspace %q: %w", ref, err)
	}
	return w, nil
}

// ListPlans lists the plans that workspaces subscribe to (operator), by name.
func (s *Service) ListPlans(ctx context.Context, p Principal) ([]zone.Plan, error) {
	if err := p.operates(); err != nil {
		return nil, err
	}
	plans, err := s.store.ListPlans(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing plans: %w", err)
	}
	slices.SortFunc(plans, func(a, b zone.Plan) int { return strings.Compare(a.Name, b.Name) })
	return plans, nil
}

// PlanByName returns one (operator).
func (s *Service) PlanByName(ctx context.Context, p Principal, name string) (zone.Plan, error) {
	if err := p.operates(); err != nil {
		return zone.Plan{}, err
	}
	return s.plan(ctx, name)
}

func (s *Service) plan(ctx context.Context, name string) (zone.Plan, error) {
	plans, err := s.store.ListPlans(ctx)
	if err != nil {
		return zone.Plan{}, fmt.Errorf("listing plans: %w", err)
	}
	for _, pl := range plans {
		if pl.Name == name {
			return pl, nil
		}
	}
	return zone.Plan{}, fmt.Errorf("plan %q: %w", name, ErrNotFound)
}

// PutPlan writes a plan under its name (operator). What changes in ceilings is served from the next apply.
func (s *Service) PutPlan(ctx context.Context, p Principal, plan zone.Plan) (zone.Plan, error) {
	if err := p.operates(); err != nil {
		return zone.Plan{}, err
	}
	var problems []Problem
	name, err := zone.ParseObjectName(plan.Name)
	if err != nil {
		problems = append(problems, Problem{Object: "plan", Code: "name_invalid", Message: err.Error()})
	}
	ceilings, err := plan.Ceilings.Normalize()
	for _, e := range unjoinNil(err) {
		problems = append(problems, Problem{Object: "plan " + plan.Name, Code: "malformed", Message: e.Error()})
	}
	if problems != nil {
		return zone.Plan{}, &ProblemsError{Problems: problems}
	}
	plan = zone.Plan{Name: name, Ceilings: ceilings}
	if err := s.store.PutPlan(ctx, plan, s.entry(p, "", "plan.put", name)); err != nil {
		return zone.Plan{}, fmt.Errorf("plan %q: %w", name, err)
	}
	return plan, nil
}
