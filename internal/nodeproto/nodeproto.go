// Package nodeproto holds the messages of the node protocol: what a node asks and reports, and what it is
// told. The HTTP form is the business of api (server and client).
package nodeproto

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/seal"
)

// DefaultInterval between polls, MaxWait of a long poll, MaxBackoff between failed polls.
const (
	DefaultInterval = 5 * time.Second
	MaxWait         = 55 * time.Second
	MaxBackoff      = 60 * time.Second
)

// ErrAhead is what a poll or an acknowledgement fails with when the node shows something newer than the control
// plane ever issued, which was restored from an old backup perhaps.
var ErrAhead = errors.New("this node is ahead of the control plane")

// Poll asks for what is newer than what the node serves.
type Poll struct {
	Have        uint64 // version served, 0: none
	Generation  uint64
	Epoch       uint64
	Nonce       string        // 16 to 64 hex characters, or empty
	Wait        time.Duration // 0 to MaxWait, whole seconds
	TrustedKeys []seal.KeyID
	// Held is the PayloadBLAKE3 of a candidate that the node has verified and built, 64 hex, or empty: an
	// activation of that payload comes without its bytes.
	Held string
	// Dictionary is the payload that the node holds: what is newer may come as a Coding with it. The zero value: it
	// must come whole.
	Dictionary seal.DictionaryID
	// Trial is the id of the rollout whose provisional activation the node asks for, or runs; or empty.
	Trial string
	// Purged is the place in the log of purges up to which the node has done all of them, NoPurges when it knows none: the
	// poll is answered when the log goes on from there. Empty: the node caches nothing.
	Purged string
	// Rejected is the Fingerprint of an offer that was refused before: when the answer's headers have it,
	// the source does not read the payload.
	Rejected string
}

// Answer is what a poll gets. Artefact is nil when the node is current (204).
type Answer struct {
	Artefact *seal.Artefact
	// Held: the artefact is of Poll.Held, and its payload was not sent.
	Held bool
	// Coding, when it is not nil, is what came of the artefact's payload: it is coded with Poll.Dictionary. Who sends the
	// answer leaves the payload beside it.
	Coding *seal.Coding
	// Skipped: the offer was the one in Poll.Rejected and its payload was left unread.
	Skipped   bool
	Version   uint64 // live version, 0: nothing published yet
	Freshness string // header value, empty when no nonce was sent
	// Purges is the end of the log of purges, to compare with Poll.Purged. It is a hint, and signed by nobody; empty: the
	// control plane has no log.
	Purges string
}

// NoPurges is Poll.Purged of a node that knows no place in the log of purges.
const NoPurges = "none"

// Ack reports what the node serves now and, after a failure, why it still does.
type Ack struct {
	Version     uint64 `json:"version"` // 0: nothing
	Generation  uint64 `json:"generation"`
	Epoch       uint64 `json:"epoch"`
	ContentHash string `json:"content_hash"`
	Boot        string `json:"boot"` // random id of this process, 32 hex
	// Sequence numbers the acknowledgements of one process from 1, in the order of sending; 0: it does not number them.
	Sequence    uint64       `json:"sequence,omitzero"`
	TrustedKeys []seal.KeyID `json:"trusted_keys"`
	Freshness   string       `json:"freshness,omitempty"` // "", "fresh", "stale"
	// Activation is the signed statement that made live what is served: it proves what the numbers claim.
	Activation seal.SignedActivation `json:"activation,omitempty"`
	Error      *AckError             `json:"error,omitempty"`
	// Purged is the place in the log of purges up to which the node has done all of them; nil: it caches nothing.
	Purged *seal.PurgeMark `json:"purged,omitempty"`
	Pools  *Pools          `json:"pools,omitempty"` // nil: nothing is said of them
}

// Fingerprint tells offers apart by everything but the payload's bytes.
func Fingerprint(a *seal.Artefact) string {
	return strings.Join([]string{
		strconv.FormatUint(a.Version, 10), a.ContentHash, a.Signature, string(a.KeyID), string(a.Activation),
	}, "|")
}

// AckError is the refusal that a node reports.
type AckError struct {
	Code    string `json:"code"` // of seal.Refusal, or compile_failed, disk_failed, boot_fell_back
	Message string `json:"message"`
	Version uint64 `json:"version,omitzero"` // that was refused, as its envelope claimed
}

// Self is what the control plane tells a node of itself.
type Self struct {
	ID     string `json:"id"` // UUID; the node's MemberID in rollouts
	Name   string `json:"name"`
	Cohort bool   `json:"cohort"` // whether it takes part in rollouts
}

// Candidate is what a rollout carries: a sealed snapshot that nothing makes live yet.
type Candidate struct {
	seal.Sealed
	Margin int // by how much the 5xx share may rise on trial, in hundredths of a percentage point
}

// CandidateDigest is the digest under which a rollout carries a snapshot: of its content, whatever it is sealed with.
func CandidateDigest(contentHash string) string { return "content:" + contentHash }
