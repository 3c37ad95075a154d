package api_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/internal/testpg"
	"github.com/guardyn-edge/guardyn/zone"
)

func TestFlowSQLite(t *testing.T) { flow(t, newPlane(t)) }
func TestFlowPostgres(t *testing.T) {
	flow(t, newPlane(t, func(c *planeConfig) { c.url = testpg.URL(t) }))
}

// flow is what people do: edit, plan, apply, look.
func flow(t *testing.T, p *plane) {
	t.Run("zones and records", func(t *testing.T) { flowRecords(t, p) })
	t.Run("import and export", func(t *testing.T) { flowImport(t, p) })
	t.Run("objects", func(t *testing.T) { flowObjects(t, p) })
	t.Run("settings", func(t *testing.T) { flowSettings(t, p) })
	t.Run("publish", func(t *testing.T) { flowPublish(t, p) })
	t.Run("directory", func(t *testing.T) { flowDirectory(t, p) })
}

func flowRecords(t *testing.T, p *plane) {
	ctx, c := t.Context(), p.client("editor")
	z, err := c.CreateZone(ctx, api.NewZone{Name: "Example.COM."})
	p.must(err)
	if z.Name != "example.com" || z.ID == "" || z.CreatedAt.IsZero() {
		t.Errorf("zone %+v", z)
	}
	_, err = c.CreateZone(ctx, api.NewZone{Name: "example.com"})
	wantProblem(t, err, http.StatusConflict, "exists")
	_, err = c.CreateZone(ctx, api.NewZone{Name: "not a name"})
	wantProblem(t, err, http.StatusUnprocessableEntity, "problems")
	byID, err := c.Zone(ctx, z.ID)
	p.must(err)
	if byID.Name != z.Name {
		t.Errorf("by id: %+v", byID)
	}

	r, err := c.AddRecord(ctx, "example.com", api.RecordEdit{Name: "www", Type: "aaaa", Content: "2001:DB8:0::1"})
	p.must(err)
	if want := (api.Record{ID: r.ID, Name: "www.example.com", Type: "AAAA", Content: "2001:db8::1", TTL: 300}); *r != want {
		t.Errorf("record %+v, want %+v", *r, want)
	}
	_, err = c.AddRecord(ctx, "example.com", api.RecordEdit{Name: "www", Type: "AAAA", Content: "2001:db8::1"})
	wantProblem(t, err, http.StatusConflict, "exists")
	e := func(in api.RecordEdit) *api.Error {
		_, err := c.AddRecord(ctx, "example.com", in)
		return wantProblem(t, err, http.StatusUnprocessableEntity, "problems")
	}
	if got := e(api.RecordEdit{Name: "www", Type: "A", Content: "1.2.3"}); len(got.Errors) != 1 || got.Errors[0].Zone != "example.com" {
		t.Errorf("bad address: %+v", got)
	}
	e(api.RecordEdit{Name: "www.example.org.", Type: "A", Content: "192.0.2.1"})
	up, err := c.UpdateRecord(ctx, "example.com", r.ID, api.RecordEdit{Name: "www", Type: "AAAA", Content: "2001:db8::2", TTL: 60})
	p.must(err)
	if up.ID != r.ID || up.TTL != 60 || up.Content != "2001:db8::2" {
		t.Errorf("updated %+v", up)
	}
	for _, name := range []string{"a", "b", "c"} {
		_, err := c.AddRecord(ctx, "example.com", api.RecordEdit{Name: name, Type: "TXT", Content: "hello"})
		p.must(err)
	}
	var names []string
	list := func(o api.PageOptions) (*api.Page[api.Record], error) {
		return c.Records(ctx, "example.com", api.RecordFilter{}, o)
	}
	o := api.PageOptions{Limit: 3}
	for {
		page, err := list(o)
		p.must(err)
		for _, r := range page.Items {
			names = append(names, r.Name)
		}
		if page.Next == "" {
			break
		}
		o.Cursor = page.Next
	}
	if got, want := strings.Join(names, " "), "a.example.com b.example.com c.example.com www.example.com"; got != want {
		t.Errorf("pages gave %s, want %s", got, want)
	}
	only, err := c.Records(ctx, "example.com", api.RecordFilter{Name: "b", Type: "TXT"}, api.PageOptions{})
	p.must(err)
	if len(only.Items) != 1 || only.Items[0].Name != "b.example.com" {
		t.Errorf("filtered %+v", only)
	}
	p.must(c.DeleteRecord(ctx, "example.com", only.Items[0].ID))
	wantProblem(t, c.DeleteRecord(ctx, "example.com", only.Items[0].ID), http.StatusNotFound, "not_found")
	_, err = p.client("viewer").CreateZone(ctx, api.NewZone{Name: "viewer.example"})
	wantProblem(t, err, http.StatusForbidden, "forbidden")
}

