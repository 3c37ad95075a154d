package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/snapshot"
)

// RollbackRequest asks to make a stored version live again.
type RollbackRequest struct {
	// Version to go back to; 0 is the recorded parent of the live one, never the number below it.
	Version uint64
	// Message for the audit log, at most MaxMessage bytes of UTF-8.
	Message string
	// AcceptDisruption lets a plan through that can interrupt traffic.
	AcceptDisruption bool
	// ExpectedContentHash, when not empty, is the only content that may be activated: that of the plan which
	// was reviewed.
	ExpectedContentHash string
	// ExpectedGeneration, when not 0, is what must still be live: what the reviewed plan was compared with.
	ExpectedGeneration uint64
	// DryRun finds the target, compares, and finds whatever the request would be refused for, but that its plan can interrupt traffic,
	// which the plan tells; it changes nothing.
	DryRun bool
	// IdempotencyKey is as in ApplyRequest. A dry run has no use for one.
	IdempotencyKey string
	// Rollout is as in ApplyRequest.
	Rollout *RolloutRequest
}

// RollbackResult tells what a rollback did, or would do.
type RollbackResult struct {
	RolledBack  bool   // false for a dry run, and for what was put to the cohort
	Version     uint64 // the target
	Generation  uint64 // of the activation; for a dry run the one that is live
	ContentHash string
	Zones       int
	Resealed    bool           // the target had another key's signature and got, or would get, the present one's
	Plan        *snapshot.Plan // from what was live to the target
	Replayed    bool           // this is the first answer of a request that was repeated
	// Rollout and RolloutID are as in ApplyResult.
	Rollout   *Rollout          `json:"-"`
	RolloutID barrier.RolloutID `json:",omitzero"`
}

// Codes of TargetError.
const (
	CodeNoParent       = "no_parent"       // nothing is published, or the live version is the first one
	CodeVersionUnknown = "version_unknown" // no such version is stored
	CodeVersionLive    = "version_live"    // it is what is live
)

// TargetError refuses a rollback that has nowhere to go (409).
type TargetError struct {
	Code    string
	Version uint64 // asked for, 0: the parent
	Live    uint64 // 0: nothing is published
}

func (e *TargetError) Error() string {
	switch {
	case e.Code == CodeNoParent && e.Live == 0:
		return "nothing is published yet, so there is nothing to go back to"
	case e.Code == CodeNoParent:
		return fmt.Sprintf("version %d is live and has no parent to go back to; name a version of the history", e.Live)
	case e.Code == CodeVersionLive:
		return fmt.Sprintf("version %d is live already", e.Live)
	}
	return fmt.Sprintf("there is no version %d; name one of the history", e.Version)
}

// actionRollback names a rollback in the audit log.
const actionRollback = "config.rollback"

// Rollback makes a stored version live again under the next generation, or puts it to the cohort (operator). Any will do that can be
// opened, one that never was live too: it was built and signed here. One that was sealed with another key than
// the present one is sealed anew, which changes neither its version nor its content. Errors: *TargetError,
// *PlanChangedError, *DisruptiveError, *StaleError (which is ErrConflict), *AheadNodeError (which is ErrNodeAhead),
// *RolloutOpenError (which is ErrRolloutOpen), ErrKeyMismatch, ErrKeyReused. With any error the live pointer did not move, with Apply's exception.
func (s *Service) Rollback(ctx context.Context, p Principal, r RollbackRequest) (RollbackResult, error) {
	if err := p.operates(); err != nil {
		return RollbackResult{}, err
	}
	if err := joinProblems(checkMessage(r.Message), checkExpected(r.ExpectedContentHash), checkKey(r.IdempotencyKey)); err != nil {
		return RollbackResult{}, err
	}
	done, err := s.buildSlot(ctx)
	if err != nil {
		return RollbackResult{}, err
	}
	defer done()
	if r.DryRun {
		_, t, err := s.aim(ctx, r)
		if err != nil {
			return RollbackResult{}, err
		}
		return t.result(t.platform.Generation), nil
	}
	res, err := once(ctx, s, p, actionRollback, r.IdempotencyKey, r.identity(), func(keep keeper[RollbackResult]) (RollbackResult, error) {
		return s.rollback(ctx, p, r, keep)
	})
	if err == nil {
		res.Rollout, err = s.proposed(ctx, res.RolloutID, res.Rollout)
	}
	switch {
	case err != nil:
		s.count.rollbackFailures.Add(1)
		s.auditRefusal(ctx, p, actionRollback, r.target(), err)
	case res.RolledBack && !res.Replayed:
		s.count.rollbacks.Add(1)
		s.log.Info("rolled back", "version", res.Version, "generation", res.Generation, "content_hash", res.ContentHash,
			"zones", res.Zones, "changes", res.Plan.Changes, "resealed", res.Resealed, "by", p.actor())
	}
	return res, err
}

// identity is what a repetition must have in common with the first request.
func (r RollbackRequest) identity() any {
	how := r.Rollout.identity()
	r.IdempotencyKey, r.Rollout = "", nil
	return struct {
		RollbackRequest
		How *rolloutIdentity
	}{r, how}
}

// target names in the audit log what a refused request asked for.
func (r RollbackRequest) target() string {
	if r.Version == 0 {
		return "parent"
	}
	return fmt.Sprintf("version %d", r.Version)
}

// target is the version that a rollback goes to, with what it was compared with.
type target struct {
	platform Platform // read first: the condition of the activation
	live     *SnapshotRow
	row      SnapshotRow
	sealed   seal.Sealed
	snap     *snapshot.Snapshot
	plan     *snapshot.Plan
	reseal   bool
}

