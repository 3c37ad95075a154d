package api

import (
	"fmt"
	"net/http"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/zone"
)

func (h *Handler) directoryRoutes() []*route {
	var all []*route
	all = append(all, h.workspaceRoutes()...)
	all = append(all, h.userRoutes()...)
	all = append(all, h.tokenRoutes()...)
	return append(all, h.fleetRoutes()...)
}

func (h *Handler) workspaceRoutes() []*route {
	return []*route{
		read(route{
			pattern: "/v1/workspaces", access: forOperators, query: []string{"limit", "cursor"}, summary: "List workspaces by name",
		}, func(c *call) (Page[Workspace], error) {
			p, err := c.page()
			if err != nil {
				return Page[Workspace]{}, err
			}
			l, err := h.svc.ListWorkspaces(c.r.Context(), c.principal, p)
			return pageOf(l, workspaceOf), err
		}),
		write(route{
			method: http.MethodPost, pattern: "/v1/workspaces", access: forOperators, status: http.StatusCreated,
			summary: "Create a workspace",
		}, func(c *call, in NewWorkspace) (Workspace, error) {
			w, err := h.svc.CreateWorkspace(c.r.Context(), c.principal, in.Name, in.Plan)
			return workspaceOf(w), err
		}),
		write(route{
			method: http.MethodPatch, pattern: "/v1/workspaces/{workspace}", access: forOperators,
			summary: "Rename a workspace, or put it on another plan",
		}, func(c *call, in WorkspacePatch) (Workspace, error) {
			w, err := h.svc.UpdateWorkspace(c.r.Context(), c.principal, c.param("workspace"), control.WorkspacePatch(in))
			return workspaceOf(w), err
		}),
		read(route{
			pattern: "/v1/plans", access: forOperators, query: []string{"limit", "cursor"}, summary: "List plans by name",
		}, func(c *call) (Page[zone.Plan], error) {
			p, err := c.page()
			if err != nil {
				return Page[zone.Plan]{}, err
			}
			plans, err := h.svc.ListPlans(c.r.Context(), c.principal)
			return pageOf(cut(plans, func(p zone.Plan) string { return p.Name }, p), keep[zone.Plan]), err
		}),
		read(route{
			pattern: "/v1/plans/{name}", access: forOperators, summary: "Return a plan",
		}, func(c *call) (zone.Plan, error) {
			return h.svc.PlanByName(c.r.Context(), c.principal, c.param("name"))
		}),
		write(route{
			method: http.MethodPut, pattern: "/v1/plans/{name}", access: forOperators, summary: "Create or replace a plan",
		}, func(c *call, in zone.Plan) (zone.Plan, error) {
			if in.Name == "" {
				in.Name = c.param("name")
			}
			if in.Name != c.param("name") {
				return zone.Plan{}, &control.ProblemsError{Problems: []control.Problem{{
					Object: "body /name", Code: "name_mismatch", Message: "the name in the body is not the one in the path; leave it out",
				}}}
			}
			return h.svc.PutPlan(c.r.Context(), c.principal, in)
		}),
	}
}

func (h *Handler) userRoutes() []*route {
	return []*route{
		read(route{
			pattern: "/v1/users", access: forOperators, query: []string{"limit", "cursor"}, summary: "List users by email",
		}, func(c *call) (Page[User], error) {
			p, err := c.page()
			if err != nil {
				return Page[User]{}, err
			}
			l, err := h.svc.ListUsers(c.r.Context(), c.principal, p)
			return pageOf(l, userOf), err
		}),
		write(route{
			method: http.MethodPost, pattern: "/v1/users", access: forOperators, status: http.StatusCreated, summary: "Create a user",
		}, func(c *call, in NewUser) (User, error) {
			u, err := h.svc.CreateUser(c.r.Context(), c.principal, in.Email, in.Operator)
			return userOf(u), err
		}),
		read(route{
			pattern: "/v1/users/{email}/memberships", access: forOperators, query: []string{"limit", "cursor"},
			summary: "List the workspaces of a user with the roles there",
		}, func(c *call) (Page[Membership], error) {
			p, err := c.page()
			if err != nil {
				return Page[Membership]{}, err
			}
			ms, err := h.svc.Memberships(c.r.Context(), c.principal, c.param("email"))
			return pageOf(cut(ms, func(m control.Membership) string { return m.Workspace }, p), membershipOf), err
		}),
		write(route{
			method: http.MethodPut, pattern: "/v1/users/{email}/memberships", access: forOperators,
			summary: "Give a user a role in a workspace, or take it away",
		}, func(c *call, in Membership) (Membership, error) {
			m, err := h.svc.SetMembership(c.r.Context(), c.principal, c.param("email"), in.Workspace, control.Role(in.Role))
			return membershipOf(m), err
		}),
	}
}

