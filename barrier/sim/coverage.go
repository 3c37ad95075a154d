package sim

import (
	"fmt"
	"strings"
)

// Case is something worth reaching: a simulator that never gets there proves nothing about it.
type Case int

// The cases.
const (
	Proposals Case = iota
	ProposalRefused
	StaleProposal
	CommittedPlain
	CommittedOnTrial
	AbortedCase
	ConfirmedCase
	RevertedCase
	AbortedByNack
	AbortedByDeadline
	AbortedByBuild
	RosterAbort
	RosterRefused
	OperatorDecided
	VoidVote
	RestartInWindow
	LateSwapRefused
	LateDecision
	DecidedOtherwise
	FencedDecision
	FencedClaim
	SteppedDown
	LeaseLost
	DeadmanWon
	DeadmanRepeated
	DeadmanEarly
	DeadmanLost
	Guess
	FlapHealed
	Superseded
	SupersededCall
	SecondProcess
	DiskLost
	WrongBytes
	AwayDuringDecision
	Restored
	Diverged
	lastCase
)

var caseNames = [lastCase]string{
	"proposals", "proposal refused: another is open", "proposal refused: something came since",
	"committed without a window", "committed on trial", "aborted", "confirmed", "reverted",
	"aborted by a nack", "aborted at the deadline", "aborted: builds differ", "aborted by a roster change", "roster change refused in a window",
	"decided by the operator", "vote made void by a restart", "restart in a window", "swap too late refused", "decision too late",
	"decision lost to another", "decision fenced", "claim fenced", "stepped down", "lease lost",
	"deadman won", "deadman after another's revert", "deadman too early", "deadman lost to a confirm", "guess", "flap healed",
	"superseded process stopped", "call of a superseded process", "second process", "disk lost", "wrong bytes fetched",
	"member away while two rollouts were decided", "store restored", "member ahead of a restored store",
}

func (c Case) String() string { return caseNames[c] }

// Coverage counts how often each case was reached.
type Coverage [lastCase]int

func (c *Coverage) add(what Case) { c[what]++ }

// Add adds another schedule's.
func (c *Coverage) Add(other Coverage) {
	for i, n := range other {
		c[i] += n
	}
}

func (c Coverage) String() string {
	var b strings.Builder
	for i, n := range c {
		fmt.Fprintf(&b, "%9d  %s\n", n, Case(i))
	}
	return b.String()
}
