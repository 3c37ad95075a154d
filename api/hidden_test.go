package api_test

import (
	"net/http"
	"strings"
	"testing"
)

// What a caller may not know of is answered, to the byte, like what does not exist.
func TestHiddenRoutesAreAbsent(t *testing.T) {
	p := newPlane(t)
	methods := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"}
	targets := []string{
		"/v1/config/plan", "/v1/config/apply", "/v1/config/history", "/v1/config/rollback", "/v1/config/recover", "/v1/config/keys", "/v1/workspaces", "/v1/workspaces/Acme", "/v1/plans",
		"/v1/plans/standard", "/v1/users", "/v1/users/viewer@example.com/memberships", "/v1/nodes", "/v1/nodes/node",
		"/v1/node/config", "/v1/node/config?have=0", "/v1/node/ack", "/v1/node/purges", "/v1/node/purges?after=0",
		"/v1/rollouts", "/v1/rollouts/current", "/v1/rollouts/current?wait=1", "/v1/rollouts/current/abort", "/v1/rollouts/current/revert",
		"/v1/cluster/settings", "/v1/nodes/node/drain", "/v1/nodes/node/undrain", "/v1/node/self", "/v1/node/candidate?digest=x",
		"/v1/node/rollout", "/v1/node/rollout/", "/v1/node/rollout/view?member=x", "/v1/node/rollout/ack", "/v1/node/rollout/row", "/v1/node/rollout/no",
		"//v1/config/plan", "/v1//config/plan", "/v1/config/plan/", "/v1/config/plan//", "/v1/config/./plan", "/v1/zones/../config/plan",
		"/v1/config/pla%6e", "/v1/config%2Fplan", "/V1/config/plan", "/v1/config/plan?x=1", "/v1/config/plan?hold_broken=true",
		"/v1/no/such/path", "/", "/v1", "/v1/", "/zones", "/v1/zones/", "//v1/zones", "/v1/zones//records",
	}
	bodies := []string{"", "{}", `{"message":"x"}`, "not json", strings.Repeat("x", 5000)}
	for _, as := range []string{"viewer", "editor", "admin", "stranger"} {
		for _, method := range methods {
			for _, body := range bodies {
				want := p.request(as, method, "/v1/there/is/nothing", body)
				if want.status != http.StatusNotFound {
					t.Fatalf("%s %s: status %d", as, method, want.status)
				}
				for _, target := range targets {
					if got := p.request(as, method, target, body); got.wire != want.wire {
						t.Errorf("%s %s %s with %d bytes:\n%s\nwant\n%s", as, method, target, len(body), got.wire, want.wire)
					}
				}
				if as != "viewer" {
					break // bodies were tried
				}
			}
		}
	}
	// A node knows the node routes alone.
	want := p.request("node", "GET", "/v1/there/is/nothing", "")
	for _, target := range []string{
		"/v1/zones", "/v1/config", "/v1/whoami", "/v1/config/plan", "/v1/nodes", "/v1/node/ack",
		"/v1/rollouts/current", "/v1/node/rollout/row", "/v1/node/rollout/artefact", "/v1/node/rollout/ack", "/v1/node/rollout/", "/v1/node/rollout",
	} {
		if got := p.request("node", "GET", target, ""); got.wire != want.wire {
			t.Errorf("node GET %s:\n%s\nwant\n%s", target, got.wire, want.wire)
		}
	}
	// Known routes of one's own answer no other method either.
	want = p.request("viewer", "OPTIONS", "/v1/there/is/nothing", "")
	for _, target := range []string{"/v1/zones", "/v1/config", "*"} {
		if got := p.request("viewer", "OPTIONS", target, ""); got.wire != want.wire {
			t.Errorf("OPTIONS %s:\n%s\nwant\n%s", target, got.wire, want.wire)
		}
	}
	// 100-continue is not a way to tell.
	expect := "Expect: 100-continue"
	want = p.request("viewer", "POST", "/v1/there/is/nothing", "{}", expect)
	if got := p.request("viewer", "POST", "/v1/config/apply", "{}", expect); got.wire != want.wire {
		t.Errorf("Expect on apply:\n%s\nwant\n%s", got.wire, want.wire)
	}
}

// Without a token that stands, every path of the API is the same.
func TestWithoutToken(t *testing.T) {
	p := newPlane(t)
	valid := p.tokens["operator"]
	revoked := valid[:len(valid)-1] + string(valid[len(valid)-1]^1)
	for name, lines := range map[string][]string{
		"none":          nil,
		"unknown":       {"Authorization: Bearer " + revoked},
		"malformed":     {"Authorization: Bearer x"},
		"empty":         {"Authorization: Bearer "},
		"basic":         {"Authorization: Basic dTpw"},
		"no scheme":     {"Authorization: " + valid},
		"twice":         {"Authorization: Bearer " + valid, "Authorization: Bearer " + valid},
		"long":          {"Authorization: Bearer gdn_" + strings.Repeat("a", 4000)},
		"trailing":      {"Authorization: Bearer " + valid + "x"},
		"with a second": {"Authorization: Bearer " + valid + ", Bearer x"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, method := range []string{"GET", "POST", "OPTIONS"} {
				want := p.request("anonymous", method, "/v1/there/is/nothing", "", lines...)
				if want.status != http.StatusUnauthorized || want.header.Get("WWW-Authenticate") == "" {
					t.Fatalf("%s: %s", method, want.wire)
				}
				for _, target := range []string{
					"/v1/zones", "/v1/config/apply", "/v1/config/plan", "/v1/node/config?have=0", "/v1/node/config?bad", "/v1/node/ack", "//v1/zones", "/v1",
					"/v1/node/self", "/v1/node/rollout/view", "/v1/node/rollout/ack", "/v1/node/rollout/row", "/v1/rollouts/current",
				} {
					if got := p.request("anonymous", method, target, "", lines...); got.wire != want.wire {
						t.Errorf("%s %s:\n%s\nwant\n%s", method, target, got.wire, want.wire)
					}
				}
			}
		})
	}
}
