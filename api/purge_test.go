package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

const purgeBoot = "0123456789abcdef0123456789abcdef"

func TestPurges(t *testing.T) {
	p := newPlane(t)
	ctx, editor, op := t.Context(), p.client("editor"), p.client("operator")
	z, err := editor.CreateZone(ctx, api.NewZone{Name: "example.com"})
	p.must(err)
	a := p.request("editor", "POST", "/v1/zones/example.com/purges", `{"kind":"url","values":["https://example.com/b","HTTPS://example.com:443/a"]}`)
	if a.status != http.StatusCreated || strings.Contains(a.body, "sequence") || strings.Contains(a.body, "waiting") {
		t.Fatal(a.wire)
	}
	first, err := editor.Purge(ctx, z.ID, api.NewPurge{Kind: "all"})
	p.must(err)
	if first.Sequence != 0 || first.By != "editor@example.com" || first.Kind != "all" || first.Values == nil || first.At.IsZero() {
		t.Errorf("made: %+v", first)
	}
	seen, err := op.PurgeByID(ctx, "example.com", first.ID)
	p.must(err)
	if seen.Sequence != 2 {
		t.Errorf("an operator sees %+v", seen)
	}
	page, err := p.client("viewer").Purges(ctx, "example.com", api.PageOptions{Limit: 1})
	p.must(err)
	rest, err := p.client("viewer").Purges(ctx, "example.com", api.PageOptions{Limit: 1, Cursor: page.Next})
	p.must(err)
	if len(page.Items) != 1 || page.Items[0].ID != first.ID || len(rest.Items) != 1 ||
		!slices.Equal(rest.Items[0].Values, []string{"https://example.com/a", "https://example.com/b"}) {
		t.Errorf("listed: %+v, %+v", page, rest)
	}

	node := p.nodeClient("node")
	p.must(node.Ack(ctx, nodeproto.Ack{Boot: purgeBoot, Sequence: 1, Purged: &seal.PurgeMark{}}))
	if got, err := op.PurgeByID(ctx, "example.com", first.ID); err != nil || got.Nodes != 1 || got.Done != 0 || !slices.Equal(got.Waiting, []string{"node"}) {
		t.Errorf("before: %+v, %v", got, err)
	}
	p.must(node.Ack(ctx, nodeproto.Ack{Boot: purgeBoot, Sequence: 2, Purged: &seal.PurgeMark{Sequence: 2, ID: first.ID}}))
	if got, err := editor.PurgeByID(ctx, "example.com", first.ID); err != nil || got.Nodes != 1 || got.Done != 1 || got.Waiting != nil {
		t.Errorf("after: %+v, %v", got, err)
	}
	wantProblem(t, node.Ack(ctx, nodeproto.Ack{Boot: purgeBoot, Purged: &seal.PurgeMark{Sequence: 3}}), 422, "problems")

	_, err = editor.Purge(ctx, "example.com", api.NewPurge{Kind: "prefix", Values: []string{"example.org/", "https://example.com/"}})
	if e := wantProblem(t, err, 422, "problems"); len(e.Errors) != 2 || e.Errors[0].Zone != "example.com" || e.Errors[0].Object != "purge" {
		t.Errorf("problems: %+v", e.Errors)
	}
	for name, body := range map[string]string{"an unknown member": `{"kind":"all","zone":"x"}`, "a number": `{"kind":"tag","values":[1]}`} {
		if a := p.request("editor", "POST", "/v1/zones/example.com/purges", body); a.status != 422 {
			t.Errorf("%s: %s", name, a.wire)
		}
	}
	for range control.MaxZonePurges - 2 {
		_, err := editor.Purge(ctx, "example.com", api.NewPurge{Kind: "all"})
		p.must(err)
	}
	if a := p.request("editor", "POST", "/v1/zones/example.com/purges", `{"kind":"all"}`); a.status != 429 || a.header.Get("Retry-After") == "" || !strings.Contains(a.body, "purge_rate") {
		t.Errorf("too many: %s", a.wire)
	}
}

