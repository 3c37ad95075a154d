package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
	"unicode/utf8"

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
	// IdempotencyKey, when not empty, makes a repetition of this request by the same user within
	// ReplayAge give the first answer, whichever process it reaches: 1 to MaxIdempotencyKey printable ASCII
	// characters. With another request under the same key it is ErrKeyReused.
	IdempotencyKey string
}

// ReasonNoChanges is the ApplyResult.Reason of an apply that had nothing to do.
const ReasonNoChanges = "no_changes"

// ApplyResult tells what an apply did.
type ApplyResult struct {
	Applied     bool
	Reason      string // when not applied: ReasonNoChanges
	Version     uint64 // live now; 0: nothing is published
	Generation  uint64
	ContentHash string
	Zones       int
	Plan        *snapshot.Plan
	Replayed    bool // this is the first answer of a request that was repeated
}

// actionApply names an apply in the audit log.
const actionApply = "config.apply"

// Apply publishes (operator). Errors: *ProblemsError (it cannot be built), *PlanChangedError,
// *DisruptiveError, *StaleError (which is ErrConflict), ErrKeyMismatch. With any error nothing was
// published, except when the store's answer to the commit was lost and it could not be asked again; history
// tells then.
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
	res, err := s.apply(ctx, p, r)
	switch {
	case err != nil:
		s.count.failures.Add(1)
		s.auditRefusal(ctx, p, actionApply, err)
	case res.Applied:
		s.count.applies.Add(1)
		s.log.Info("applied", "version", res.Version, "generation", res.Generation, "content_hash", res.ContentHash,
			"zones", res.Zones, "changes", res.Plan.Changes, "by", p.actor())
	}
	return res, err
}

