package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// routeRow says who may use a route: public, node, operator, or the least role of a user. body is one that
// passes as JSON and changes nothing.
type routeRow struct {
	who   string
	body  string
	query string // of what answers 400 to it, where that changes nothing
}

// routeTable has a row for every route; TestAuthorization fails when the document knows one that it does not.
func routeTable() map[string]routeRow {
	rows := map[string]routeRow{
		"GET /openapi.json": {who: "public"},
		"GET /healthz":      {who: "public"},
		"GET /readyz":       {who: "public"},
		"GET /metrics":      {who: "public"},

		"GET /v1/whoami": {who: "user"},
		"GET /v1/config": {who: "viewer"},
		"GET /v1/audit":  {who: "admin"},

		"GET /v1/secrets/recipient": {who: "viewer"},

		"GET /v1/config/plan":      {who: "operator"},
		"POST /v1/config/apply":    {who: "operator", body: `{"rollout":{"mode":"none such"}}`},
		"POST /v1/config/rollback": {who: "operator", body: `{"version":999}`},
		"POST /v1/config/recover":  {who: "operator", body: `{"bump_epoch":false}`},
		"GET /v1/config/keys":      {who: "operator"},
		"GET /v1/config/history":   {who: "operator"},

		"GET /v1/zones":                        {who: "viewer"},
		"POST /v1/zones":                       {who: "editor", body: `{"name":""}`},
		"GET /v1/zones/{zone}":                 {who: "viewer"},
		"DELETE /v1/zones/{zone}":              {who: "editor"},
		"GET /v1/zones/{zone}/records":         {who: "viewer"},
		"POST /v1/zones/{zone}/records":        {who: "editor", body: `{"name":"","type":"","content":""}`},
		"PUT /v1/zones/{zone}/records/{id}":    {who: "editor", body: `{"name":"","type":"","content":""}`},
		"DELETE /v1/zones/{zone}/records/{id}": {who: "editor"},
		"POST /v1/zones/{zone}/import":         {who: "editor", body: "bad bad bad"},
		"GET /v1/zones/{zone}/export":          {who: "viewer"},
		"GET /v1/zones/{zone}/settings":        {who: "viewer"},
		"PUT /v1/zones/{zone}/settings":        {who: "editor", body: `{"tls_min_version":"0.9"}`},
		"PATCH /v1/zones/{zone}/settings":      {who: "editor", body: `{"set":{"no_such":"1"}}`},
		"GET /v1/zones/{zone}/cache-policy":    {who: "viewer"},
		"PUT /v1/zones/{zone}/cache-policy":    {who: "editor", body: `{"query_mode":"no such"}`},

		"GET /v1/zones/{zone}/pools/{name}/status": {who: "viewer"},
		"GET /v1/zones/{zone}/pool-status":         {who: "viewer"},

		"GET /v1/zones/{zone}/purges":      {who: "viewer"},
		"POST /v1/zones/{zone}/purges":     {who: "editor", body: `{"kind":"no such"}`},
		"GET /v1/zones/{zone}/purges/{id}": {who: "viewer"},
		"GET /v1/node/purges":              {who: "node"},

		"GET /v1/workspaces":                {who: "operator"},
		"POST /v1/workspaces":               {who: "operator", body: `{"name":""}`},
		"PATCH /v1/workspaces/{workspace}":  {who: "operator", body: `{"name":""}`},
		"GET /v1/plans":                     {who: "operator"},
		"GET /v1/plans/{name}":              {who: "operator"},
		"PUT /v1/plans/{name}":              {who: "operator", body: `{"name":"another","ceilings":{}}`},
		"GET /v1/users":                     {who: "operator"},
		"POST /v1/users":                    {who: "operator", body: `{"email":""}`},
		"GET /v1/users/{email}/memberships": {who: "operator"},
		"PUT /v1/users/{email}/memberships": {who: "operator", body: `{"workspace":"no such","role":"viewer"}`},
		"GET /v1/tokens":                    {who: "admin"},
		"POST /v1/tokens":                   {who: "admin", body: `{"name":""}`},
		"DELETE /v1/tokens/{id}":            {who: "admin"},
		"GET /v1/nodes":                     {who: "operator"},
		"POST /v1/nodes":                    {who: "operator", body: `{"name":""}`},
		"DELETE /v1/nodes/{node}":           {who: "operator"},
		"POST /v1/nodes/{node}/drain":       {who: "operator"},
		"POST /v1/nodes/{node}/undrain":     {who: "operator"},
		"GET /v1/rollouts":                  {who: "operator"},
		"GET /v1/rollouts/{id}":             {who: "operator"},
		"POST /v1/rollouts/{id}/abort":      {who: "operator", body: `{}`},
		"POST /v1/rollouts/{id}/revert":     {who: "operator", body: `{}`},
		"GET /v1/cluster/settings":          {who: "operator"},
		"PUT /v1/cluster/settings":          {who: "operator", body: `{"rollout":"none such"}`},
		"GET /v1/node/self":                 {who: "node"},
		"GET /v1/node/candidate":            {who: "node"},
		"GET /v1/node/rollout/view":         {who: "node", query: "?no=such"},
		"GET /v1/node/rollout/watch":        {who: "node", query: "?no=such"},
		"POST /v1/node/rollout/join":        {who: "node", body: `{}`},
		"POST /v1/node/rollout/ack":         {who: "node", body: `{}`},
		"POST /v1/node/rollout/nack":        {who: "node", body: `{}`},
		"POST /v1/node/rollout/converge":    {who: "node", body: `{}`},
		"POST /v1/node/rollout/withdraw":    {who: "node", body: `{}`},
		"POST /v1/node/rollout/revert":      {who: "node", body: `{}`},
		"GET /v1/node/config":               {who: "node"},
		"POST /v1/node/ack":                 {who: "node", body: `{"version":99}`},
	}
	for segment, r := range map[string]struct{ param, body string }{
		"rulesets":       {"phase", `{"rules":[{"expression":"","action":""}]}`},
		"lists":          {"name", `{"kind":"no such"}`},
		"pools":          {"name", `{"origins":[{"name":"","address":""}]}`},
		"load-balancers": {"host", `{"pools":[]}`},
		"tls-hosts":      {"host", `{"certificate":"","sealed_key":""}`},
		"functions":      {"name", `{"module":""}`},
	} {
		base := "/v1/zones/{zone}/" + segment
		rows["GET "+base] = routeRow{who: "viewer"}
		rows["GET "+base+"/{"+r.param+"}"] = routeRow{who: "viewer"}
		rows["PUT "+base+"/{"+r.param+"}"] = routeRow{who: "editor", body: r.body}
		rows["DELETE "+base+"/{"+r.param+"}"] = routeRow{who: "editor"}
	}
	return rows
}

