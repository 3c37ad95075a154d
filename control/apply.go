package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/snapshot"
)

// ApplyRequest asks to publish what the rows say.
type ApplyRequest struct {
	// Message for the history, at most MaxMessage bytes of UTF-8.
	Message string
	// AcceptDisruption lets a plan through that can interrupt traffic.
	AcceptDisruption bool
	// Reseal publishes under the present key even when the content is what is live.
	Reseal bool
	// ExpectedContentHash, when not empty, is the only content that may be published: that of the plan
	// which was reviewed.
	ExpectedContentHash string
	// HoldBroken publishes the healthy zones and keeps each that has problems as it is published.
	HoldBroken bool
	// DryRun finds whatever the request would be refused for, but that its plan can interrupt traffic, which the plan tells, and changes
	// nothing.
	DryRun bool
	// IdempotencyKey, when not empty, makes a repetition of this request by the same user within
	// ReplayAge give the first answer, whichever process it reaches: 1 to MaxIdempotencyKey printable ASCII
	// characters. With another request under the same key it is ErrKeyReused. A dry run has no use for one.
	IdempotencyKey string
	// Rollout is how it is to be published; nil: as the platform's settings say.
	Rollout *RolloutRequest
}

// Reasons of an ApplyResult.
const (
	ReasonNoChanges = "no_changes" // there was nothing to do
	ReasonRollout   = "rollout"    // it was put to the cohort
	ReasonDryRun    = "dry_run"    // nothing is in the way of it
)

// ApplyResult tells what an apply did.
type ApplyResult struct {
	Applied     bool
	Reason      string // when not applied
	Version     uint64 // live now, or that of the rollout; 0: nothing is published, or it is a dry run of what would be
	Generation  uint64
	ContentHash string
	Zones       int
	Plan        *snapshot.Plan
	Replayed    bool // this is the first answer of a request that was repeated
	// Rollout is what was proposed, as it stands; its id is all of it that is kept for repetitions. Nil and empty: none was.
	Rollout   *Rollout          `json:"-"`
	RolloutID barrier.RolloutID `json:",omitzero"`
}

// actionApply names an apply in the audit log.
const actionApply = "config.apply"

// Apply publishes, or puts what it would publish to the cohort (operator). Errors: *ProblemsError (it cannot be built), *PlanChangedError,
// *DisruptiveError, *StaleError (which is ErrConflict), *AheadNodeError (which is ErrNodeAhead), *RolloutOpenError (which is
// ErrRolloutOpen), ErrKeyMismatch, ErrKeyReused. With any error nothing was published, except when the store's answer to the commit was lost and
// it could not be asked again; history tells then.
func (s *Service) Apply(ctx context.Context, p Principal, r ApplyRequest) (ApplyResult, error) {
	if err := p.operates(); err != nil {
		return ApplyResult{}, err
	}
	if err := r.check(); err != nil {
		return ApplyResult{}, err
	}
	done, err := s.buildSlot(ctx)
	if err != nil {
		return ApplyResult{}, err
	}
	defer done()
	if r.DryRun {
		_, _, res, err := s.decide(ctx, &r)
		return res, err
	}
	res, err := once(ctx, s, p, actionApply, r.IdempotencyKey, r.identity(), func(keep keeper[ApplyResult]) (ApplyResult, error) {
		return s.apply(ctx, p, r, keep)
	})
	if err == nil {
		res.Rollout, err = s.proposed(ctx, res.RolloutID, res.Rollout)
	}
	switch {
	case err != nil:
		s.count.failures.Add(1)
		s.auditRefusal(ctx, p, actionApply, "", err)
	case res.Replayed:
	case res.Applied:
		s.count.applies.Add(1)
		s.log.Info("applied", "version", res.Version, "generation", res.Generation, "content_hash", res.ContentHash,
			"zones", res.Zones, "changes", res.Plan.Changes, "held", len(res.Plan.Held), "by", p.actor())
	}
	return res, err
}

func (r ApplyRequest) check() error {
	return joinProblems(checkMessage(r.Message), checkExpected(r.ExpectedContentHash), checkKey(r.IdempotencyKey))
}

