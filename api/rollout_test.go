package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/remote"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/zone"
)

// voter is a member of the cohort that does what a test tells it, over HTTP with the node's own token.
type voter struct {
	*remote.Client
	p    *plane
	node *api.NodeClient
	id   barrier.MemberID
	boot barrier.BootID
}

// voter puts a node into the cohort and joins as its process.
func (p *plane) voter(name string) *voter {
	p.t.Helper()
	n, err := p.client("operator").UndrainNode(p.t.Context(), name)
	p.must(err)
	if !n.Cohort {
		p.t.Fatalf("%s is not in the cohort: %+v", name, n)
	}
	c, err := remote.NewClient(p.url+"/v1/node/rollout", remote.ClientOptions{Authorize: remote.Bearer(p.tokens[name])})
	p.must(err)
	p.t.Cleanup(c.Close)
	v := &voter{Client: c, p: p, node: p.nodeClient(name), id: barrier.MemberID(p.nodes[name]), boot: barrier.BootID("boot-of-" + name)}
	v.join()
	return v
}

func (v *voter) join() {
	v.p.t.Helper()
	_, err := v.Join(v.p.t.Context(), v.id, v.boot, v.look().Registration.Incarnation)
	v.p.must(err)
}

func (v *voter) look() barrier.View {
	v.p.t.Helper()
	view, err := v.Look(v.p.t.Context(), v.id)
	v.p.must(err)
	return view
}

// coordinate decides until the test ends.
func (p *plane) coordinate() {
	p.t.Helper()
	c := barrier.NewCoordinator(barrier.CoordinatorOptions{Store: p.rollouts, Leases: p.rollouts, Lease: 30 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { c.Run(ctx) })
	p.t.Cleanup(func() {
		cancel()
		running.Wait()
	})
}

func window(d time.Duration) *api.Duration { w := api.Duration(d); return &w }

// propose edits a record and puts the change to the cohort.
func (p *plane) propose(value string, o api.RolloutOptions) *api.Rollout {
	p.t.Helper()
	ctx, op := p.t.Context(), p.client("operator")
	_, err := op.AddRecord(ctx, "example.com", api.RecordEdit{Name: "@", Type: "TXT", Content: value})
	p.must(err)
	o.Mode = "coordinated"
	res, err := op.Apply(ctx, api.ApplyRequest{Message: "try " + value, AcceptDisruption: true, Rollout: &o})
	p.must(err)
	if res.Applied || res.Reason != "rollout" || res.Rollout == nil || res.Version != res.Rollout.Version || res.Generation != res.Rollout.Generation {
		p.t.Fatalf("answer to a proposal: %+v", res)
	}
	return res.Rollout
}

// await follows a rollout until ok.
func (p *plane) await(id string, what string, ok func(*api.Rollout) bool) *api.Rollout {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 20*time.Second)
	defer cancel()
	seen := ""
	for {
		r, err := p.client("operator").AwaitRollout(ctx, id, seen, 20*time.Second)
		p.must(err)
		if ok(r) {
			return r
		}
		if !r.Open {
			p.t.Fatalf("waiting for %s: the rollout is %s: %s", what, r.State, r.Reason)
		}
		seen = r.Seen
	}
}

func in(state string) func(*api.Rollout) bool {
	return func(r *api.Rollout) bool { return r.State == state }
}

func member(r *api.Rollout, name string) api.RolloutMember {
	for _, m := range r.Members {
		if m.Name == name {
			return m
		}
	}
	return api.RolloutMember{}
}

