package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/zone"
)

// Another workspace's object is answered like one that does not exist: in paths, bodies and cursors.
func TestTenancy(t *testing.T) {
	p := newPlane(t)
	ctx, owner := t.Context(), p.client("admin")
	z, err := owner.CreateZone(ctx, api.NewZone{Name: "acme.example"})
	p.must(err)
	r, err := owner.AddRecord(ctx, "acme.example", api.RecordEdit{Name: "www", Type: "A", Content: "192.0.2.1"})
	p.must(err)
	_, _, err = owner.PutList(ctx, "acme.example", "office", zone.List{Kind: zone.ListIP}, api.WriteOptions{})
	p.must(err)
	_, _, err = owner.PutPool(ctx, "acme.example", "web", zone.Pool{Origins: []zone.Origin{{Name: "a", Address: "192.0.2.1:80"}}}, api.WriteOptions{})
	p.must(err)
	mine, err := p.client("stranger").CreateZone(ctx, api.NewZone{Name: "other.example"})
	p.must(err)
	page, err := owner.Zones(ctx, api.PageOptions{})
	p.must(err)
	if len(page.Items) != 1 {
		t.Errorf("zones of Acme: %+v", page)
	}
	tokens, err := owner.Tokens(ctx, api.TokenOptions{})
	p.must(err)

	purge, err := owner.Purge(ctx, "acme.example", api.NewPurge{Kind: "all"})
	p.must(err)

	absentID := "018f0000-0000-7000-8000-000000000000"
	record := `{"name":"www","type":"A","content":"192.0.2.2"}`
	for _, row := range []struct{ method, target, body, other, absent string }{
		{"GET", "/v1/zones/%s", "", z.ID, absentID},
		{"GET", "/v1/zones/%s", "", z.Name, "gone.example"},
		{"DELETE", "/v1/zones/%s", "", z.Name, "gone.example"},
		{"GET", "/v1/zones/%s/records", "", z.ID, absentID},
		{"POST", "/v1/zones/%s/records", record, z.Name, "gone.example"},
		{"PUT", "/v1/zones/" + mine.ID + "/records/%s", record, r.ID, absentID},
		{"DELETE", "/v1/zones/" + mine.ID + "/records/%s", "", r.ID, absentID},
		{"POST", "/v1/zones/%s/import", "@ 300 IN A 192.0.2.7\n", z.ID, absentID},
		{"GET", "/v1/zones/%s/export", "", z.ID, absentID},
		{"GET", "/v1/zones/%s/lists", "", z.Name, "gone.example"},
		{"GET", "/v1/zones/%s/lists/office", "", z.ID, absentID},
		{"PUT", "/v1/zones/%s/lists/office", `{"kind":"ip"}`, z.ID, absentID},
		{"DELETE", "/v1/zones/%s/lists/office", "", z.ID, absentID},
		{"GET", "/v1/zones/%s/pools/web/status", "", z.ID, absentID},
		{"POST", "/v1/zones/%s/purges", `{"kind":"all"}`, z.ID, absentID},
		{"POST", "/v1/zones/%s/purges", `{"kind":"all"}`, z.Name, "gone.example"},
		{"GET", "/v1/zones/%s/purges", "", z.ID, absentID},
		{"GET", "/v1/zones/%s/purges/" + purge.ID, "", z.ID, absentID},
		{"GET", "/v1/zones/" + mine.ID + "/purges/%s", "", purge.ID, absentID},
		{"GET", "/v1/zones/%s/settings", "", z.ID, absentID},
		{"PATCH", "/v1/zones/%s/settings", `{"set":{"always_https":"true"}}`, z.ID, absentID},
		{"DELETE", "/v1/tokens/%s", "", tokens.Items[0].ID, absentID},
		{"POST", "/v1/tokens", `{"name":"x","user":"%s"}`, "admin@example.com", "nobody@example.com"},
		{"POST", "/v1/tokens", `{"name":"x","workspace":"%s"}`, "Acme", "Nowhere"},
	} {
		fill := func(s, v string) string { return strings.ReplaceAll(s, "%s", v) }
		got := p.request("stranger", row.method, fill(row.target, row.other), fill(row.body, row.other))
		want := p.request("stranger", row.method, fill(row.target, row.absent), fill(row.body, row.absent))
		// What the caller wrote is the only thing that may differ, and with it the length.
		norm := func(a answer, v string) string {
			w := strings.ReplaceAll(a.wire, v, "X")
			w = strings.ReplaceAll(w, fmt.Sprintf("Content-Length: %d\r\n", len(a.body)), "")
			return w
		}
		if norm(got, row.other) != norm(want, row.absent) || got.status != 404 {
			t.Errorf("%s %s:\n%s\nwant as absent\n%s", row.method, row.target, got.wire, want.wire)
		}
	}
	// A cursor of another workspace's listing shows nothing of it.
	for i := range 3 {
		_, err := owner.AddRecord(ctx, "acme.example", api.RecordEdit{Name: fmt.Sprintf("r%d", i), Type: "TXT", Content: "x"})
		p.must(err)
	}
	first, err := owner.Records(ctx, "acme.example", api.RecordFilter{}, api.PageOptions{Limit: 1})
	p.must(err)
	l, err := p.client("stranger").Records(ctx, "other.example", api.RecordFilter{}, api.PageOptions{Cursor: first.Next})
	if err == nil && len(l.Items) != 0 {
		t.Errorf("a foreign cursor gave %+v", l)
	}
	// Bodies cannot move an object or raise a plan.
	for _, row := range []struct{ method, target, body string }{
		{"POST", "/v1/zones", `{"name":"x.example","workspace":"Acme"}`},
		{"POST", "/v1/zones/other.example/records", `{"name":"a","type":"A","content":"192.0.2.1","zone":"acme.example"}`},
		{"PUT", "/v1/zones/other.example/settings", `{"ceilings":{"records":1000000}}`},
	} {
		a := p.request("stranger", row.method, row.target, row.body)
		if a.status != 422 || !strings.Contains(a.body, "unknown_member") {
			t.Errorf("%s %s %s: %d %s", row.method, row.target, row.body, a.status, a.body)
		}
	}
	z2, err := owner.Zone(ctx, z.ID)
	p.must(err)
	if z2.Records != 4 {
		t.Errorf("the zone has %d records after all that, want 4", z2.Records)
	}
}