func flowImport(t *testing.T, p *plane) {
	ctx, c := t.Context(), p.client("editor")
	_, err := c.CreateZone(ctx, api.NewZone{Name: "import.example"})
	p.must(err)
	file := "$TTL 600\n@ IN A 192.0.2.1\nwww IN CNAME @\nmail IN MX 10 www\n"
	res, err := c.ImportZone(ctx, "import.example", strings.NewReader(file), api.ImportOptions{DryRun: true})
	p.must(err)
	if res.Added != 3 {
		t.Errorf("dry run %+v", res)
	}
	if l, _ := c.Records(ctx, "import.example", api.RecordFilter{}, api.PageOptions{}); len(l.Items) != 0 {
		t.Errorf("the dry run added %d records", len(l.Items))
	}
	res, err = c.ImportZone(ctx, "import.example", strings.NewReader(file), api.ImportOptions{})
	p.must(err)
	if res.Added != 3 {
		t.Errorf("import %+v", res)
	}
	var out bytes.Buffer
	p.must(c.ExportZone(ctx, &out, "import.example"))
	res, err = c.ImportZone(ctx, "import.example", &out, api.ImportOptions{Replace: true})
	p.must(err)
	if res.Added+res.Removed+res.Updated != 0 || res.Unchanged != 3 {
		t.Errorf("what was exported reads back as %+v", res)
	}
	_, err = c.ImportZone(ctx, "import.example", strings.NewReader("@ 300 IN A 1.2.3\nok 300 IN A 192.0.2.9\nx 300 IN MX\n"), api.ImportOptions{})
	e := wantProblem(t, err, http.StatusUnprocessableEntity, "problems")
	if len(e.Errors) != 2 || e.Errors[0].Line != 1 || e.Errors[1].Line != 3 {
		t.Errorf("bad lines: %+v", e.Errors)
	}
	if l, _ := c.Records(ctx, "import.example", api.RecordFilter{Name: "ok"}, api.PageOptions{}); len(l.Items) != 0 {
		t.Error("a file with bad lines changed the zone")
	}
	p.must(c.DeleteZone(ctx, "import.example"))
	_, err = c.Zone(ctx, "import.example")
	wantProblem(t, err, http.StatusNotFound, "not_found")
}

