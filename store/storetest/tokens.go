package storetest

import (
	"cmp"
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/control"
)

// newToken returns a token that is not stored yet, for a user in a workspace.
func (f *fixture) newToken(u control.User, ws string) control.Token {
	t := control.Token{ID: id(), Name: "laptop", UserID: u.ID, Workspace: ws, CreatedAt: f.now()}
	rand.Read(t.Hash[:])
	return t
}

func (f *fixture) token(u control.User, ws string) control.Token {
	f.Helper()
	t := f.newToken(u, ws)
	f.ok(f.store.CreateToken(f.ctx, t, f.entry("token.create")))
	return t
}

var tokenClauses = []clause{
	{name: "a user's token is found by its hash with whom it speaks for", run: func(f *fixture) {
		u := f.user(true)
		f.ok(f.store.SetMembership(f.ctx, control.Membership{UserID: u.ID, Workspace: f.ws, Role: control.RoleEditor}, f.entry("membership.set")))
		f.ok(f.store.SetMembership(f.ctx, control.Membership{UserID: u.ID, Workspace: f.other, Role: control.RoleAdmin}, f.entry("membership.set")))
		w, err := f.store.WorkspaceByID(f.ctx, f.ws)
		f.ok(err)
		want := f.newToken(u, f.ws)
		want.ExpiresAt = f.now().Add(-time.Hour) // whether it expired is the caller's to judge
		f.ok(f.store.CreateToken(f.ctx, want, f.entry("token.create")))
		got, p, err := f.store.TokenByHash(f.ctx, want.Hash)
		f.ok(err)
		f.same("token", got, want)
		f.same("principal", p, control.Principal{
			TokenID: want.ID, UserID: u.ID, Email: u.Email, Operator: true, Workspace: f.ws, WorkspaceName: w.Name, Role: control.RoleEditor,
		})
	}},
	{name: "a role that changes or ends is so in the next look-up", run: func(f *fixture) {
		u := f.user(false)
		t := f.token(u, f.ws)
		for _, role := range []control.Role{control.RoleViewer, control.RoleAdmin, ""} {
			f.ok(f.store.SetMembership(f.ctx, control.Membership{UserID: u.ID, Workspace: f.ws, Role: role}, f.entry("membership.set")))
			_, p, err := f.store.TokenByHash(f.ctx, t.Hash)
			f.ok(err)
			f.same("role", p.Role, role)
		}
	}},
	{name: "an unknown hash and a revoked token are ErrNotFound", run: func(f *fixture) {
		t := f.token(f.user(false), f.ws)
		unknown := t.Hash
		unknown[31] ^= 1
		_, _, err := f.store.TokenByHash(f.ctx, unknown)
		f.fails(err, control.ErrNotFound)
		at := f.now()
		f.ok(f.store.RevokeToken(f.ctx, f.ws, t.ID, at, f.entry("token.revoke")))
		_, _, err = f.store.TokenByHash(f.ctx, t.Hash)
		f.fails(err, control.ErrNotFound)
		f.ok(f.store.RevokeToken(f.ctx, f.ws, t.ID, f.now(), f.entry("token.revoke")))
		tokens, err := f.store.ListTokens(f.ctx, f.ws, control.Page{Limit: 1})
		f.ok(err)
		t.RevokedAt = at // of the first time
		f.same("token", tokens[0], t)
	}},
	{name: "a token of another workspace cannot be revoked", run: func(f *fixture) {
		t := f.token(f.user(false), f.ws)
		f.fails(f.store.RevokeToken(f.ctx, f.other, t.ID, f.now(), f.entry("token.revoke")), control.ErrNotFound)
		f.fails(f.store.RevokeToken(f.ctx, f.ws, id(), f.now(), f.entry("token.revoke")), control.ErrNotFound)
		_, _, err := f.store.TokenByHash(f.ctx, t.Hash)
		f.ok(err)
		a := f.entry("token.revoke") // the operator's, who works in another workspace
		a.Workspace = f.other
		f.ok(f.store.RevokeToken(f.ctx, "", t.ID, f.now(), a))
		if got := f.auditOf(f.ws)[0]; got.ID != a.ID {
			f.Errorf("the token's workspace has no entry of it, its newest is %+v", got)
		}
		_, _, err = f.store.TokenByHash(f.ctx, t.Hash)
		f.fails(err, control.ErrNotFound)
	}},
	{name: "an id or hash that stands is ErrExists, of nobody or nowhere ErrNotFound", run: func(f *fixture) {
		u := f.user(false)
		t := f.token(u, f.ws)
		sameHash, sameID := f.newToken(u, f.ws), f.newToken(u, f.ws)
		sameHash.Hash, sameID.ID = t.Hash, t.ID
		for want, tokens := range map[error][]control.Token{
			control.ErrExists:   {sameHash, sameID},
			control.ErrNotFound: {f.newToken(control.User{ID: id()}, f.ws), f.newToken(u, id())},
		} {
			for _, t := range tokens {
				f.fails(f.store.CreateToken(f.ctx, t, f.entry("token.create")), want)
			}
		}
		if err := f.store.CreateToken(f.ctx, f.newToken(control.User{}, f.ws), f.entry("token.create")); err == nil {
			f.Error("a token that speaks for nobody was created")
		}
	}},
	{name: "listing is newest first with ties apart, of one workspace or all, in pages", alone: true, run: func(f *fixture) {
		u := f.user(false)
		var mine, all []control.Token
		at := f.now()
		for i := range 12 {
			t := f.newToken(u, []string{f.ws, f.ws, f.other}[i%3])
			t.CreatedAt = at.Add(time.Duration(i/5) * time.Second) // five at a time at the same one
			f.ok(f.store.CreateToken(f.ctx, t, f.entry("token.create")))
			all = append(all, t)
			if t.Workspace == f.ws {
				mine = append(mine, t)
			}
		}
		newest := func(a, b control.Token) int {
			return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), strings.Compare(b.ID, a.ID))
		}
		slices.SortFunc(mine, newest)
		slices.SortFunc(all, newest)
		key := func(t control.Token) string { return t.ID }
		list := func(ws string) func(control.Page) ([]control.Token, error) {
			return func(p control.Page) ([]control.Token, error) { return f.store.ListTokens(f.ctx, ws, p) }
		}
		for _, limit := range []int{1, 3, 5, 1000} {
			f.same("mine", pages(f, limit, key, list(f.ws)), mine)
			f.same("all", pages(f, limit, key, list("")), all)
		}
		theirs := all[slices.IndexFunc(all, func(t control.Token) bool { return t.Workspace == f.other })]
		_, err := f.store.ListTokens(f.ctx, f.ws, control.Page{After: theirs.ID, Limit: 5})
		f.fails(err, control.ErrNotFound)
		refusesLimits(f, list(f.ws))
	}},
}
