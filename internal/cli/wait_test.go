package cli

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
)

// Who is waited for, and what is told of the others.
func TestWaitForNodes(t *testing.T) {
	node := func(name string, generation uint64, cohort, seen bool) api.Node {
		n := api.Node{ID: "id-" + name, Name: name, Generation: generation, Cohort: cohort}
		if seen {
			n.LastSeen = proposedAt
		}
		return n
	}
	refuses := node("e", 6, false, true)
	refuses.LastError = &nodeproto.AckError{Code: "x", Version: 3, Message: "no"}
	members := &api.Rollout{ID: "r1", Members: []api.RolloutMember{{ID: "id-a"}, {ID: "id-b"}}}
	for _, tt := range []struct {
		name    string
		rollout *api.Rollout
		nodes   []api.Node
		code    string // "": success
		says    string
	}{
		{"members serve it, others are away or refuse it", members, []api.Node{node("a", 7, true, true), node("b", 7, true, true), node("c", 6, false, true), node("d", 0, false, false), refuses}, "", "✓ 2 nodes on version 3\n  not waited for, and not on it yet: c, d, e\n"},
		{"a member does not serve it", members, []api.Node{node("a", 7, true, true), node("b", 6, true, true)}, "nodes_behind", ""},
		{"direct, one was never heard", nil, []api.Node{node("a", 7, false, true), node("d", 0, true, false)}, "", "✓ 1 node on version 3\n  not waited for, and not on it yet: d\n"},
		{"direct, one was heard", nil, []api.Node{node("a", 7, false, true), node("c", 6, false, true)}, "nodes_behind", ""},
		{"direct, one refuses it", nil, []api.Node{node("a", 7, false, true), refuses}, "node_refused", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_ = json.MarshalWrite(w, map[string]any{"items": tt.nodes})
			}))
			defer server.Close()
			c, err := api.NewClient(server.URL, "t", nil)
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			a := &app{Env: Env{Stdout: &out, Stderr: &out}}
			err = a.waitForNodes(t.Context(), c, published{3, 7}, tt.rollout, 50*time.Millisecond)
			var served *servedError
			if tt.code == "" && err != nil || tt.code != "" && (!errors.As(err, &served) || served.code != tt.code || served.rollout != tt.rollout) {
				t.Errorf("ended with %v, want code %q", err, tt.code)
			}
			if tt.says != "" && !strings.HasSuffix(out.String(), tt.says) {
				t.Errorf("said %q, want %q", &out, tt.says)
			}
		})
	}
	// A node outside of the cohort that is silent for long is not waited for.
	who, c, d := patience{heard: map[string]time.Time{}}, node("c", 6, false, true), node("d", 6, true, true)
	if !who.waits(&c, 0) || !who.waits(&c, quietAfter-1) || who.waits(&c, quietAfter) || !who.waits(&d, 0) || !who.waits(&d, quietAfter) {
		t.Error("patience with those that are silent")
	}
	c.LastSeen = c.LastSeen.Add(time.Second)
	if !who.waits(&c, quietAfter) {
		t.Error("one that was heard is not waited for")
	}
}

func TestWaitLine(t *testing.T) {
	for _, tt := range []struct {
		name   string
		all    int
		behind []string
		want   string
	}{
		{"none yet", 2, []string{"a", "b"}, "v7  [                    ] 0 of 2 nodes  3s  waiting for a, b"},
		{"half", 4, []string{"a", "b"}, "v7  [==========          ] 2 of 4 nodes  3s  waiting for a, b"},
		{"many", 10, []string{"a", "b", "c", "d", "e"}, "v7  [==========          ] 5 of 10 nodes  3s  waiting for a, b, c and 2 more"},
		{"a name that acts on terminals", 1, []string{"a\x1b[2J"}, `v7  [                    ] 0 of 1 node  3s  waiting for a\x1b[2J`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := waitLine(tt.all, tt.behind, 7, 3500e6); got != tt.want {
				t.Errorf("%q\nwant\n%q", got, tt.want)
			}
		})
	}
}
