package control_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

// A candidate serves nobody; once all have acked it is live, in one step with the cohort.
func TestRolloutIsCommitted(t *testing.T) {
	fleets(t, 2, func(f *fleet) {
		ctx := f.t.Context()
		f.edit()
		request := control.ApplyRequest{Message: "blue", AcceptDisruption: true, IdempotencyKey: "once", Rollout: coordinated(0)}
		res := f.apply(f.t, request)
		ro := res.Rollout
		if res.Applied || res.Reason != control.ReasonRollout || res.Version != 2 || res.Generation != 2 || ro.State != barrier.Proposed ||
			ro.Kind != seal.KindApply || ro.Message != "blue" || ro.By != "you@example.com" || ro.EpochSize != 2 {
			f.t.Fatalf("%+v, rollout %+v", res, ro)
		}
		f.agrees()
		if live := f.liveRow(f.t); live.Version != 1 {
			f.t.Errorf("version %d is live while the cohort votes", live.Version)
		}
		again := f.apply(f.t, request)
		if !again.Replayed || again.RolloutID != ro.ID || again.Rollout.ID != ro.ID || again.Generation != 2 || len(again.Rollout.Members) != 2 {
			f.t.Errorf("the same request again: %+v", again)
		}
		history, err := f.svc.History(ctx, f.operator, control.Page{})
		f.ok(err)
		if h := history.Items[0]; h.Version != 2 || len(h.Generations) != 0 || !h.ActivatedAt.IsZero() {
			f.t.Errorf("the candidate in the history: %+v", h)
		}

		// Nothing else is published meanwhile.
		for _, how := range []*control.RolloutRequest{nil, coordinated(0)} {
			_, err = f.svc.Apply(ctx, f.operator, control.ApplyRequest{Reseal: true, Rollout: how})
			f.openError("an apply", err, ro.ID)
			_, err = f.svc.Rollback(ctx, f.operator, control.RollbackRequest{Version: 2, Rollout: how})
			f.openError("a rollback", err, ro.ID)
		}
		_, err = f.svc.Recover(ctx, f.operator, control.RecoverRequest{BumpEpoch: true})
		f.openError("a recovery", err, ro.ID)

		// Its nodes fetch it.
		digest := string(ro.Digest)
		for _, p := range f.members {
			c, err := f.svc.CandidateFor(ctx, p, digest)
			f.ok(err)
			opened, err := seal.OpenCandidate(c.Sealed, trust(f.t, f.key), nil)
			f.ok(err)
			if c.Margin != control.DefaultMargin || nodeproto.CandidateDigest(opened.Snapshot().ContentHash()) != digest {
				f.t.Errorf("the candidate: margin %d, content %s", c.Margin, opened.Snapshot().ContentHash())
			}
		}
		_, err = f.svc.CandidateFor(ctx, f.outside, digest)
		wantError(f.t, "a stranger's candidate", err, control.ErrNotFound)
		_, err = f.svc.CandidateFor(ctx, f.members[0], digest+"x")
		wantError(f.t, "another candidate", err, control.ErrNotFound)
		_, err = f.svc.CandidateFor(ctx, f.operator, digest)
		wantError(f.t, "a person's candidate", err, control.ErrNoRoute)

		// They wait for all.
		f.ok(f.cohort.Claim(ctx, f.token))
		f.ok(f.cohort.Ack(ctx, ro.Ref, barrier.MemberID(f.members[0].NodeID), f.boots[f.members[0].NodeID], ""))
		now, err := f.svc.Rollout(ctx, f.operator, control.CurrentRollout)
		f.ok(err)
		if !slices.Equal(now.WaitingFor, []string{"edge-2"}) || now.State != barrier.Staging || now.Members[0].Name == "" {
			f.t.Errorf("status: %+v", now)
		}
		f.commit(ro.Ref)
		f.agrees()
		live := f.liveRow(f.t)
		act := f.opens(f.t, trust(f.t, f.key)).Activation()
		if live.Version != 2 || !slices.Equal(live.Generations, []uint64{2}) || act.Kind != seal.KindApply || act.Rollout != string(ro.ID) || act.ParentGeneration != 1 {
			f.t.Errorf("live %+v, activation %+v", live, act)
		}
		another, _, _ := f.process(f.t, nil)
		_, err = another.CandidateFor(ctx, f.members[0], digest)
		wantError(f.t, "the candidate of a rollout that is over", err, control.ErrNotFound)
		for action, n := range map[string]int{"rollout.propose": 1, "rollout.stage": 1, "rollout.commit": 1} {
			if got := f.audited(f.t, action); len(got) != n {
				f.t.Errorf("%d entries %s: %+v", len(got), action, got)
			}
		}
		f.edit()
		if res := f.apply(f.t, control.ApplyRequest{AcceptDisruption: true}); res.Version != 3 || res.Generation != 3 {
			f.t.Errorf("the next direct apply: %+v", res)
		}
		f.agrees()
	})
}