// admitted are the principals, in order of what they may, that a row admits.
func admitted(who string) []string {
	users := []string{"viewer", "editor", "admin", "operator"}
	switch who {
	case "public":
		return append(users, "anonymous", "node")
	case "user":
		return users
	case "node":
		return []string{"node"}
	default:
		return users[slices.Index(users, who):]
	}
}

// document reads the routes of the OpenAPI document: METHOD path.
func (p *plane) document(as string) map[string]map[string]any {
	p.t.Helper()
	a := p.request(as, "GET", "/openapi.json", "")
	if a.status != http.StatusOK {
		p.t.Fatal(a.wire)
	}
	var doc struct {
		OpenAPI string
		Paths   map[string]map[string]map[string]any
	}
	p.must(json.Unmarshal([]byte(a.body), &doc))
	if !strings.HasPrefix(doc.OpenAPI, "3.1") {
		p.t.Fatalf("openapi %q", doc.OpenAPI)
	}
	routes := map[string]map[string]any{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			routes[strings.ToUpper(method)+" "+path] = op
		}
	}
	return routes
}

func TestAuthorization(t *testing.T) {
	p := newPlane(t)
	_, err := p.client("operator").CreateZone(t.Context(), apiNewZone("example.com"))
	p.must(err)
	all, table := p.document("operator"), routeTable()
	for r := range all {
		if _, ok := table[r]; !ok {
			t.Errorf("%s is in the document and not in the table: say who may use it", r)
		}
	}
	for r := range table {
		if _, ok := all[r]; !ok {
			t.Errorf("%s is in the table and not in the document", r)
		}
	}
	// Another workspace's zone is used for what would delete, so that who is admitted still deletes nothing.
	values := strings.NewReplacer("{zone}", "example.com", "{id}", "018f0000-0000-7000-8000-000000000000", "{phase}", "custom", "{host}", "none.example.com",
		"{workspace}", "none", "{email}", "none@example.com", "{node}", "none", "{name}", "none")
	for _, r := range slices.Sorted(maps.Keys(table)) {
		method, pattern, _ := strings.Cut(r, " ")
		target := values.Replace(pattern)
		if r == "DELETE /v1/zones/{zone}" {
			target = "/v1/zones/absent.example"
		}
		row := table[r]
		ok := admitted(row.who)
		for _, as := range []string{"anonymous", "viewer", "editor", "admin", "operator", "node"} {
			a := p.request(as, method, target+row.query, row.body)
			nothing := a.status == http.StatusNotFound && strings.Contains(a.body, "nothing at this path")
			got := "admitted"
			switch {
			case a.status == http.StatusUnauthorized:
				got = "unauthenticated"
			case nothing:
				got = "absent"
			case a.status == http.StatusForbidden:
				got = "forbidden"
			case a.status >= 500:
				got = fmt.Sprintf("failed: %s", a.body)
			}
			want := "admitted"
			switch {
			case slices.Contains(ok, as):
			case as == "anonymous":
				want = "unauthenticated"
			case as == "node" || row.who == "operator" || row.who == "node":
				want = "absent"
			default:
				want = "forbidden"
			}
			if got != want {
				t.Errorf("%s as %s: %s (%d %s), want %s", r, as, got, a.status, strings.TrimSpace(a.body), want)
			}
		}
	}
	if z, err := p.client("operator").Zone(t.Context(), "example.com"); err != nil || z.Revision != 1 && z.Records != 0 {
		t.Errorf("the zone was changed: %+v, %v", z, err)
	}
}

