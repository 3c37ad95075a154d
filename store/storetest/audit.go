package storetest

import (
	"slices"
	"time"

	"github.com/guardyn-edge/guardyn/control"
)

var auditClauses = []clause{
	{name: "an entry is read back with every member", run: func(f *fixture) {
		want := control.AuditEntry{
			ID: id(), At: f.now(), Workspace: f.ws, Actor: "node fra1", From: "[2001:db8::1]:4711", Action: "config.node_rejected",
			Target: "version 42", Outcome: "signature_invalid", Detail: `{"message":"\u001b[31m"}`,
		}
		f.ok(f.store.Append(f.ctx, want))
		f.same("entry", f.auditOf(f.ws)[0], want)
	}},
	{name: "an id that stands is refused and the first entry stays", run: func(f *fixture) {
		first := f.entry("first")
		f.ok(f.store.Append(f.ctx, first))
		second := f.entry("second")
		second.ID = first.ID
		if err := f.store.Append(f.ctx, second); err == nil {
			f.Error("written twice")
		}
		f.same("newest", f.auditOf(f.ws)[0], first)
	}},
	{name: "what was written last comes first whatever its time and id, of one workspace or all, in pages", alone: true, run: func(f *fixture) {
		all := f.auditOf("")
		at := f.now()
		for i := range 12 {
			e := f.entry("x")
			e.Workspace = []string{f.ws, f.other, ""}[i%3]
			e.At = at.Add([]time.Duration{0, 2 * time.Hour, -24 * time.Hour}[i/2%3]) // by processes whose clocks are wrong
			f.ok(f.store.Append(f.ctx, e))
			all = slices.Insert(all, 0, e)
		}
		f.same("all", f.auditOf(""), all)
		var mine []control.AuditEntry
		for _, e := range all {
			if e.Workspace == f.ws {
				mine = append(mine, e)
			}
		}
		key := func(e control.AuditEntry) string { return e.ID }
		list := func(ws string) func(control.Page) ([]control.AuditEntry, error) {
			return func(p control.Page) ([]control.AuditEntry, error) { return f.store.ListAudit(f.ctx, ws, p) }
		}
		for _, limit := range []int{1, 2, 5, 1000} {
			f.same("all", pages(f, limit, key, list("")), all)
			f.same("mine", pages(f, limit, key, list(f.ws)), mine)
		}
		refusesLimits(f, list(f.ws))
	}},
}
