package api

import (
	"context"
	"net/http"
	"net/url"

	"github.com/guardyn-edge/guardyn/zone"
)

// Workspaces lists workspaces by name. Operators only.
func (c *Client) Workspaces(ctx context.Context, o PageOptions) (*Page[Workspace], error) {
	return get[Page[Workspace]](ctx, c, "/v1/workspaces", o.values(nil))
}

// CreateWorkspace creates a workspace. Operators only.
func (c *Client) CreateWorkspace(ctx context.Context, w NewWorkspace) (*Workspace, error) {
	return exchange[Workspace](ctx, c, http.MethodPost, "/v1/workspaces", w)
}

// UpdateWorkspace changes the workspace with this id (or name). Operators only.
func (c *Client) UpdateWorkspace(ctx context.Context, id string, p WorkspacePatch) (*Workspace, error) {
	return exchange[Workspace](ctx, c, http.MethodPatch, path("v1", "workspaces", id), p)
}

// Plans lists plans by name. Operators only.
func (c *Client) Plans(ctx context.Context, o PageOptions) (*Page[zone.Plan], error) {
	return get[Page[zone.Plan]](ctx, c, "/v1/plans", o.values(nil))
}

// GetPlan returns a plan (its ceilings; what an apply would do is [Client.Plan]). Operators only.
func (c *Client) GetPlan(ctx context.Context, name string) (*zone.Plan, error) {
	return get[zone.Plan](ctx, c, path("v1", "plans", name), nil)
}

// PutPlan creates or replaces the plan p.Name. Operators only.
func (c *Client) PutPlan(ctx context.Context, p zone.Plan) (*zone.Plan, error) {
	return exchange[zone.Plan](ctx, c, http.MethodPut, path("v1", "plans", p.Name), p)
}

// Users lists users by email. Operators only.
func (c *Client) Users(ctx context.Context, o PageOptions) (*Page[User], error) {
	return get[Page[User]](ctx, c, "/v1/users", o.values(nil))
}

// CreateUser creates a user. Operators only.
func (c *Client) CreateUser(ctx context.Context, u NewUser) (*User, error) {
	return exchange[User](ctx, c, http.MethodPost, "/v1/users", u)
}

// SetMembership gives a user a role in a workspace, or takes it away. Operators only.
func (c *Client) SetMembership(ctx context.Context, email string, m Membership) error {
	_, err := c.do(ctx, request{method: http.MethodPut, path: path("v1", "users", email, "memberships"), body: m}, nil)
	return err
}

// Memberships lists the workspaces of a user, by id, with the roles there. Operators only.
func (c *Client) Memberships(ctx context.Context, email string, o PageOptions) (*Page[Membership], error) {
	return get[Page[Membership]](ctx, c, path("v1", "users", email, "memberships"), o.values(nil))
}

// TokenOptions selects tokens.
type TokenOptions struct {
	PageOptions
	// All is every workspace's and the nodes'. Operators only.
	All bool
}

// Tokens lists the workspace's tokens, newest first. Admins only.
func (c *Client) Tokens(ctx context.Context, o TokenOptions) (*Page[Token], error) {
	q := url.Values{}
	if o.All {
		q.Set("all", "true")
	}
	return get[Page[Token]](ctx, c, "/v1/tokens", o.values(q))
}

// CreateToken makes a token; its secret is in the answer and nowhere else. Admins only.
func (c *Client) CreateToken(ctx context.Context, t NewToken) (*CreatedToken, error) {
	return exchange[CreatedToken](ctx, c, http.MethodPost, "/v1/tokens", t)
}

// RevokeToken revokes the token with this id. Admins only.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.delete(ctx, path("v1", "tokens", id), WriteOptions{})
}

// Nodes lists the fleet by name. Operators only.
func (c *Client) Nodes(ctx context.Context, o PageOptions) (*Page[Node], error) {
	return get[Page[Node]](ctx, c, "/v1/nodes", o.values(nil))
}

// CreateNode registers a node; the secret of its token is in the answer and nowhere else. Operators only.
func (c *Client) CreateNode(ctx context.Context, n NewNode) (*CreatedNode, error) {
	return exchange[CreatedNode](ctx, c, http.MethodPost, "/v1/nodes", n)
}

// DeleteNode forgets the node of this name (or id) and revokes its tokens. Operators only.
func (c *Client) DeleteNode(ctx context.Context, name string) error {
	return c.delete(ctx, path("v1", "nodes", name), WriteOptions{})
}
