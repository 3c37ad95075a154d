package barrier

import (
	"fmt"
	"slices"
	"time"
)

// MemberID names a member of the cohort, for as long as it belongs to it: 1 to MaxIDBytes bytes of letters,
// digits, '.', '_' and '-'.
type MemberID string

// BootID names one process of a member: random, new at each start. Votes and evidence belong to it.
type BootID string

// RolloutID is the UUID of a rollout, made by its proposer. Generations can come again when a store is
// restored from a backup; a RolloutID cannot, so every vote and decision names both.
type RolloutID string

// Token is a coordinator's lease token: a number that only grows, over all owners and for good. 0 is none.
type Token uint64

// Digest identifies an artefact's bytes as "scheme:value", for example "sha256:…"; at most MaxDigestBytes
// bytes. Only the Host knows what the scheme means.
type Digest string

// State is how far a rollout has come.
type State string

// The states, of which Proposed, Staging and a Committed with a confirm window are open: no other rollout
// can be proposed until they have ended.
const (
	Proposed  State = "proposed"  // waits for a coordinator to take it up; members may vote already
	Staging   State = "staging"   // a coordinator with a claim counts the votes
	Committed State = "committed" // decided; with a confirm window members run it on trial
	Aborted   State = "aborted"   // final: nobody ran it
	Confirmed State = "confirmed" // final: the whole cohort proved in time that it works
	Reverted  State = "reverted"  // final: the trial failed, the cohort runs the committed pointer again
)

// Ref names one rollout.
type Ref struct {
	ID         RolloutID `json:"id"`
	Generation uint64    `json:"generation"`
}

func (r Ref) String() string { return fmt.Sprintf("generation %d (%s)", r.Generation, r.ID) }

// Pointer names an artefact that was decided or proposed: whose generation it is, its digest, and the version that its
// owner gave it. A Pointer without a digest is none.
type Pointer struct {
	Generation uint64 `json:"generation"`
	Digest     Digest `json:"digest"`
	Version    uint64 `json:"version"`
}

// IsZero tells whether p points to nothing.
func (p Pointer) IsZero() bool { return p.Digest == "" }

func (p Pointer) String() string {
	if p.IsZero() {
		return "nothing"
	}
	return fmt.Sprintf("generation %d (version %d, %s)", p.Generation, p.Version, p.Digest)
}

// Rollout is one change that is put to the cohort. All times are the store's. In JSON, here and in Proposal, a
// name that ends in _ms is of a duration: whoever encodes it writes whole milliseconds.
type Rollout struct {
	Ref
	Digest         Digest        `json:"digest"`
	Version        uint64        `json:"version"`
	Proposer       string        `json:"proposer"`
	RosterRevision uint64        `json:"roster_revision"` // of the roster that was frozen as its epoch
	EpochSize      int           `json:"epoch_size"`      // members in the epoch
	Window         time.Duration `json:"window_ms"`       // confirm window; 0: none
	Soak           time.Duration `json:"soak_ms"`         // how long evidence holds without a break before Confirm
	Grace          time.Duration `json:"grace_ms"`        // what members add to the confirm deadline before they revert
	EvidenceTTL    time.Duration `json:"evidence_ttl_ms"` // evidence that was not renewed for so long has expired
	ProposedAt     time.Time     `json:"proposed_at"`
	Deadline       time.Time     `json:"deadline"` // Commit only until then

	State           State     `json:"state"`
	CommittedAt     time.Time `json:"committed_at,omitzero"`
	ConfirmDeadline time.Time `json:"confirm_deadline,omitzero"` // D: stamped by the store at a Commit with a window
	DecidedAt       time.Time `json:"decided_at,omitzero"`       // of the last decision
	DecidedBy       string    `json:"decided_by,omitzero"`       // see Authority.String
	Reason          string    `json:"reason,omitzero"`           // of Abort or Revert
}

// Pointer returns what the rollout carries.
func (r Rollout) Pointer() Pointer {
	return Pointer{Generation: r.Generation, Digest: r.Digest, Version: r.Version}
}

// Open tells whether the rollout keeps others from being proposed (I1).
func (r Rollout) Open() bool {
	return r.State == Proposed || r.State == Staging || r.OnTrial()
}

// Voting tells whether members may vote.
func (r Rollout) Voting() bool { return r.State == Proposed || r.State == Staging }

// OnTrial tells whether the rollout's confirm window is open: it is committed and neither confirmed nor
// reverted yet, however late it is.
func (r Rollout) OnTrial() bool { return r.State == Committed && r.Window > 0 }

