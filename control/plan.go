package control

import (
	"context"
	"fmt"
	"time"

	"github.com/guardyn-edge/guardyn/snapshot"
)

// PlanReport is what an apply would do. Live is nil when nothing was published yet.
type PlanReport struct {
	Plan *snapshot.Plan // warnings of the build included
	Live *SnapshotRow
	// Ahead is what stops an apply from signing anything, nil: nothing does.
	Ahead *AheadNode
}

// Plan builds from the rows and compares with what is live (operator). A *ProblemsError says why it cannot
// be built.
func (s *Service) Plan(ctx context.Context, p Principal) (PlanReport, error) {
	if err := p.operates(); err != nil {
		return PlanReport{}, err
	}
	return s.report(ctx, false)
}

// PlanHolding is Plan as an apply with HoldBroken would do it (operator): a zone with problems stays as it
// is published, or is left out when it never was; Plan.Held tells which and why.
func (s *Service) PlanHolding(ctx context.Context, p Principal) (PlanReport, error) {
	if err := p.operates(); err != nil {
		return PlanReport{}, err
	}
	return s.report(ctx, true)
}

func (s *Service) report(ctx context.Context, hold bool) (PlanReport, error) {
	done, err := s.buildSlot(ctx)
	if err != nil {
		return PlanReport{}, err
	}
	defer done()
	pre, err := s.preview(ctx, hold)
	if err != nil {
		return PlanReport{}, err
	}
	return PlanReport{Plan: pre.plan, Live: pre.live, Ahead: pre.platform.Ahead}, nil
}

// buildSlot waits until one of the bounded builds may run; done gives the slot back.
func (s *Service) buildSlot(ctx context.Context) (done func(), err error) {
	select {
	case s.builds <- struct{}{}:
		return func() { <-s.builds }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for a build: %w", ctx.Err())
	}
}

// preview is a build against the live version number, with what it was compared with.
type preview struct {
	platform Platform     // read before the rows: the condition of publishing
	live     *SnapshotRow // nil: nothing was published
	snap     *snapshot.Snapshot
	plan     *snapshot.Plan
}

// preview takes nothing from the sequence. The caller holds a build slot.
func (s *Service) preview(ctx context.Context, hold bool) (preview, error) {
	platform, live, err := s.readLive(ctx)
	if err != nil {
		return preview{}, err
	}
	zones, err := s.store.ReadConfiguration(ctx)
	if err != nil {
		return preview{}, fmt.Errorf("reading the configuration: %w", err)
	}
	old, err := s.openLive(ctx, live)
	if err != nil {
		return preview{}, err
	}
	snap, warnings, held, err := s.build(zones, old, hold)
	if err != nil {
		return preview{}, err
	}
	plan := snapshot.Diff(old, snap)
	plan.Warnings = append(plan.Warnings, warnings...)
	plan.Held = held
	return preview{platform: platform, live: live, snap: snap, plan: plan}, nil
}

// build judges zones against old under old's meta. With hold, zones that have problems are held.
func (s *Service) build(zones []snapshot.ZoneInput, old *snapshot.Snapshot, hold bool) (
	snap *snapshot.Snapshot, warnings []snapshot.Problem, held []snapshot.HeldZone, err error,
) {
	var meta snapshot.Meta
	if old != nil {
		meta = old.Meta()
	}
	began := time.Now()
	in := snapshot.Input{Zones: zones, Now: s.now(), AllowedOrigins: s.allowedOrigins, Live: old}
	if hold {
		snap, warnings, held, err = snapshot.BuildHolding(in, meta)
	} else {
		snap, warnings, err = snapshot.Build(in, meta)
	}
	s.count.builds.Add(1)
	s.count.buildNanos.Add(uint64(time.Since(began)))
	if err != nil {
		return nil, warnings, nil, buildProblems(err)
	}
	return snap, warnings, held, nil
}
