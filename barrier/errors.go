package barrier

import (
	"errors"
	"fmt"
)

// The named errors of the ports. An error that is none of these says nothing about whether the call took
// effect: read the row again.
var (
	ErrInvalid      = errors.New("not valid")                       // the call can never succeed as it is
	ErrOpen         = errors.New("a rollout is open")               // I1; see OpenError
	ErrRoster       = errors.New("the roster has another revision") // it changed since it was read
	ErrStale        = errors.New("something was proposed or decided since")
	ErrNoBaseline   = errors.New("there is nothing to go back to")                 // a window before anything was committed
	ErrUnknown      = errors.New("not the current rollout")                        // the Ref is not the newest rollout's
	ErrDecided      = errors.New("the rollout was decided otherwise")              // I4; see DecidedError
	ErrFenced       = errors.New("another coordinator holds the claim")            // I3: the token is not the row's claim
	ErrStranger     = errors.New("not a member of the rollout's epoch")            // I5
	ErrSuperseded   = errors.New("a newer process of the member has joined")       // I5: this one stops taking part
	ErrJoinedLate   = errors.New("the process joined after the proposal")          // joiners do not vote
	ErrVoted        = errors.New("the process has voted otherwise")                // I5
	ErrBarrier      = errors.New("not every member has acknowledged")              // I2; Commit
	ErrNotConverged = errors.New("not every member has converged for long enough") // I7; Confirm
	ErrWithdrawn    = errors.New("the process has withdrawn")                      // I6; Converge after Withdraw
	ErrNoWindow     = errors.New("no confirm window is open")                      // Converge, Withdraw, Confirm, Revert
	ErrLate         = errors.New("the deadline has passed")                        // I2, I7: by the store's time
	ErrEarly        = errors.New("the deadline has not passed")                    // I8: a deadman before D + grace
	ErrHeld         = errors.New("another holds the lease")                        // Leases.Acquire; see HeldError
	ErrLost         = errors.New("the lease is lost")                              // Leases.Renew, Release
	ErrNoArtefact   = errors.New("no artefact of this digest")                     // Artefacts.Get
)

// codes names each error where only text can travel. They are part of the wire format.
var codes = []struct {
	code string
	err  error
}{
	{"invalid", ErrInvalid},
	{"open", ErrOpen},
	{"roster_changed", ErrRoster},
	{"stale", ErrStale},
	{"no_baseline", ErrNoBaseline},
	{"unknown_rollout", ErrUnknown},
	{"decided", ErrDecided},
	{"fenced", ErrFenced},
	{"stranger", ErrStranger},
	{"superseded", ErrSuperseded},
	{"joined_late", ErrJoinedLate},
	{"voted", ErrVoted},
	{"barrier_incomplete", ErrBarrier},
	{"not_converged", ErrNotConverged},
	{"withdrawn", ErrWithdrawn},
	{"no_window", ErrNoWindow},
	{"late", ErrLate},
	{"early", ErrEarly},
	{"lease_held", ErrHeld},
	{"lease_lost", ErrLost},
	{"no_artefact", ErrNoArtefact},
}

// Code returns the name of the port's error that err is, or "" when it is none.
func Code(err error) string {
	for _, c := range codes {
		if errors.Is(err, c.err) {
			return c.code
		}
	}
	return ""
}

// FromCode returns the error that Code calls code, or nil.
func FromCode(code string) error {
	for _, c := range codes {
		if c.code == code {
			return c.err
		}
	}
	return nil
}

// OpenError is an ErrOpen that names the rollout in the way.
type OpenError struct{ Rollout Rollout }

func (e *OpenError) Error() string {
	return fmt.Sprintf("%v: %v is %s, proposed by %s", ErrOpen, e.Rollout.Ref, e.Rollout.State, e.Rollout.Proposer)
}

// Unwrap makes it an ErrOpen.
func (e *OpenError) Unwrap() error { return ErrOpen }

// DecidedError is an ErrDecided that tells the decision.
type DecidedError struct {
	Ref    Ref
	State  State
	Reason string
}

func (e *DecidedError) Error() string {
	s := fmt.Sprintf("%v: %v is %s", ErrDecided, e.Ref, e.State)
	if e.Reason != "" {
		s += ": " + e.Reason
	}
	return s
}

// Unwrap makes it an ErrDecided.
func (e *DecidedError) Unwrap() error { return ErrDecided }

// HeldError is an ErrHeld that names the holder.
type HeldError struct{ Holder string }

func (e *HeldError) Error() string { return fmt.Sprintf("%v: %s", ErrHeld, e.Holder) }

// Unwrap makes it an ErrHeld.
func (e *HeldError) Unwrap() error { return ErrHeld }