func (t *target) result(generation uint64) RollbackResult {
	return RollbackResult{
		Version: t.row.Version, Generation: generation, ContentHash: t.row.ContentHash, Zones: t.snap.Len(),
		Resealed: t.reseal, Plan: t.plan,
	}
}

// findTarget reads, opens and compares. The caller holds a build slot.
func (s *Service) findTarget(ctx context.Context, r RollbackRequest) (*target, error) {
	platform, live, err := s.readLive(ctx)
	if err != nil {
		return nil, err
	}
	if live == nil {
		return nil, &TargetError{Code: CodeNoParent, Version: r.Version}
	}
	version := r.Version
	if version == 0 {
		version = live.ParentVersion
	}
	t := &target{platform: platform, live: live}
	switch {
	case version == 0:
		return nil, &TargetError{Code: CodeNoParent, Live: live.Version}
	case version == live.Version:
		return nil, &TargetError{Code: CodeVersionLive, Version: version, Live: live.Version}
	}
	t.row, err = s.store.SnapshotByVersion(ctx, version)
	if errors.Is(err, ErrNotFound) {
		return nil, &TargetError{Code: CodeVersionUnknown, Version: version, Live: live.Version}
	}
	if err == nil {
		t.sealed, err = s.store.Sealed(ctx, version)
	}
	if err != nil {
		return nil, fmt.Errorf("reading version %d: %w", version, err)
	}
	old, err := s.openLive(ctx, live)
	if err != nil {
		return nil, err
	}
	if t.snap, err = s.openStored(t.sealed); err != nil {
		return nil, fmt.Errorf("opening version %d as it is stored: %w", version, err)
	}
	// An artefact and its activation have one key.
	t.reseal = t.sealed.KeyID != s.key.ID()
	t.plan = snapshot.Diff(old, t.snap)
	return t, nil
}

// aim is everything before anything is sealed or signed: how it is to be published, and where to. The caller holds a build slot.
func (s *Service) aim(ctx context.Context, r RollbackRequest) (*publishing, *target, error) {
	h, err := s.how(ctx, r.Rollout)
	if err != nil {
		return nil, nil, err
	}
	t, err := s.findTarget(ctx, r)
	switch {
	case err != nil:
	case r.ExpectedContentHash != "" && r.ExpectedContentHash != t.row.ContentHash,
		r.ExpectedGeneration != 0 && r.ExpectedGeneration != t.platform.Generation:
		err = &PlanChangedError{Plan: t.plan}
	case t.plan.Disruptive && !r.AcceptDisruption && !r.DryRun:
		err = &DisruptiveError{Plan: t.plan}
	default:
		err = s.maySign(t.platform)
	}
	if err != nil {
		return nil, nil, err
	}
	return h, t, nil
}

// rollback decides, seals anew if need be, and proposes, or activates, proves and publishes.
func (s *Service) rollback(ctx context.Context, p Principal, r RollbackRequest, keep keeper[RollbackResult]) (RollbackResult, error) {
	h, t, err := s.aim(ctx, r)
	if err != nil {
		return RollbackResult{}, err
	}
	c, err := s.prepareTarget(t, r.Message)
	if err != nil {
		return RollbackResult{}, err
	}
	again := func() (*snapshot.Plan, error) {
		again, err := s.findTarget(ctx, r)
		if err != nil {
			return nil, err
		}
		return again.plan, nil
	}
	if h.coordinated() {
		res := t.result(0)
		res.Rollout, err = s.propose(ctx, p, h, c, func(ro barrier.Rollout) (*Replay, error) {
			res.RolloutID, res.Generation = ro.ID, ro.Generation
			return keep.with(res)
		})
		if err != nil {
			return RollbackResult{}, s.lost(err, again)
		}
		return res, nil
	}
	pub, err := s.activate(p, h, c, t.live)
	if err != nil {
		return RollbackResult{}, err
	}
	res := t.result(pub.Activation.Generation)
	res.RolledBack = true
	if pub.Replay, err = keep.with(res); err != nil {
		return RollbackResult{}, err
	}
	if err := s.publish(ctx, pub); err != nil {
		return RollbackResult{}, s.lost(err, again)
	}
	s.opened.set(t.snap)
	l := pub.live(t.row, t.sealed)
	if have := s.live.load(); have != nil {
		l.newest = max(l.newest, have.newest)
	}
	l.newest = max(l.newest, t.live.Version)
	s.moveLive(l)
	return res, nil
}

// prepareTarget makes the candidate; t gets the seal that it will have.
func (s *Service) prepareTarget(t *target, message string) (candidate, error) {
	if t.reseal {
		sealed, err := s.sealer.Seal(s.key, t.snap)
		if err != nil {
			return candidate{}, fmt.Errorf("version %d: %w", t.row.Version, err)
		}
		t.sealed = sealed
		t.row.KeyID, t.row.Bytes = sealed.KeyID, int64(len(sealed.Payload))
	}
	return candidate{
		kind: seal.KindRollback, platform: t.platform, sealed: t.sealed, reseal: t.reseal, snap: t.snap, message: message,
		at: s.now().UTC().Truncate(time.Millisecond),
		detail: map[string]any{
			"changes": t.plan.Changes, "disruptive": t.plan.Disruptive, "from_version": t.live.Version, "resealed": t.reseal,
			"never_active": len(t.row.Generations) == 0,
		},
	}, nil
}
