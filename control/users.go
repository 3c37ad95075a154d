package control

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"strings"
)

// ListUsers lists by email (operator).
func (s *Service) ListUsers(ctx context.Context, p Principal, page Page) (Listing[User], error) {
	if err := p.operates(); err != nil {
		return Listing[User]{}, err
	}
	page, err := bounded(page)
	if err != nil {
		return Listing[User]{}, err
	}
	rows, err := s.store.ListUsers(ctx, page)
	if err != nil {
		return Listing[User]{}, fmt.Errorf("listing users: %w", err)
	}
	return listing(rows, page, func(u User) string { return u.Email }), nil
}

// CreateUser adds a person or a robot (operator). ErrExists when the address is taken.
func (s *Service) CreateUser(ctx context.Context, p Principal, email string, operator bool) (User, error) {
	if err := p.operates(); err != nil {
		return User{}, err
	}
	addr, err := parseEmail(email)
	if err != nil {
		return User{}, err
	}
	u := User{ID: newID(), Email: addr, Operator: operator, CreatedAt: s.now().UTC()}
	a := s.entry(p, "", "user.create", addr)
	a.Detail = detail(map[string]any{"operator": operator})
	if err := s.store.CreateUser(ctx, u, a); err != nil {
		return User{}, fmt.Errorf("user %s: %w", addr, unrepeated(err))
	}
	return u, nil
}

// maxEmail is the length in bytes of the longest address (RFC 5321 §4.5.3.1.3, less the brackets).
const maxEmail = 254

// parseEmail folds an address: the whole of it to lower case, so that one mailbox is one user.
func parseEmail(s string) (string, error) {
	refused := malformed("", fmt.Sprintf("user %q", s), "email_invalid", "this is not an email address such as you@example.com")
	a, err := mail.ParseAddress(s)
	if err != nil || a.Address != strings.TrimSpace(s) || len(a.Address) > maxEmail || !printable(a.Address) {
		return "", refused
	}
	return strings.ToLower(a.Address), nil
}

// Memberships lists the workspaces of a user with the roles there (operator).
func (s *Service) Memberships(ctx context.Context, p Principal, email string) ([]Membership, error) {
	if err := p.operates(); err != nil {
		return nil, err
	}
	u, err := s.findUser(ctx, email)
	if err != nil {
		return nil, err
	}
	ms, err := s.store.ListMemberships(ctx, u.ID)
	if err != nil {
		return nil, fmt.Errorf("memberships of %s: %w", u.Email, err)
	}
	return ms, nil
}

// SetMembership gives a user a role in a workspace, named by id or name; an empty role takes it away
// (operator).
func (s *Service) SetMembership(ctx context.Context, p Principal, email, workspace string, role Role) (Membership, error) {
	if err := p.operates(); err != nil {
		return Membership{}, err
	}
	if role != "" && role.rank() == 0 {
		return Membership{}, malformed("", "role", "role_unknown", "a role is viewer, editor or admin")
	}
	u, err := s.findUser(ctx, email)
	if err != nil {
		return Membership{}, err
	}
	w, err := s.findWorkspace(ctx, workspace)
	if err != nil {
		return Membership{}, err
	}
	m := Membership{UserID: u.ID, Workspace: w.ID, Role: role}
	a := s.entry(p, w.ID, "membership.set", u.Email)
	a.Detail = detail(map[string]any{"role": string(role)})
	if err := s.store.SetMembership(ctx, m, a); err != nil {
		return Membership{}, fmt.Errorf("membership of %s in %q: %w", u.Email, w.Name, err)
	}
	s.credentials.drop()
	return m, nil
}

// findUser reads a user by address.
func (s *Service) findUser(ctx context.Context, email string) (User, error) {
	addr, err := parseEmail(email)
	if err != nil {
		return User{}, fmt.Errorf("user %q: %w", email, ErrNotFound)
	}
	u, err := s.store.UserByEmail(ctx, addr)
	if errors.Is(err, ErrNotFound) {
		return User{}, fmt.Errorf("user %q: %w", addr, ErrNotFound)
	}
	if err != nil {
		return User{}, fmt.Errorf("user %q: %w", addr, err)
	}
	return u, nil
}