// identity is what a repetition must have in common with the first request.
func (r ApplyRequest) identity() any {
	how := r.Rollout.identity()
	r.IdempotencyKey, r.Rollout = "", nil
	return struct {
		ApplyRequest
		How *rolloutIdentity
	}{r, how}
}

// isHex reports whether s is n lower-case hex digits.
func isHex(s string, n int) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(s) == n
}

// decide is everything before anything is taken or signed: how it is to be published, the preview, and res, whose Reason is
// ReasonNoChanges when there is nothing to publish and ReasonDryRun when that is all that was asked for. With an error it may not be.
func (s *Service) decide(ctx context.Context, r *ApplyRequest) (h *publishing, pre preview, res ApplyResult, err error) {
	if h, pre, err = s.judge(ctx, r); err != nil {
		return nil, preview{}, ApplyResult{}, err
	}
	hash := pre.snap.ContentHash()
	res = ApplyResult{ContentHash: hash, Zones: pre.snap.Len(), Plan: pre.plan}
	switch {
	case pre.live != nil && pre.live.ContentHash == hash && !r.Reseal && !pre.outdated():
		res.Reason, res.Version, res.Generation = ReasonNoChanges, pre.live.Version, pre.platform.Generation
		return h, pre, res, nil
	case r.ExpectedContentHash != "" && r.ExpectedContentHash != hash:
		err = &PlanChangedError{Plan: pre.plan}
	case pre.plan.Disruptive && !r.AcceptDisruption && !r.DryRun:
		err = &DisruptiveError{Plan: pre.plan}
	default:
		err = s.maySign(pre.platform)
	}
	if err != nil {
		return nil, preview{}, ApplyResult{}, err
	}
	if r.DryRun {
		res.Reason = ReasonDryRun
	}
	return h, pre, res, nil
}

// apply is the algorithm: preview, decide, rebuild with a version, seal, prove, publish.
func (s *Service) apply(ctx context.Context, p Principal, r ApplyRequest, keep keeper[ApplyResult]) (ApplyResult, error) {
	h, pre, res, err := s.decide(ctx, &r)
	if err != nil {
		return ApplyResult{}, err
	}
	if res.Reason == ReasonNoChanges {
		return res, keep.alone(ctx, res)
	}
	c, err := s.prepare(ctx, p, pre, r)
	if err != nil {
		return ApplyResult{}, err
	}
	again := func() (*snapshot.Plan, error) {
		again, err := s.preview(ctx, r.HoldBroken)
		return again.plan, err
	}
	if h.coordinated() {
		res.Reason, res.Version = ReasonRollout, c.sealed.Version
		res.Rollout, err = s.propose(ctx, p, h, c, func(ro barrier.Rollout) (*Replay, error) {
			res.RolloutID, res.Generation = ro.ID, ro.Generation
			return keep.with(res)
		})
		if err != nil {
			return ApplyResult{}, s.lost(err, again)
		}
		return res, nil
	}
	pub, err := s.activate(p, h, c, pre.live)
	if err != nil {
		return ApplyResult{}, err
	}
	res.Applied, res.Version, res.Generation = true, pub.Activation.Version, pub.Activation.Generation
	if pub.Replay, err = keep.with(res); err != nil {
		return ApplyResult{}, err
	}
	if err := s.publish(ctx, pub); err != nil {
		return ApplyResult{}, s.lost(err, again)
	}
	s.opened.set(c.snap)
	s.moveLive(pub.live(pub.Insert.Row, pub.Insert.Sealed))
	return res, nil
}

// outdated tells that what is live was activated before the epoch was raised: nodes that are ahead refuse it.
func (pre *preview) outdated() bool { return pre.live != nil && pre.live.Epoch != pre.platform.Epoch }

// maySign refuses before anything is taken or signed.
func (s *Service) maySign(platform Platform) error {
	if platform.Ahead != nil {
		return &AheadNodeError{Ahead: *platform.Ahead}
	}
	return s.keyIsTrusted()
}

