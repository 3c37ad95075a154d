package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/guardyn-edge/guardyn/internal/failpoint"
	"github.com/guardyn-edge/guardyn/zone"
)

// TokenRequest asks for a token. User and Workspace, empty for the caller's own, may be named by an
// operator only; for anybody else another's are ErrNotFound.
type TokenRequest struct {
	Name      string
	User      string    // email
	Workspace string    // id or name
	ExpiresAt time.Time // zero: never
}

// NewToken is a token with its secret, which is shown this once.
type NewToken struct {
	Token
	Secret string
}

// ListTokens lists the tokens of the caller's workspace (admin), or all of them (operator), newest first.
func (s *Service) ListTokens(ctx context.Context, p Principal, all bool, page Page) (Listing[Token], error) {
	ws := p.Workspace
	if all {
		if err := p.operates(); err != nil {
			return Listing[Token]{}, err
		}
		ws = ""
	} else if err := p.may(RoleAdmin); err != nil {
		return Listing[Token]{}, err
	}
	page, err := bounded(page)
	if err != nil {
		return Listing[Token]{}, err
	}
	rows, err := s.store.ListTokens(ctx, ws, page)
	if err != nil {
		return Listing[Token]{}, fmt.Errorf("listing tokens: %w", err)
	}
	return listing(rows, page, func(t Token) string { return t.ID }), nil
}

// CreateToken makes a token (admin, or operator). The user must have a role in the workspace or be an
// operator.
func (s *Service) CreateToken(ctx context.Context, p Principal, r TokenRequest) (NewToken, error) {
	if err := p.operates(); err != nil {
		if err := p.may(RoleAdmin); err != nil {
			return NewToken{}, err
		}
	}
	if err := s.checkToken(r); err != nil {
		return NewToken{}, err
	}
	user, email, err := s.tokenUser(ctx, p, r.User)
	if err != nil {
		return NewToken{}, err
	}
	ws, err := s.tokenWorkspace(ctx, p, r.Workspace)
	if err != nil {
		return NewToken{}, err
	}
	if !user.Operator {
		switch in, err := s.isMember(ctx, user.ID, ws); {
		case err != nil:
			return NewToken{}, err
		case !in:
			return NewToken{}, malformed("", "user "+email, "not_a_member",
				"the user has no role in the workspace; give one first")
		}
	}
	t := NewToken{Secret: newSecret(), Token: Token{
		ID: newID(), Name: r.Name, UserID: user.ID, Workspace: ws, CreatedAt: s.now().UTC(), ExpiresAt: r.ExpiresAt,
	}}
	t.Hash = hashSecret(t.Secret)
	a := s.entry(p, ws, "token.create", t.ID)
	a.Detail = detail(map[string]any{"name": t.Name, "user": email})
	if err := s.store.CreateToken(ctx, t.Token, a); err != nil {
		return NewToken{}, fmt.Errorf("token %q: %w", t.Name, err)
	}
	return t, nil
}

// checkToken reports all that is wrong with the request by itself.
func (s *Service) checkToken(r TokenRequest) error {
	var problems []Problem
	if msg := badTitle(r.Name); msg != "" {
		problems = append(problems, Problem{Object: "token", Code: "name_invalid", Message: msg})
	}
	if !r.ExpiresAt.IsZero() && !r.ExpiresAt.After(s.now()) {
		problems = append(problems, Problem{Object: "token", Code: "expiry_invalid", Message: "the expiry is in the past"})
	}
	if problems != nil {
		return &ProblemsError{Problems: problems}
	}
	return nil
}

// tokenUser finds whom a token is for.
func (s *Service) tokenUser(ctx context.Context, p Principal, email string) (User, string, error) {
	own := User{ID: p.UserID, Email: p.Email, Operator: p.Operator}
	if email == "" {
		return own, p.Email, nil
	}
	if !p.Operator {
		if addr, err := parseEmail(email); err == nil && addr == p.Email {
			return own, p.Email, nil
		}
		return User{}, "", fmt.Errorf("user %q: %w", email, ErrNotFound)
	}
	u, err := s.findUser(ctx, email)
	return u, u.Email, err
}

// tokenWorkspace finds the id of the workspace that a token is for.
func (s *Service) tokenWorkspace(ctx context.Context, p Principal, ref string) (string, error) {
	if ref == "" || ref == p.Workspace || ref == p.WorkspaceName {
		if p.Workspace == "" {
			return "", malformed("", "token", "workspace_missing", "name the workspace that the token is for")
		}
		return p.Workspace, nil
	}
	if !p.Operator {
		return "", fmt.Errorf("workspace %q: %w", ref, ErrNotFound)
	}
	w, err := s.findWorkspace(ctx, ref)
	return w.ID, err
}

func (s *Service) isMember(ctx context.Context, userID, ws string) (bool, error) {
	ms, err := s.store.ListMemberships(ctx, userID)
	if err != nil {
		return false, fmt.Errorf("reading memberships: %w", err)
	}
	for _, m := range ms {
		if m.Workspace == ws && m.Role.rank() > 0 {
			return true, nil
		}
	}
	return false, nil
}