func TestCoordinatedApply(t *testing.T) {
	p := newPlane(t)
	ctx, op := t.Context(), p.client("operator")
	_, err := op.Rollout(ctx, api.CurrentRollout)
	wantProblem(t, err, http.StatusNotFound, "no_rollout")
	first := p.publish("one")
	one := p.voter("node")
	self, err := one.node.Self(ctx)
	if want := (nodeproto.Self{ID: p.nodes["node"], Name: "node", Cohort: true}); err != nil || self != want {
		t.Errorf("self %+v, %v", self, err)
	}
	if self, err := p.nodeClient("node2").Self(ctx); err != nil || self.Cohort {
		t.Errorf("self of a node outside of the cohort: %+v, %v", self, err)
	}
	two := p.voter("node2")

	ro := p.propose("two", api.RolloutOptions{Margin: percent(250)})
	if ro.State != "proposed" || !ro.Open || ro.OnTrial || ro.EpochSize != 2 || ro.Version != first.Version+1 || ro.Generation != first.Generation+1 ||
		ro.Kind != "apply" || ro.ProposedBy != "operator@example.com" || ro.Message != "try two" || ro.Margin != 250 {
		t.Errorf("proposed: %+v", ro)
	}
	// Nothing else is published meanwhile, and the refusal names what is in the way.
	_, err = op.Apply(ctx, api.ApplyRequest{AcceptDisruption: true})
	e := wantProblem(t, err, http.StatusConflict, "rollout_open")
	if e.Rollout == nil || e.Rollout.ID != ro.ID || !e.Rollout.Open || !strings.Contains(e.Detail, ro.ID) {
		t.Errorf("refusal %+v", e)
	}
	_, err = op.Recover(ctx, api.RecoverRequest{BumpEpoch: true})
	wantProblem(t, err, http.StatusConflict, "rollout_open")
	_, err = op.RevertRollout(ctx, ro.ID, "no")
	if e := wantProblem(t, err, http.StatusConflict, "rollout_state"); e.Rollout == nil || e.Rollout.ID != ro.ID {
		t.Errorf("refusal %+v", e)
	}

	// The candidate travels without an activation, to members of the epoch alone.
	digest := string(one.look().Rollout.Digest)
	got, err := one.node.Candidate(ctx, digest)
	p.must(err)
	trusted, err := seal.Trust(p.key.Public())
	p.must(err)
	opened, err := seal.OpenCandidate(got.Sealed, trusted, nil)
	p.must(err)
	if opened.Snapshot().ContentHash() != ro.ContentHash || got.Margin != 250 || nodeproto.CandidateDigest(ro.ContentHash) != digest {
		t.Errorf("candidate of content %s, margin %d", opened.Snapshot().ContentHash(), got.Margin)
	}
	if _, err := one.node.Candidate(ctx, "content:"+first.ContentHash); !errors.Is(err, barrier.ErrNoArtefact) {
		t.Errorf("a candidate that is none: %v", err)
	}
	if a := p.request("node", "GET", "/v1/node/candidate", ""); a.status != http.StatusBadRequest {
		t.Errorf("without a digest: %d", a.status)
	}
	if a := p.request("node", "GET", "/v1/node/candidate?digest="+digest, ""); a.header.Get(seal.HeaderActivation) != "" || a.header.Get("x-guardyn-rollout-margin") != "250" {
		t.Errorf("headers %v", a.header)
	}

	// A vote is seen by who waits for it. A node votes for itself alone.
	p.must(one.Ack(ctx, one.look().Rollout.Ref, one.id, one.boot, "built"))
	voted := p.await(ro.ID, "a vote", func(r *api.Rollout) bool { return member(r, "node").Vote == "ack" })
	if len(voted.WaitingFor) != 1 || voted.WaitingFor[0] != "node2" || voted.Now.IsZero() || len(voted.Members) != 2 {
		t.Errorf("after one vote: %+v", voted)
	}
	if err := one.Ack(ctx, one.look().Rollout.Ref, two.id, two.boot, "built"); !errors.Is(err, remote.ErrForbidden) {
		t.Errorf("a vote for another: %v", err)
	}
	p.must(two.Ack(ctx, two.look().Rollout.Ref, two.id, two.boot, "built"))
	p.coordinate()
	done := p.await(ro.ID, "the commit", in("committed"))
	if done.Open || done.CommittedAt.IsZero() || len(done.WaitingFor) != 0 || member(done, "node").Serves {
		t.Errorf("committed: %+v", done)
	}
	if st, err := op.Config(ctx); err != nil || st.Live.Version != ro.Version || st.Live.Generation != ro.Generation {
		t.Errorf("live after the commit: %+v, %v", st, err)
	}

	// Who holds the payload gets the activation without it, and what it acknowledges stands in the ledger.
	poll := nodeproto.Poll{Have: first.Version, Generation: first.Generation, Epoch: 1, Held: opened.PayloadBLAKE3()}
	a, err := one.node.Poll(ctx, poll)
	if err != nil || !a.Held || a.Artefact == nil || len(a.Artefact.Payload) != 0 || a.Version != ro.Version {
		t.Fatalf("poll with a held payload: %+v, %v", a, err)
	}
	v, err := opened.Activate(a.Artefact.Activation)
	p.must(err)
	if act := v.Activation(); act.Rollout != ro.ID || act.Generation != ro.Generation {
		t.Errorf("activation %+v", act)
	}
	poll.Held = strings.Repeat("0", 64)
	if a, err := one.node.Poll(ctx, poll); err != nil || a.Held || a.Artefact == nil || len(a.Artefact.Payload) == 0 {
		t.Errorf("poll with another payload: %+v, %v", a, err)
	}
	p.must(one.node.Ack(ctx, nodeproto.Ack{
		Version: ro.Version, Generation: ro.Generation, Epoch: 1, ContentHash: ro.ContentHash, Boot: strings.Repeat("0a", 16),
		TrustedKeys: []seal.KeyID{p.key.ID()},
	}))
	if r, err := op.Rollout(ctx, api.CurrentRollout); err != nil || !member(r, "node").Serves || member(r, "node2").Serves {
		t.Errorf("after an acknowledgement: %+v, %v", r, err)
	}

	// A refusal ends it before anything was swapped; the name stands in the reason.
	second := p.propose("three", api.RolloutOptions{})
	p.must(two.Nack(ctx, two.look().Rollout.Ref, two.id, two.boot, "zone example.com: cannot compile"))
	r := p.await(second.ID, "the abort", in("aborted"))
	if !strings.Contains(r.Reason, "node2") || member(r, "node2").Vote != "nack" || member(r, "node2").Reason == "" {
		t.Errorf("aborted: %+v", r)
	}
	if again, err := op.AbortRollout(ctx, second.ID, ""); err != nil || again.State != "aborted" {
		t.Errorf("abort of what is aborted: %+v, %v", again, err)
	}
	_, err = op.AbortRollout(ctx, ro.ID, "late")
	wantProblem(t, err, http.StatusConflict, "rollout_state")
	_, err = op.AbortRollout(ctx, "none", "")
	wantProblem(t, err, http.StatusNotFound, "not_found")

	// The ledger, in pages.
	page, err := op.Rollouts(ctx, api.PageOptions{Limit: 1})
	if err != nil || len(page.Items) != 1 || page.Items[0].ID != second.ID || page.Next == "" || page.Items[0].Members != nil {
		t.Fatalf("ledger: %+v, %v", page, err)
	}
	page, err = op.Rollouts(ctx, api.PageOptions{Cursor: page.Next})
	if err != nil || len(page.Items) != 1 || page.Items[0].ID != ro.ID || page.Items[0].State != "committed" {
		t.Errorf("ledger's second page: %+v, %v", page, err)
	}
}

