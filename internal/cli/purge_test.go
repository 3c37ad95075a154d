package cli

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/guardyn-edge/guardyn/api"
)

func TestWaitForPurge(t *testing.T) {
	for _, tt := range []struct {
		name   string
		states []api.Purge // as the control plane tells them, the last one for ever
		says   string      // at the end
		fails  string
	}{
		{"at once", []api.Purge{{Nodes: 2, Done: 2}}, "✓ done by 2 nodes\n", ""},
		{"one is late", []api.Purge{{Nodes: 2, Done: 1, Waiting: []string{"fra"}}, {Nodes: 2, Done: 2}}, "✓ done by 2 nodes\n", ""},
		{"one is silent", []api.Purge{{Nodes: 1, Done: 1, Silent: 1}}, "✓ done by 1 node; not heard for a minute: 1\n", ""},
		{"all are silent", []api.Purge{{Silent: 3}}, "✓ done by 0 nodes; not heard for a minute: 3\n", ""},
		{"nobody caches", []api.Purge{{}}, "✓ no node caches anything\n", ""},
		{"one does not come", []api.Purge{{Nodes: 3, Done: 1, Waiting: []string{"fra", "\x1b[2J"}}}, "", `2 of 3 nodes have not done it: fra, \x1b[2J`},
		{"nor is it told which", []api.Purge{{Nodes: 1}}, "", "1 of 1 node have not done it\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				p := tt.states[min(asked, len(tt.states)-1)]
				asked++
				p.ID, p.Kind, p.Values = "p1", "all", []string{}
				w.Header().Set("Content-Type", "application/json")
				if r.Method == http.MethodPost {
					w.WriteHeader(http.StatusCreated)
				}
				_ = json.MarshalWrite(w, p)
			}))
			defer server.Close()
			var out, errs bytes.Buffer
			code := Run(t.Context(), []string{"purge", "example.com", "--all", "--wait", "--timeout", "600ms"}, Env{
				Stdout: &out, Stderr: &errs, Environ: []string{"GUARDYN_API_URL=" + server.URL, "GUARDYN_TOKEN=t"},
			})
			if code != 0 != (tt.fails != "") || !strings.HasSuffix(errs.String(), tt.says) || !strings.Contains(errs.String(), tt.fails) {
				t.Errorf("code %d, said %q, want %q %q", code, &errs, tt.says, tt.fails)
			}
			if out.String() != "✓ purged everything of example.com\n" {
				t.Errorf("printed %q", &out)
			}
		})
	}
}

func TestPurgeSubject(t *testing.T) {
	for want, p := range map[string]api.Purge{
		"everything": {Kind: "all"}, "URL https://a.example/": {Kind: "url", Values: []string{"https://a.example/"}},
		"2 URLs": {Kind: "url", Values: make([]string, 2)}, "prefix a/": {Kind: "prefix", Values: []string{"a/"}},
		"3 prefixes": {Kind: "prefix", Values: make([]string, 3)}, "tag x": {Kind: "tag", Values: []string{"x"}}, "2 tags": {Kind: "tag", Values: make([]string, 2)},
	} {
		if got := purgeSubject(&p); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	p := api.Purge{Nodes: 9, Done: 4, Waiting: []string{"a", "b", "c", "d", "e"}}
	if got := purgeLine(&p, 3*time.Second); got != "4 of 9 nodes  3s  waiting for a, b, c and 2 more" {
		t.Errorf("line of progress %q", got)
	}
}