func flowObjects(t *testing.T, p *plane) {
	ctx, c := t.Context(), p.client("editor")
	list := zone.List{Kind: zone.ListIP, Items: []string{"192.0.2.0/24", "2001:DB8::/32"}}
	now, rev, err := c.PutList(ctx, "example.com", "office", list, api.WriteOptions{IfAbsent: true})
	p.must(err)
	if rev < 1 || len(now.Items) != 2 {
		t.Errorf("list %+v at %d", now, rev)
	}
	_, _, err = c.PutList(ctx, "example.com", "office", list, api.WriteOptions{IfAbsent: true})
	wantProblem(t, err, http.StatusPreconditionFailed, "precondition_failed")
	list.Items = append(list.Items, "198.51.100.7")
	_, next, err := c.PutList(ctx, "example.com", "office", list, api.WriteOptions{IfRevision: rev})
	p.must(err)
	_, _, err = c.PutList(ctx, "example.com", "office", list, api.WriteOptions{IfRevision: rev})
	wantProblem(t, err, http.StatusPreconditionFailed, "precondition_failed")
	wantProblem(t, c.DeleteList(ctx, "example.com", "office", api.WriteOptions{IfRevision: rev}), http.StatusPreconditionFailed, "precondition_failed")
	_, got, err := c.List(ctx, "example.com", "office")
	p.must(err)
	if got != next {
		t.Errorf("revision %d after a write that answered %d", got, next)
	}
	lists, err := c.Lists(ctx, "example.com", api.PageOptions{})
	p.must(err)
	if len(lists.Items) != 1 || lists.Items[0].Value != (api.ListSummary{Kind: zone.ListIP, Items: 3}) {
		t.Errorf("lists %+v", lists)
	}

	rules := api.Ruleset{Rules: []zone.Rule{{
		Expression: `http.path.startsWith("/wp-") && !in_list(ip.src, "office")`, Action: zone.ActionBlock,
		Parameters: zone.Parameters{Status: 403},
	}}}
	_, _, err = c.PutRuleset(ctx, "example.com", "custom", rules, api.WriteOptions{})
	p.must(err)
	back, _, err := c.Ruleset(ctx, "example.com", "custom")
	p.must(err)
	if len(back.Rules) != 1 {
		t.Errorf("rules %+v", back)
	}
	_, _, err = c.PutRuleset(ctx, "example.com", "no_such_phase", rules, api.WriteOptions{})
	if e := problem(t, err); e.Status != http.StatusNotFound && e.Status != http.StatusUnprocessableEntity {
		t.Errorf("unknown phase: %v", err)
	}
	rules.Rules[0].Expression = "http.path.startsWith("
	_, _, err = c.PutRuleset(ctx, "example.com", "custom", rules, api.WriteOptions{})
	wantProblem(t, err, http.StatusUnprocessableEntity, "problems")

	for _, name := range []string{"main", "other"} {
		_, _, err = c.PutPool(ctx, "example.com", name, zone.Pool{Origins: []zone.Origin{{Name: "a", Address: "198.51.100.10:443", Scheme: zone.SchemeHTTPS}}}, api.WriteOptions{})
		p.must(err)
	}
	first, err := c.Pools(ctx, "example.com", api.PageOptions{Limit: 1})
	p.must(err)
	second, err := c.Pools(ctx, "example.com", api.PageOptions{Limit: 1, Cursor: first.Next})
	p.must(err)
	if len(second.Items) != 1 || second.Items[0].Name != "other" || second.Next != "" {
		t.Errorf("second page %+v", second)
	}
	p.must(c.DeletePool(ctx, "example.com", "other", api.WriteOptions{}))
	_, _, err = c.Pool(ctx, "example.com", "other")
	wantProblem(t, err, http.StatusNotFound, "not_found")
	_, _, err = c.PutLoadBalancer(ctx, "example.com", "lb.example.com", zone.LoadBalancer{Pools: []string{"main"}}, api.WriteOptions{})
	p.must(err)
	lb, _, err := c.LoadBalancer(ctx, "example.com", "LB.example.com.")
	p.must(err)
	if len(lb.Pools) != 1 {
		t.Errorf("load balancer %+v", lb)
	}
	p.must(c.DeleteLoadBalancer(ctx, "example.com", "lb.example.com", api.WriteOptions{}))
}

func flowSettings(t *testing.T, p *plane) {
	ctx, c := t.Context(), p.client("editor")
	s, rev, err := c.Settings(ctx, "example.com")
	p.must(err)
	if rev != 0 || s.AlwaysHTTPS {
		t.Errorf("untouched settings %+v at %d", s, rev)
	}
	s, rev, err = c.PatchSettings(ctx, "example.com", api.SettingsPatch{Set: map[string]string{"trace_sampling": "100%", "always_https": "true"}}, api.WriteOptions{IfAbsent: true})
	p.must(err)
	if rev < 1 || !s.AlwaysHTTPS || s.TraceSampling == nil {
		t.Errorf("patched settings %+v at %d", s, rev)
	}
	_, _, err = c.PatchSettings(ctx, "example.com", api.SettingsPatch{Set: map[string]string{"no_such": "1", "hsts": "soon"}}, api.WriteOptions{})
	if e := wantProblem(t, err, http.StatusUnprocessableEntity, "problems"); len(e.Errors) != 2 {
		t.Errorf("bad settings: %+v", e.Errors)
	}
	s.AlwaysHTTPS = false
	_, _, err = c.PutSettings(ctx, "example.com", *s, api.WriteOptions{IfRevision: rev})
	p.must(err)
	_, _, err = c.PutSettings(ctx, "example.com", *s, api.WriteOptions{IfRevision: rev})
	wantProblem(t, err, http.StatusPreconditionFailed, "precondition_failed")
	_, _, err = c.PutCachePolicy(ctx, "example.com", zone.CachePolicy{Disabled: true}, api.WriteOptions{})
	p.must(err)
	policy, _, err := c.CachePolicy(ctx, "example.com")
	p.must(err)
	if !policy.Disabled {
		t.Errorf("cache policy %+v", policy)
	}
}

