package control_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/control"
)

func TestTheLogTellsWhatARecordWas(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.zone(t, w.editor, "example.com")
		r := w.record(t, w.editor, "example.com", "www", "A", "192.0.2.1")
		in := control.RecordInput{Name: "www", Type: "A", Content: "192.0.2.2", TTL: 60, Proxied: true}
		if _, err := w.svc.UpdateRecord(ctx, w.editor, "example.com", r.ID, in); err != nil {
			t.Fatal(err)
		}
		if err := w.svc.DeleteRecord(ctx, w.editor, "example.com", r.ID); err != nil {
			t.Fatal(err)
		}
		long := w.record(t, w.editor, "example.com", "t", "TXT", fmt.Sprintf("%q", strings.Repeat("x", 3000)))
		for action, want := range map[string][]string{
			"record.update": {"www.example.com A 192.0.2.1 ttl 300", "www.example.com A 192.0.2.2 ttl 60 proxied", r.ID},
			"record.delete": {"www.example.com A 192.0.2.2 ttl 60 proxied", r.ID},
			"record.add":    {long.ID, "bytes)"},
		} {
			a := w.audited(t, action)[0]
			for _, s := range want {
				if !strings.Contains(a.Detail, s) || len(a.Detail) > 1000 {
					t.Errorf("%s lacks %q: %+v", action, s, a)
				}
			}
			if action != "record.add" && a.Target != "example.com www.example.com A" {
				t.Errorf("%s has target %q", action, a.Target)
			}
		}
		wantError(t, "again", w.svc.DeleteRecord(ctx, w.editor, "example.com", r.ID), control.ErrNotFound)
	})
}

// Text that Postgres cannot hold is refused in words on either database, wherever it comes in.
func TestTextThatNoColumnHolds(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.zone(t, w.editor, "example.com")
		const bad = "a\x00b"
		long := strings.Repeat("a", 120) + "\x00@example.com"
		for name, deed := range map[string]func() error{
			"message": func() error { _, err := w.svc.Apply(ctx, w.operator, control.ApplyRequest{Message: bad}); return err },
			"rollback message": func() error {
				_, err := w.svc.Rollback(ctx, w.operator, control.RollbackRequest{Message: bad})
				return err
			},
			"workspace": func() error { _, err := w.svc.CreateWorkspace(ctx, w.operator, bad, "standard"); return err },
			"token": func() error {
				_, err := w.svc.CreateToken(ctx, w.operator, control.TokenRequest{Name: bad})
				return err
			},
			"email": func() error { _, err := w.svc.CreateUser(ctx, w.operator, long, false); return err },
			"node":  func() error { _, err := w.svc.CreateNode(ctx, w.operator, bad); return err },
			"page":  func() error { _, err := w.svc.ListUsers(ctx, w.operator, control.Page{After: bad}); return err },
			"record": func() error {
				_, err := w.svc.AddRecord(ctx, w.editor, "example.com", control.RecordInput{Name: "x", Type: "A", Content: bad})
				return err
			},
			"list": func() error {
				_, err := w.svc.SetMembership(ctx, w.operator, "editor@example.com", bad, control.RoleViewer)
				return err
			},
		} {
			if ps := problems(t, name, deed()); ps[0].Message == "" {
				t.Errorf("%s: %+v", name, ps)
			}
		}
		// In a TXT record a NUL byte is data, which its text form escapes.
		r := w.record(t, w.editor, "example.com", "t", "TXT", `"a\000b"`)
		if strings.Contains(r.Content, "\x00") {
			t.Errorf("stored as %q", r.Content)
		}
		// Who calls from where no address is known is no reason to fail.
		p := w.editor
		p.From = ""
		w.record(t, p, "example.com", "u", "A", "192.0.2.1")
	})
}