// On trial the cohort's nodes alone are told, and those alone who ask.
func TestTrialIsConfirmed(t *testing.T) {
	fleets(t, 2, func(f *fleet) {
		ctx := f.t.Context()
		run(f.t, f.svc)
		ro := f.propose(time.Minute)
		member, outside := f.members[0], f.outside
		at := nodeproto.Poll{Have: 1, Generation: 1, Epoch: 1}
		trial := at
		trial.Trial = string(ro.ID)
		if a := f.poll(member, trial); a.Artefact != nil || a.Generation != 1 {
			f.t.Errorf("offered before it was decided: %+v", a.Answer)
		}
		f.commit(ro.Ref)
		f.agrees()
		if live := f.liveRow(f.t); live.Version != 1 {
			f.t.Errorf("version %d is live on trial", live.Version)
		}

		// Whoever does not ask, or is not of the epoch, is told of what is live.
		asking := trial
		asking.Nonce = strings.Repeat("ab", 16)
		for name, a := range map[string]control.PollAnswer{
			"a member that does not ask": f.poll(member, at), "a stranger that asks": f.poll(outside, asking), "a stranger": f.poll(outside, at),
		} {
			if a.Artefact != nil || a.Generation != 1 || a.Version != 1 {
				f.t.Errorf("%s is answered %+v", name, a)
			}
		}
		a := f.poll(member, asking)
		act := f.activation(a)
		if act.Kind != seal.KindProvisional || act.Generation != 2 || act.Version != 2 || act.Rollout != string(ro.ID) || a.Held || a.Version != 2 || a.Generation != 2 {
			f.t.Fatalf("on trial: %+v, %+v", a, act)
		}
		fresh, _, err := seal.VerifyFreshness(a.Freshness, trust(f.t, f.key), asking.Nonce)
		f.ok(err)
		if fresh.Generation != 2 || fresh.ContentHash != act.ContentHash {
			f.t.Errorf("freshness names %+v", fresh)
		}
		// Now that its memory has the trial, too.
		if quiet := f.poll(member, at); quiet.Artefact != nil || quiet.Generation != 1 {
			f.t.Errorf("a member that does not ask is offered %+v", quiet)
		}
		held := trial
		held.Held = a.Artefact.PayloadBLAKE3
		if bare := f.poll(member, held); !bare.Held || bare.Artefact.Payload != nil || bare.Artefact.Signature != a.Artefact.Signature || bare.Artefact.Activation != a.Artefact.Activation {
			f.t.Errorf("what is held: %+v", bare)
		}
		if len(a.Artefact.Payload) == 0 {
			f.t.Error("the shared artefact has lost its payload")
		}

		// What it runs is what was issued, for its nodes.
		f.ok(f.svc.Ack(ctx, member, f.ackOf(act, a.Artefact.Activation)))
		running := nodeproto.Poll{Have: 2, Generation: 2, Epoch: 1, Trial: string(ro.ID)}
		if a := f.poll(member, running); a.Artefact != nil || a.Generation != 2 {
			f.t.Errorf("a node on trial: %+v", a)
		}
		err = f.svc.Ack(ctx, outside, f.ackOf(act, a.Artefact.Activation))
		wantError(f.t, "a stranger's ack of a trial", err, control.ErrNodeAhead)
		platform, err := f.store.Platform(ctx)
		f.ok(err)
		if platform.Ahead != nil {
			f.t.Error("what a stranger shows of a trial stops all signing")
		}

		// The end wakes all that wait.
		answers := make(chan control.PollAnswer, 2)
		wait := func(p control.Principal, q nodeproto.Poll) {
			q.Wait = 50 * time.Second
			a, err := f.svc.Poll(context.WithoutCancel(ctx), p, q)
			if err != nil {
				f.t.Error(err)
			}
			answers <- a
		}
		go wait(member, running)
		go wait(outside, at)
		f.until("they wait", func() bool { return f.svc.Stats().LongPolls == 2 })
		f.confirm(ro.Ref)
		f.agrees()
		for range 2 {
			act := f.activation(<-answers)
			if act.Kind != seal.KindConfirmed || act.Generation != 2 || act.Version != 2 || act.ParentGeneration != 1 || act.Rollout != string(ro.ID) {
				f.t.Errorf("after the confirm: %+v", act)
			}
		}
		if a := f.poll(member, nodeproto.Poll{Have: 2, Generation: 2, Epoch: 1}); a.Artefact != nil {
			f.t.Errorf("a node with the confirmed activation is offered %+v", a)
		}
		f.until("the end is counted", func() bool { return len(f.svc.Stats().Resolved) > 0 })
		st := f.svc.Stats()
		if st.Resolved[control.Resolution{Outcome: barrier.Confirmed}] != 1 || st.Proposals != 1 || st.Rollout.State != barrier.Confirmed {
			f.t.Errorf("stats: %+v", st)
		}
		if got := f.audited(f.t, "rollout.confirm"); len(got) != 1 || got[0].Actor != "system" || got[0].Target != "rollout "+string(ro.ID) {
			f.t.Errorf("audit: %+v", got)
		}
	})
}

