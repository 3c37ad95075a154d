package control_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/store"
	"github.com/guardyn-edge/guardyn/zone"
)

func TestBootstrap(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		_, err := control.Bootstrap(t.Context(), w.store, w.clock.now(), "eve@example.com", "Eve")
		wantError(t, "the second time", err, control.ErrExists)
	})
	t.Run("malformed", func(t *testing.T) {
		w := newWorld(t)
		_, err := control.Bootstrap(t.Context(), w.store, w.clock.now(), "eve", "Eve")
		problems(t, "email", err)
		_, err = control.Bootstrap(t.Context(), w.store, w.clock.now(), "eve@example.com", "\x1b[2J")
		problems(t, "workspace", err)
	})
}

// breaking fails one method once, after everything before it took place.
type breaking struct {
	control.Store
	broken bool
}

func (b *breaking) CreateToken(ctx context.Context, tok control.Token, a control.AuditEntry) error {
	if b.broken {
		b.broken = false
		return errLost
	}
	return b.Store.CreateToken(ctx, tok, a)
}

func TestBootstrapCanBeRepeated(t *testing.T) {
	url := "sqlite:" + t.TempDir() + "/guardyn.db"
	if err := store.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	st, err := store.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	b := &breaking{Store: st, broken: true}
	_, err = control.Bootstrap(t.Context(), b, time.Now(), "You@Example.com", "Amthal Group")
	wantError(t, "the first time", err, errLost)
	got, err := control.Bootstrap(t.Context(), b, time.Now(), "you@example.com", "Amthal Group")
	if err != nil || got.User.Email != "you@example.com" || !got.User.Operator || got.Workspace.Plan != "standard" {
		t.Fatalf("the second time: %+v, %v", got, err)
	}
}

func TestAuthenticate(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		tok, err := w.svc.CreateToken(ctx, w.operator, control.TokenRequest{Name: "short", ExpiresAt: w.clock.now().Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		p, err := w.svc.Authenticate(ctx, tok.Secret)
		if err != nil || p.Email != "you@example.com" || !p.Operator || p.Role != control.RoleAdmin || p.WorkspaceName != "Amthal Group" || p.TokenID != tok.ID {
			t.Errorf("principal: %+v, %v", p, err)
		}
		for _, bearer := range []string{"", "gdn_", tok.Secret[:46], tok.Secret + "x", "GDN_" + tok.Secret[4:], "gdn_" + strings.Repeat("A", 43), strings.Repeat("x", 1<<20)} {
			_, err := w.svc.Authenticate(ctx, bearer)
			wantError(t, "bearer "+bearer[:min(len(bearer), 50)], err, control.ErrUnauthenticated)
		}
		w.clock.advance(time.Hour)
		_, err = w.svc.Authenticate(ctx, tok.Secret)
		wantError(t, "expired", err, control.ErrUnauthenticated)

		// Revoked by another process: this one follows.
		other := w.service(t, w.open(t), nil)
		tok, err = w.svc.CreateToken(ctx, w.operator, control.TokenRequest{Name: "revoked"})
		if err != nil {
			t.Fatal(err)
		}
		run(t, other)
		if _, err := other.Authenticate(ctx, tok.Secret); err != nil {
			t.Fatal(err)
		}
		if err := w.svc.RevokeToken(ctx, w.operator, tok.ID); err != nil {
			t.Fatal(err)
		}
		_, err = w.svc.Authenticate(ctx, tok.Secret)
		wantError(t, "revoked here", err, control.ErrUnauthenticated)
		for deadline := time.Now().Add(10 * time.Second); ; {
			if _, err = other.Authenticate(ctx, tok.Secret); err != nil {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("another process still knows a token that was revoked")
			}
			<-time.After(time.Millisecond)
		}
		wantError(t, "revoked elsewhere", err, control.ErrUnauthenticated)
	})
}

// deaf is a store that stops answering.
type deaf struct{ control.Store }

func (deaf) TokenByHash(context.Context, [32]byte) (control.Token, control.Principal, error) {
	return control.Token{}, control.Principal{}, errLost
}

func TestAuthenticateWithoutAStore(t *testing.T) {
	w := newWorld(t)
	n, err := w.svc.CreateNode(t.Context(), w.operator, "fra1")
	if err != nil {
		t.Fatal(err)
	}
	svc := w.service(t, deaf{w.store}, nil)
	_, err = svc.Authenticate(t.Context(), n.Secret)
	if wantError(t, "authenticate", err, errLost); errors.Is(err, control.ErrUnauthenticated) {
		t.Error("a store that does not answer looks like a bad token")
	}
}