// lost turns the ErrConflict of a lost race into a StaleError with a fresh plan; any other error stays.
func (s *Service) lost(err error, plan func() (*snapshot.Plan, error)) error {
	if !errors.Is(err, ErrConflict) {
		return err
	}
	stale := &StaleError{}
	if fresh, err := plan(); err == nil {
		stale.Plan = fresh
	}
	return stale
}

// keyIsTrusted finds a wrong key before a version is taken.
func (s *Service) keyIsTrusted() error {
	for _, id := range s.trusted.IDs() {
		if id == s.key.ID() {
			return nil
		}
	}
	return fmt.Errorf("%w: the key is %s, nodes trust %v", ErrKeyMismatch, s.key.ID(), s.trusted.IDs())
}

// prepare takes a version, rebuilds the preview's content with it and seals that.
func (s *Service) prepare(ctx context.Context, p Principal, pre preview, r ApplyRequest) (candidate, error) {
	version, err := s.store.NextVersion(ctx)
	if err != nil {
		return candidate{}, fmt.Errorf("taking a version: %w", err)
	}
	at := s.now().UTC().Truncate(time.Millisecond)
	meta := snapshot.Meta{Version: version, CreatedAt: at, CreatedBy: p.actor(), Message: r.Message}
	if pre.live != nil {
		meta.ParentVersion = pre.live.Version
	}
	snap := pre.snap.WithMeta(meta)
	sealed, err := s.sealer.Seal(s.key, snap)
	if err != nil {
		return candidate{}, fmt.Errorf("sealing version %d: %w", version, err)
	}
	return candidate{
		kind: seal.KindApply, platform: pre.platform, sealed: sealed, snap: snap, message: r.Message, at: at,
		insert: &NewSnapshot{
			Row: SnapshotRow{
				Version: version, ParentVersion: meta.ParentVersion, ContentHash: sealed.ContentHash,
				CreatedBy: meta.CreatedBy, Message: r.Message, CreatedAt: at, Zones: snap.Len(),
				Bytes: int64(len(sealed.Payload)), KeyID: sealed.KeyID,
			},
			Sealed: sealed,
		},
		detail: map[string]any{"changes": pre.plan.Changes, "disruptive": pre.plan.Disruptive, "held": heldNames(pre.plan)},
	}, nil
}

// activate makes the direct publication of c and opens it as a node would.
func (s *Service) activate(p Principal, h *publishing, c candidate, live *SnapshotRow) (Publication, error) {
	fail := func(err error) (Publication, error) {
		return Publication{}, fmt.Errorf("version %d: %w", c.sealed.Version, err)
	}
	act := seal.Activation{
		Platform: c.platform.ID, Epoch: c.platform.Epoch, Generation: h.after(c.platform) + 1, Kind: c.kind,
		ParentGeneration: c.platform.Generation, IssuedAt: c.at,
	}.Of(c.sealed)
	signed, err := seal.Activate(s.key, c.sealed, act)
	if err != nil {
		return fail(err)
	}
	if _, err := s.prove(seal.Artefact{Sealed: c.sealed, Activation: signed}, c.snap); err != nil {
		return fail(err)
	}
	action := actionApply
	if c.kind == seal.KindRollback {
		action = actionRollback
	}
	pub := Publication{
		SeenGeneration: c.platform.Generation, Insert: c.insert, Activation: act, Signed: signed, By: p.actor(), At: c.at,
		Audit: s.entry(p, "", action, fmt.Sprintf("version %d", c.sealed.Version)), Also: s.keySwitch(p, live),
	}
	if c.reseal {
		pub.Reseal = &c.sealed
	}
	told := maps.Clone(c.detail)
	maps.Copy(told, map[string]any{
		"generation": act.Generation, "content_hash": act.ContentHash, "message": c.message, "key_id": string(c.sealed.KeyID),
	})
	pub.Audit.Detail = detail(told)
	return pub, nil
}

// actionKeySwitch names the first publication under another key than what was live has.
const actionKeySwitch = "config.key_switch"

