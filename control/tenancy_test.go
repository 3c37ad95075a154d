package control_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/zone"
)

// A zone of another workspace cannot be told from one that does not exist, whatever is done with it.
func TestForeignZoneIsAbsent(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		z := w.zone(t, w.editor, "example.com")
		rec := w.record(t, w.editor, "example.com", "www", "A", "192.0.2.1")
		if _, err := w.svc.Lists().Put(t.Context(), w.editor, "example.com", "office", zone.List{Kind: zone.ListIP}, control.Any); err != nil {
			t.Fatal(err)
		}
		ok := control.RecordInput{Name: "@", Type: "TXT", Content: `"x"`}
		bad := control.RecordInput{Name: "a..b", Type: "NOSUCH", Content: "x"}
		type deed func(ctx context.Context, p control.Principal, ref string) error
		rows := map[string]deed{
			"show": func(ctx context.Context, p control.Principal, ref string) error {
				_, err := w.svc.Zone(ctx, p, ref)
				return err
			},
			"delete": func(ctx context.Context, p control.Principal, ref string) error { return w.svc.DeleteZone(ctx, p, ref) },
			"list records": func(ctx context.Context, p control.Principal, ref string) error {
				_, err := w.svc.ListRecords(ctx, p, ref, control.RecordQuery{}, control.Page{})
				return err
			},
			"list records after a record": func(ctx context.Context, p control.Principal, ref string) error {
				_, err := w.svc.ListRecords(ctx, p, ref, control.RecordQuery{}, control.Page{After: rec.ID})
				return err
			},
			"add record": func(ctx context.Context, p control.Principal, ref string) error {
				_, err := w.svc.AddRecord(ctx, p, ref, ok)
				return err
			},
			"add malformed record": func(ctx context.Context, p control.Principal, ref string) error {
				_, err := w.svc.AddRecord(ctx, p, ref, bad)
				return err
			},
			"update record": func(ctx context.Context, p control.Principal, ref string) error {
				_, err := w.svc.UpdateRecord(ctx, p, ref, rec.ID, ok)
				return err
			},
			"delete record": func(ctx context.Context, p control.Principal, ref string) error {
				return w.svc.DeleteRecord(ctx, p, ref, rec.ID)
			},
			"import": func(ctx context.Context, p control.Principal, ref string) error {
				_, err := w.svc.ImportZoneFile(ctx, p, ref, strings.NewReader("bad"), control.ImportOptions{})
				return err
			},
			"export": func(ctx context.Context, p control.Principal, ref string) error {
				var out bytes.Buffer
				err := w.svc.ExportZoneFile(ctx, p, ref, &out)
				if out.Len() > 0 {
					t.Error("export wrote something")
				}
				return err
			},
			"patch settings": func(ctx context.Context, p control.Principal, ref string) error {
				_, err := w.svc.PatchSettings(ctx, p, ref, map[string]string{"no_such": "1"}, control.Any)
				return err
			},
			"get settings": func(ctx context.Context, p control.Principal, ref string) error {
				_, err := w.svc.Settings().Get(ctx, p, ref, "")
				return err
			},
			"get list": func(ctx context.Context, p control.Principal, ref string) error {
				_, err := w.svc.Lists().Get(ctx, p, ref, "office")
				return err
			},
			"list lists": func(ctx context.Context, p control.Principal, ref string) error {
				_, err := w.svc.Lists().List(ctx, p, ref)
				return err
			},
			"put list": func(ctx context.Context, p control.Principal, ref string) error {
				_, err := w.svc.Lists().Put(ctx, p, ref, "office", zone.List{}, control.Any)
				return err
			},
			"delete list": func(ctx context.Context, p control.Principal, ref string) error {
				return w.svc.Lists().Delete(ctx, p, ref, "office", control.Any)
			},
			"delete settings": func(ctx context.Context, p control.Principal, ref string) error {
				return w.svc.Settings().Delete(ctx, p, ref, "", control.Any)
			},
		}
		refs := []struct{ foreign, absent string }{
			{string(z.ID), "0198c5a0-0000-7000-8000-00000000dead"},
			{"example.com", "example.net"},
			{"EXAMPLE.com.", "EXAMPLE.net."},
		}
		for name, do := range rows {
			for _, ref := range refs {
				foreign, absent := do(t.Context(), w.stranger, ref.foreign), do(t.Context(), w.stranger, ref.absent)
				if !errors.Is(foreign, control.ErrNotFound) || errors.Is(foreign, control.ErrNoRoute) {
					t.Errorf("%s %s: %v", name, ref.foreign, foreign)
					continue
				}
				if a, b := strings.ReplaceAll(foreign.Error(), ref.foreign, "REF"), strings.ReplaceAll(absent.Error(), ref.absent, "REF"); a != b {
					t.Errorf("%s: foreign %q, absent %q", name, a, b)
				}
			}
		}

		// A foreign record in one's own zone, in a path and in a cursor.
		w.zone(t, w.stranger, "example.net")
		_, err := w.svc.UpdateRecord(t.Context(), w.stranger, "example.net", rec.ID, ok)
		wantError(t, "update of a foreign record", err, control.ErrNotFound)
		wantError(t, "delete of a foreign record", w.svc.DeleteRecord(t.Context(), w.stranger, "example.net", rec.ID), control.ErrNotFound)
		_, foreign := w.svc.ListRecords(t.Context(), w.stranger, "example.net", control.RecordQuery{}, control.Page{After: rec.ID})
		_, absent := w.svc.ListRecords(t.Context(), w.stranger, "example.net", control.RecordQuery{}, control.Page{After: "0198c5a0-0000-7000-8000-00000000dead"})
		if (foreign == nil) != (absent == nil) || foreign != nil && errors.Is(foreign, control.ErrNotFound) != errors.Is(absent, control.ErrNotFound) {
			t.Errorf("a foreign cursor: %v, an absent one: %v", foreign, absent)
		}

		// What could not be published beside it is not made.
		for name, code := range map[string]string{"example.com": "zone_taken", "a.example.com": "zone_not_delegated"} {
			_, err := w.svc.CreateZone(t.Context(), w.stranger, name)
			if ps := problems(t, name, err); len(ps) != 1 || ps[0].Zone != name || ps[0].Code != code {
				t.Errorf("%s: %+v", name, ps)
			}
		}
		after, err := w.svc.Zone(t.Context(), w.viewer, string(z.ID))
		if err != nil || after.Records != 1 {
			t.Errorf("the zone afterwards: %+v, %v", after, err)
		}
		if l, err := w.svc.ListZones(t.Context(), w.stranger, control.Page{}); err != nil || len(l.Items) != 1 || l.Items[0].ID == z.ID {
			t.Errorf("the stranger's zones: %+v, %v", l, err)
		}
	})
}

