package control

import "context"

// ListUsers lists by email (operator).
func (s *Service) ListUsers(ctx context.Context, p Principal, page Page) (Listing[User], error) {
	panic("unbuilt")
}

// CreateUser adds a person or a robot (operator). ErrExists when the address is taken.
func (s *Service) CreateUser(ctx context.Context, p Principal, email string, operator bool) (User, error) {
	panic("unbuilt")
}

// Memberships lists the workspaces of a user with the roles there (operator).
func (s *Service) Memberships(ctx context.Context, p Principal, email string) ([]Membership, error) {
	panic("unbuilt")
}

// SetMembership gives a user a role in a workspace, named by id or name; an empty role takes it away
// (operator).
func (s *Service) SetMembership(ctx context.Context, p Principal, email, workspace string, role Role) (Membership, error) {
	panic("unbuilt")
}