func flowPublish(t *testing.T, p *plane) {
	ctx, op, c := t.Context(), p.client("operator"), p.client("viewer")
	st, err := c.Config(ctx)
	p.must(err)
	if st.Live != nil || !st.HasUnpublishedChanges || st.Workspace != "Acme" {
		t.Errorf("before the first apply: %+v", st)
	}
	plan, err := op.Plan(ctx, api.PlanOptions{})
	p.must(err)
	if plan.Changes == 0 || plan.ContentHash == "" || !strings.Contains(plan.Text, "+ example.com") || plan.Live != nil {
		t.Errorf("plan %+v", plan)
	}
	_, err = op.Apply(ctx, api.ApplyRequest{ExpectedContentHash: strings.Repeat("0", 64)})
	if e := wantProblem(t, err, http.StatusConflict, "plan_changed"); e.Plan == nil || e.Plan.ContentHash != plan.ContentHash || e.Plan.Text == "" {
		t.Errorf("plan_changed without the plan: %+v", e)
	}
	res, err := op.Apply(ctx, api.ApplyRequest{Message: "first", ExpectedContentHash: plan.ContentHash})
	p.must(err)
	if !res.Applied || res.Version == 0 || res.Generation != 1 || res.Zones != 1 || res.ContentHash != plan.ContentHash {
		t.Errorf("applied %+v", res)
	}
	res, err = op.Apply(ctx, api.ApplyRequest{})
	p.must(err)
	if res.Applied || res.Reason != "no_changes" {
		t.Errorf("nothing to do: %+v", res)
	}
	st, err = c.Config(ctx)
	p.must(err)
	if st.Live == nil || st.HasUnpublishedChanges || st.Live.Message != "first" || st.Live.ContentHash != plan.ContentHash {
		t.Errorf("after the apply: %+v", st)
	}
	// A disruptive change asks for consent.
	l, err := p.client("editor").Records(ctx, "example.com", api.RecordFilter{Name: "www"}, api.PageOptions{})
	p.must(err)
	p.must(p.client("editor").DeleteRecord(ctx, "example.com", l.Items[0].ID))
	_, err = op.Apply(ctx, api.ApplyRequest{})
	if e := wantProblem(t, err, http.StatusConflict, "disruptive"); e.Plan == nil || !e.Plan.Disruptive || !strings.Contains(e.Plan.Text, "!") {
		t.Errorf("disruptive without its plan: %+v", e)
	}
	_, err = op.Apply(ctx, api.ApplyRequest{AcceptDisruption: true})
	p.must(err)
	// What does not build names everything.
	_, _, err = p.client("editor").PutRuleset(ctx, "example.com", "redirect", api.Ruleset{Rules: []zone.Rule{
		{Expression: `in_list(ip.src, "nowhere")`, Action: zone.ActionRedirect, Parameters: zone.Parameters{Location: "/x"}},
	}}, api.WriteOptions{})
	p.must(err)
	_, err = op.Apply(ctx, api.ApplyRequest{})
	if e := wantProblem(t, err, http.StatusUnprocessableEntity, "problems"); len(e.Errors) == 0 || e.Errors[0].Zone != "example.com" || e.Errors[0].Object == "" || e.Errors[0].Code == "" {
		t.Errorf("problems %+v", e.Errors)
	}
	p.must(p.client("editor").DeleteRuleset(ctx, "example.com", "redirect", api.WriteOptions{}))

	h, err := op.History(ctx, api.PageOptions{Limit: 1})
	p.must(err)
	if len(h.Items) != 1 || h.Next == "" || h.Items[0].ActivatedAt.IsZero() || h.Items[0].Generations[0] != 2 || h.Items[0].CreatedBy != "operator@example.com" {
		t.Errorf("history %+v", h)
	}
	h, err = op.History(ctx, api.PageOptions{Cursor: h.Next})
	p.must(err)
	if len(h.Items) != 1 || !h.Items[0].ActivatedAt.IsZero() || h.Items[0].Message != "first" {
		t.Errorf("older history %+v", h)
	}
	_, err = op.Apply(ctx, api.ApplyRequest{Rollout: &api.RolloutOptions{Mode: "canary"}})
	wantProblem(t, err, http.StatusUnprocessableEntity, "problems")
	flowRollback(t, p)
}

