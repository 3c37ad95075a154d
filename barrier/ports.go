package barrier

import (
	"context"
	"time"
)

// Proposal is a change that is put to the cohort. Durations that are zero take the Default constants; all
// are whole milliseconds.
type Proposal struct {
	ID             RolloutID     `json:"id"`       // made by the proposer: repeating the call with it is safe
	Proposer       string        `json:"proposer"` // who, for people
	Digest         Digest        `json:"digest"`   // of the artefact, which was put before
	Version        uint64        `json:"version"`
	RosterRevision uint64        `json:"roster_revision"` // the roster that the proposer saw
	Seen           uint64        `json:"seen"`            // Head.Generation when the proposer looked: what came since is not overrun
	After          uint64        `json:"after"`           // the generation is higher than this too
	Deadline       time.Duration `json:"deadline_ms"`     // for the votes, from the store's now
	Window         time.Duration `json:"window_ms"`       // confirm window; 0: none; else at least twice Soak
	Soak           time.Duration `json:"soak_ms"`         // with a window only
	Grace          time.Duration `json:"grace_ms"`        // with a window only: clock skew bound and one poll
	// EvidenceTTL, with a window only, is for how long evidence counts that is not renewed; 0: DefaultEvidenceTTL, or half of
	// Soak if that is less, but not less than 1 s. Evidence that is to live as long as Soak proves nothing but that it was given.
	EvidenceTTL time.Duration `json:"evidence_ttl_ms"`
}

// Reader reads the row. What it returns is linearizable: no older than any write that ended before the call.
type Reader interface {
	// Current returns the whole row and the store's time.
	Current(ctx context.Context) (Row, error)

	// Look returns the row as m needs it, and the store's time. m need not be in the roster.
	Look(ctx context.Context, m MemberID) (View, error)

	// Watch returns a channel that receives a value when the named part of the row may have changed, until ctx
	// ends, when it is closed. It is a hint: values are merged, can be late, lost or without cause. An adapter that cannot
	// tell returns a channel that only closes.
	Watch(ctx context.Context, t Topic) <-chan struct{}
}

// Topic is what a Watch is about.
type Topic string

// The topics: members watch the head; a coordinator watches both.
const (
	TopicHead  Topic = "head"  // Head and Roster
	TopicVotes Topic = "votes" // Ballots and Registrations
)

// Voter is what a member writes. Every call is atomic and durable when it returns nil; the same call again is a success
// without effect (I5), so that one whose answer was lost can be repeated.
type Voter interface {
	Reader

	// Join makes boot the member's current process, when incarnation is that of the registration that it read:
	// every earlier process's ballots stop counting, and its calls are ErrSuperseded. A registration that has
	// another incarnation, and not this boot, is ErrSuperseded: a delayed Join of an old process changes nothing.
	Join(ctx context.Context, m MemberID, boot BootID, incarnation uint64) (Registration, error)

	// Ack votes for the rollout: m has built it, and can swap to it. buildDigest, 0 to MaxDigestBytes bytes, says what was built;
	// members whose digests differ do not commit. Errors: ErrUnknown, ErrStranger, ErrSuperseded, ErrJoinedLate,
	// ErrDecided, ErrLate, ErrVoted.
	Ack(ctx context.Context, r Ref, m MemberID, boot BootID, buildDigest string) error

	// Nack votes against the rollout. Errors as Ack.
	Nack(ctx context.Context, r Ref, m MemberID, boot BootID, reason string) error

	// Converge writes or renews the evidence that m runs the rollout and has converged (I6). Evidence renewed
	// within its TTL holds since it was first written; otherwise it begins anew. Errors: ErrUnknown,
	// ErrStranger, ErrSuperseded, ErrJoinedLate (its process did not ack), ErrNoWindow, ErrDecided, ErrWithdrawn.
	Converge(ctx context.Context, r Ref, m MemberID, boot BootID, detail string) error

	// Withdraw takes m's evidence back, or says that m cannot run the rollout: the trial has failed there. It is not taken back
	// (a second Withdraw keeps the first reason). Errors as Converge, but for ErrWithdrawn.
	Withdraw(ctx context.Context, r Ref, m MemberID, boot BootID, reason string) error

	// Revert ends a confirm window; see Decider. Members call it by ByDeadman.
	Revert(ctx context.Context, r Ref, by Authority, reason string) error
}

// Decider is what a coordinator writes. Every call is one atomic, durable, conditional write: all conditions, those on the
// store's time too, are tested inside of it. The same decision again by the same claim is a success without
// effect (I4); a rollout that was decided otherwise is a *DecidedError.
type Decider interface {
	Reader

	// Claim makes t the token whose decisions count, and takes up a rollout that is proposed (it becomes
	// staging). A lower token than the row's is ErrFenced.
	Claim(ctx context.Context, t Token) error

	// Commit decides for the rollout (I2): the committed pointer moves, or with a window D is stamped. Errors:
	// ErrUnknown, ErrDecided, ErrFenced, ErrRoster, ErrLate, ErrBarrier.
	Commit(ctx context.Context, r Ref, t Token) error

	// Abort decides against the rollout, from proposed and staging. by is ByClaim or ByOperator.
	// Errors: ErrUnknown, ErrDecided, ErrFenced.
	Abort(ctx context.Context, r Ref, by Authority, reason string) error

	// Confirm ends a confirm window well (I7): the committed pointer moves. Errors: ErrUnknown, ErrDecided,
	// ErrFenced, ErrNoWindow, ErrLate, ErrNotConverged.
	Confirm(ctx context.Context, r Ref, t Token) error

	// Revert ends a confirm window badly (I8): by ByClaim or ByOperator at any time, by ByDeadman of any member
	// of the epoch after D + grace. Errors: ErrUnknown, ErrDecided, ErrFenced, ErrNoWindow, ErrStranger,
	// ErrSuperseded, ErrEarly.
	Revert(ctx context.Context, r Ref, by Authority, reason string) error
}