// Who may do what, by principal: the whole of Service.
func TestAuthorisation(t *testing.T) {
	w := newWorld(t)
	w.published(t)
	n := w.node(t, "fra1")
	bareOperator := w.operator
	bareOperator.Role = ""
	principals := []struct {
		name string
		p    control.Principal
	}{
		{"viewer", w.viewer},
		{"editor", w.editor},
		{"admin", admin(w.viewer)},
		{"operator without a role", bareOperator},
		{"node", n},
		{"nobody", control.Principal{}},
	}
	const (
		yes    = 'y' // not refused for who asks
		no     = 'f' // ErrForbidden
		hidden = '-' // ErrNoRoute
	)
	ctx := t.Context()
	rows := []struct {
		name string
		want string // by principal
		do   func(p control.Principal) error
	}{
		{"list zones", "yyy---", func(p control.Principal) error { _, err := w.svc.ListZones(ctx, p, control.Page{}); return err }},
		{"show zone", "yyy---", func(p control.Principal) error { _, err := w.svc.Zone(ctx, p, "example.com"); return err }},
		{"create zone", "fyy---", func(p control.Principal) error { _, err := w.svc.CreateZone(ctx, p, "bad"); return err }},
		{"delete zone", "fyy---", func(p control.Principal) error { return w.svc.DeleteZone(ctx, p, "none.example") }},
		{"list records", "yyy---", func(p control.Principal) error {
			_, err := w.svc.ListRecords(ctx, p, "example.com", control.RecordQuery{}, control.Page{})
			return err
		}},
		{"add record", "fyy---", func(p control.Principal) error {
			_, err := w.svc.AddRecord(ctx, p, "example.com", control.RecordInput{})
			return err
		}},
		{"update record", "fyy---", func(p control.Principal) error {
			_, err := w.svc.UpdateRecord(ctx, p, "example.com", "x", control.RecordInput{})
			return err
		}},
		{"delete record", "fyy---", func(p control.Principal) error { return w.svc.DeleteRecord(ctx, p, "example.com", "x") }},
		{"import", "fyy---", func(p control.Principal) error {
			_, err := w.svc.ImportZoneFile(ctx, p, "none.example", strings.NewReader(""), control.ImportOptions{})
			return err
		}},
		{"export", "yyy---", func(p control.Principal) error {
			return w.svc.ExportZoneFile(ctx, p, "none.example", &bytes.Buffer{})
		}},
		{"list lists", "yyy---", func(p control.Principal) error { _, err := w.svc.Lists().List(ctx, p, "example.com"); return err }},
		{"get list", "yyy---", func(p control.Principal) error { _, err := w.svc.Lists().Get(ctx, p, "example.com", "x"); return err }},
		{"put list", "fyy---", func(p control.Principal) error {
			_, err := w.svc.Lists().Put(ctx, p, "example.com", "x", zone.List{}, control.Any)
			return err
		}},
		{"delete list", "fyy---", func(p control.Principal) error {
			return w.svc.Lists().Delete(ctx, p, "example.com", "x", control.Any)
		}},
		{"patch settings", "fyy---", func(p control.Principal) error {
			_, err := w.svc.PatchSettings(ctx, p, "example.com", nil, control.Any)
			return err
		}},
		{"config", "yyy---", func(p control.Principal) error { _, err := w.svc.ConfigStatus(ctx, p); return err }},
		{"tokens", "ffy---", func(p control.Principal) error { _, err := w.svc.ListTokens(ctx, p, false, control.Page{}); return err }},
		{"all tokens", "---y--", func(p control.Principal) error { _, err := w.svc.ListTokens(ctx, p, true, control.Page{}); return err }},
		{"create token", "ffyy--", func(p control.Principal) error {
			_, err := w.svc.CreateToken(ctx, p, control.TokenRequest{})
			return err
		}},
		{"revoke token", "ffyy--", func(p control.Principal) error { return w.svc.RevokeToken(ctx, p, "x") }},
		{"audit", "ffy---", func(p control.Principal) error { _, err := w.svc.ListAudit(ctx, p, false, control.Page{}); return err }},
		{"all audit", "---y--", func(p control.Principal) error { _, err := w.svc.ListAudit(ctx, p, true, control.Page{}); return err }},
		{"plan", "---y--", func(p control.Principal) error { _, err := w.svc.Plan(ctx, p); return err }},
		{"apply", "---y--", func(p control.Principal) error { _, err := w.svc.Apply(ctx, p, control.ApplyRequest{}); return err }},
		{"history", "---y--", func(p control.Principal) error { _, err := w.svc.History(ctx, p, control.Page{}); return err }},
		{"workspaces", "---y--", func(p control.Principal) error { _, err := w.svc.ListWorkspaces(ctx, p, control.Page{}); return err }},
		{"create workspace", "---y--", func(p control.Principal) error { _, err := w.svc.CreateWorkspace(ctx, p, "", ""); return err }},
		{"update workspace", "---y--", func(p control.Principal) error {
			_, err := w.svc.UpdateWorkspace(ctx, p, w.viewer.Workspace, control.WorkspacePatch{})
			return err
		}},
		{"plans", "---y--", func(p control.Principal) error { _, err := w.svc.ListPlans(ctx, p); return err }},
		{"show plan", "---y--", func(p control.Principal) error { _, err := w.svc.PlanByName(ctx, p, "standard"); return err }},
		{"put plan", "---y--", func(p control.Principal) error { _, err := w.svc.PutPlan(ctx, p, zone.Plan{}); return err }},
		{"users", "---y--", func(p control.Principal) error { _, err := w.svc.ListUsers(ctx, p, control.Page{}); return err }},
		{"create user", "---y--", func(p control.Principal) error { _, err := w.svc.CreateUser(ctx, p, "", false); return err }},
		{"memberships", "---y--", func(p control.Principal) error { _, err := w.svc.Memberships(ctx, p, "you@example.com"); return err }},
		{"set membership", "---y--", func(p control.Principal) error {
			_, err := w.svc.SetMembership(ctx, p, "x", "y", "owner")
			return err
		}},
		{"nodes", "---y--", func(p control.Principal) error { _, err := w.svc.ListNodes(ctx, p); return err }},
		{"create node", "---y--", func(p control.Principal) error { _, err := w.svc.CreateNode(ctx, p, ""); return err }},
		{"delete node", "---y--", func(p control.Principal) error { return w.svc.DeleteNode(ctx, p, "x") }},
		{"poll", "----y-", func(p control.Principal) error { _, err := w.svc.Poll(ctx, p, nodeproto.Poll{}); return err }},
		{"ack", "----y-", func(p control.Principal) error { return w.svc.Ack(ctx, p, nodeproto.Ack{Boot: boot}) }},
	}
	for _, r := range rows {
		for i, who := range principals {
			err := r.do(who.p)
			got := yes
			switch {
			case errors.Is(err, control.ErrNoRoute):
				got = hidden
			case errors.Is(err, control.ErrForbidden):
				got = no
			}
			if want := rune(r.want[i]); got != want {
				t.Errorf("%s as %s: %c (%v), want %c", r.name, who.name, got, err, want)
			}
		}
	}
}

func admin(p control.Principal) control.Principal {
	p.Role = control.RoleAdmin
	return p
}