func percent(n zone.Percent) *zone.Percent { return &n }

// A repetition of a proposal gets the first answer, with the rollout as it stands.
func TestCoordinatedIdempotency(t *testing.T) {
	p := newPlane(t)
	p.publish("one")
	p.voter("node")
	op := p.client("operator")
	_, err := op.AddRecord(t.Context(), "example.com", api.RecordEdit{Name: "@", Type: "TXT", Content: "two"})
	p.must(err)
	body := `{"accept_disruption":true,"rollout":{"mode":"coordinated","deadline":"2m"}}`
	send := func(body string) (answer, api.ApplyResult) {
		t.Helper()
		a := p.request("operator", "POST", "/v1/config/apply", body, "Idempotency-Key: k1")
		var out api.ApplyResult
		_ = json.Unmarshal([]byte(a.body), &out)
		return a, out
	}
	a, first := send(body)
	if a.status != http.StatusAccepted || first.Rollout == nil || a.header.Get("Idempotent-Replayed") != "" {
		t.Fatalf("proposal: %s", a.wire)
	}
	if d := first.Rollout.Deadline.Sub(first.Rollout.ProposedAt); d != 2*time.Minute {
		t.Errorf("votes may take %s", d)
	}
	_, err = op.AbortRollout(t.Context(), api.CurrentRollout, "enough")
	p.must(err)
	a, again := send(body)
	if a.status != http.StatusAccepted || a.header.Get("Idempotent-Replayed") != "true" || again.Rollout == nil ||
		again.Rollout.ID != first.Rollout.ID || again.Rollout.State != "aborted" || again.Rollout.Reason != "enough" {
		t.Errorf("repetition: %s", a.wire)
	}
	if a, _ := send(strings.Replace(body, "2m", "3m", 1)); a.status != http.StatusUnprocessableEntity || !strings.Contains(a.body, "idempotency_key_reused") {
		t.Errorf("another request under the key: %s", a.wire)
	}
}