// Proposing is what a proposer and an operator write; atomic and durable as Voter.
type Proposing interface {
	Reader

	// Propose opens a rollout with the next generation (I1) whose epoch is the roster. The same proposal again
	// returns the same rollout, if it still is the newest. Errors: ErrInvalid with all problems, *OpenError, ErrRoster, ErrStale,
	// ErrNoBaseline.
	Propose(ctx context.Context, p Proposal) (Rollout, error)

	// SetRoster makes members (1 to MaxMembers, in any order) the cohort, if revision is the roster's. A rollout
	// that is proposed or staging is aborted by the same write; while a confirm window is open the roster cannot
	// change: *OpenError. The same members again change nothing. Errors: ErrInvalid, ErrRoster, *OpenError.
	SetRoster(ctx context.Context, revision uint64, members []MemberID) (Roster, error)

	// AdoptBaseline makes p, at generation 0, the committed pointer if there is none. It never rewinds.
	AdoptBaseline(ctx context.Context, p Pointer) (BaselineOutcome, error)
}

// BaselineOutcome is what became of a baseline.
type BaselineOutcome string

// The outcomes. BaselineSkipped and BaselineFailed are given by hosts, for a deployment that names no baseline and for
// one whose baseline is not there or contradicts the store's.
const (
	BaselineAdopted    BaselineOutcome = "adopted"    // it is the committed pointer now
	BaselineVerified   BaselineOutcome = "verified"   // it was already
	BaselineSuperseded BaselineOutcome = "superseded" // something was committed since
	BaselineSkipped    BaselineOutcome = "skipped"
	BaselineFailed     BaselineOutcome = "failed"
)

// Store is the whole of the row's port, as adapters implement it. Notifications are hints: callers re-read
// before each decision.
type Store interface {
	Voter
	Decider
	Proposing
}

// Lease says who coordinates.
type Lease struct {
	Holder string        `json:"holder"` // one process: random, or with something random in it
	Token  Token         `json:"token"`
	TTL    time.Duration `json:"ttl_ms"`
}

// Leases elects the coordinator. Tokens strictly increase, over all holders and for good: the row is never
// deleted. Correctness does not rest on a lease being held by one only (Claim fences), but progress does.
type Leases interface {
	// Acquire takes the lease for ttl (MinLease to MaxLease) if nobody holds it or its time is over, with a new token; for its present
	// holder it renews. *HeldError otherwise.
	Acquire(ctx context.Context, holder string, ttl time.Duration) (Lease, error)

	// Renew holds the lease for another TTL; ErrLost when its token is not the current one or it was released.
	Renew(ctx context.Context, l Lease) error

	// Release gives it back; ErrLost as Renew.
	Release(ctx context.Context, l Lease) error
}

// Artefacts keeps the bytes that rollouts carry: the candidate's, put before Propose, and the committed
// one's, so that a member can always fetch what it should run.
type Artefacts interface {
	// Put keeps bytes (at most MaxArtefactBytes, else ErrInvalid) under their digest, durably. Bytes under a digest never change:
	// a second Put extends the time. What the row does not name is deleted some time after ArtefactRetention.
	Put(ctx context.Context, d Digest, artefact []byte) error

	// Get returns the bytes; ErrNoArtefact when there are none. The caller checks the digest.
	Get(ctx context.Context, d Digest) ([]byte, error)
}

// Host is the program whose configuration is rolled out. Calls come one at a time, from the driver's goroutine.
type Host interface {
	// Digest returns the digest of artefact in the Host's scheme.
	Digest(artefact []byte) (Digest, error)

	// Classify says whether the running process can take over the artefact. running is what it runs; zero when nothing.
	Classify(ctx context.Context, running Pointer, artefact []byte) (Class, error)

	// Prepare validates and builds the artefact without serving it. The error is shown to people.
	Prepare(ctx context.Context, p Pointer, artefact []byte) (Prepared, error)

	// Converged says whether what was swapped last works, with what it saw; the driver asks at every poll of a
	// confirm window. The answer after a Swap concerns what that Swap installed.
	Converged(ctx context.Context) (Health, error)
}

// Health is a Host's judgement of what it runs.
type Health struct {
	Converged bool
	Detail    string // what was seen, for people: what failed, or what was checked
}

// Class says how a change can be taken over, with the reason and, if it is refused, the procedure.
type Class struct {
	Refused bool   // the change needs the process to be replaced, or the cohort refuses live changes
	Name    string // "live-safe", "replacement-required", "refuse"
	Reason  string
}

// Prepared is an artefact that was built and is not served yet. It is used once: Swap or Discard.
type Prepared interface {
	// BuildDigest says what was built, the same on every member that built the same; may be empty.
	BuildDigest() string

	// Swap makes it what is served. On an error the old still is.
	Swap(ctx context.Context) error

	// Discard frees it.
	Discard()
}

// Slots is a member's durable memory on its own machine: written whole, or not at all.
type Slots interface {
	// Load returns what is on the disk; the zero Memory at first. A member calls it at its start, and after a Save that
	// failed: the write may have been done, and what makes it durable not.
	Load(ctx context.Context) (Memory, error)

	// Save makes m durable before it returns, and forgets bytes that m does not name. The bytes that it names
	// were kept before.
	Save(ctx context.Context, m Memory) error

	// Keep makes the bytes of d durable before it returns.
	Keep(ctx context.Context, d Digest, artefact []byte) error

	// Bytes returns what was kept; ErrNoArtefact when it is not there.
	Bytes(ctx context.Context, d Digest) ([]byte, error)
}