// Taken back, what was live is live again under the next generation, and nobody is ahead.
func TestTrialIsReverted(t *testing.T) {
	fleets(t, 2, func(f *fleet) {
		ctx := f.t.Context()
		ro := f.propose(time.Minute)
		f.commit(ro.Ref)
		member := f.members[0]
		trial := nodeproto.Poll{Have: 1, Generation: 1, Epoch: 1, Trial: string(ro.ID)}
		a := f.poll(member, trial)
		act := f.activation(a)

		_, err := f.svc.AbortRollout(ctx, f.operator, string(ro.ID), "")
		wantError(f.t, "abort on trial", err, control.ErrRolloutState)
		_, err = f.svc.RevertRollout(ctx, f.editor, string(ro.ID), "")
		wantError(f.t, "an editor's revert", err, control.ErrNoRoute)
		over, err := f.svc.RevertRollout(ctx, f.operator, string(ro.ID), "looks bad")
		f.ok(err)
		if over.State != barrier.Reverted || over.Reason != "looks bad" || over.DecidedBy != "operator you@example.com" {
			f.t.Errorf("reverted: %+v", over)
		}
		if _, err := f.svc.RevertRollout(ctx, f.operator, string(ro.ID), "again"); err != nil {
			f.t.Errorf("the same again: %v", err)
		}
		f.agrees()
		row, live := f.row(), f.liveRow(f.t)
		if live.Version != 1 || !slices.Equal(live.Generations, []uint64{1, 3}) || live.Kind != seal.KindReverted || row.Committed.Generation != 1 {
			f.t.Errorf("live %+v, committed %v", live, row.Committed)
		}
		back := f.activation(f.poll(member, nodeproto.Poll{Have: 2, Generation: 2, Epoch: 1, Trial: string(ro.ID)}))
		if back.Generation != 3 || back.Version != 1 || back.Kind != seal.KindReverted || back.ParentGeneration != 1 {
			f.t.Errorf("a node on trial is offered %+v", back)
		}
		f.ok(f.svc.Ack(ctx, member, f.ackOf(act, a.Artefact.Activation))) // it was late
		if got := f.audited(f.t, "rollout.revert"); len(got) != 1 || got[0].Actor != "you@example.com" || got[0].From != f.operator.From {
			f.t.Errorf("audit: %+v", got)
		}
		if n := f.svc.Stats().Resolved[control.Resolution{Outcome: barrier.Reverted, Reason: "operator"}]; n != 1 {
			f.t.Errorf("counted %d", n)
		}
		res := f.apply(f.t, control.ApplyRequest{AcceptDisruption: true})
		if res.Generation != 4 || res.Version != 3 {
			f.t.Errorf("the next apply: %+v", res)
		}
		f.agrees()
		next := f.propose(time.Minute)
		if next.Generation != 5 {
			f.t.Errorf("the next rollout has generation %d", next.Generation)
		}
	})
}