func TestDocument(t *testing.T) {
	p := newPlane(t)
	all := p.document("operator")
	table := routeTable()
	for _, as := range []string{"anonymous", "viewer", "admin", "node"} {
		doc := p.document(as)
		for r := range all {
			_, shown := doc[r]
			if want := table[r].who != "operator"; shown != want {
				t.Errorf("%s in the document for %s: %v, want %v", r, as, shown, want)
			}
		}
	}
	for r, op := range all {
		if op["summary"] == "" || op["operationId"] == "" {
			t.Errorf("%s has no summary or id", r)
		}
	}
	for r, status := range map[string]string{
		"POST /v1/config/apply": "202", "POST /v1/config/rollback": "202", "GET /v1/node/config": "204", "GET /v1/node/rollout/view": "200",
		"GET /v1/node/rollout/watch": "204",
	} {
		if responses, _ := all[r]["responses"].(map[string]any); responses[status] == nil {
			t.Errorf("%s does not say that it may answer %s", r, status)
		}
	}
	// What only operators read and write is not described to others by its schemas either.
	for _, schema := range []string{"NewWorkspace", "ApplyRequest", "RollbackRequest", "RecoverResult", "KeysReport", "RolloutOptions", "ClusterSettings", "EndRollout", "CreatedNode", "HistoryEntry"} {
		if a := p.request("anonymous", "GET", "/openapi.json", ""); strings.Contains(a.body, `"`+schema+`"`) {
			t.Errorf("the public document describes %s", schema)
		}
	}
	if a := p.request("anonymous", "GET", "/openapi.json", "", "Authorization: Bearer gdn_wrong"); a.status != http.StatusUnauthorized {
		t.Errorf("a token that does not stand: %d", a.status)
	}
}
