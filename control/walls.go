package control

import (
	"context"
	"time"

	"github.com/guardyn-edge/guardyn/internal/nodeproto"
)

// ClusterSettings returns how the platform publishes (operator). No member is zero but ConfirmWindow.
func (s *Service) ClusterSettings(ctx context.Context, p Principal) (ClusterSettings, error) {
	panic("unbuilt")
}

// PutClusterSettings replaces the platform's settings when c.Revision is the one that stands (operator): ErrConflict.
// Members that are zero take their defaults. A *ProblemsError names everything that is wrong.
func (s *Service) PutClusterSettings(ctx context.Context, p Principal, c ClusterSettings) (ClusterSettings, error) {
	panic("unbuilt")
}

// Decided says what the control plane's rows take over of a step of a rollout. The host has the store call it in the
// transaction of the step.
func (s *Service) Decided(ctx context.Context, f DecisionFacts) (Decision, error) { panic("unbuilt") }

// Rollouts lists the ledger, newest first, without members (operator). The page key is the generation in decimal.
func (s *Service) Rollouts(ctx context.Context, p Principal, page Page) (Listing[Rollout], error) {
	panic("unbuilt")
}

// CurrentRollout names the newest rollout where an id is asked for.
const CurrentRollout = "current"

// Rollout returns one rollout with its members (operator). ErrNotFound.
func (s *Service) Rollout(ctx context.Context, p Principal, id string) (Rollout, error) {
	panic("unbuilt")
}

// AwaitRollout is Rollout as soon as its Seen is not seen, at once when it is over, and after wait at the latest (operator).
func (s *Service) AwaitRollout(ctx context.Context, p Principal, id, seen string, wait time.Duration) (Rollout, error) {
	panic("unbuilt")
}

// AbortRollout ends a rollout that is voted on (operator). *RolloutStateError when it is decided otherwise; of one that is
// aborted already it is a success.
func (s *Service) AbortRollout(ctx context.Context, p Principal, id, reason string) (Rollout, error) {
	panic("unbuilt")
}

// RevertRollout ends a trial (operator). Errors as AbortRollout.
func (s *Service) RevertRollout(ctx context.Context, p Principal, id, reason string) (Rollout, error) {
	panic("unbuilt")
}

// CreateMember is CreateNode of a node that takes part in rollouts from the start (operator). *RolloutOpenError while one is
// on trial; one that is voted on is aborted.
func (s *Service) CreateMember(ctx context.Context, p Principal, name string) (NewNode, error) {
	panic("unbuilt")
}

// DrainNode takes a node, by id or name, out of the cohort (operator); one that is out already stays. A rollout that is
// voted on is aborted; *RolloutOpenError while one is on trial.
func (s *Service) DrainNode(ctx context.Context, p Principal, ref string) (Node, error) {
	panic("unbuilt")
}

// UndrainNode puts a node into the cohort (operator); else as DrainNode.
func (s *Service) UndrainNode(ctx context.Context, p Principal, ref string) (Node, error) {
	panic("unbuilt")
}

// NodeSelf tells a node who it is (node).
func (s *Service) NodeSelf(ctx context.Context, p Principal) (nodeproto.Self, error) {
	panic("unbuilt")
}

// CandidateFor returns what the open rollout carries to a node of its epoch (node). ErrNotFound for any other node or
// digest. The candidate is shared and must not be changed.
func (s *Service) CandidateFor(ctx context.Context, p Principal, digest string) (nodeproto.Candidate, error) {
	panic("unbuilt")
}