// Aborted rollouts leave gaps; whatever the order of ways, the cohort's pointer is what is live.
func TestMixedPublishing(t *testing.T) {
	fleets(t, 1, func(f *fleet) {
		ctx := f.t.Context()
		steps := []struct {
			name       string
			do         func()
			generation uint64 // of what is live afterwards
			version    uint64
		}{
			{"abort", func() {
				_, err := f.svc.AbortRollout(ctx, f.operator, string(f.propose(0).ID), "no")
				f.ok(err)
			}, 1, 1},
			{"direct", func() { f.edit(); f.apply(f.t, control.ApplyRequest{AcceptDisruption: true}) }, 3, 3},
			{"nack", func() {
				ro := f.propose(time.Minute)
				f.ok(f.cohort.Claim(ctx, f.token))
				f.ok(f.cohort.Nack(ctx, ro.Ref, barrier.MemberID(f.members[0].NodeID), f.boots[f.members[0].NodeID], "too blue"))
				f.ok(f.cohort.Abort(ctx, ro.Ref, barrier.ByClaim(f.token), "refused by "+f.members[0].NodeID+": too blue"))
				got, err := f.svc.Rollout(ctx, f.operator, string(ro.ID))
				f.ok(err)
				if got.Reason != "refused by edge-1: too blue" || got.Members[0].Ballot.Reason != "too blue" {
					f.t.Errorf("names for ids: %+v", got)
				}
			}, 3, 3},
			{"window", func() { ro := f.propose(time.Minute); f.commit(ro.Ref); f.confirm(ro.Ref) }, 5, 5},
			{"rollback", func() { f.rollback(f.t, control.RollbackRequest{AcceptDisruption: true}) }, 6, 3},
			{"coordinated rollback", func() {
				res := f.rollback(f.t, control.RollbackRequest{Version: 2, AcceptDisruption: true, Rollout: coordinated(0)})
				if res.RolledBack || res.Rollout == nil || res.Generation != 7 || res.Rollout.Kind != seal.KindRollback {
					f.t.Fatalf("rollback: %+v", res)
				}
				f.commit(res.Rollout.Ref)
				if live := f.liveRow(f.t); live.Kind != seal.KindRollback {
					f.t.Errorf("kind %s", live.Kind)
				}
			}, 7, 2},
			{"revert", func() {
				ro := f.propose(time.Minute)
				f.commit(ro.Ref)
				f.ok(f.cohort.Revert(ctx, ro.Ref, barrier.ByClaim(f.token), "failed on x: broken"))
			}, 9, 2},
			{"commit", func() { f.commit(f.propose(0).Ref) }, 10, 7},
			{"reseal", func() { f.apply(f.t, control.ApplyRequest{Reseal: true}) }, 11, 8},
		}
		for _, s := range steps {
			s.do()
			f.agrees()
			live := f.liveRow(f.t)
			if got := live.Generations[len(live.Generations)-1]; got != s.generation || live.Version != s.version {
				f.t.Fatalf("after %s generation %d, version %d is live, want %d, %d", s.name, got, live.Version, s.generation, s.version)
			}
		}
		var states []barrier.State
		page := control.Page{Limit: 2}
		for {
			l, err := f.svc.Rollouts(ctx, f.operator, page)
			f.ok(err)
			for _, r := range l.Items {
				states = append(states, r.State)
			}
			if page.After = l.Next; page.After == "" {
				break
			}
		}
		want := []barrier.State{barrier.Committed, barrier.Reverted, barrier.Committed, barrier.Confirmed, barrier.Aborted, barrier.Aborted}
		if !slices.Equal(states, want) {
			f.t.Errorf("the ledger: %v", states)
		}
	})
}

