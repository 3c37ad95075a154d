package storetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/zone"
)

func (f *fixture) user(operator bool) control.User {
	f.Helper()
	u := control.User{ID: id(), Operator: operator, CreatedAt: f.now()}
	u.Email = u.ID + "@example.net"
	f.ok(f.store.CreateUser(f.ctx, u, f.entry("user.create")))
	return u
}

func (f *fixture) directory() uint64 {
	f.Helper()
	r, err := f.store.Revisions(f.ctx)
	f.ok(err)
	return r.Directory
}

var workspaceClauses = []clause{
	{name: "a workspace is read back by id and by name", run: func(f *fixture) {
		want := control.Workspace{ID: id(), Name: "Amthal Group " + id(), Plan: "standard", CreatedAt: f.now()}
		f.ok(f.store.CreateWorkspace(f.ctx, want, f.entry("workspace.create")))
		got, err := f.store.WorkspaceByID(f.ctx, want.ID)
		f.ok(err)
		f.same("by id", got, want)
		got, err = f.store.WorkspaceByName(f.ctx, want.Name)
		f.ok(err)
		f.same("by name", got, want)
	}},
	{name: "an absent workspace is ErrNotFound", run: func(f *fixture) {
		_, err := f.store.WorkspaceByID(f.ctx, id())
		f.fails(err, control.ErrNotFound)
		_, err = f.store.WorkspaceByName(f.ctx, "nobody's")
		f.fails(err, control.ErrNotFound)
		f.fails(f.store.UpdateWorkspace(f.ctx, control.Workspace{ID: id(), Name: "x", Plan: "standard"}, f.entry("workspace.update")), control.ErrNotFound)
	}},
	{name: "a name that is taken is ErrExists, a plan that does not exist ErrNotFound", run: func(f *fixture) {
		mine, err := f.store.WorkspaceByID(f.ctx, f.ws)
		f.ok(err)
		theirs, err := f.store.WorkspaceByID(f.ctx, f.other)
		f.ok(err)
		taken := control.Workspace{ID: id(), Name: theirs.Name, Plan: "standard", CreatedAt: f.now()}
		f.fails(f.store.CreateWorkspace(f.ctx, taken, f.entry("workspace.create")), control.ErrExists)
		planless := control.Workspace{ID: id(), Name: id(), Plan: "unheard of", CreatedAt: f.now()}
		f.fails(f.store.CreateWorkspace(f.ctx, planless, f.entry("workspace.create")), control.ErrNotFound)
		renamed := mine
		renamed.Name = theirs.Name
		f.fails(f.store.UpdateWorkspace(f.ctx, renamed, f.entry("workspace.update")), control.ErrExists)
		moved := mine
		moved.Plan = "unheard of"
		f.fails(f.store.UpdateWorkspace(f.ctx, moved, f.entry("workspace.update")), control.ErrNotFound)
		got, err := f.store.WorkspaceByID(f.ctx, f.ws)
		f.ok(err)
		f.same("after refusals", got, mine)
		mine.Name = "renamed " + id()
		f.ok(f.store.UpdateWorkspace(f.ctx, mine, f.entry("workspace.update")))
		got, err = f.store.WorkspaceByID(f.ctx, f.ws)
		f.ok(err)
		f.same("renamed", got, mine)
	}},
	{name: "workspaces and users are listed by the bytes of their names, in pages", alone: true, run: func(f *fixture) {
		var names []string
		for _, name := range []string{"b", "B", "a b", "a-b", "é", "ab"} {
			f.ok(f.store.CreateWorkspace(f.ctx, control.Workspace{ID: id(), Name: name, Plan: "standard", CreatedAt: f.now()}, f.entry("workspace.create")))
			f.ok(f.store.CreateUser(f.ctx, control.User{ID: id(), Email: name + "@example.net", CreatedAt: f.now()}, f.entry("user.create")))
			names = append(names, name)
		}
		slices.Sort(names)
		for _, limit := range []int{1, 2, 1000} {
			var got []string
			for _, w := range pages(f, limit, func(w control.Workspace) string { return w.Name },
				func(p control.Page) ([]control.Workspace, error) { return f.store.ListWorkspaces(f.ctx, p) }) {
				if !strings.HasPrefix(w.Name, "workspace ") { // the fixture's own
					got = append(got, w.Name)
				}
			}
			f.same("workspaces", got, names)
			got = nil
			for _, u := range pages(f, limit, func(u control.User) string { return u.Email },
				func(p control.Page) ([]control.User, error) { return f.store.ListUsers(f.ctx, p) }) {
				got = append(got, strings.TrimSuffix(u.Email, "@example.net"))
			}
			want := slices.Clone(names)
			slices.SortFunc(want, func(a, b string) int { return strings.Compare(a+"@example.net", b+"@example.net") })
			f.same("users", got, want)
		}
		refusesLimits(f, func(p control.Page) ([]control.Workspace, error) { return f.store.ListWorkspaces(f.ctx, p) })
		refusesLimits(f, func(p control.Page) ([]control.User, error) { return f.store.ListUsers(f.ctx, p) })
	}},
	{name: "the plan standard is there from the start, plans are replaced and listed by name", alone: true, run: func(f *fixture) {
		plans, err := f.store.ListPlans(f.ctx)
		f.ok(err)
		f.same("plans", plans, []zone.Plan{{Name: "standard"}})
		free := zone.Plan{Name: "free", Ceilings: zone.Ceilings{Records: 100, FunctionSize: 1 << 20, FunctionTime: zone.Duration(250e6)}}
		f.ok(f.store.PutPlan(f.ctx, zone.Plan{Name: "free"}, f.entry("plan.put")))
		f.ok(f.store.PutPlan(f.ctx, free, f.entry("plan.put")))
		plans, err = f.store.ListPlans(f.ctx)
		f.ok(err)
		f.same("plans", plans, []zone.Plan{free, {Name: "standard"}})
	}},
	{name: "a user is read back; an address that is taken is ErrExists, an absent one ErrNotFound", run: func(f *fixture) {
		want := f.user(true)
		got, err := f.store.UserByEmail(f.ctx, want.Email)
		f.ok(err)
		f.same("user", got, want)
		f.fails(f.store.CreateUser(f.ctx, control.User{ID: id(), Email: want.Email, CreatedAt: f.now()}, f.entry("user.create")), control.ErrExists)
		_, err = f.store.UserByEmail(f.ctx, "nobody@example.net")
		f.fails(err, control.ErrNotFound)
	}},
	{name: "a membership is given, changed and taken away", run: func(f *fixture) {
		u := f.user(false)
		set := func(ws string, role control.Role) error {
			return f.store.SetMembership(f.ctx, control.Membership{UserID: u.ID, Workspace: ws, Role: role}, f.entry("membership.set"))
		}
		expect := func(want ...control.Membership) {
			f.Helper()
			got, err := f.store.ListMemberships(f.ctx, u.ID)
			f.ok(err)
			f.same("memberships", got, want)
		}
		f.ok(set(f.other, control.RoleViewer))
		f.ok(set(f.ws, control.RoleEditor))
		f.ok(set(f.ws, control.RoleAdmin))
		want := []control.Membership{{UserID: u.ID, Workspace: f.ws, Role: control.RoleAdmin}, {UserID: u.ID, Workspace: f.other, Role: control.RoleViewer}}
		slices.SortFunc(want, func(a, b control.Membership) int { return strings.Compare(a.Workspace, b.Workspace) })
		expect(want...)
		f.ok(set(f.other, ""))
		f.ok(set(f.other, "")) // gone already
		expect(control.Membership{UserID: u.ID, Workspace: f.ws, Role: control.RoleAdmin})
		if err := set(f.ws, "owner"); err == nil {
			f.Error("a role that does not exist was given")
		}
	}},
	{name: "a membership of nobody or of nowhere is ErrNotFound", run: func(f *fixture) {
		u := f.user(false)
		for _, role := range []control.Role{control.RoleViewer, ""} {
			for _, m := range []control.Membership{{UserID: id(), Workspace: f.ws, Role: role}, {UserID: u.ID, Workspace: id(), Role: role}} {
				f.fails(f.store.SetMembership(f.ctx, m, f.entry("membership.set")), control.ErrNotFound)
			}
		}
	}},
	{name: "the directory revision rises with every change to who there is, and with nothing else", alone: true, run: directoryRevision},
}