func TestTrial(t *testing.T) {
	p := newPlane(t)
	ctx, op := t.Context(), p.client("operator")
	first := p.publish("one")
	one := p.voter("node")
	p.coordinate()
	propose := func(value string) (*api.Rollout, *seal.Candidate) {
		t.Helper()
		ro := p.propose(value, api.RolloutOptions{ConfirmWindow: window(time.Minute), Soak: window(50 * time.Millisecond)})
		got, err := one.node.Candidate(ctx, string(one.look().Rollout.Digest))
		p.must(err)
		trusted, err := seal.Trust(p.key.Public())
		p.must(err)
		c, err := seal.OpenCandidate(got.Sealed, trusted, nil)
		p.must(err)
		p.must(one.Ack(ctx, one.look().Rollout.Ref, one.id, one.boot, ""))
		return p.await(ro.ID, "the trial", func(r *api.Rollout) bool { return r.OnTrial }), c
	}
	ro, c := propose("two")
	if ro.State != "committed" || !ro.Open || ro.ConfirmDeadline.IsZero() || time.Duration(ro.ConfirmWindow) != time.Minute {
		t.Errorf("on trial: %+v", ro)
	}
	if st, err := op.Config(ctx); err != nil || st.Live.Version != first.Version {
		t.Errorf("live during a trial: %+v, %v", st, err)
	}
	// The member alone is offered what is on trial, when it asks for it.
	have := nodeproto.Poll{Have: first.Version, Generation: first.Generation, Epoch: 1, Held: c.PayloadBLAKE3(), Trial: ro.ID}
	a, err := one.node.Poll(ctx, have)
	if err != nil || !a.Held || a.Artefact == nil {
		t.Fatalf("poll on trial: %+v, %v", a, err)
	}
	v, err := c.Activate(a.Artefact.Activation)
	p.must(err)
	if act := v.Activation(); act.Kind != seal.KindProvisional || act.Generation != ro.Generation {
		t.Errorf("activation on trial: %+v", act)
	}
	for as, q := range map[string]nodeproto.Poll{
		"node":  {Have: first.Version, Generation: first.Generation, Epoch: 1},
		"node2": have,
	} {
		if a, err := p.nodeClient(as).Poll(ctx, q); err != nil || a.Artefact != nil {
			t.Errorf("%s, which is not to try it: %+v, %v", as, a, err)
		}
	}
	for name, query := range map[string]string{"held": "&held=xyz", "short": "&held=" + strings.Repeat("0", 63), "trial": "&trial=a/b", "twice": "&trial=a&trial=a", "none": "&trial="} {
		if a := p.request("node", "GET", "/v1/node/config?have=0"+query, ""); a.status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	// Who drains, publishes or aborts is told what is in the way.
	_, err = op.DrainNode(ctx, "node")
	wantProblem(t, err, http.StatusConflict, "rollout_open")
	_, err = op.Rollback(ctx, api.RollbackRequest{Version: first.Version})
	wantProblem(t, err, http.StatusConflict, "rollout_open")
	_, err = op.AbortRollout(ctx, ro.ID, "")
	if e := wantProblem(t, err, http.StatusConflict, "rollout_state"); e.Rollout == nil || !e.Rollout.OnTrial {
		t.Errorf("abort of a trial: %+v", e)
	}
	// Evidence is shown with what was seen, and confirms.
	p.must(one.Converge(ctx, one.look().Rollout.Ref, one.id, one.boot, "soa 1/1"))
	seen := p.await(ro.ID, "evidence", func(r *api.Rollout) bool { return member(r, "node").Converged })
	if m := member(seen, "node"); m.Detail != "soa 1/1" || m.ConvergedSince.IsZero() {
		t.Errorf("evidence %+v", m)
	}
	p.await(ro.ID, "the confirmation", in("confirmed"))
	if st, err := op.Config(ctx); err != nil || st.Live.Version != ro.Version || st.Live.Generation != ro.Generation {
		t.Errorf("live after the confirmation: %+v, %v", st, err)
	}
	// The node's trial becomes what is live by a change of kind alone.
	a, err = one.node.Poll(ctx, nodeproto.Poll{Have: ro.Version, Generation: ro.Generation, Epoch: 1, Held: c.PayloadBLAKE3(), Trial: ro.ID})
	if err != nil || !a.Held || a.Artefact == nil {
		t.Fatalf("poll after the confirmation: %+v, %v", a, err)
	}
	if v, err := c.Activate(a.Artefact.Activation); err != nil || v.Activation().Kind != seal.KindConfirmed {
		t.Errorf("activation after the confirmation: %v", err)
	}

	// A trial that a person takes back.
	ro, _ = propose("three")
	r, err := op.RevertRollout(ctx, api.CurrentRollout, "the shop is slow")
	if err != nil || r.State != "reverted" || r.Open || r.Reason != "the shop is slow" || r.DecidedBy != "operator operator@example.com" {
		t.Errorf("reverted: %+v, %v", r, err)
	}
	st, err := op.Config(ctx)
	if err != nil || st.Live.Version != ro.Version-1 || st.Live.Generation != ro.Generation+1 {
		t.Errorf("live after the revert: %+v, %v", st, err)
	}
}

func TestClusterSettings(t *testing.T) {
	p := newPlane(t)
	ctx, op := t.Context(), p.client("operator")
	s, rev, err := op.ClusterSettings(ctx)
	want := api.ClusterSettings{Rollout: "direct", Deadline: api.Duration(5 * time.Minute), Soak: api.Duration(10 * time.Second), Margin: 100}
	if err != nil || *s != want || rev == 0 {
		t.Fatalf("settings %+v, revision %d, %v", s, rev, err)
	}
	want.Rollout, want.ConfirmWindow, want.Margin = "coordinated", api.Duration(90*time.Second), 250
	s, next, err := op.PutClusterSettings(ctx, want.Edit(), api.WriteOptions{IfRevision: rev})
	if err != nil || *s != want || next <= rev {
		t.Fatalf("put: %+v, revision %d, %v", s, next, err)
	}
	if a := p.request("operator", "GET", "/v1/cluster/settings", ""); strings.TrimSpace(a.body) !=
		`{"rollout":"coordinated","confirm_window":"1m30s","deadline":"5m0s","soak":"10s","margin":"2.50%"}` || a.header.Get("ETag") != fmt.Sprintf(`"%d"`, next) {
		t.Errorf("settings as they travel: %s", a.wire)
	}
	_, _, err = op.PutClusterSettings(ctx, want.Edit(), api.WriteOptions{IfRevision: rev})
	wantProblem(t, err, http.StatusPreconditionFailed, "precondition_failed")
	_, _, err = op.PutClusterSettings(ctx, want.Edit(), api.WriteOptions{IfAbsent: true})
	wantProblem(t, err, http.StatusPreconditionFailed, "precondition_failed")
	for name, row := range map[string]struct{ body, says string }{
		"all at once":        {`{"rollout":"canary","soak":"-1s","deadline":"1000h"}`, "rollout_invalid"},
		"window in direct":   {`{"rollout":"direct","confirm_window":"90s"}`, "window_without_coordinated"},
		"window under soaks": {`{"rollout":"coordinated","confirm_window":"15s"}`, "window_too_short"},
		"a number":           {`{"confirm_window":90}`, "body /confirm_window"},
		"no unit":            {`{"confirm_window":"90"}`, "write it as 90s"},
		"no sign":            {`{"margin":"2.5"}`, "body /margin"},
		"no deadline":        {`{"deadline":"0s"}`, "deadline is 0s, not from 100ms"},
		"no soak":            {`{"soak":"0s"}`, "soak is 0s, not from 1ms"},
		"no margin":          {`{"margin":"0.00%"}`, "margin is 0.00%, not from 0.01%"},
		"no way":             {`{"rollout":""}`, "rollout_invalid"},
		"unknown":            {`{"window":"90s"}`, "unknown_member"},
	} {
		if a := p.request("operator", "PUT", "/v1/cluster/settings", row.body); a.status != http.StatusUnprocessableEntity || !strings.Contains(a.body, row.says) {
			t.Errorf("%s: %d %s, want %q", name, a.status, a.body, row.says)
		}
	}
	if _, _, err := op.PutClusterSettings(ctx, api.ClusterSettingsEdit{}, api.WriteOptions{}); err != nil {
		t.Errorf("defaults, without a condition: %v", err)
	}
	// What a request says about it.
	p.publish("one")
	_, err = op.Apply(ctx, api.ApplyRequest{Rollout: &api.RolloutOptions{ConfirmWindow: window(time.Minute)}})
	if e := wantProblem(t, err, http.StatusUnprocessableEntity, "problems"); len(e.Errors) != 1 || e.Errors[0].Code != "window_without_coordinated" {
		t.Errorf("problems %+v", e.Errors)
	}
	_, err = op.Apply(ctx, api.ApplyRequest{Rollout: &api.RolloutOptions{Mode: "coordinated"}})
	if e := wantProblem(t, err, http.StatusUnprocessableEntity, "problems"); len(e.Errors) != 1 || e.Errors[0].Code != "cohort_empty" {
		t.Errorf("problems %+v", e.Errors)
	}
}

func TestCohortOfNodes(t *testing.T) {
	p := newPlane(t)
	ctx, op := t.Context(), p.client("operator")
	n, err := op.CreateNode(ctx, api.NewNode{Name: "node3", Cohort: true})
	if err != nil || !n.Cohort {
		t.Fatalf("node %+v, %v", n, err)
	}
	p.publish("one")
	ro := p.propose("two", api.RolloutOptions{})
	if m := ro.EpochSize; m != 1 {
		t.Errorf("%d members", m)
	}
	if n, err := op.DrainNode(ctx, "node3"); err != nil || n.Cohort {
		t.Errorf("drained: %+v, %v", n, err)
	}
	if r, err := op.Rollout(ctx, ro.ID); err != nil || r.State != "aborted" || !strings.Contains(r.Reason, "roster") {
		t.Errorf("after the roster changed: %+v, %v", r, err)
	}
	_, err = op.UndrainNode(ctx, "none")
	wantProblem(t, err, http.StatusNotFound, "not_found")
	p.must(op.DeleteNode(ctx, "node3"))
}

// A server that drains answers those who wait, and a handler without a rollout store knows no members' routes.
func TestRolloutWaits(t *testing.T) {
	p := newPlane(t)
	ctx, op := t.Context(), p.client("operator")
	p.publish("one")
	one := p.voter("node")
	ro := p.propose("two", api.RolloutOptions{})
	r, err := op.Rollout(ctx, ro.ID)
	p.must(err)
	if a := p.request("operator", "GET", "/v1/rollouts/current?wait=56", ""); a.status != http.StatusBadRequest {
		t.Errorf("a wait that is too long: %d", a.status)
	}
	ended := make(chan error, 1)
	go func() {
		got, err := op.AwaitRollout(ctx, ro.ID, r.Seen, 55*time.Second)
		if err == nil && got.Seen != r.Seen {
			err = fmt.Errorf("answered with another state: %+v", got)
		}
		ended <- err
	}()
	p.until("somebody waits", func() bool { return p.svc.Stats().LongPolls == 1 })
	// The answer to a watch without seen has the mark of what was seen.
	a := p.request("node", "GET", "/v1/node/rollout/watch?topic=head", "", "Barrier-Request: w1")
	var mark struct{ Seen string }
	p.must(json.Unmarshal([]byte(a.body), &mark))
	if a.header.Get("Barrier-Answer") != "w1" || mark.Seen == "" {
		t.Fatalf("watch: %s", a.wire)
	}
	watched := make(chan answer, 1)
	go func() { watched <- p.request("node", "GET", "/v1/node/rollout/watch?topic=head&seen="+mark.Seen, "") }()
	p.drain()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if a := <-watched; a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
		t.Errorf("watch of a server that drains: %s", a.wire)
	}
	// Votes are still taken.
	p.must(one.Ack(ctx, one.look().Rollout.Ref, one.id, one.boot, ""))

	bare, err := api.NewHandler(p.svc, api.Options{})
	p.must(err)
	bare.Close()
	want, got := serve(bare, p.tokens["node"], "POST", "/v1/there/is/nothing"), serve(bare, p.tokens["node"], "POST", "/v1/node/rollout/ack")
	if got != want || !strings.Contains(got, "404") {
		t.Errorf("without a rollout store: %s, want %s", got, want)
	}
}

// serve asks a handler without a network.
func serve(h http.Handler, token, method, target string) string {
	r := httptest.NewRequest(method, target, nil)
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return fmt.Sprintln(w.Code, w.Body)
}