// RevokeToken ends a token of the caller's workspace (admin), or any (operator). Other processes follow
// within Config.Refresh.
func (s *Service) RevokeToken(ctx context.Context, p Principal, id string) error {
	ws := p.Workspace
	if p.operates() == nil {
		ws = ""
	} else if err := p.may(RoleAdmin); err != nil {
		return err
	}
	tokenID, err := zone.ParseID(id)
	if err != nil {
		return fmt.Errorf("token %q: %w", id, ErrNotFound)
	}
	a := s.entry(p, p.Workspace, "token.revoke", string(tokenID))
	if err := s.store.RevokeToken(ctx, ws, string(tokenID), s.now().UTC(), a); err != nil {
		return fmt.Errorf("token %s: %w", tokenID, unrepeated(err))
	}
	s.credentials.drop()
	return nil
}

// Bootstrapped is what Bootstrap made.
type Bootstrapped struct {
	Workspace Workspace
	User      User
	Token     NewToken
}

// bootstrapPlan is the plan of the first workspace.
const bootstrapPlan = "standard"

// Bootstrap gives a directory that has no token yet its first operator: a plan "standard", a workspace on
// it, the user, admin of the workspace, and a token. ErrExists when there is a token. It can be repeated
// after a failure.
func Bootstrap(ctx context.Context, st Store, now time.Time, email, workspace string) (Bootstrapped, error) {
	addr, err := parseEmail(email)
	if err != nil {
		return Bootstrapped{}, err
	}
	if msg := badTitle(workspace); msg != "" {
		return Bootstrapped{}, malformed("", "workspace", "name_invalid", "%s", msg)
	}
	tokens, err := st.ListTokens(ctx, "", Page{Limit: 1})
	if err != nil {
		return Bootstrapped{}, fmt.Errorf("bootstrap: %w", err)
	}
	if len(tokens) > 0 {
		return Bootstrapped{}, fmt.Errorf("bootstrap: an operator %w", ErrExists)
	}
	entry := func(ws, action, target string) AuditEntry {
		return AuditEntry{
			ID: newID(), At: now.UTC(), Workspace: ws, Actor: Principal{}.actor(), Action: action, Target: target,
			Outcome: outcome(nil),
		}
	}
	var out Bootstrapped
	plans, err := st.ListPlans(ctx)
	if err == nil && len(plans) == 0 {
		err = st.PutPlan(ctx, zone.Plan{Name: bootstrapPlan}, entry("", "plan.put", bootstrapPlan))
	}
	if err == nil {
		err = failpoint.Hit(failpoint.BootstrapPlan)
	}
	if err != nil {
		return Bootstrapped{}, fmt.Errorf("bootstrap: plan: %w", err)
	}
	out.Workspace = Workspace{ID: newID(), Name: workspace, Plan: bootstrapPlan, CreatedAt: now.UTC()}
	err = st.CreateWorkspace(ctx, out.Workspace, entry(out.Workspace.ID, "workspace.create", workspace))
	if errors.Is(err, ErrExists) {
		out.Workspace, err = st.WorkspaceByName(ctx, workspace)
	}
	if err == nil {
		err = failpoint.Hit(failpoint.BootstrapWorkspace)
	}
	if err != nil {
		return Bootstrapped{}, fmt.Errorf("bootstrap: workspace: %w", err)
	}
	out.User = User{ID: newID(), Email: addr, Operator: true, CreatedAt: now.UTC()}
	err = st.CreateUser(ctx, out.User, entry("", "user.create", addr))
	if errors.Is(err, ErrExists) {
		out.User, err = st.UserByEmail(ctx, addr)
	}
	if err == nil {
		err = failpoint.Hit(failpoint.BootstrapUser)
	}
	if err != nil {
		return Bootstrapped{}, fmt.Errorf("bootstrap: user: %w", err)
	}
	m := Membership{UserID: out.User.ID, Workspace: out.Workspace.ID, Role: RoleAdmin}
	if err := st.SetMembership(ctx, m, entry(out.Workspace.ID, "membership.set", addr)); err != nil {
		return Bootstrapped{}, fmt.Errorf("bootstrap: membership: %w", err)
	}
	if err := failpoint.Hit(failpoint.BootstrapMembership); err != nil {
		return Bootstrapped{}, fmt.Errorf("bootstrap: %w", err)
	}
	out.Token = NewToken{Secret: newSecret(), Token: Token{
		ID: newID(), Name: "bootstrap", UserID: out.User.ID, Workspace: out.Workspace.ID, CreatedAt: now.UTC(),
	}}
	out.Token.Hash = hashSecret(out.Token.Secret)
	if err := st.CreateToken(ctx, out.Token.Token, entry(out.Workspace.ID, "token.create", out.Token.ID)); err != nil {
		return Bootstrapped{}, fmt.Errorf("bootstrap: token: %w", err)
	}
	return out, nil
}
