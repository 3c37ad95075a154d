package control_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
)

func TestClusterSettings(t *testing.T) {
	fleets(t, 1, func(f *fleet) {
		ctx := f.t.Context()
		want := control.ClusterSettings{
			Rollout: control.RolloutDirect, Deadline: barrier.DefaultDeadline, Soak: barrier.DefaultSoak, Margin: control.DefaultMargin, Revision: 1,
		}
		got, err := f.svc.ClusterSettings(ctx, f.operator)
		f.ok(err)
		if got != want {
			f.t.Errorf("at first: %+v", got)
		}
		_, err = f.svc.PutClusterSettings(ctx, f.operator, control.ClusterSettingsEdit{
			ConfirmWindow: new(time.Second), Deadline: new(time.Duration(-1)), Margin: new(10_001), Revision: 1,
		})
		var codes []string
		for _, p := range problems(f.t, "all wrong", err) {
			codes = append(codes, p.Code)
		}
		if !slices.Equal(codes, []string{"deadline_invalid", "window_without_coordinated", "window_too_short", "margin_invalid"}) {
			f.t.Errorf("problems: %v", codes)
		}
		codes = nil
		_, err = f.svc.PutClusterSettings(ctx, f.operator, control.ClusterSettingsEdit{
			Rollout: new(control.RolloutMode("")), ConfirmWindow: new(time.Duration(0)), Deadline: new(time.Duration(0)), Soak: new(time.Duration(0)),
			Margin: new(0), Revision: 1,
		})
		for _, p := range problems(f.t, "zeros", err) {
			codes = append(codes, p.Code)
		}
		if !slices.Equal(codes, []string{"rollout_invalid", "deadline_invalid", "soak_invalid", "margin_invalid"}) {
			f.t.Errorf("problems of zeros: %v", codes)
		}
		edit := control.ClusterSettingsEdit{
			Rollout: new(control.RolloutCoordinated), ConfirmWindow: new(2 * time.Minute), Soak: new(time.Minute), Margin: new(5), Revision: 1,
		}
		if got, err = f.svc.PutClusterSettings(ctx, f.operator, edit); err != nil || got.Revision != 2 || got.Deadline != barrier.DefaultDeadline {
			f.t.Fatalf("put: %+v, %v", got, err)
		}
		_, err = f.svc.PutClusterSettings(ctx, f.operator, edit)
		wantError(f.t, "an old revision", err, control.ErrConflict)
		if again, err := f.svc.ClusterSettings(ctx, f.operator); err != nil || again != got {
			f.t.Errorf("read: %+v, %v", again, err)
		}
		if a := f.audited(f.t, "cluster.settings"); len(a) != 1 || !strings.Contains(a[0].Detail, `"confirm_window":"2m0s"`) {
			f.t.Errorf("audit: %+v", a)
		}

		// Requests that say nothing follow them; one that asks for direct publishing gets it.
		f.edit()
		res := f.apply(f.t, control.ApplyRequest{AcceptDisruption: true})
		if ro := res.Rollout; ro == nil || ro.Window != 2*time.Minute || ro.Soak != time.Minute || ro.Margin != 5 {
			f.t.Fatalf("by the settings: %+v", res)
		}
		_, err = f.svc.AbortRollout(ctx, f.operator, control.CurrentRollout, "")
		f.ok(err)
		if res = f.apply(f.t, control.ApplyRequest{AcceptDisruption: true, Rollout: &control.RolloutRequest{Mode: control.RolloutDirect}}); !res.Applied {
			f.t.Errorf("direct: %+v", res)
		}
	})
}