// What a node asks and is told, in octets.
func TestNodePurges(t *testing.T) {
	p := newPlane(t)
	ctx := t.Context()
	res := p.publish("one")
	poll := func(lines ...string) answer {
		t.Helper()
		return p.request("node", "GET", fmt.Sprintf("/v1/node/config?have=%d&generation=%d&epoch=1", res.Version, res.Generation), "", lines...)
	}
	const header = "x-guardyn-purges"
	if a := poll(); a.status != 204 || a.header.Values(header) != nil {
		t.Errorf("a node that does not ask: %s", a.wire)
	}
	if a := poll(header + ": none"); a.status != 204 || a.header.Get(header) != "0" {
		t.Errorf("an empty log: %s", a.wire)
	}
	made, err := p.client("operator").Purge(ctx, "example.com", api.NewPurge{Kind: "tag", Values: []string{"a"}})
	p.must(err)
	end := "1:" + made.ID
	if a := poll(header + ": " + end); a.status != 204 || a.header.Get(header) != end {
		t.Errorf("at the end: %s", a.wire)
	}
	if a := p.request("node", "GET", "/v1/node/config?have=0", "", header+": 0"); a.status != 200 || a.header.Get(header) != end {
		t.Errorf("with an artefact: %s", a.wire)
	}
	for _, bad := range [][]string{{header + ": 1"}, {header + ": "}, {header + ": 0", header + ": 0"}, {header + ": 1:" + made.ID + ",0"}} {
		if a := poll(bad...); a.status != 400 || !strings.Contains(a.body, "bad_header") {
			t.Errorf("%q: %s", bad, a.wire)
		}
	}
	trusted, err := seal.Trust(p.key.Public())
	p.must(err)
	if a := p.request("node", "GET", "/v1/node/purges?after=0", ""); a.status != 200 || a.header.Get("Content-Type") != "text/plain; charset=us-ascii" || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("the statement: %s", a.wire)
	}
	for _, bad := range []string{"?after=", "?after=1", "?after=0&after=0", "?x=1"} {
		if a := p.request("node", "GET", "/v1/node/purges"+bad, ""); a.status != 400 {
			t.Errorf("%s: %s", bad, a.wire)
		}
	}
	client := p.nodeClient("node2")
	for _, after := range []*seal.PurgeMark{nil, {}, {Sequence: 1, ID: made.ID}, {Sequence: 4, ID: made.ID}} {
		text, err := client.Purges(ctx, after)
		p.must(err)
		st, err := seal.VerifyPurges(text, trusted, after)
		p.must(err)
		if st.To.String() != end {
			t.Errorf("after %v: %+v", after, st)
		}
	}
	answer, err := client.Poll(ctx, nodeproto.Poll{Have: res.Version, Generation: res.Generation, Epoch: 1, Purged: nodeproto.NoPurges, Wait: nodeproto.MaxWait})
	if err != nil || answer.Artefact != nil || answer.Purges != end {
		t.Errorf("a poll that would wait: %+v, %v", answer, err)
	}
}

// A control plane from before purges knows neither the header nor the path; what is no statement is the node's to refuse, and not
// read without end.
func TestNodePurgesElsewhere(t *testing.T) {
	old := true
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/node/config":
			w.WriteHeader(http.StatusNoContent)
		case old:
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"type":"about:blank","title":"Not Found","status":404,"code":"not_found"}`)
		default:
			part := strings.Repeat("a", 1<<20)
			for range 64 {
				if _, err := fmt.Fprint(w, part); err != nil {
					return
				}
			}
		}
	}))
	defer srv.Close()
	c, err := api.NewNodeClient(srv.URL, "gdn_x", nil)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := c.Poll(t.Context(), nodeproto.Poll{Purged: "0"}); err != nil || a.Purges != "" {
		t.Errorf("%+v, %v", a, err)
	}
	_, err = c.Purges(t.Context(), nil)
	wantProblem(t, err, http.StatusNotFound, "not_found")
	old = false
	if s, err := c.Purges(t.Context(), nil); err != nil || len(s) != seal.MaxPurgeStatement+1 {
		t.Errorf("%d bytes, %v", len(s), err)
	}
}