// flowRollback starts with version 2 live and version 1 before it.
func flowRollback(t *testing.T, p *plane) {
	ctx, op := t.Context(), p.client("operator")
	trial, err := op.Rollback(ctx, api.RollbackRequest{DryRun: true})
	p.must(err)
	if trial.RolledBack || trial.Version != 1 || trial.Generation != 2 || trial.Plan == nil || trial.Plan.Text == "" {
		t.Errorf("dry run %+v", trial)
	}
	if trial.Plan.Disruptive {
		_, err = op.Rollback(ctx, api.RollbackRequest{})
		if e := wantProblem(t, err, http.StatusConflict, "disruptive"); e.Plan == nil {
			t.Error("a refusal without its plan")
		}
	}
	_, err = op.Rollback(ctx, api.RollbackRequest{ExpectedContentHash: strings.Repeat("0", 64), AcceptDisruption: true})
	if e := wantProblem(t, err, http.StatusConflict, "plan_changed"); e.Plan == nil {
		t.Error("a refusal without its plan")
	}
	_, err = op.Rollback(ctx, api.RollbackRequest{Version: 77})
	wantProblem(t, err, http.StatusConflict, "version_unknown")
	_, err = op.Rollback(ctx, api.RollbackRequest{Version: 2})
	wantProblem(t, err, http.StatusConflict, "version_live")

	body := `{"message":"back","accept_disruption":true}`
	first := p.request("operator", "POST", "/v1/config/rollback", body, "Idempotency-Key: back-1")
	again := p.request("operator", "POST", "/v1/config/rollback", body, "Idempotency-Key: back-1")
	if first.status != 200 || again.body != first.body || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("rollback %d %s\nagain %d %s", first.status, first.body, again.status, again.body)
	}
	if !strings.Contains(first.body, `"rolled_back":true`) || !strings.Contains(first.body, `"generation":3`) {
		t.Errorf("rollback %s", first.body)
	}
	other := p.request("operator", "POST", "/v1/config/rollback", `{"version":2}`, "Idempotency-Key: back-1")
	if other.status != 422 || !strings.Contains(other.body, "idempotency_key_reused") {
		t.Errorf("another rollback under the key: %d %s", other.status, other.body)
	}
	_, err = op.Rollback(ctx, api.RollbackRequest{})
	wantProblem(t, err, http.StatusConflict, "no_parent")

	// A zone that is broken stays as it is published, and the plan says so.
	_, _, err = p.client("editor").PutRuleset(ctx, "example.com", "redirect", api.Ruleset{Rules: []zone.Rule{{
		Expression: `in_list(ip.src, "nobody")`, Action: zone.ActionRedirect, Parameters: zone.Parameters{Location: "/x"},
	}}}, api.WriteOptions{})
	p.must(err)
	_, err = op.CreateZone(ctx, api.NewZone{Name: "healthy.example"})
	p.must(err)
	_, err = op.Plan(ctx, api.PlanOptions{})
	wantProblem(t, err, http.StatusUnprocessableEntity, "problems")
	held, err := op.Plan(ctx, api.PlanOptions{HoldBroken: true})
	p.must(err)
	if len(held.Held) != 1 || !held.Held[0].Published || !strings.Contains(held.Text, "held: example.com") {
		t.Errorf("plan %+v", held)
	}
	applied, err := op.Apply(ctx, api.ApplyRequest{HoldBroken: true, ExpectedContentHash: held.ContentHash})
	p.must(err)
	if !applied.Applied || applied.Zones != 2 {
		t.Errorf("apply %+v", applied)
	}
	p.must(p.client("editor").DeleteRuleset(ctx, "example.com", "redirect", api.WriteOptions{}))

	keys, err := op.Keys(ctx)
	p.must(err)
	if keys.KeyID == "" || keys.LiveKeyID != keys.KeyID || keys.Missing != len(keys.Nodes) || len(keys.Public) != 64 {
		t.Errorf("keys %+v", keys)
	}
	_, err = op.Recover(ctx, api.RecoverRequest{})
	wantProblem(t, err, http.StatusUnprocessableEntity, "problems")
	raised, err := op.Recover(ctx, api.RecoverRequest{BumpEpoch: true, Message: "restored"})
	p.must(err)
	if raised.EpochBefore != 1 || raised.Epoch != 2 || raised.Ahead != nil {
		t.Errorf("recover %+v", raised)
	}
	audit, err := op.Audit(ctx, api.AuditOptions{All: true, PageOptions: api.PageOptions{Limit: 1000}})
	p.must(err)
	seen := map[string]bool{}
	for _, e := range audit.Items {
		seen[e.Action+" "+e.Outcome] = true
	}
	for _, want := range []string{
		"config.apply ok", "config.rollback ok", "config.rollback plan_changed", "config.rollback version_unknown", "config.rollback version_live",
		"config.rollback no_parent", "config.recover ok",
	} {
		if !seen[want] {
			t.Errorf("the audit log lacks %q: %v", want, seen)
		}
	}
}