// A control plane without a cohort publishes directly, and says why it does not do otherwise.
func TestWithoutACohort(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	w.published(t)
	w.node(t, "edge")
	for name, do := range map[string]func() error{
		"apply": func() error {
			_, err := w.svc.Apply(ctx, w.operator, control.ApplyRequest{Rollout: coordinated(0)})
			return err
		},
		"put": func() error {
			_, err := w.svc.PutClusterSettings(ctx, w.operator, control.ClusterSettingsEdit{Rollout: new(control.RolloutCoordinated), Revision: 1})
			return err
		},
		"drain":   func() error { _, err := w.svc.DrainNode(ctx, w.operator, "edge"); return err },
		"undrain": func() error { _, err := w.svc.UndrainNode(ctx, w.operator, "edge"); return err },
		"member":  func() error { _, err := w.svc.CreateMember(ctx, w.operator, "two"); return err },
	} {
		if ps := problems(t, name, do()); len(ps) != 1 || ps[0].Code != "rollout_unavailable" {
			t.Errorf("%s: %+v", name, ps)
		}
	}
	if l, err := w.svc.Rollouts(ctx, w.operator, control.Page{}); err != nil || len(l.Items) != 0 {
		t.Errorf("the ledger: %+v, %v", l, err)
	}
	_, err := w.svc.Rollout(ctx, w.operator, "current")
	wantError(t, "rollout", err, control.ErrNotFound)
	_, err = w.svc.AbortRollout(ctx, w.operator, "current", "")
	wantError(t, "abort", err, control.ErrNotFound)
	_, err = w.svc.AwaitRollout(ctx, w.operator, "current", "", time.Second)
	wantError(t, "await", err, control.ErrNotFound)
}

func TestMembership(t *testing.T) {
	fleets(t, 2, func(f *fleet) {
		ctx := f.t.Context()
		self := func(p control.Principal) bool {
			f.t.Helper()
			s, err := f.svc.NodeSelf(ctx, p)
			f.ok(err)
			if s.ID != p.NodeID || s.Name != p.NodeName {
				f.t.Errorf("self: %+v", s)
			}
			return s.Cohort
		}
		cohort := func() (names []string) {
			f.t.Helper()
			nodes, err := f.svc.ListNodes(ctx, f.operator)
			f.ok(err)
			for _, n := range nodes {
				if n.Cohort {
					names = append(names, n.Name)
				}
			}
			return names
		}
		if !self(f.members[0]) || self(f.outside) || !slices.Equal(cohort(), []string{"edge-1", "edge-2"}) {
			f.t.Errorf("the cohort is %v", cohort())
		}

		// While it is voted on a change aborts the rollout; the same again changes nothing.
		ro := f.propose(time.Minute)
		for range 2 {
			n, err := f.svc.UndrainNode(ctx, f.operator, "outside")
			f.ok(err)
			if !n.Cohort || n.Name != "outside" {
				f.t.Errorf("undrained: %+v", n)
			}
		}
		got, err := f.svc.Rollout(ctx, f.operator, string(ro.ID))
		f.ok(err)
		if got.State != barrier.Aborted || got.DecidedBy != "roster change" || len(f.audited(f.t, "cohort.change")) != 1 || len(f.audited(f.t, "rollout.abort")) != 1 {
			f.t.Errorf("after the change: %+v", got)
		}
		_, err = f.svc.DrainNode(ctx, f.operator, "edge-99")
		wantError(f.t, "an unknown node", err, control.ErrNotFound)
		if _, err = f.svc.DrainNode(ctx, f.operator, f.outside.NodeID); err != nil {
			f.t.Fatal(err)
		}

		// On trial it is refused, whichever way.
		ro = f.propose(time.Minute)
		f.commit(ro.Ref)
		for name, do := range map[string]func() error{
			"drain":   func() error { _, err := f.svc.DrainNode(ctx, f.operator, "edge-1"); return err },
			"undrain": func() error { _, err := f.svc.UndrainNode(ctx, f.operator, "outside"); return err },
			"delete":  func() error { return f.svc.DeleteNode(ctx, f.operator, "edge-1") },
			"add":     func() error { _, err := f.svc.CreateMember(ctx, f.operator, "edge-3"); return err },
		} {
			f.openError(name, do(), ro.ID)
		}
		f.ok(f.svc.DeleteNode(ctx, f.operator, "outside")) // that is none of it
		if !slices.Equal(cohort(), []string{"edge-1", "edge-2"}) {
			f.t.Errorf("the cohort is %v", cohort())
		}
		_, err = f.svc.RevertRollout(ctx, f.operator, "current", "")
		f.ok(err)

		// The last one may leave.
		f.ok(f.svc.DeleteNode(ctx, f.operator, "edge-1"))
		_, err = f.svc.DrainNode(ctx, f.operator, "edge-2")
		f.ok(err)
		if len(cohort()) != 0 || self(f.members[1]) {
			f.t.Errorf("the cohort is %v", cohort())
		}
		old, err := f.svc.Rollout(ctx, f.operator, string(ro.ID))
		f.ok(err)
		if old.Members[0].Name != f.members[0].NodeID || old.Members[1].Name != "edge-2" {
			f.t.Errorf("a rollout of a node that is gone: %+v", old.Members)
		}
		f.agrees()
	})
}