func (r ApplyRequest) check() error {
	if len(r.Message) > MaxMessage || !utf8.ValidString(r.Message) {
		return malformed("", "message", "message_invalid", "a message is at most %d bytes of UTF-8", MaxMessage)
	}
	if h := r.ExpectedContentHash; h != "" && !isHex(h, 64) {
		return malformed("", "expected_content_hash", "hash_invalid",
			"a content hash is 64 lower-case hex digits, as the plan shows it")
	}
	return nil
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

// apply is the algorithm: preview, decide, rebuild with a version, seal, prove, publish.
func (s *Service) apply(ctx context.Context, p Principal, r ApplyRequest) (ApplyResult, error) {
	pre, err := s.preview(ctx)
	if err != nil {
		return ApplyResult{}, err
	}
	hash := pre.snap.ContentHash()
	if pre.live != nil && pre.live.ContentHash == hash && !r.Reseal {
		return ApplyResult{
			Reason: ReasonNoChanges, Version: pre.live.Version, Generation: pre.platform.Generation,
			ContentHash: hash, Zones: pre.snap.Len(), Plan: pre.plan,
		}, nil
	}
	if r.ExpectedContentHash != "" && r.ExpectedContentHash != hash {
		return ApplyResult{}, &PlanChangedError{Plan: pre.plan}
	}
	if pre.plan.Disruptive && !r.AcceptDisruption {
		return ApplyResult{}, &DisruptiveError{Plan: pre.plan}
	}
	if err := s.keyIsTrusted(); err != nil {
		return ApplyResult{}, err
	}
	pub, snap, err := s.prepare(ctx, p, pre, r.Message)
	if err != nil {
		return ApplyResult{}, err
	}
	if err := s.publish(ctx, pub); err != nil {
		if !errors.Is(err, ErrConflict) {
			return ApplyResult{}, err
		}
		stale := &StaleError{}
		if again, err := s.preview(ctx); err == nil {
			stale.Plan = again.plan
		}
		return ApplyResult{}, stale
	}
	s.opened.set(snap)
	s.live.move(pub.live())
	return ApplyResult{
		Applied: true, Version: pub.Activation.Version, Generation: pub.Activation.Generation,
		ContentHash: hash, Zones: snap.Len(), Plan: pre.plan,
	}, nil
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

// prepare takes a version, rebuilds the preview's content with it, seals that, activates it and opens the
// result as a node would.
func (s *Service) prepare(ctx context.Context, p Principal, pre preview, message string) (Publication, *snapshot.Snapshot, error) {
	version, err := s.store.NextVersion(ctx)
	if err != nil {
		return Publication{}, nil, fmt.Errorf("taking a version: %w", err)
	}
	at := s.now().UTC().Truncate(time.Millisecond)
	meta := snapshot.Meta{Version: version, CreatedAt: at, CreatedBy: p.actor(), Message: message}
	if pre.live != nil {
		meta.ParentVersion = pre.live.Version
	}
	snap := pre.snap.WithMeta(meta)
	sealed, err := seal.Seal(s.key, snap)
	if err != nil {
		return Publication{}, nil, fmt.Errorf("sealing version %d: %w", version, err)
	}
	act := seal.Activation{
		Platform: pre.platform.ID, Epoch: pre.platform.Epoch, Generation: pre.platform.Generation + 1,
		Kind: seal.KindApply, Version: version, ContentHash: sealed.ContentHash, PayloadBLAKE3: sealed.PayloadBLAKE3,
		PayloadBytes: int64(len(sealed.Payload)), ParentGeneration: pre.platform.Generation, IssuedAt: at,
	}
	signed, err := seal.Activate(s.key, sealed, act)
	if err != nil {
		return Publication{}, nil, fmt.Errorf("activating version %d: %w", version, err)
	}
	proven, err := s.prove(seal.Artefact{Sealed: sealed, Activation: signed}, snap)
	if err != nil {
		return Publication{}, nil, fmt.Errorf("version %d: %w", version, err)
	}
	pub := Publication{
		SeenGeneration: pre.platform.Generation,
		Insert: &NewSnapshot{
			Row: SnapshotRow{
				Version: version, ParentVersion: meta.ParentVersion, ContentHash: sealed.ContentHash,
				CreatedBy: meta.CreatedBy, Message: message, CreatedAt: at, Zones: snap.Len(),
				Bytes: act.PayloadBytes, KeyID: sealed.KeyID,
			},
			Sealed: sealed,
		},
		Activation: act, Signed: signed, By: p.actor(), At: at,
		Audit: s.entry(p, "", actionApply, fmt.Sprintf("version %d", version)),
	}
	pub.Audit.Detail = detail(map[string]any{
		"generation": act.Generation, "content_hash": act.ContentHash, "message": message, "changes": pre.plan.Changes,
		"disruptive": pre.plan.Disruptive,
	})
	return pub, proven, nil
}

// prove opens an artefact with the keys that nodes trust: one that they would refuse is never stored.
func (s *Service) prove(a seal.Artefact, built *snapshot.Snapshot) (*snapshot.Snapshot, error) {
	v, err := seal.Open(a, s.trusted, built)
	var refusal *seal.Refusal
	if errors.As(err, &refusal) {
		switch refusal.Code {
		case seal.CodeKeyUntrusted, seal.CodeSignatureMalformed, seal.CodeSignatureInvalid, seal.CodeActivationInvalid:
			return nil, fmt.Errorf("%w: %w", ErrKeyMismatch, err)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("what was sealed does not open: %w", err)
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
	for _, g := range row.Generations {
		if g == pub.Activation.Generation {
			s.log.Warn("the store's answer to a publication was lost; it took place", "version", row.Version, "error", err)
			return nil
		}
	}
	return fmt.Errorf("publishing version %d: %w", pub.Activation.Version, err)
}

// live is what nodes are told once pub took place.
func (pub Publication) live() *live {
	row := pub.Insert.Row
	row.ActivatedAt, row.Generations = pub.At, []uint64{pub.Activation.Generation}
	row.Epoch, row.Activation, row.Kind = pub.Activation.Epoch, pub.Signed, pub.Activation.Kind
	return &live{
		epoch: row.Epoch, epochNow: row.Epoch, generation: pub.Activation.Generation,
		version: row.Version, newest: row.Version, hash: row.ContentHash, row: &row,
		artefact: &seal.Artefact{Sealed: pub.Insert.Sealed, Activation: pub.Signed},
	}
}

// auditTimeout bounds writing down that something was refused.
const auditTimeout = 5 * time.Second

// auditRefusal writes down a deed that was refused; the caller is gone perhaps, the entry is written still.
func (s *Service) auditRefusal(ctx context.Context, p Principal, action string, why error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditTimeout)
	defer cancel()
	a := s.entry(p, "", action, "")
	a.Outcome = outcome(why)
	if err := s.store.Append(ctx, a); err != nil {
		s.log.LogAttrs(ctx, slog.LevelError, "audit entry lost", slog.String("action", action),
			slog.String("outcome", a.Outcome), slog.Any("error", err))
	}
}