func directoryRevision(f *fixture) {
	u := f.user(false)
	w, err := f.store.WorkspaceByID(f.ctx, f.ws)
	f.ok(err)
	token := f.newToken(u, f.ws)
	node := control.Node{ID: id(), Name: "n1", CreatedAt: f.now()}
	z := control.ZoneRow{ID: zone.ID(id()), Name: zone.MustName("directory.example"), CreatedAt: f.now()}
	member := control.Membership{UserID: u.ID, Workspace: f.ws, Role: control.RoleAdmin}
	e := f.entry
	for _, step := range []struct {
		name  string
		rises bool
		deed  func() error
	}{
		{"create workspace", true, func() error {
			return f.store.CreateWorkspace(f.ctx, control.Workspace{ID: id(), Name: id(), Plan: "standard", CreatedAt: f.now()}, e(""))
		}},
		{"update workspace", true, func() error { w.Name = "renamed"; return f.store.UpdateWorkspace(f.ctx, w, e("")) }},
		{"create user", true, func() error {
			return f.store.CreateUser(f.ctx, control.User{ID: id(), Email: id(), CreatedAt: f.now()}, e(""))
		}},
		{"give membership", true, func() error { return f.store.SetMembership(f.ctx, member, e("")) }},
		{"take membership", true, func() error { member.Role = ""; return f.store.SetMembership(f.ctx, member, e("")) }},
		{"create token", true, func() error { return f.store.CreateToken(f.ctx, token, e("")) }},
		{"revoke token", true, func() error { return f.store.RevokeToken(f.ctx, f.ws, token.ID, f.now(), e("")) }},
		{"create node", true, func() error { return f.store.CreateNode(f.ctx, node, f.newToken(control.User{}, ""), e("")) }},
		{"record node", false, func() error {
			return f.store.RecordNodes(f.ctx, []control.NodeReport{{NodeID: node.ID, SeenAt: f.now()}}, nil)
		}},
		{"delete node", true, func() error { return f.store.DeleteNode(f.ctx, node.ID, e("")) }},
		{"create zone", false, func() error { return f.store.CreateZone(f.ctx, f.ws, z, e("")) }},
		{"take a version", false, func() error { _, err := f.store.NextVersion(f.ctx); return err }},
		{"append audit", false, func() error { return f.store.Append(f.ctx, e("x")) }},
		{"refused user", false, func() error {
			if err := f.store.CreateUser(f.ctx, u, e("")); err == nil {
				return fmt.Errorf("created twice")
			}
			return nil
		}},
	} {
		before := f.directory()
		if err := step.deed(); err != nil {
			f.Fatalf("%s: %v", step.name, err)
		}
		if after := f.directory(); (after > before) != step.rises || after < before {
			f.Errorf("%s: the directory revision goes from %d to %d", step.name, before, after)
		}
	}
}