// Of a direct publication and a proposal that meet, one wins and the other is told.
func TestPublishMeetsPropose(t *testing.T) {
	fleets(t, 1, func(f *fleet) {
		ctx := f.t.Context()
		for range 6 {
			f.edit()
			var (
				both   sync.WaitGroup
				direct control.ApplyResult
				voted  control.ApplyResult
				errs   [2]error
			)
			both.Go(func() {
				direct, errs[0] = f.svc.Apply(ctx, f.operator, control.ApplyRequest{AcceptDisruption: true})
			})
			both.Go(func() {
				voted, errs[1] = f.svc.Apply(ctx, f.operator, control.ApplyRequest{AcceptDisruption: true, Rollout: coordinated(0)})
			})
			both.Wait()
			switch {
			case errs[0] == nil && errs[1] == nil:
				// One after another: the second found nothing to do.
				if !direct.Applied || voted.Reason != control.ReasonNoChanges {
					f.t.Fatalf("both won: %+v, %+v", direct, voted)
				}
			case errs[0] != nil && !errors.Is(errs[0], control.ErrRolloutOpen) && !errors.Is(errs[0], control.ErrConflict):
				f.t.Fatalf("the direct one: %v", errs[0])
			case errs[1] != nil && !errors.Is(errs[1], control.ErrConflict):
				f.t.Fatalf("the proposal: %v", errs[1])
			case errs[0] != nil && errs[1] != nil:
				f.t.Fatalf("nobody won: %v", errs)
			}
			f.agrees()
			if voted.Rollout != nil {
				_, err := f.svc.AbortRollout(ctx, f.operator, "current", "")
				f.ok(err)
			}
		}
	})
}

// What one process proposes another coordinates, and whichever a node asks answers rightly.
func TestTwoControlPlanes(t *testing.T) {
	fleets(t, 2, func(f *fleet) {
		ctx := f.t.Context()
		other, _, cohort := f.process(f.t, nil)
		run(f.t, other)
		member := f.members[0]
		if _, err := other.Poll(ctx, member, nodeproto.Poll{Have: 1, Generation: 1, Epoch: 1}); err != nil {
			f.t.Fatal(err)
		}
		ro := f.propose(time.Minute)
		if c, err := other.CandidateFor(ctx, member, string(ro.Digest)); err != nil || c.Version != 2 {
			f.t.Errorf("the other's candidate: %+v, %v", c, err)
		}
		f.ack(ro.Ref)
		f.ok(cohort.Commit(ctx, ro.Ref, f.token))
		// The first process runs nothing: it knows by what nodes ask.
		trial := nodeproto.Poll{Have: 1, Generation: 1, Epoch: 1, Trial: string(ro.ID)}
		for name, svc := range map[string]*control.Service{"the proposer": f.svc, "the coordinator": other} {
			a, err := svc.Poll(ctx, member, trial)
			f.ok(err)
			if act := f.activation(a); act.Kind != seal.KindProvisional {
				f.t.Errorf("%s offers %+v", name, act)
			}
			f.ok(svc.Ack(ctx, member, f.ackOf(f.activation(a), a.Artefact.Activation)))
		}
		third, _, _ := f.process(f.t, nil)
		if a, err := third.Poll(ctx, member, nodeproto.Poll{Have: 2, Generation: 2, Epoch: 1}); err != nil || a.Artefact != nil {
			f.t.Errorf("a process that knows nothing yet: %+v, %v", a, err)
		}
		f.ok(f.confirms(cohort, ro.Ref))
		f.agrees()
		running := nodeproto.Poll{Have: 2, Generation: 2, Epoch: 1, Trial: string(ro.ID)}
		for name, svc := range map[string]*control.Service{"the coordinator": other, "another": third} {
			f.until(name+" offers the confirmation", func() bool {
				a, err := svc.Poll(ctx, member, running)
				f.ok(err)
				if a.Artefact == nil {
					_, err = svc.ListNodes(ctx, f.operator) // which reads what is live, in a process that does not run
					f.ok(err)
					return false
				}
				return f.activation(a).Kind == seal.KindConfirmed
			})
		}
		if n := f.svc.Stats().Resolved; len(n) != 0 {
			f.t.Errorf("the proposer counts what the other decided: %v", n)
		}
	})
}