func (h *Handler) tokenRoutes() []*route {
	return []*route{
		read(route{
			pattern: "/v1/tokens", access: forUsers, role: "admin", query: []string{"limit", "cursor", "all"},
			summary: "List tokens, newest first",
		}, func(c *call) (Page[Token], error) {
			p, err := c.page()
			if err != nil {
				return Page[Token]{}, err
			}
			all, err := c.flag("all")
			if err != nil {
				return Page[Token]{}, err
			}
			l, err := h.svc.ListTokens(c.r.Context(), c.principal, all, p)
			return pageOf(l, tokenOf), err
		}),
		write(route{
			method: http.MethodPost, pattern: "/v1/tokens", access: forUsers, role: "admin", status: http.StatusCreated,
			summary: "Make a token; its secret is in this answer and nowhere else",
		}, func(c *call, in NewToken) (CreatedToken, error) {
			t, err := h.svc.CreateToken(c.r.Context(), c.principal, control.TokenRequest(in))
			return CreatedToken{Token: tokenOf(t.Token), Secret: t.Secret}, err
		}),
		remove(route{
			pattern: "/v1/tokens/{id}", access: forUsers, role: "admin", summary: "Revoke a token",
		}, func(c *call) error {
			return h.svc.RevokeToken(c.r.Context(), c.principal, c.param("id"))
		}),
	}
}

func (h *Handler) fleetRoutes() []*route {
	return []*route{
		read(route{
			pattern: "/v1/nodes", access: forOperators, query: []string{"limit", "cursor"}, summary: "List the fleet by name",
		}, func(c *call) (Page[Node], error) {
			p, err := c.page()
			if err != nil {
				return Page[Node]{}, err
			}
			nodes, err := h.svc.ListNodes(c.r.Context(), c.principal)
			return pageOf(cut(nodes, func(n control.NodeStatus) string { return n.Name }, p), nodeOf), err
		}),
		write(route{
			method: http.MethodPost, pattern: "/v1/nodes", access: forOperators, status: http.StatusCreated,
			summary: "Register a node; the secret of its token is in this answer and nowhere else",
		}, func(c *call, in NewNode) (CreatedNode, error) {
			create := h.svc.CreateNode
			if in.Cohort {
				create = h.svc.CreateMember
			}
			n, err := create(c.r.Context(), c.principal, in.Name)
			return CreatedNode{Node: nodeOf(control.NodeStatus{Node: n.Node}), Secret: n.Secret}, err
		}),
		remove(route{
			pattern: "/v1/nodes/{node}", access: forOperators, summary: "Forget a node and revoke its tokens",
		}, func(c *call) error {
			return h.svc.DeleteNode(c.r.Context(), c.principal, c.param("node"))
		}),
		act(route{
			pattern: "/v1/nodes/{node}/drain", access: forOperators, summary: "Take a node out of the cohort: rollouts do not wait for it any more",
		}, func(c *call) (Node, error) {
			n, err := h.svc.DrainNode(c.r.Context(), c.principal, c.param("node"))
			return h.nodeAfter(c, n, err)
		}),
		act(route{
			pattern: "/v1/nodes/{node}/undrain", access: forOperators, summary: "Put a node into the cohort: it must agree to the next rollout",
		}, func(c *call) (Node, error) {
			n, err := h.svc.UndrainNode(c.r.Context(), c.principal, c.param("node"))
			return h.nodeAfter(c, n, err)
		}),
	}
}

// nodeAfter is the node as the listing has it.
func (h *Handler) nodeAfter(c *call, n control.Node, err error) (Node, error) {
	if err != nil {
		return Node{}, err
	}
	all, err := h.svc.ListNodes(c.r.Context(), c.principal)
	if err != nil {
		return Node{}, err
	}
	for _, st := range all {
		if st.ID == n.ID {
			return nodeOf(st), nil
		}
	}
	return Node{}, fmt.Errorf("node %q: %w", n.Name, control.ErrNotFound)
}

func workspaceOf(w control.Workspace) Workspace {
	return Workspace{ID: w.ID, Name: w.Name, Plan: w.Plan, CreatedAt: w.CreatedAt.UTC()}
}

func userOf(u control.User) User {
	return User{ID: u.ID, Email: u.Email, Operator: u.Operator, CreatedAt: u.CreatedAt.UTC()}
}

func membershipOf(m control.Membership) Membership {
	return Membership{Workspace: m.Workspace, Role: string(m.Role)}
}

func tokenOf(t control.Token) Token {
	out := Token{
		ID: t.ID, Name: t.Name, User: t.UserID, Node: t.NodeID, Workspace: t.Workspace, CreatedAt: t.CreatedAt.UTC(),
	}
	if !t.ExpiresAt.IsZero() {
		out.ExpiresAt = t.ExpiresAt.UTC()
	}
	if !t.RevokedAt.IsZero() {
		out.RevokedAt = t.RevokedAt.UTC()
	}
	return out
}

func nodeOf(n control.NodeStatus) Node {
	out := Node{
		ID: n.ID, Name: n.Name, Cohort: n.Cohort, Address: n.Address, VersionsBehind: n.VersionsBehind, GenerationsBehind: n.GenerationsBehind,
		LastError: n.LastError, Freshness: n.Freshness, FreshnessStale: n.FreshnessStale, TrustedKeys: n.TrustedKeys, CreatedAt: n.CreatedAt.UTC(),
	}
	if out.TrustedKeys == nil {
		out.TrustedKeys = []seal.KeyID{}
	}
	if a := n.Ahead; a != nil {
		out.Ahead = &NodeAhead{Epoch: a.Epoch, Generation: a.Generation, Proven: a.Proven}
	}
	if n.Acked != nil {
		out.Version, out.Generation = n.Acked.Version, n.Acked.Generation
	}
	if !n.LastSeen.IsZero() {
		out.LastSeen = n.LastSeen.UTC()
	}
	if !n.AckedAt.IsZero() {
		out.AckedAt = n.AckedAt.UTC()
	}
	return out
}
