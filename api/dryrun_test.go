package api_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/zone"
)

// A dry run is refused for what the request itself would be, and changes nothing.
func TestApplyDryRun(t *testing.T) {
	p := newPlane(t)
	ctx, op := t.Context(), p.client("operator")
	first := p.publish("one")
	dry := func(r api.ApplyRequest) (*api.ApplyResult, error) {
		r.DryRun = true
		return op.Apply(ctx, r)
	}
	live := func() uint64 {
		st, err := op.Config(ctx)
		p.must(err)
		return st.Live.Generation
	}

	if res, err := dry(api.ApplyRequest{}); err != nil || res.Applied || res.Reason != "no_changes" {
		t.Errorf("without changes: %+v, %v", res, err)
	}
	if res, err := dry(api.ApplyRequest{Reseal: true}); err != nil || res.Applied || res.Reason != "dry_run" || res.Plan == nil {
		t.Errorf("sealing anew: %+v, %v", res, err)
	}
	_, err := op.AddRecord(ctx, "example.com", api.RecordEdit{Name: "@", Type: "TXT", Content: "two"})
	p.must(err)
	res, err := dry(api.ApplyRequest{})
	if err != nil || res.Applied || res.Reason != "dry_run" || res.Version != 0 || res.Plan.Changes != 1 || res.ContentHash == first.ContentHash {
		t.Errorf("a change: %+v, %v", res, err)
	}
	_, err = dry(api.ApplyRequest{ExpectedContentHash: first.ContentHash})
	wantProblem(t, err, http.StatusConflict, "plan_changed")

	// What is wrong with how it is to be published, and with the zones, together; so by the request itself.
	codes := func(err error) (found []string) {
		t.Helper()
		for _, e := range wantProblem(t, err, http.StatusUnprocessableEntity, "problems").Errors {
			found = append(found, e.Code)
		}
		return found
	}
	how := &api.RolloutOptions{ConfirmWindow: window(time.Second), Soak: window(time.Minute)}
	want := []string{"soak_without_coordinated", "window_without_coordinated", "window_too_short"}
	_, err = dry(api.ApplyRequest{Rollout: how})
	if got := codes(err); !slices.Equal(got, want) {
		t.Errorf("bad flags: %v", got)
	}
	_, _, err = p.client("editor").PutRuleset(ctx, "example.com", "custom", api.Ruleset{Rules: []zone.Rule{
		{Expression: `in_list(ip.src, "office")`, Action: zone.ActionBlock},
	}}, api.WriteOptions{})
	p.must(err)
	_, err = dry(api.ApplyRequest{Rollout: how})
	dried := codes(err)
	if len(dried) != 4 || !slices.Equal(dried[:3], want) {
		t.Errorf("bad flags and a bad zone: %v", dried)
	}
	_, err = op.Apply(ctx, api.ApplyRequest{Rollout: how})
	if got := codes(err); !slices.Equal(got, dried) {
		t.Errorf("the request itself: %v, its dry run: %v", got, dried)
	}
	p.must(p.client("editor").DeleteRuleset(ctx, "example.com", "custom", api.WriteOptions{}))

	// What is in the way.
	p.voter("node")
	ro := p.propose("three", api.RolloutOptions{})
	_, err = dry(api.ApplyRequest{})
	if e := wantProblem(t, err, http.StatusConflict, "rollout_open"); e.Rollout == nil || e.Rollout.ID != ro.ID {
		t.Errorf("refusal %+v", e)
	}
	_, err = op.Rollback(ctx, api.RollbackRequest{DryRun: true, Version: ro.Version})
	wantProblem(t, err, http.StatusConflict, "rollout_open")
	_, err = op.Rollback(ctx, api.RollbackRequest{DryRun: true, Version: ro.Version, Rollout: how})
	if got := codes(err); !slices.Equal(got, want) {
		t.Errorf("a rollback's bad flags: %v", got)
	}
	if got := live(); got != first.Generation {
		t.Errorf("generation %d is live, not %d", got, first.Generation)
	}
}
