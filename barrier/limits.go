package barrier

import "time"

// The limits of the weakest adapter, held by all of them.
const (
	MaxMembers       = 1000      // in a roster
	MaxIDBytes       = 64        // of a MemberID, BootID, RolloutID
	MaxNameBytes     = 200       // of a proposer, an operator, a lease holder
	MaxDigestBytes   = 200       // of a Digest, a build digest
	MaxReasonBytes   = 1000      // of a reason or a detail; longer ones are cut at a character
	MaxArtefactBytes = 4 << 20   // of an artefact
	MaxNumber        = 1<<63 - 1 // of a version, a token

	MinDeadline    = 100 * time.Millisecond
	MaxDeadline    = 24 * time.Hour
	MaxWindow      = 24 * time.Hour
	MinEvidenceTTL = 10 * time.Millisecond
	MaxEvidenceTTL = time.Hour
	MaxGrace       = time.Hour
	MinLease       = 10 * time.Millisecond
	MaxLease       = 10 * time.Minute

	// ArtefactRetention is how long an artefact is kept after its last Put at least, even if no row names it.
	ArtefactRetention = 24 * time.Hour
)

// What a Proposal's zero values stand for.
const (
	DefaultDeadline    = 5 * time.Minute
	DefaultSoak        = 10 * time.Second
	DefaultGrace       = 5 * time.Second
	DefaultEvidenceTTL = 5 * time.Second
)