// A real coordinator takes a rollout to its end; who watches it is told of each step.
func TestCoordinator(t *testing.T) {
	fleets(t, 2, func(f *fleet) {
		ctx, cancel := context.WithCancel(f.t.Context())
		var work sync.WaitGroup
		defer work.Wait()
		defer cancel()
		c := barrier.NewCoordinator(barrier.CoordinatorOptions{
			Store: f.cohort, Leases: f.cohort, Lease: 100 * time.Millisecond, Poll: 5 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
		})
		work.Go(func() { c.Run(ctx) })
		ro := f.propose(time.Minute)
		r, err := f.svc.AwaitRollout(ctx, f.operator, "current", "", 0)
		f.ok(err)
		for acted := false; r.Open(); {
			if r.State != barrier.Proposed && !acted {
				acted = true
				for _, p := range f.members {
					f.ok(f.cohort.Ack(ctx, ro.Ref, barrier.MemberID(p.NodeID), f.boots[p.NodeID], "b"))
				}
			}
			if r.OnTrial() {
				for _, p := range f.members {
					if err := f.cohort.Converge(ctx, ro.Ref, barrier.MemberID(p.NodeID), f.boots[p.NodeID], "works"); err != nil && !errors.Is(err, barrier.ErrDecided) && !errors.Is(err, barrier.ErrNoWindow) {
						f.t.Fatal(err)
					}
				}
			}
			seen := r.Seen
			if r, err = f.svc.AwaitRollout(ctx, f.operator, string(ro.ID), seen, 30*time.Second); err != nil || r.Seen == seen {
				f.t.Fatalf("await: %+v, %v", r, err)
			}
		}
		if r.State != barrier.Confirmed || r.Members[0].Ballot.Detail != "works" || len(r.WaitingFor) != 0 {
			f.t.Errorf("the end: %+v", r)
		}
		f.agrees()
	})
}

// After a recovery nodes that are ahead of an old backup take part in rollouts again.
func TestRecoverRaisesTheCohort(t *testing.T) {
	fleets(t, 1, func(f *fleet) {
		ctx := f.t.Context()
		sealed, err := f.store.Sealed(ctx, 1)
		f.ok(err)
		platform, err := f.store.Platform(ctx)
		f.ok(err)
		act := seal.Activation{
			Platform: platform.ID, Epoch: 1, Generation: 57, Kind: seal.KindApply, ParentGeneration: 56, IssuedAt: f.clock.now(),
		}.Of(sealed)
		signed, err := seal.Activate(f.key, sealed, act)
		f.ok(err)
		wantError(f.t, "ahead", f.svc.Ack(ctx, f.members[0], f.ackOf(act, signed)), control.ErrNodeAhead)
		_, err = f.svc.Apply(ctx, f.operator, control.ApplyRequest{Reseal: true, Rollout: coordinated(0)})
		wantError(f.t, "a proposal", err, control.ErrNodeAhead)
		_, err = f.svc.Recover(ctx, f.operator, control.RecoverRequest{BumpEpoch: true})
		f.ok(err)
		if g := f.row().Generation; g != 57 {
			f.t.Errorf("the cohort's generation is %d", g)
		}
		f.edit()
		if res := f.apply(f.t, control.ApplyRequest{AcceptDisruption: true}); res.Generation != 58 {
			f.t.Errorf("the next apply: %+v", res)
		}
		f.agrees()
		f.commit(f.propose(0).Ref)
		f.agrees()
		if live := f.liveRow(f.t); live.Epoch != 2 || live.Generations[0] != 59 {
			f.t.Errorf("live: %+v", live)
		}
	})
}

