package control_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

func TestApplyHoldsBrokenZones(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.published(t)
		served := w.liveRow(t).ContentHash
		// A CNAME beside other data, in a zone that is served and in one that never was.
		w.record(t, w.editor, "example.com", "www", "CNAME", "other.")
		w.zone(t, w.editor, "fresh.example")
		w.record(t, w.editor, "fresh.example", "@", "CNAME", "other.")
		if _, err := w.svc.Plan(ctx, w.operator); len(problems(t, "plan", err)) != 2 {
			t.Fatalf("plan: %v", err)
		}
		problems(t, "apply", func() error { _, err := w.svc.Apply(ctx, w.operator, control.ApplyRequest{}); return err }())

		report, err := w.svc.PlanHolding(ctx, w.operator)
		if err != nil {
			t.Fatal(err)
		}
		if p := report.Plan; len(p.Zones) != 0 || p.ContentHash != served || len(p.Held) != 2 || !p.Held[0].Published || p.Held[1].Published {
			t.Fatalf("plan: %+v", p)
		}
		if res := w.apply(t, control.ApplyRequest{HoldBroken: true}); res.Applied || len(res.Plan.Held) != 2 {
			t.Errorf("apply with everything held: %+v", res)
		}
		// The healthy go.
		w.zone(t, w.stranger, "healthy.example")
		w.record(t, w.stranger, "healthy.example", "@", "TXT", `"x"`)
		if report, err = w.svc.PlanHolding(ctx, w.operator); err != nil {
			t.Fatal(err)
		}
		text := report.Plan.Text(true)
		for _, want := range []string{"  + healthy.example\n", "held: example.com stays as it is published\n", "held: fresh.example was never published and is left out\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("the plan lacks %q:\n%s", want, text)
			}
		}
		res := w.apply(t, control.ApplyRequest{HoldBroken: true, ExpectedContentHash: report.Plan.ContentHash})
		if !res.Applied || res.Zones != 2 {
			t.Errorf("apply: %+v", res)
		}
		if a := w.audited(t, "config.apply")[0]; !strings.Contains(a.Detail, `"held":"example.com fresh.example"`) {
			t.Errorf("audited %+v", a)
		}
		// Who owns the held zone is told that it is not live.
		if st, err := w.svc.ConfigStatus(ctx, w.viewer); err != nil || !st.HasUnpublishedChanges {
			t.Errorf("status: %+v, %v", st, err)
		}
		_, err = w.svc.PlanHolding(ctx, w.editor)
		wantError(t, "an editor", err, control.ErrNoRoute)
	})
}

