package control_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/snapshot"
)

// restless is a store in which somebody edits at the moments that matter: before an apply reads the rows,
// after it has read them, when it takes its version, and before it publishes.
type restless struct {
	control.Store
	edit func(moment string)
}

func (r *restless) ReadConfiguration(ctx context.Context) ([]snapshot.ZoneInput, error) {
	r.edit("before reading")
	defer r.edit("after reading")
	return r.Store.ReadConfiguration(ctx)
}

func (r *restless) NextVersion(ctx context.Context) (uint64, error) {
	r.edit("taking a version")
	return r.Store.NextVersion(ctx)
}

func (r *restless) Publish(ctx context.Context, p control.Publication) error {
	r.edit("publishing")
	return r.Store.Publish(ctx, p)
}

// Whatever is edited, planned, applied and rolled back in whatever order: only content whose hash somebody
// consented to in that very request ever is live, and a refused request leaves live what was.
func TestNothingIsPublishedWithoutConsent(t *testing.T) {
	w := newWorld(t)
	w.versions(t, 2)
	id := w.onlyRecord(t)
	ctx := context.Background()
	rapid.Check(t, func(rt *rapid.T) {
		edit := func() { w.address(t, id, rapid.IntRange(1, 6).Draw(rt, "address")) }
		busy := false // an edit of an edit's own reading would never end
		svc := w.service(t, &restless{w.store, func(moment string) {
			if !busy && rapid.IntRange(0, 3).Draw(rt, moment) == 0 {
				busy = true
				edit()
				busy = false
			}
		}}, nil)
		var consent [2]string // of two operators, each with the plan that they saw last
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			who := rapid.IntRange(0, 1).Draw(rt, "who")
			before := w.liveRow(t)
			var (
				hash  string
				did   bool
				err   error
				given = consent[who]
			)
			switch step := rapid.SampledFrom([]string{"edit", "plan", "apply", "dry rollback", "rollback"}).Draw(rt, "step"); step {
			case "edit":
				edit()
				continue
			case "plan":
				report, err := svc.Plan(ctx, w.operator)
				if err != nil {
					rt.Fatal(err)
				}
				consent[who] = report.Plan.ContentHash
				continue
			case "dry rollback":
				res, err := svc.Rollback(ctx, w.operator, control.RollbackRequest{DryRun: true, Version: 1})
				if err == nil {
					consent[who] = res.ContentHash
				}
				continue
			case "apply":
				if given == "" {
					continue
				}
				var res control.ApplyResult
				res, err = svc.Apply(ctx, w.operator, control.ApplyRequest{AcceptDisruption: true, ExpectedContentHash: given})
				hash, did = res.ContentHash, res.Applied
			case "rollback":
				if given == "" {
					continue
				}
				var res control.RollbackResult
				res, err = svc.Rollback(ctx, w.operator, control.RollbackRequest{
					AcceptDisruption: true, ExpectedContentHash: given, Version: rapid.SampledFrom([]uint64{0, 1, 2}).Draw(rt, "version"),
				})
				hash, did = res.ContentHash, res.RolledBack
			}
			after := w.liveRow(t)
			if moved := fmt.Sprint(after.Generations) != fmt.Sprint(before.Generations) || after.Version != before.Version; moved != did {
				rt.Fatalf("done %t (%v), live was %+v and is %+v", did, err, before, after)
			}
			if did && (hash != given || after.ContentHash != given) {
				rt.Fatalf("live is %s, consent was to %s", after.ContentHash, given)
			}
			if !did && err != nil {
				var changed *control.PlanChangedError
				var target *control.TargetError
				if !errors.As(err, &changed) && !errors.As(err, &target) {
					rt.Fatal(err)
				}
				if changed != nil && changed.Plan.ContentHash == given {
					rt.Fatal("refused although it is what was consented to")
				}
			}
			if did {
				if got := w.opens(t, trust(t, w.key)).Snapshot().ContentHash(); got != given {
					rt.Fatalf("what is sealed is %s, consent was to %s", got, given)
				}
			}
		}
	})
}