// What cannot be signed is not confirmed; it is taken back all the same.
func TestKeyChangesOnTrial(t *testing.T) {
	fleets(t, 1, func(f *fleet) {
		ctx := f.t.Context()
		ro := f.propose(time.Minute)
		f.commit(ro.Ref)
		another, err := seal.GenerateSigningKey()
		f.ok(err)
		svc, _, cohort := f.process(f.t, func(c *control.Config) { c.SigningKey = another })
		if err := f.confirms(cohort, ro.Ref); err == nil || !strings.Contains(err.Error(), "re-seal") {
			f.t.Errorf("confirmed with another key: %v", err)
		}
		f.agrees()
		if s := f.row().Rollout.State; s != barrier.Committed {
			f.t.Errorf("it is %s", s)
		}
		_, err = svc.RevertRollout(ctx, f.operator, string(ro.ID), "the key changed")
		f.ok(err)
		f.agrees()
		if live := f.liveRow(f.t); live.Version != 1 || len(live.Generations) != 1 || len(f.audited(f.t, "rollout.revert")) != 1 {
			f.t.Errorf("live: %+v", live)
		}
		// A node that is not back yet is no cause for alarm.
		running := nodeproto.Poll{Have: 2, Generation: 2, Epoch: 1, Trial: string(ro.ID)}
		if a := f.poll(f.members[0], running); a.Artefact != nil {
			f.t.Errorf("offered: %+v", a)
		}
		f.edit()
		if res := f.apply(f.t, control.ApplyRequest{AcceptDisruption: true}); res.Generation != 3 {
			f.t.Errorf("the next apply: %+v", res)
		}
		f.agrees()
	})
}

// What is published first of all goes directly, whatever the platform's way is.
func TestFirstPublicationIsDirect(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		svc, _, _ := w.process(t, nil)
		w.zone(t, w.editor, "example.com")
		if _, err := svc.CreateMember(t.Context(), w.operator, "edge"); err != nil {
			t.Fatal(err)
		}
		_, err := svc.Apply(t.Context(), w.operator, control.ApplyRequest{Rollout: &control.RolloutRequest{Mode: control.RolloutCoordinated}})
		if ps := problems(t, "first", err); len(ps) != 1 || ps[0].Code != "nothing_live" {
			t.Errorf("a first publication that is coordinated: %v", ps)
		}
	})
}

// A cohort that comes to a database in which something is live is given that.
func TestCohortAdoptsWhatIsLive(t *testing.T) {
	databases(t, func(t *testing.T, w *world) {
		w.published(t)
		svc, st, cohort := w.process(t, nil)
		f := &fleet{world: w, t: t, cohort: cohort, boots: map[string]barrier.BootID{}}
		f.svc, f.store = svc, st
		_, err := svc.CreateMember(t.Context(), w.operator, "edge")
		f.ok(err)
		res, err := svc.Apply(t.Context(), w.operator, control.ApplyRequest{Reseal: true, Rollout: coordinated(time.Minute)})
		f.ok(err)
		if res.Generation != 2 {
			t.Errorf("%+v", res)
		}
		f.agrees()
	})
}
