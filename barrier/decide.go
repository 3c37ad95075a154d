package barrier

import (
	"fmt"
	"time"
)

// Verb is what a coordinator does next.
type Verb string

// The verbs.
const (
	Wait     Verb = "wait"
	StepDown Verb = "step down" // a later coordinator has the claim
	Claim    Verb = "claim"
	Commit   Verb = "commit"
	Abort    Verb = "abort"
	Confirm  Verb = "confirm"
	Revert   Verb = "revert"
)

// Decision is what a coordinator should do with what it saw.
type Decision struct {
	Verb    Verb
	Ref     Ref        // of Commit, Abort, Confirm, Revert
	Reason  string     // of Abort and Revert; of Wait: what for
	Waiting []MemberID // of Wait: whose vote or evidence is missing
	Again   time.Time  // of Wait: when, by the store's time, waiting is over even if nothing happens; zero: never
}

// Term is a coordinator's hold on the lease, as it knows it itself.
type Term struct {
	Token Token
	// Held is how long ago it claimed, by its monotonic clock, and Lease how long a lease lasts: nothing is decided before a
	// whole lease has passed since the claim, so that whatever an earlier coordinator sent has arrived.
	Held  time.Duration
	Lease time.Duration
}

// Decide is the coordinator's whole judgement: what to do, given the row and nothing else. Every decision
// that it names is tested again inside the store's write.
func Decide(row Row, term Term) Decision {
	ro := row.Rollout
	switch {
	case row.Claim > term.Token:
		return Decision{Verb: StepDown, Reason: fmt.Sprintf("the claim is %d, this one's token %d", row.Claim, term.Token)}
	case row.Claim < term.Token, ro != nil && ro.State == Proposed:
		return Decision{Verb: Claim}
	case row.open() == nil:
		return Decision{Verb: Wait, Reason: "no rollout is open"}
	case term.Held < term.Lease:
		return Decision{Verb: Wait, Reason: "lock delay", Again: row.Now.Add(term.Lease - term.Held)}
	case ro.Voting():
		return decideVotes(row, *ro)
	default:
		return decideTrial(row, *ro)
	}
}

func decideVotes(row Row, ro Rollout) Decision {
	abort := func(reason string) Decision { return Decision{Verb: Abort, Ref: ro.Ref, Reason: reason} }
	t := count(ro, row.Seats)
	switch {
	case row.Roster.Revision != ro.RosterRevision:
		return abort(fmt.Sprintf("the roster changed from revision %d to %d", ro.RosterRevision, row.Roster.Revision))
	case len(t.nacks)+len(t.late) > 0 || t.differ != "":
		return abort(t.String())
	case row.Now.Add(row.Margin).After(ro.Deadline):
		return abort("the deadline passed: " + t.lateReason())
	case len(t.missing) == 0:
		return Decision{Verb: Commit, Ref: ro.Ref}
	default:
		return Decision{Verb: Wait, Reason: t.String(), Waiting: t.missing, Again: ro.Deadline.Add(-row.Margin)}
	}
}

// lateReason says why a deadline passed: nobody may be missing, when the coordinator was.
func (t tally) lateReason() string {
	if s := t.String(); s != "" {
		return s
	}
	return "all votes were there, and no coordinator in time"
}

func decideTrial(row Row, ro Rollout) Decision {
	revert := func(reason string) Decision { return Decision{Verb: Revert, Ref: ro.Ref, Reason: reason} }
	e := weigh(ro, row.Seats, row.Now, row.Margin)
	switch {
	case len(e.failed) > 0:
		return revert(e.String())
	// Before the evidence: a coordinator that comes late must not confirm what members take back already.
	case row.Now.Add(row.Margin).After(ro.ConfirmDeadline):
		return revert("not confirmed in time: " + e.lateReason())
	case e.confirmed():
		return Decision{Verb: Confirm, Ref: ro.Ref}
	}
	again := ro.ConfirmDeadline.Add(-row.Margin)
	if len(e.missing) == 0 && !e.until.IsZero() && e.until.Before(again) {
		again = e.until
	}
	return Decision{Verb: Wait, Reason: e.String(), Waiting: append(e.missing, e.soaking...), Again: again}
}

func (e evidence) lateReason() string {
	if s := e.String(); s != "" {
		return s
	}
	return "all had converged, and no coordinator in time"
}
