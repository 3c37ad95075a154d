package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/snapshot"
)

// actionPropose names a proposal in the audit log.
const actionPropose = "rollout.propose"

// candidate is what is to be put to the cohort.
type candidate struct {
	kind     seal.ActivationKind
	platform Platform // what it was compared with
	sealed   seal.Sealed
	insert   *NewSnapshot // nil: it is stored
	reseal   bool         // the stored seal is another
	snap     *snapshot.Snapshot
	message  string
	at       time.Time
	detail   map[string]any // of the audit entry
}

// propose puts c to the cohort. keep gives what is kept for a repetition. An answer of the store's that was lost is asked
// for: an id is proposed once.
func (s *Service) propose(ctx context.Context, p Principal, h *publishing, c candidate, keep func(barrier.Rollout) (*Replay, error)) (*Rollout, error) {
	if err := s.proveCandidate(c.sealed, c.snap); err != nil {
		return nil, fmt.Errorf("version %d: %w", c.sealed.Version, err)
	}
	n := NewRollout{
		Row: RolloutRow{
			ID: barrier.NewRolloutID(), Epoch: c.platform.Epoch, Kind: c.kind, Version: c.sealed.Version, ContentHash: c.sealed.ContentHash,
			Message: c.message, By: p.actor(), Margin: h.Margin, CreatedAt: c.at,
		},
		SeenGeneration: c.platform.Generation, Insert: c.insert,
		Proposal: barrier.Proposal{
			Proposer: p.actor(), Digest: barrier.Digest(nodeproto.CandidateDigest(c.sealed.ContentHash)), Version: c.sealed.Version,
			RosterRevision: h.roster.Revision, Seen: h.head.Generation, After: c.platform.Generation, Deadline: h.Deadline, Window: h.ConfirmWindow,
		},
	}
	n.Proposal.ID = n.Row.ID
	if h.ConfirmWindow > 0 {
		n.Proposal.Soak = h.Soak
	}
	if c.reseal {
		n.Reseal = &c.sealed
	}
	n.Complete = func(ro barrier.Rollout) (AuditEntry, *Replay, error) {
		a := s.entry(p, "", actionPropose, fmt.Sprintf("rollout %s", ro.ID))
		told := maps.Clone(c.detail)
		maps.Copy(told, map[string]any{
			"kind": string(c.kind), "version": c.sealed.Version, "generation": ro.Generation, "content_hash": c.sealed.ContentHash,
			"message": c.message, "key_id": string(c.sealed.KeyID), "members": ro.EpochSize, "roster_revision": ro.RosterRevision,
			"deadline": h.Deadline.String(), "confirm_window": h.ConfirmWindow.String(),
		})
		a.Detail = detail(told)
		r, err := keep(ro)
		return a, r, err
	}
	ro, err := s.store.ProposeRollout(ctx, n)
	if err != nil {
		if ro, err = s.proposedAfterAll(ctx, n, err); err != nil {
			return nil, err
		}
	}
	s.count.proposals.Add(1)
	s.log.Info("a rollout was proposed", "rollout", string(ro.ID), "generation", ro.Generation, "version", ro.Version, "kind", string(c.kind),
		"members", ro.EpochSize, "deadline", ro.Deadline, "confirm_window", ro.Window, "by", p.actor())
	if err := s.refreshTrial(ctx); err != nil {
		s.log.Warn("the rollout could not be read after it was proposed", "error", err) // Run asks again
	}
	n.Row.Generation = ro.Generation
	out := n.Row.rollout(ro)
	return &out, nil
}

// proposedAfterAll finds out whether a proposal took place that the store says failed.
func (s *Service) proposedAfterAll(ctx context.Context, n NewRollout, why error) (barrier.Rollout, error) {
	switch {
	case errors.Is(why, barrier.ErrNoBaseline):
		return barrier.Rollout{}, joinProblems(withoutLive())
	case errors.Is(why, ErrConflict), errors.Is(why, ErrRolloutOpen), errors.Is(why, ErrNodeAhead), errors.Is(why, barrier.ErrInvalid):
		return barrier.Rollout{}, why
	}
	ask, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishCheck)
	defer cancel()
	ro, _, err := s.cohort.Rollout(ask, n.Row.ID)
	switch {
	case err == nil:
		s.log.Warn("the store's answer to a proposal was lost; it took place", "rollout", string(ro.ID), "error", why)
		return ro, nil
	case errors.Is(err, barrier.ErrUnknown):
		return ro, fmt.Errorf("proposing version %d: %w", n.Row.Version, why)
	}
	return ro, fmt.Errorf("proposing version %d: it may have been proposed, look at the rollouts: %w", n.Row.Version, why)
}

func withoutLive() *Problem {
	return rolloutProblem("rollout", "nothing_live", "nothing is live yet: nodes that were never given a configuration do not vote, and have nothing to go back to; publish the first one directly (gdn apply --direct)")
}

// proveCandidate opens a candidate with the keys that nodes trust: one that they would refuse is never proposed.
func (s *Service) proveCandidate(sealed seal.Sealed, built *snapshot.Snapshot) error {
	c, err := seal.OpenCandidate(sealed, s.trusted, built)
	if err := s.keyRefused(err); err != nil {
		return err
	}
	if got := c.Snapshot().ContentHash(); got != built.ContentHash() {
		return fmt.Errorf("what was sealed opens to content %s, not %s", got, built.ContentHash())
	}
	return nil
}

// keyRefused tells why what was sealed here does not open; ErrKeyMismatch when it is the key.
func (s *Service) keyRefused(err error) error {
	var refusal *seal.Refusal
	if errors.As(err, &refusal) {
		switch refusal.Code {
		case seal.CodeKeyUntrusted, seal.CodeSignatureMalformed, seal.CodeSignatureInvalid, seal.CodeActivationInvalid:
			return fmt.Errorf("%w: %w", ErrKeyMismatch, err)
		}
	}
	if err != nil {
		return fmt.Errorf("what was sealed does not open: %w", err)
	}
	return nil
}

// proposed completes the answer to a request that proposed a rollout, now or when it was first sent.
func (s *Service) proposed(ctx context.Context, id barrier.RolloutID, have *Rollout) (*Rollout, error) {
	if id == "" || have != nil {
		return have, nil
	}
	if s.cohort == nil {
		return nil, fmt.Errorf("rollout %s: %s: %w", id, noCohort, ErrNotFound)
	}
	ro, err := s.rollout(ctx, id)
	if err != nil {
		return nil, err
	}
	return &ro, nil
}
