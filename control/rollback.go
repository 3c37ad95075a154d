package control

import (
	"fmt"

	"github.com/guardyn-edge/guardyn/snapshot"
)

// RollbackRequest asks to make a stored version live again.
type RollbackRequest struct {
	// Version to go back to; 0 is the recorded parent of the live one, never the number below it.
	Version uint64
	// Message for the audit log, at most MaxMessage bytes of UTF-8.
	Message string
	// AcceptDisruption lets a plan through that can interrupt traffic.
	AcceptDisruption bool
	// ExpectedContentHash, when not empty, is the only content that may be activated: that of the plan which
	// was reviewed.
	ExpectedContentHash string
	// DryRun finds the target and compares, and changes nothing.
	DryRun bool
	// IdempotencyKey is as in ApplyRequest. A dry run has no use for one.
	IdempotencyKey string
}

// RollbackResult tells what a rollback did, or would do.
type RollbackResult struct {
	RolledBack  bool   // false for a dry run
	Version     uint64 // the target
	Generation  uint64 // of the activation; for a dry run the one that is live
	ContentHash string
	Zones       int
	Resealed    bool           // the target had another key's signature and got, or would get, the present one's
	Plan        *snapshot.Plan // from what was live to the target
	Replayed    bool           // this is the first answer of a request that was repeated
}

// Codes of TargetError.
const (
	CodeNoParent       = "no_parent"       // nothing is published, or the live version is the first one
	CodeVersionUnknown = "version_unknown" // no such version is stored
	CodeVersionLive    = "version_live"    // it is what is live
)

// TargetError refuses a rollback that has nowhere to go (409).
type TargetError struct {
	Code    string
	Version uint64 // asked for, 0: the parent
	Live    uint64 // 0: nothing is published
}

func (e *TargetError) Error() string {
	switch {
	case e.Code == CodeNoParent && e.Live == 0:
		return "nothing is published yet, so there is nothing to go back to"
	case e.Code == CodeNoParent:
		return fmt.Sprintf("version %d is live and has no parent to go back to; name a version of the history", e.Live)
	case e.Code == CodeVersionLive:
		return fmt.Sprintf("version %d is live already", e.Live)
	}
	return fmt.Sprintf("there is no version %d; name one of the history", e.Version)
}