func TestTokensOfAWorkspace(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	own := admin(w.editor)
	tok, err := w.svc.CreateToken(ctx, own, control.TokenRequest{Name: "mine"})
	if err != nil || tok.UserID != own.UserID || tok.Workspace != own.Workspace {
		t.Fatalf("own: %+v, %v", tok, err)
	}
	if _, err := w.svc.CreateToken(ctx, own, control.TokenRequest{Name: "mine", User: "Editor@example.com", Workspace: "Amthal Group"}); err != nil {
		t.Errorf("own, by name: %v", err)
	}
	for _, r := range []control.TokenRequest{
		{Name: "x", User: "stranger@example.net"},
		{Name: "x", User: "nobody@example.net"},
		{Name: "x", User: "viewer@example.com"},
		{Name: "x", Workspace: "Other"},
		{Name: "x", Workspace: w.stranger.Workspace},
		{Name: "x", Workspace: "None"},
	} {
		_, err := w.svc.CreateToken(ctx, own, r)
		wantError(t, "another's: "+r.User+r.Workspace, err, control.ErrNotFound)
	}
	_, err = w.svc.CreateToken(ctx, w.operator, control.TokenRequest{Name: "x", User: "stranger@example.net", Workspace: "Amthal Group"})
	problems(t, "no member", err)
	_, err = w.svc.CreateToken(ctx, own, control.TokenRequest{ExpiresAt: w.clock.now()})
	if ps := problems(t, "no name, past expiry", err); len(ps) != 2 {
		t.Errorf("problems: %+v", ps)
	}

	wantError(t, "revoke of a foreign token", w.svc.RevokeToken(ctx, w.stranger, tok.ID), control.ErrNotFound)
	l, err := w.svc.ListTokens(ctx, own, false, control.Page{Limit: 1})
	if err != nil || len(l.Items) != 1 || l.Next == "" {
		t.Errorf("tokens: %+v, %v", l, err)
	}
	foreign, err := w.svc.ListTokens(ctx, w.stranger, false, control.Page{})
	if err != nil || len(foreign.Items) != 1 {
		t.Errorf("the stranger's tokens: %+v, %v", foreign, err)
	}
	if err := w.svc.RevokeToken(ctx, own, tok.ID); err != nil {
		t.Error(err)
	}
}

func TestRoleChangesAtOnce(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	tok, err := w.svc.CreateToken(ctx, w.operator, control.TokenRequest{Name: "x", User: "viewer@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range []control.Role{control.RoleAdmin, control.RoleViewer, ""} {
		if _, err := w.svc.SetMembership(ctx, w.operator, "viewer@example.com", "Amthal Group", role); err != nil {
			t.Fatal(err)
		}
		p, err := w.svc.Authenticate(ctx, tok.Secret)
		if err == nil && p.Role != role || err != nil && role != "" {
			t.Errorf("role %q: %+v, %v", role, p, err)
		}
	}
	_, err = w.svc.SetMembership(ctx, w.operator, "viewer@example.com", "Amthal Group", "owner")
	problems(t, "unknown role", err)
}

func TestWorkspacesUsersPlans(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		_, err := w.svc.CreateWorkspace(ctx, w.operator, "Other", "standard")
		wantError(t, "a name twice", err, control.ErrExists)
		_, err = w.svc.CreateWorkspace(ctx, w.operator, "\x1b[2J", "gold")
		if ps := problems(t, "workspace", err); len(ps) != 2 {
			t.Errorf("problems: %+v", ps)
		}
		if _, err := w.svc.PutPlan(ctx, w.operator, zone.Plan{Name: "gold", Ceilings: zone.Ceilings{Records: 5}}); err != nil {
			t.Fatal(err)
		}
		_, err = w.svc.PutPlan(ctx, w.operator, zone.Plan{Name: "No", Ceilings: zone.Ceilings{Records: -1}})
		if ps := problems(t, "plan", err); len(ps) != 2 {
			t.Errorf("problems: %+v", ps)
		}
		gold, name := "gold", "Another"
		ws, err := w.svc.UpdateWorkspace(ctx, w.operator, "Other", control.WorkspacePatch{Name: &name, Plan: &gold})
		if err != nil || ws.Name != name || ws.Plan != gold || ws.ID != w.stranger.Workspace {
			t.Errorf("update: %+v, %v", ws, err)
		}
		none := "none"
		_, err = w.svc.UpdateWorkspace(ctx, w.operator, ws.ID, control.WorkspacePatch{Plan: &none})
		problems(t, "unknown plan", err)
		_, err = w.svc.UpdateWorkspace(ctx, w.operator, "Other", control.WorkspacePatch{Plan: &gold})
		wantError(t, "its old name", err, control.ErrNotFound)
		plans, err := w.svc.ListPlans(ctx, w.operator)
		if err != nil || len(plans) != 2 || plans[0].Name != "gold" || plans[0].Ceilings.Records != 5 {
			t.Errorf("plans: %+v, %v", plans, err)
		}
		l, err := w.svc.ListWorkspaces(ctx, w.operator, control.Page{})
		if err != nil || len(l.Items) != 2 {
			t.Errorf("workspaces: %+v, %v", l, err)
		}
		_, err = w.svc.CreateUser(ctx, w.operator, "STRANGER@example.net", false)
		wantError(t, "an address twice", err, control.ErrExists)
		for _, email := range []string{"", "x", "a b@example.com", "Eve <eve@example.com>", "eve@example.com\r\n", strings.Repeat("a", 250) + "@example.com"} {
			_, err = w.svc.CreateUser(ctx, w.operator, email, false)
			problems(t, "email "+email, err)
		}
		ms, err := w.svc.Memberships(ctx, w.operator, "stranger@example.net")
		if err != nil || len(ms) != 1 || ms[0].Role != control.RoleAdmin {
			t.Errorf("memberships: %+v, %v", ms, err)
		}
	})
}

func TestAuditOfAWorkspaceIsItsOwn(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	w.zone(t, w.editor, "example.com")
	w.zone(t, w.stranger, "example.net")
	l, err := w.svc.ListAudit(ctx, w.stranger, false, control.Page{})
	if err != nil || len(l.Items) == 0 {
		t.Fatalf("audit: %+v, %v", l, err)
	}
	for _, a := range l.Items {
		if a.Workspace != w.stranger.Workspace {
			t.Errorf("a foreign entry: %+v", a)
		}
	}
	if a := l.Items[0]; a.Action != "zone.create" || a.Target != "example.net" || a.Actor != "stranger@example.net" || a.Outcome != "ok" || !a.At.Equal(w.clock.now()) {
		t.Errorf("newest: %+v", a)
	}
}
