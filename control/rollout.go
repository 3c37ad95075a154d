package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/seal"
)

// RolloutMode is a way of publishing.
type RolloutMode string

// The ways. Direct is the default: each node converges on its own. Coordinated puts the change to the cohort, which
// takes it over together or not at all.
const (
	RolloutDirect      RolloutMode = "direct"
	RolloutCoordinated RolloutMode = "coordinated"
)

// ClusterSettings say how the platform publishes when a request does not.
type ClusterSettings struct {
	Rollout       RolloutMode
	ConfirmWindow time.Duration // 0: none; else at least twice Soak, and Rollout is coordinated
	Deadline      time.Duration // for the votes
	Soak          time.Duration
	Margin        int   // in hundredths of a percentage point: by how much the 5xx share may rise
	Revision      int64 // for compare-and-set; rises with each change
}

// DefaultMargin is one percentage point.
const DefaultMargin = 100

// ClusterSettingsEdit replaces the platform's settings. A nil member takes its default; one that is given counts as it is, and no zero
// stands for a default.
type ClusterSettingsEdit struct {
	Rollout       *RolloutMode   // default: RolloutDirect
	ConfirmWindow *time.Duration // default: none, which zero is too
	Deadline      *time.Duration // default: barrier.DefaultDeadline
	Soak          *time.Duration // default: barrier.DefaultSoak
	Margin        *int           // default: DefaultMargin
	Revision      int64          // the one that must stand
}

// RolloutRequest is how one apply or rollback is to be published; nil members take the platform's settings.
type RolloutRequest struct {
	Mode          RolloutMode // empty: the platform's
	ConfirmWindow *time.Duration
	Deadline      *time.Duration
	Soak          *time.Duration
	Margin        *int
}

// Rollout is one entry of the ledger.
type Rollout struct {
	barrier.Rollout
	Kind        seal.ActivationKind // apply or rollback
	ContentHash string
	Message     string
	By          string
	Margin      int
	Members     []RolloutMember // when asked for
	WaitingFor  []string        // names of members whose vote or evidence is missing, while it is open
	Now         time.Time       // the store's
	// Seen changes with everything that a person could see change, but for times of renewed evidence; see
	// AwaitRollout. Set when Members are.
	Seen string
}

// RolloutMember is one node's part in a rollout.
type RolloutMember struct {
	barrier.Seat
	Name      string
	Restarted bool // its process is not the one that voted
}

// RolloutOpenError refuses what cannot be done while a rollout is open; it is ErrRolloutOpen (409).
type RolloutOpenError struct{ Rollout barrier.Rollout }

func (e *RolloutOpenError) Error() string {
	state, verb := string(e.Rollout.State), "abort"
	if e.Rollout.OnTrial() {
		state, verb = "on trial", "revert"
	}
	return fmt.Sprintf("rollout %s (generation %d, version %d) is %s: wait for its end, or %s it first",
		e.Rollout.ID, e.Rollout.Generation, e.Rollout.Version, state, verb)
}

func (e *RolloutOpenError) Is(target error) bool { return target == ErrRolloutOpen }

// ErrRolloutOpen: a rollout is open.
var ErrRolloutOpen = errors.New("a rollout is open")

// ErrRolloutState: the rollout is in a state in which that cannot be done; see RolloutStateError.
var ErrRolloutState = errors.New("the rollout cannot be changed so any more")

// RolloutStateError refuses to abort or revert what is decided already, or not on trial (409); it is ErrRolloutState.
type RolloutStateError struct {
	Verb    string // "abort", "revert"
	Rollout barrier.Rollout
}

func (e *RolloutStateError) Error() string {
	s := fmt.Sprintf("rollout %s (generation %d, version %d) is %s", e.Rollout.ID, e.Rollout.Generation, e.Rollout.Version, e.Rollout.State)
	switch {
	case e.Verb == "abort" && e.Rollout.OnTrial():
		return s + ", on trial: revert it"
	case e.Verb == "revert" && e.Rollout.Voting():
		return s + ", not on trial: abort it"
	case e.Verb == "revert" && e.Rollout.State == barrier.Committed:
		return s + " without a confirm window: roll back"
	}
	return s
}

func (e *RolloutStateError) Is(target error) bool { return target == ErrRolloutState }

// Cohort is the rollout store, as the control plane uses it: barrier/sqlstore in the control plane's own database. What
// must happen together with a move of the live pointer happens in Store's and Cohort's common transaction, which the host wires
// (see Service.Decided and RolloutStore).
type Cohort interface {
	barrier.Store
	barrier.Leases
	// Rollouts lists newest first, before a generation (0: from the newest).
	Rollouts(ctx context.Context, limit int, before uint64) ([]barrier.Rollout, error)
	// Rollout returns one with its seats; barrier.ErrUnknown when there never was one of that id.
	Rollout(ctx context.Context, id barrier.RolloutID) (barrier.Rollout, []barrier.Seat, error)
}