// RevertDue is when any member of the epoch may revert: D + grace. Zero outside of a confirm window.
func (r Rollout) RevertDue() time.Time {
	if r.ConfirmDeadline.IsZero() {
		return time.Time{}
	}
	return r.ConfirmDeadline.Add(r.Grace)
}

// Outcome is what became of an earlier rollout.
type Outcome struct {
	Ref
	Digest  Digest `json:"digest"`
	Version uint64 `json:"version"`
	State   State  `json:"state"`
	Reason  string `json:"reason,omitzero"`
}

// Head is what decides, in one row: every transition reads it, and one that succeeds with an effect returns
// it with a higher Revision. It is never deleted.
type Head struct {
	Revision   uint64   `json:"revision"`           // grows with each effect on the head; compared and set by adapters
	Generation uint64   `json:"generation"`         // of the newest proposal; never falls
	Claim      Token    `json:"claim"`              // of the coordinator whose decisions count; never falls
	Committed  Pointer  `json:"committed,omitzero"` // the last final decision
	Rollout    *Rollout `json:"rollout,omitzero"`   // the newest; nil before the first. Never changed in place
	Previous   *Outcome `json:"previous,omitzero"`  // of the rollout before it
}

// open returns the open rollout, or nil.
func (h Head) open() *Rollout {
	if h.Rollout != nil && h.Rollout.Open() {
		return h.Rollout
	}
	return nil
}

// Roster is the cohort: who must agree to a rollout that is proposed from now on.
type Roster struct {
	Revision uint64     `json:"revision"` // grows with each change; 0: never set
	Members  []MemberID `json:"members"`  // sorted, no member twice
}

// Contains tells whether m belongs to the cohort.
func (r Roster) Contains(m MemberID) bool {
	_, ok := slices.BinarySearch(r.Members, m)
	return ok
}

// Registration is a member's current process. The zero Registration is of a member that never joined.
type Registration struct {
	Boot        BootID `json:"boot,omitzero"`
	Incarnation uint64 `json:"incarnation"` // how many processes of the member have joined
	Joined      uint64 `json:"joined"`      // Head.Generation when it joined: it votes on later ones only
}

// Vote is what a member said of a rollout.
type Vote string

// The votes. NoVote is the zero Vote.
const (
	NoVote Vote = ""
	Acked  Vote = "ack"
	Nacked Vote = "nack"
)

// Ballot is all that one member said of one rollout. It counts only while its boot is the member's current
// one; see Seat.
type Ballot struct {
	Boot        BootID    `json:"boot,omitzero"`
	Vote        Vote      `json:"vote,omitzero"`
	BuildDigest string    `json:"build_digest,omitzero"` // of an ack: what the member built; the same on all
	Reason      string    `json:"reason,omitzero"`       // of a nack
	VotedAt     time.Time `json:"voted_at,omitzero"`

	// Evidence that the member runs the change and has converged: since when without a break, and when it was
	// last renewed. Zero: none.
	ConvergedSince time.Time `json:"converged_since,omitzero"`
	RenewedAt      time.Time `json:"renewed_at,omitzero"`
	Detail         string    `json:"detail,omitzero"` // what the member saw, for people

	// Withdrawn is why the member takes its evidence back, or cannot run the change; it is not taken back.
	Withdrawn   string    `json:"withdrawn,omitzero"`
	WithdrawnAt time.Time `json:"withdrawn_at,omitzero"`
}

// Seat is a member of a rollout's epoch as the store knows it.
type Seat struct {
	Member       MemberID     `json:"member"`
	Registration Registration `json:"registration"`
	Ballot       Ballot       `json:"ballot"`
}

// Counts tells whether the seat's ballot is of the member's current process.
func (s Seat) Counts() bool { return s.Ballot.Boot != "" && s.Ballot.Boot == s.Registration.Boot }

// Row is everything that a decision is made from, read at one instant.
type Row struct {
	Head
	Roster Roster    `json:"roster"`
	Seats  []Seat    `json:"seats"` // of Rollout's epoch, sorted by member; empty without a rollout
	Now    time.Time `json:"now"`   // the store's

	// Margin is how far Now may be off when a decision that was made from the row takes effect; 0 in a store
	// that tests its own time inside of the write.
	Margin time.Duration `json:"margin_ms,omitzero"`
}

// View is what one member needs of the row, read at one instant; it does not grow with the cohort.
type View struct {
	Head
	Registration Registration `json:"registration"`
	InEpoch      bool         `json:"in_epoch"` // whether the member belongs to Rollout's epoch
	Ballot       Ballot       `json:"ballot"`   // the member's in Rollout; zero outside of the epoch
	Now          time.Time    `json:"now"`      // the store's
}
