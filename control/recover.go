package control

import (
	"context"
	"fmt"
	"time"

	"github.com/guardyn-edge/guardyn/seal"
)

// AheadNode is what a node proved: an activation that was signed with the control plane's own key and is
// newer than what this database knows. It is kept until the epoch is raised.
type AheadNode struct {
	Node       string // its name
	Epoch      uint64
	Generation uint64
	Version    uint64
	Activation seal.SignedActivation
	SeenAt     time.Time
}

// AheadNodeError refuses to sign: a node has what a database restored from an old backup forgot, and would
// refuse whatever is signed next. Hint: gdn recover --bump-epoch. It is ErrNodeAhead (409).
type AheadNodeError struct{ Ahead AheadNode }

func (e *AheadNodeError) Error() string {
	return fmt.Sprintf("node %s serves epoch %d, generation %d (version %d), signed with this control plane's key and newer than all that its database knows: the database was restored from an older backup; nothing is signed until the epoch is raised",
		e.Ahead.Node, e.Ahead.Epoch, e.Ahead.Generation, e.Ahead.Version)
}

func (e *AheadNodeError) Is(target error) bool { return target == ErrNodeAhead }

// RecoverRequest asks for a recovery. BumpEpoch is the only kind there is and must be set.
type RecoverRequest struct {
	BumpEpoch bool
	// Message for the audit log, at most MaxMessage bytes of UTF-8.
	Message string
}

// RecoverResult tells what a recovery did. Ahead is the refusal that it lifted, nil when none stood.
type RecoverResult struct {
	EpochBefore uint64
	Epoch       uint64
	Ahead       *AheadNode
}

// actionRecover names a recovery in the audit log.
const actionRecover = "config.recover"

// Recover raises the epoch after the database was restored from an old backup (operator). Everything that is
// signed from then on is newer than whatever nodes show of the epochs before; it lifts the refusal that
// AheadNodeError tells of. Versions that a node showed are not given out again. Nodes follow with the next
// apply, which publishes even when nothing else changed. ErrConflict when another recovery was faster,
// *RolloutOpenError while a rollout is open.
func (s *Service) Recover(ctx context.Context, p Principal, r RecoverRequest) (RecoverResult, error) {
	if err := p.operates(); err != nil {
		return RecoverResult{}, err
	}
	var kind *Problem
	if !r.BumpEpoch {
		kind = &Problem{Object: "bump_epoch", Code: "recovery_unspecified", Message: "say how to recover: raising the epoch (bump_epoch) is the one way there is"}
	}
	if err := joinProblems(kind, checkMessage(r.Message)); err != nil {
		return RecoverResult{}, err
	}
	res, err := s.recoverEpoch(ctx, p, r)
	if err != nil {
		s.auditRefusal(ctx, p, actionRecover, "", err)
		return RecoverResult{}, err
	}
	s.log.Warn("the epoch was raised", "from", res.EpochBefore, "to", res.Epoch, "by", p.actor())
	// Memory follows; if the store does not answer now, Run asks again.
	if _, err := s.refreshLive(ctx); err != nil {
		s.log.Warn("what is live could not be read after a recovery", "error", err)
	}
	return res, nil
}

func (s *Service) recoverEpoch(ctx context.Context, p Principal, r RecoverRequest) (RecoverResult, error) {
	platform, err := s.store.Platform(ctx)
	if err != nil {
		return RecoverResult{}, fmt.Errorf("reading the platform: %w", err)
	}
	res := RecoverResult{EpochBefore: platform.Epoch, Epoch: platform.Epoch + 1, Ahead: platform.Ahead}
	b := EpochBump{SeenEpoch: platform.Epoch}
	told := map[string]any{"before": platform.Epoch, "message": r.Message}
	if a := platform.Ahead; a != nil {
		res.Epoch = max(res.Epoch, a.Epoch+1)
		b.Version, b.Generation = a.Version, a.Generation
		told["node"], told["node_epoch"], told["node_generation"], told["node_version"] = a.Node, a.Epoch, a.Generation, a.Version
	}
	b.Epoch = res.Epoch
	b.Audit = s.entry(p, "", actionRecover, fmt.Sprintf("epoch %d", res.Epoch))
	b.Audit.Detail = detail(told)
	if err := s.store.BumpEpoch(ctx, b); err != nil {
		return RecoverResult{}, fmt.Errorf("recovering: %w", err)
	}
	return res, nil
}

// believe takes the activation that a node acknowledges at its word when the control plane's own key signed
// it: one that is newer than all that the store knows stops all signing until the epoch is raised.
// What is on trial proves nothing, whoever shows it.
func (s *Service) believe(ctx context.Context, p *Principal, l *live, t *trial, signed seal.SignedActivation) error {
	if signed == "" {
		return nil
	}
	act, _, err := seal.VerifyActivation(signed, s.own)
	if err != nil {
		return nil // another key's, or nobody's: it proves nothing
	}
	if !newer(act.Epoch, act.Generation, l.epochNow, l.generation) || s.roster.wasBelieved(p, signed) ||
		t.issued(act.Epoch, act.Generation) && act.Rollout == string(t.row.ID) {
		return nil
	}
	n := AheadNode{
		Node: p.NodeName, Epoch: act.Epoch, Generation: act.Generation, Version: act.Version, Activation: signed, SeenAt: s.now().UTC(),
	}
	a := s.entry(*p, "", actionAheadProven, fmt.Sprintf("epoch %d generation %d", act.Epoch, act.Generation))
	a.Outcome = "ahead_node"
	a.Detail = detail(map[string]any{"version": act.Version, "epoch": l.epochNow, "generation": l.generation, "platform": act.Platform})
	recorded, err := s.store.RecordAhead(ctx, n, a)
	if err != nil {
		return err
	}
	s.roster.setBelieved(p, signed)
	if recorded {
		s.log.Error("a node proves to be ahead of this control plane; nothing is signed until the epoch is raised: gdn recover --bump-epoch",
			"node", p.NodeName, "node_epoch", act.Epoch, "node_generation", act.Generation, "node_version", act.Version,
			"epoch", l.epochNow, "generation", l.generation)
	}
	return nil
}