func flowDirectory(t *testing.T, p *plane) {
	ctx, op, admin := t.Context(), p.client("operator"), p.client("admin")
	me, err := admin.Whoami(ctx)
	p.must(err)
	if me.Email != "admin@example.com" || me.Operator || me.WorkspaceName != "Acme" || me.Role != "admin" {
		t.Errorf("whoami %+v", me)
	}
	w, err := op.CreateWorkspace(ctx, api.NewWorkspace{Name: "Third", Plan: "standard"})
	p.must(err)
	name := "Third Ltd"
	w, err = op.UpdateWorkspace(ctx, w.ID, api.WorkspacePatch{Name: &name})
	p.must(err)
	if w.Name != name || w.Plan != "standard" {
		t.Errorf("workspace %+v", w)
	}
	plan, err := op.PutPlan(ctx, zone.Plan{Name: "large", Ceilings: zone.Ceilings{Records: 50_000}})
	p.must(err)
	if plan.Ceilings.Records != 50_000 {
		t.Errorf("plan %+v", plan)
	}
	_, err = op.GetPlan(ctx, "none-such")
	wantProblem(t, err, http.StatusNotFound, "not_found")
	ms, err := op.Memberships(ctx, "viewer@example.com", api.PageOptions{})
	p.must(err)
	if len(ms.Items) != 1 || ms.Items[0].Role != "viewer" {
		t.Errorf("memberships %+v", ms)
	}

	tok, err := admin.CreateToken(ctx, api.NewToken{Name: "robot", ExpiresAt: time.Now().Add(time.Hour)})
	p.must(err)
	if !strings.HasPrefix(tok.Secret, "gdn_") || len(tok.Secret) != 47 || tok.ExpiresAt.IsZero() {
		t.Errorf("token %+v", tok)
	}
	robot, err := api.NewClient(p.url, tok.Secret, nil)
	p.must(err)
	_, err = robot.Whoami(ctx)
	p.must(err)
	list, err := admin.Tokens(ctx, api.TokenOptions{})
	p.must(err)
	if list.Items[0].ID != tok.ID {
		t.Errorf("tokens %+v", list)
	}
	_, err = admin.Tokens(ctx, api.TokenOptions{All: true})
	wantProblem(t, err, http.StatusNotFound, "not_found")
	p.must(admin.RevokeToken(ctx, tok.ID))
	_, err = robot.Whoami(ctx)
	wantProblem(t, err, http.StatusUnauthorized, "unauthenticated")
	_, err = admin.CreateToken(ctx, api.NewToken{Name: "late", ExpiresAt: time.Now().Add(-time.Hour)})
	wantProblem(t, err, http.StatusUnprocessableEntity, "problems")

	n, err := op.CreateNode(ctx, api.NewNode{Name: "edge-9"})
	p.must(err)
	nodes, err := op.Nodes(ctx, api.PageOptions{})
	p.must(err)
	if len(nodes.Items) != 3 || nodes.Items[0].VersionsBehind != nil {
		t.Errorf("nodes %+v", nodes)
	}
	p.must(op.DeleteNode(ctx, n.Name))
	wantProblem(t, op.DeleteNode(ctx, n.Name), http.StatusNotFound, "not_found")

	log, err := admin.Audit(ctx, api.AuditOptions{})
	p.must(err)
	for _, e := range log.Items {
		if e.Action == "" || e.Actor == "" || e.At.IsZero() || e.Outcome == "" {
			t.Errorf("audit entry %+v", e)
		}
	}
	if len(log.Items) == 0 || log.Items[0].From != "127.0.0.1" {
		t.Errorf("audit log %+v", log.Items)
	}
	all, err := op.Audit(ctx, api.AuditOptions{All: true, PageOptions: api.PageOptions{Limit: 1000}})
	p.must(err)
	if len(all.Items) <= len(log.Items) {
		t.Errorf("the whole log has %d entries, the workspace's %d", len(all.Items), len(log.Items))
	}
	_, err = admin.Audit(ctx, api.AuditOptions{All: true})
	wantProblem(t, err, http.StatusNotFound, "not_found")
}