// keySwitch is the audit entry of that, none when the key is the same.
func (s *Service) keySwitch(p Principal, live *SnapshotRow) []AuditEntry {
	if live == nil || live.KeyID == s.key.ID() {
		return nil
	}
	a := s.entry(p, "", actionKeySwitch, string(s.key.ID()))
	a.Detail = detail(map[string]any{"before": string(live.KeyID)})
	return []AuditEntry{a}
}

// maxHeldNames bounds the zones that the audit entry of an apply names.
const maxHeldNames = 100

func heldNames(plan *snapshot.Plan) string {
	var b strings.Builder
	for i, h := range plan.Held {
		if i == maxHeldNames {
			fmt.Fprintf(&b, " and %d more", len(plan.Held)-i)
			break
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(h.Name.String())
	}
	return b.String()
}

// prove opens an artefact with the keys that nodes trust: one that they would refuse is never stored.
func (s *Service) prove(a seal.Artefact, built *snapshot.Snapshot) (*snapshot.Snapshot, error) {
	v, err := seal.Open(a, s.trusted, built)
	if err := s.keyRefused(err); err != nil {
		return nil, err
	}
	if got := v.Snapshot().ContentHash(); got != built.ContentHash() {
		return nil, fmt.Errorf("what was sealed opens to content %s, not %s", got, built.ContentHash())
	}
	return v.Snapshot(), nil
}

// publishCheck bounds asking whether a publication whose answer was lost took place.
const publishCheck = 5 * time.Second

// publish moves the live pointer. An error of the store does not tell whether it did (the answer to the commit
// may be what was lost), so the store is asked: the generation of this publication is its own alone only
// together with its version.
func (s *Service) publish(ctx context.Context, pub Publication) error {
	err := s.store.Publish(ctx, pub)
	if err == nil || errors.Is(err, ErrConflict) {
		return err
	}
	ask, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishCheck)
	defer cancel()
	row, askErr := s.store.SnapshotByVersion(ask, pub.Activation.Version)
	switch {
	case errors.Is(askErr, ErrNotFound):
		return fmt.Errorf("publishing version %d: %w", pub.Activation.Version, err)
	case askErr != nil:
		return fmt.Errorf("publishing version %d: it may have been published, look at the history: %w",
			pub.Activation.Version, err)
	}
	if row.isOf(pub) {
		s.log.Warn("the store's answer to a publication was lost; it took place", "version", row.Version, "error", err)
		return nil
	}
	return fmt.Errorf("publishing version %d: %w", pub.Activation.Version, err)
}

// isOf tells whether the row's latest activation is that of pub, or, of a version that only pub can have
// inserted, an earlier one.
func (row *SnapshotRow) isOf(pub Publication) bool {
	if pub.Insert == nil {
		return row.Activation == pub.Signed
	}
	return slices.Contains(row.Generations, pub.Activation.Generation)
}

// live is what nodes are told once pub took place, of row and the seal that it has then.
func (pub Publication) live(row SnapshotRow, sealed seal.Sealed) *live {
	row.ActivatedAt, row.Generations = pub.At, append(slices.Clone(row.Generations), pub.Activation.Generation)
	row.Epoch, row.Activation, row.Kind = pub.Activation.Epoch, pub.Signed, pub.Activation.Kind
	return &live{
		epoch: row.Epoch, epochNow: row.Epoch, generation: pub.Activation.Generation,
		version: row.Version, newest: row.Version, hash: row.ContentHash, row: &row,
		artefact: &seal.Artefact{Sealed: sealed, Activation: pub.Signed},
	}
}

// auditTimeout bounds writing down that something was refused.
const auditTimeout = 5 * time.Second

// auditRefusal writes down a deed that was refused; the caller is gone perhaps, the entry is written still.
func (s *Service) auditRefusal(ctx context.Context, p Principal, action, target string, why error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditTimeout)
	defer cancel()
	a := s.entry(p, "", action, target)
	a.Outcome = outcome(why)
	if err := s.store.Append(ctx, a); err != nil {
		s.log.LogAttrs(ctx, slog.LevelError, "audit entry lost", slog.String("action", action),
			slog.String("outcome", a.Outcome), slog.Any("error", err))
	}
}
