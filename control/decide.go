package control

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/seal"
)

// The steps of rollouts in the audit log, beside actionPropose.
const (
	actionStage         = "rollout.stage"
	actionRolloutCommit = "rollout.commit"
	actionAbort         = "rollout.abort"
	actionConfirm       = "rollout.confirm"
	actionRevert        = "rollout.revert"
)

// deciderKey is of the Principal in the context of a call by which a person decides.
type deciderKey struct{}

// Decided says what the control plane's rows take over of a step of a rollout. The host has the store call it in the
// transaction of the step, so it judges by f alone and writes nothing. An error refuses the step: what cannot be signed here
// is not committed and not confirmed, and the deadline ends it. A trial is taken back whatever cannot be signed.
func (s *Service) Decided(ctx context.Context, f DecisionFacts) (Decision, error) {
	ro := f.After.Rollout
	d := Decision{Rollout: ro.ID}
	at := s.now().UTC().Truncate(time.Millisecond)
	audit := s.decisionEntry(ctx, f)
	var err error
	switch ro.State {
	case barrier.Staging:
		audit.Action = actionStage
	case barrier.Aborted:
		audit.Action = actionAbort
	case barrier.Committed:
		audit.Action = actionRolloutCommit
		if ro.Window == 0 {
			d.Publish, err = s.settle(f, f.Row.Kind, audit, at)
		} else {
			_, d.Provisional, err = s.sign(f, seal.KindProvisional, f.Candidate, ro.Generation, at)
		}
	case barrier.Confirmed:
		audit.Action = actionConfirm
		d.Publish, err = s.settle(f, seal.KindConfirmed, audit, at)
	case barrier.Reverted:
		audit.Action = actionRevert
		var why string
		if d.Publish, why = s.takeBack(f, audit, at); d.Publish == nil {
			s.log.Warn("a trial was taken back, and what is live is not activated anew: nodes of the cohort go back by themselves",
				"rollout", string(ro.ID), "reason", why)
		}
	default:
		return Decision{}, fmt.Errorf("a rollout does not become %q", ro.State)
	}
	if err != nil {
		return Decision{}, err
	}
	if d.Publish == nil {
		d.Audit = []AuditEntry{audit}
	}
	s.decisions.note(ro)
	return d, nil
}

// settle is the publication of what was decided for.
func (s *Service) settle(f DecisionFacts, kind seal.ActivationKind, audit AuditEntry, at time.Time) (*Publication, error) {
	act, signed, err := s.sign(f, kind, f.Candidate, f.After.Rollout.Generation, at)
	if err != nil {
		return nil, err
	}
	pub := &Publication{SeenGeneration: f.Platform.Generation, Activation: act, Signed: signed, By: f.Row.By, At: at, Audit: audit}
	if l := f.Live; l != nil && l.KeyID != f.Candidate.KeyID {
		a := s.entry(Principal{}, "", actionKeySwitch, string(f.Candidate.KeyID))
		a.Detail = detail(map[string]any{"before": string(l.KeyID)})
		pub.Also = []AuditEntry{a}
	}
	return pub, nil
}

// takeBack activates what is live under the next generation, so that every node agrees again; nil, and why, when that
// cannot be signed.
func (s *Service) takeBack(f DecisionFacts, audit AuditEntry, at time.Time) (*Publication, string) {
	if f.Live == nil {
		return nil, "nothing is live"
	}
	generation := max(f.Platform.Generation, f.After.Generation) + 1
	act, signed, err := s.sign(f, seal.KindReverted, *f.Live, generation, at)
	if err != nil {
		return nil, err.Error()
	}
	return &Publication{SeenGeneration: f.Platform.Generation, Activation: act, Signed: signed, By: f.Row.By, At: at, Audit: audit}, ""
}

// sign makes an activation, in the deciding transaction and never before, and verifies it as a node would.
func (s *Service) sign(f DecisionFacts, kind seal.ActivationKind, what StoredSeal, generation uint64, at time.Time) (seal.Activation, seal.SignedActivation, error) {
	act := seal.Activation{
		Platform: f.Platform.ID, Epoch: f.Platform.Epoch, Generation: generation, Kind: kind,
		Version: what.Version, ContentHash: what.ContentHash, PayloadBLAKE3: what.PayloadBLAKE3, PayloadBytes: what.Bytes,
		ParentGeneration: f.Platform.Generation, Rollout: string(f.After.Rollout.ID), IssuedAt: at,
	}
	switch {
	case f.Platform.Ahead != nil:
		return act, "", fmt.Errorf("%w: nothing is signed until the epoch is raised", ErrNodeAhead)
	case f.Row.Epoch != f.Platform.Epoch:
		return act, "", fmt.Errorf("%w: the rollout was proposed in epoch %d, and this is epoch %d", ErrConflict, f.Row.Epoch, f.Platform.Epoch)
	}
	signed, err := seal.ActivateStored(s.key, what.KeyID, act)
	if err != nil {
		return act, "", err
	}
	if _, _, err := seal.VerifyActivation(signed, s.trusted); err != nil {
		return act, "", s.keyRefused(err)
	}
	return act, signed, nil
}

// decisionEntry is the audit entry of a step, without its action.
func (s *Service) decisionEntry(ctx context.Context, f DecisionFacts) AuditEntry {
	ro := f.After.Rollout
	p, _ := ctx.Value(deciderKey{}).(Principal)
	a := s.entry(p, "", "", fmt.Sprintf("rollout %s", ro.ID))
	if operator, ok := strings.CutPrefix(ro.DecidedBy, "operator "); ok {
		a.Actor = operator
	}
	if f.Node != "" {
		a.Actor = "node " + f.Node
	}
	told := map[string]any{
		"generation": ro.Generation, "version": ro.Version, "content_hash": f.Row.ContentHash, "members": ro.EpochSize,
		"by": ro.DecidedBy, "reason": ro.Reason, "proposed_by": f.Row.By,
	}
	if ro.OnTrial() {
		told["confirm_deadline"] = ro.ConfirmDeadline.UTC().Format(time.RFC3339Nano)
	}
	a.Detail = detail(told)
	return a
}
