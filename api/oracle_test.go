package api_test

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/zone"
)

// What a body or a cursor names is not looked up beyond the caller's own workspace: the answer for another
// workspace's name is, to the byte, that for a name which nobody has.
func TestNestedReferencesTellNothing(t *testing.T) {
	p := newPlane(t)
	ctx, owner := t.Context(), p.client("admin")
	_, err := owner.CreateZone(ctx, api.NewZone{Name: "acme.example"})
	p.must(err)
	r, err := owner.AddRecord(ctx, "acme.example", api.RecordEdit{Name: "www", Type: "A", Content: "192.0.2.1"})
	p.must(err)
	_, _, err = owner.PutPool(ctx, "acme.example", "secret-pool", zone.Pool{Origins: []zone.Origin{{Name: "a", Address: "192.0.2.9:80"}}}, api.WriteOptions{})
	p.must(err)
	_, _, err = owner.PutList(ctx, "acme.example", "secret-list", zone.List{Kind: zone.ListIP}, api.WriteOptions{})
	p.must(err)
	tokens, err := owner.Tokens(ctx, api.TokenOptions{})
	p.must(err)
	entries, err := owner.Audit(ctx, api.AuditOptions{})
	p.must(err)
	stranger := p.client("stranger")
	for _, name := range []string{"other.example", "other2.example"} {
		_, err = stranger.CreateZone(ctx, api.NewZone{Name: name})
		p.must(err)
		_, err = stranger.AddRecord(ctx, name, api.RecordEdit{Name: "mine", Type: "TXT", Content: "x"})
		p.must(err)
	}
	key := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	absentID := "018f0000-0000-7000-8000-000000000000"

	// Two zones of the caller's that hold the same take what names the foreign and the absent thing; two absent
	// names show what the answer for an absent one is.
	for _, row := range []struct{ what, method, target, body, foreign, absent string }{
		{"a balancer's pool", "PUT", "/v1/zones/other.example/load-balancers/a.other.example", `{"pools":["%s"]}`, "secret-pool", "absent-pool"},
		{"a rule's list", "PUT", "/v1/zones/other.example/rulesets/custom", `{"rules":[{"expression":"in_list(ip.src, \"%s\")","action":"block"}]}`, "secret-list", "absent-list"},
		{"a rule's pool", "PUT", "/v1/zones/other.example/rulesets/origin", `{"rules":[{"expression":"true","action":"route","parameters":{"pool":"%s"}}]}`, "secret-pool", "absent-pool"},
		{"a record's target", "POST", "/v1/zones/other.example/records", `{"name":"c","type":"CNAME","content":"%s"}`, "www.acme.example", "www.nope.example"},
		{"a token's user", "POST", "/v1/tokens", `{"name":"x","user":"%s"}`, "admin@example.com", "nobod@example.com"},
		{"a token's workspace", "POST", "/v1/tokens", `{"name":"x","workspace":"%s"}`, "Acme", "Nope"},
		{"a cursor of zones", "GET", "/v1/zones?cursor=%s", "", key("acme.example"), key("acmf.example")},
		{"a cursor of records", "GET", "/v1/zones/other.example/records?cursor=%s", "", key(r.ID), key(absentID)},
		{"a cursor of tokens", "GET", "/v1/tokens?cursor=%s", "", key(tokens.Items[0].ID), key(flip(tokens.Items[0].ID))},
		{"a cursor of the log", "GET", "/v1/audit?cursor=%s", "", key(entries.Items[0].ID), key(flip(entries.Items[0].ID))},
		{"a cursor of objects", "GET", "/v1/zones/other.example/pools?cursor=%s", "", key("secret-pool"), key("secret-poom")},
	} {
		fill := func(s, v string) string { return strings.ReplaceAll(s, "%s", v) }
		ask := func(v string) string {
			a := p.request("stranger", row.method, fill(row.target, v), fill(row.body, v))
			if row.method == "POST" && a.status == 201 && strings.Contains(row.target, "records") {
				p.request("stranger", "DELETE", "/v1/zones/other.example/records/"+uuidOf(a.body), "")
			}
			return neutral(strings.ReplaceAll(a.wire, v, "X"), len(a.body))
		}
		if foreign, absent := ask(row.foreign), ask(row.absent); foreign != absent {
			t.Errorf("%s:\n%s\nwant as absent\n%s", row.what, foreign, absent)
		}
	}
}

