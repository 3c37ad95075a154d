package control

import (
	"context"
	"time"
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
	panic("unbuilt")
}

// CreateToken makes a token (admin, or operator). The user must have a role in the workspace or be an operator.
func (s *Service) CreateToken(ctx context.Context, p Principal, r TokenRequest) (NewToken, error) {
	panic("unbuilt")
}

// RevokeToken ends a token of the caller's workspace (admin), or any (operator). Other processes follow
// within Config.Refresh.
func (s *Service) RevokeToken(ctx context.Context, p Principal, id string) error { panic("unbuilt") }

// Authenticate tells whom a bearer token speaks for; ErrUnauthenticated when nobody. Known tokens are
// answered from memory; a token that was revoked by another process works for at most Config.Refresh more. The
// caller sets Principal.From.
func (s *Service) Authenticate(ctx context.Context, bearer string) (Principal, error) {
	panic("unbuilt")
}

// Bootstrapped is what Bootstrap made.
type Bootstrapped struct {
	Workspace Workspace
	User      User
	Token     NewToken
}

// Bootstrap gives a directory that has no token yet its first operator: a plan "standard", a workspace on
// it, the user, admin of the workspace, and a token. ErrExists when there is a token. It can be repeated after
// a failure.
func Bootstrap(ctx context.Context, st Store, now time.Time, email, workspace string) (Bootstrapped, error) {
	panic("unbuilt")
}