func TestRolloutRefusals(t *testing.T) {
	ms := func(d time.Duration) *time.Duration { return &d }
	margin := func(n int) *int { return &n }
	fleets(t, 1, func(f *fleet) {
		ctx := f.t.Context()
		f.edit()
		for _, tc := range []struct {
			name  string
			r     control.RolloutRequest
			codes []string
		}{
			{"window without coordinated", control.RolloutRequest{ConfirmWindow: ms(time.Minute)}, []string{"window_without_coordinated"}},
			{
				"all without coordinated",
				control.RolloutRequest{Mode: control.RolloutDirect, Deadline: ms(time.Minute), Soak: ms(time.Second), Margin: margin(5)},
				[]string{"deadline_without_coordinated", "soak_without_coordinated", "margin_without_coordinated"},
			},
			{
				"negative",
				control.RolloutRequest{Mode: control.RolloutCoordinated, ConfirmWindow: ms(-1), Deadline: ms(-time.Second), Soak: ms(-time.Hour), Margin: margin(-1)},
				[]string{"deadline_invalid", "soak_invalid", "confirm_window_invalid", "margin_invalid"},
			},
			{"window too short", control.RolloutRequest{Mode: control.RolloutCoordinated, ConfirmWindow: ms(19 * time.Second)}, []string{"window_too_short"}},
			{"not whole", control.RolloutRequest{Mode: control.RolloutCoordinated, Deadline: ms(time.Second + 1)}, []string{"deadline_invalid"}},
			{"unknown", control.RolloutRequest{Mode: "canary"}, []string{"rollout_invalid"}},
		} {
			for what, do := range map[string]func() error{
				"apply": func() error { _, err := f.svc.Apply(ctx, f.operator, control.ApplyRequest{Rollout: &tc.r}); return err },
				"rollback": func() error {
					_, err := f.svc.Rollback(ctx, f.operator, control.RollbackRequest{Version: 1, Rollout: &tc.r})
					return err
				},
			} {
				var codes []string
				for _, p := range problems(f.t, tc.name, do()) {
					codes = append(codes, p.Code)
				}
				if !slices.Equal(codes, tc.codes) {
					f.t.Errorf("%s, %s: %v, want %v", what, tc.name, codes, tc.codes)
				}
			}
		}
		if v := f.liveRow(f.t).Version; v != 1 || f.row().Rollout != nil {
			f.t.Error("a refusal changed something")
		}
		if next, err := f.store.NextVersion(ctx); err != nil || next != 2 {
			f.t.Errorf("a refusal took a version: %d, %v", next, err)
		}

		// Nobody is in the cohort.
		if _, err := f.svc.DrainNode(ctx, f.operator, "edge-1"); err != nil {
			f.t.Fatal(err)
		}
		_, err := f.svc.Apply(ctx, f.operator, control.ApplyRequest{AcceptDisruption: true, Rollout: coordinated(0)})
		if ps := problems(f.t, "empty", err); len(ps) != 1 || ps[0].Code != "cohort_empty" {
			f.t.Errorf("an empty cohort: %+v", ps)
		}

		// Operators only, without a word to others.
		for name, do := range map[string]func(p control.Principal) error{
			"settings": func(p control.Principal) error { _, err := f.svc.ClusterSettings(ctx, p); return err },
			"put": func(p control.Principal) error {
				_, err := f.svc.PutClusterSettings(ctx, p, control.ClusterSettingsEdit{})
				return err
			},
			"rollouts": func(p control.Principal) error { _, err := f.svc.Rollouts(ctx, p, control.Page{}); return err },
			"rollout":  func(p control.Principal) error { _, err := f.svc.Rollout(ctx, p, "current"); return err },
			"await":    func(p control.Principal) error { _, err := f.svc.AwaitRollout(ctx, p, "current", "", 0); return err },
			"abort":    func(p control.Principal) error { _, err := f.svc.AbortRollout(ctx, p, "current", ""); return err },
			"revert":   func(p control.Principal) error { _, err := f.svc.RevertRollout(ctx, p, "current", ""); return err },
			"member":   func(p control.Principal) error { _, err := f.svc.CreateMember(ctx, p, "n"); return err },
			"drain":    func(p control.Principal) error { _, err := f.svc.DrainNode(ctx, p, "edge-1"); return err },
			"undrain":  func(p control.Principal) error { _, err := f.svc.UndrainNode(ctx, p, "edge-1"); return err },
			"apply": func(p control.Principal) error {
				_, err := f.svc.Apply(ctx, p, control.ApplyRequest{Rollout: coordinated(0)})
				return err
			},
		} {
			for who, p := range map[string]control.Principal{"an editor": f.editor, "a stranger": f.stranger, "a node": f.outside, "nobody": {}} {
				if err := do(p); !errors.Is(err, control.ErrNoRoute) {
					f.t.Errorf("%s of %s: %v", name, who, err)
				}
			}
		}
		if _, err := f.svc.NodeSelf(ctx, f.operator); !errors.Is(err, control.ErrNoRoute) {
			f.t.Errorf("a person's self: %v", err)
		}
		if _, err := f.svc.Rollout(ctx, f.operator, "current"); !errors.Is(err, control.ErrNotFound) {
			f.t.Errorf("no rollout yet: %v", err)
		}
	})
}