// A zone that could not be published beside another workspace's is refused, which tells that there is one: the name that was asked for,
// or one above it, as the DNS tells too; nothing of what lies below.
func TestForeignZoneNames(t *testing.T) {
	p := newPlane(t)
	ctx := t.Context()
	owner, stranger := p.client("editor"), p.client("stranger")
	for _, name := range []string{"acme.example", "secret.deep.example"} {
		_, err := owner.CreateZone(ctx, api.NewZone{Name: name})
		p.must(err)
	}
	for _, row := range []struct{ name, zone, code, says string }{
		{"of the same name", "acme.example", "zone_taken", "another workspace has a zone of this name"},
		{"below", "a.b.acme.example", "zone_not_delegated", "below zone acme.example of another workspace"},
		{"above", "deep.example", "zone_not_delegated", "a zone below it belongs to another workspace"},
	} {
		_, err := stranger.CreateZone(ctx, api.NewZone{Name: row.zone})
		e := wantProblem(t, err, 422, "problems")
		if len(e.Errors) != 1 || e.Errors[0].Zone != row.zone || e.Errors[0].Code != row.code || !strings.Contains(e.Errors[0].Message, row.says) ||
			strings.Contains(e.Errors[0].Message, "secret") {
			t.Errorf("%s: %+v", row.name, e.Errors)
		}
	}
	if l, err := stranger.Zones(ctx, api.PageOptions{}); err != nil || len(l.Items) != 0 {
		t.Errorf("it has %+v, %v", l, err)
	}
	_, err := owner.AddRecord(ctx, "acme.example", api.RecordEdit{Name: "given", Type: "NS", Content: "ns.example.net."})
	p.must(err)
	_, err = stranger.CreateZone(ctx, api.NewZone{Name: "given.acme.example"})
	p.must(err)
}

// flip changes the last digit of an id, so that it sorts where the id does and names nothing.
func flip(id string) string {
	last := "0"
	if strings.HasSuffix(id, "0") {
		last = "1"
	}
	return id[:len(id)-1] + last
}

var (
	anID      = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)
	aMoment   = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+Z`)
	aRevision = regexp.MustCompile(`"\d+"|"revision":\d+`)
)

func uuidOf(body string) string { return anID.FindString(body) }

// neutral takes out of an answer what differs between any two: new ids, moments, revisions and the length.
func neutral(wire string, length int) string {
	wire = strings.ReplaceAll(wire, fmt.Sprintf("Content-Length: %d\r\n", length), "")
	wire = anID.ReplaceAllString(wire, "ID")
	wire = aMoment.ReplaceAllString(wire, "NOW")
	return aRevision.ReplaceAllString(wire, "REVISION")
}

// What a workspace is told of what is published does not move with another's edits.
func TestStatusTellsNothingOfOthers(t *testing.T) {
	p := newPlane(t)
	p.publish("one")
	_, err := p.client("stranger").CreateZone(t.Context(), api.NewZone{Name: "other.example"})
	p.must(err)
	_, err = p.client("operator").Apply(t.Context(), api.ApplyRequest{AcceptDisruption: true})
	p.must(err)
	ask := func() string { return p.request("stranger", "GET", "/v1/config", "").wire }
	before := ask()
	if !strings.Contains(before, "Everything you have saved is being served.") {
		t.Fatal(before)
	}
	_, err = p.client("editor").AddRecord(t.Context(), "example.com", api.RecordEdit{Name: "new", Type: "TXT", Content: "x"})
	p.must(err)
	_, _, err = p.client("editor").PutRuleset(t.Context(), "example.com", "custom", api.Ruleset{Rules: []zone.Rule{{
		Expression: `in_list(ip.src, "nobody")`, Action: zone.ActionBlock,
	}}}, api.WriteOptions{})
	p.must(err)
	if after := ask(); after != before {
		t.Errorf("after another workspace's edits, one of them broken:\n%s\nbefore\n%s", after, before)
	}
	if own := p.request("editor", "GET", "/v1/config", ""); !strings.Contains(own.body, `"has_unpublished_changes":true`) {
		t.Errorf("the editor's own: %s", own.body)
	}
}