// ahead is an activation of key that is newer than what w has.
func (w *world) ahead(t testing.TB, key seal.SigningKey, epoch, generation, version uint64) seal.SignedActivation {
	t.Helper()
	platform, err := w.store.Platform(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := w.store.Sealed(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	snap, err := seal.OpenSealed(sealed, trust(t, w.key))
	if err != nil {
		t.Fatal(err)
	}
	meta := snap.Meta()
	meta.Version = version
	if sealed, err = seal.Seal(key, snap.WithMeta(meta)); err != nil {
		t.Fatal(err)
	}
	signed, err := seal.Activate(key, sealed, seal.Activation{
		Platform: platform.ID, Epoch: epoch, Generation: generation, Kind: seal.KindApply, IssuedAt: w.clock.now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// listedAhead holds how the one node is listed.
func (w *world) listedAhead(t *testing.T, svc *control.Service, want *control.NodeAhead) {
	t.Helper()
	nodes, err := svc.ListNodes(t.Context(), w.operator)
	if err != nil || len(nodes) != 1 {
		t.Fatalf("nodes: %+v, %v", nodes, err)
	}
	if got := nodes[0].Ahead; (got == nil) != (want == nil) || got != nil && *got != *want {
		t.Errorf("the node is listed as ahead with %+v, want %+v", got, want)
	}
}

// The database was restored from an older backup: a node knows more than it.
func TestRecovery(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.versions(t, 2)
		n := w.node(t, "fra1")
		shows := func(svc *control.Service, signed seal.SignedActivation) error {
			return svc.Ack(ctx, n, nodeproto.Ack{
				Version: 9, Generation: 40, Epoch: 1, ContentHash: strings.Repeat("a", 64), Boot: boot,
				TrustedKeys: []seal.KeyID{w.key.ID()}, Activation: signed,
			})
		}
		thief, err := seal.GenerateSigningKey()
		if err != nil {
			t.Fatal(err)
		}
		for name, signed := range map[string]seal.SignedActivation{
			"none": "", "rubbish": "YQ.00", "another key's": w.ahead(t, thief, 1, 40, 9), "an old one": w.ahead(t, w.key, 1, 2, 9),
		} {
			wantError(t, name, shows(w.svc, signed), control.ErrNodeAhead)
			if res := w.apply(t, control.ApplyRequest{Reseal: true}); !res.Applied {
				t.Fatalf("%s stopped the signing", name)
			}
			w.listedAhead(t, w.svc, &control.NodeAhead{Epoch: 1, Generation: 40})
		}
		current := w.liveRow(t)
		serves := nodeproto.Ack{
			Version: current.Version, Generation: current.Generations[0], Epoch: 1, ContentHash: current.ContentHash, Boot: boot,
			TrustedKeys: []seal.KeyID{w.key.ID()},
		}
		if err := w.svc.Ack(ctx, n, serves); err != nil {
			t.Fatal(err)
		}
		w.listedAhead(t, w.svc, nil)
		problems(t, "too long", shows(w.svc, seal.SignedActivation(strings.Repeat("a", 5000))))

		live := w.liveRow(t)
		proof := w.ahead(t, w.key, 1, 40, 90)
		for range 3 {
			wantError(t, "the proof", shows(w.svc, proof), control.ErrNodeAhead)
		}
		// It holds in every process, and in those that come later.
		restarted := w.service(t, w.open(t), nil)
		for _, svc := range []*control.Service{w.svc, restarted} {
			w.listedAhead(t, svc, &control.NodeAhead{Epoch: 1, Generation: 40, Proven: true})
			var ahead *control.AheadNodeError
			_, err := svc.Apply(ctx, w.operator, control.ApplyRequest{Reseal: true})
			if !errors.As(err, &ahead) || ahead.Ahead.Node != "fra1" || ahead.Ahead.Generation != 40 || ahead.Ahead.Version != 90 {
				t.Errorf("apply: %v", err)
			}
			_, err = svc.Rollback(ctx, w.operator, control.RollbackRequest{Version: 1, AcceptDisruption: true})
			if !errors.As(err, &ahead) {
				t.Errorf("rollback: %v", err)
			}
			wantError(t, "rollback", err, control.ErrNodeAhead)
			if report, err := svc.Plan(ctx, w.operator); err != nil || report.Ahead == nil || report.Ahead.Generation != 40 {
				t.Errorf("plan: %+v, %v", report, err)
			}
		}
		if got := w.audited(t, "config.signing_stopped"); len(got) != 1 || got[0].Actor != "node fra1" {
			t.Errorf("audited: %+v", got)
		}
		if got := w.audited(t, "config.apply")[0]; got.Outcome != "ahead_node" {
			t.Errorf("the refusal is audited as %+v", got)
		}
		if row := w.liveRow(t); row.Version != live.Version {
			t.Errorf("live moved to %+v", row)
		}

		problems(t, "unspecified", func() error { _, err := restarted.Recover(ctx, w.operator, control.RecoverRequest{}); return err }())
		_, err = restarted.Recover(ctx, w.stranger, control.RecoverRequest{BumpEpoch: true})
		wantError(t, "no operator", err, control.ErrNoRoute)
		res, err := restarted.Recover(ctx, w.operator, control.RecoverRequest{BumpEpoch: true, Message: "restored"})
		if err != nil || res.EpochBefore != 1 || res.Epoch != 2 || res.Ahead == nil || res.Ahead.Node != "fra1" {
			t.Fatalf("recovery: %+v, %v", res, err)
		}
		if got := w.audited(t, "config.recover"); len(got) != 1 || got[0].Target != "epoch 2" || !strings.Contains(got[0].Detail, `"node":"fra1"`) {
			t.Errorf("audited: %+v", got)
		}
		// The node shows it still, until it gets what is newer; that stops nothing any more. Nothing else
		// changed, and it is published all the same.
		_ = shows(w.svc, proof)
		w.listedAhead(t, w.svc, nil)
		got := w.apply(t, control.ApplyRequest{})
		if !got.Applied || got.Version != 91 || got.Generation != live.Generations[0]+1 {
			t.Errorf("apply: %+v", got)
		}
		act := w.opens(t, trust(t, w.key)).Activation()
		if act.Epoch != 2 {
			t.Errorf("activation %+v", act)
		}
		marks := seal.Marks{w.key.ID(): seal.Mark{Epoch: 1, Generation: 40, ContentHash: strings.Repeat("a", 64), Kind: seal.KindApply}}
		if install, err := marks.Admit(act, trust(t, w.key)); !install || err != nil {
			t.Errorf("the node refuses it: %v", err)
		}
		answer, err := w.svc.Poll(ctx, n, nodeproto.Poll{Have: 90, Generation: 40, Epoch: 1})
		if err != nil || answer.Artefact == nil {
			t.Errorf("the node's poll: %+v, %v", answer, err)
		}
		if again := w.apply(t, control.ApplyRequest{}); again.Applied {
			t.Errorf("a second apply: %+v", again)
		}
		_ = shows(w.svc, "")
		nodes, err := w.svc.ListNodes(ctx, w.operator)
		if err != nil || nodes[0].GenerationsBehind == nil || *nodes[0].GenerationsBehind == 0 {
			t.Errorf("a node of the epoch before: %+v, %v", nodes, err)
		}
	})
}

func TestRepeatedRequestGetsTheFirstAnswer(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.versions(t, 2)
		other := w.service(t, w.open(t), nil)
		id := w.onlyRecord(t)
		w.address(t, id, 50)
		r := control.ApplyRequest{Message: "m", AcceptDisruption: true, IdempotencyKey: "deploy-1"}
		first := w.apply(t, r)
		w.address(t, id, 51) // what a repetition must not publish
		for name, svc := range map[string]*control.Service{"the same process": w.svc, "another": other} {
			again, err := svc.Apply(ctx, w.operator, r)
			if err != nil || !again.Replayed || again.Version != first.Version || again.Generation != first.Generation ||
				again.Plan.Text(true) != first.Plan.Text(true) {
				t.Errorf("%s: %+v, %v, want %+v", name, again, err, first)
			}
		}
		changed := r
		changed.Message = "n"
		_, err := other.Apply(ctx, w.operator, changed)
		wantError(t, "another body", err, control.ErrKeyReused)
		_, err = other.Rollback(ctx, w.operator, control.RollbackRequest{IdempotencyKey: r.IdempotencyKey})
		wantError(t, "another operation", err, control.ErrKeyReused)
		if row := w.liveRow(t); row.Version != first.Version {
			t.Fatalf("live is %+v", row)
		}

		back := control.RollbackRequest{AcceptDisruption: true, IdempotencyKey: "back-1"}
		one := w.rollback(t, back)
		two, err := other.Rollback(ctx, w.operator, back)
		if err != nil || !two.Replayed || two.Version != one.Version || two.Generation != one.Generation {
			t.Errorf("rollback: %+v, then %+v, %v", one, two, err)
		}
		// An answer that nothing was to do is an answer too; a refusal is not.
		idle := control.ApplyRequest{IdempotencyKey: "idle", AcceptDisruption: true}
		w.apply(t, control.ApplyRequest{AcceptDisruption: true})
		w.apply(t, idle)
		w.address(t, id, 52)
		if res := w.apply(t, idle); res.Applied || !res.Replayed || res.Reason != control.ReasonNoChanges {
			t.Errorf("nothing to do, repeated: %+v", res)
		}
		shy := control.ApplyRequest{IdempotencyKey: "shy"}
		var disruptive *control.DisruptiveError
		for range 2 {
			if _, err := w.svc.Apply(ctx, w.operator, shy); !errors.As(err, &disruptive) {
				t.Errorf("refused: %v", err)
			}
		}
		// A day later the key is new.
		w.clock.advance(control.ReplayAge)
		if res := w.apply(t, r); !res.Applied || res.Replayed {
			t.Errorf("a day later: %+v", res)
		}
	})
}

// One request, sent many times at once to several processes, is done once, and all get its one answer.
func TestOneRequestSentManyTimesAtOnce(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		w.versions(t, 1)
		services := []*control.Service{w.svc, w.service(t, w.open(t), nil), w.service(t, w.open(t), nil)}
		var wg sync.WaitGroup
		results := make([]control.ApplyResult, 9)
		for i := range results {
			wg.Go(func() {
				var err error
				results[i], err = services[i%3].Apply(t.Context(), w.operator, control.ApplyRequest{Reseal: true, IdempotencyKey: "k"})
				if err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		firsts := 0
		for _, r := range results {
			if !r.Replayed {
				firsts++
			}
			if !r.Applied || r.Generation != 2 || r.Version != results[0].Version {
				t.Errorf("answer %+v", r)
			}
		}
		if firsts != 1 || len(w.liveRow(t).Generations) != 1 {
			t.Errorf("%d of them were first, live is %+v", firsts, w.liveRow(t))
		}
	})
}
