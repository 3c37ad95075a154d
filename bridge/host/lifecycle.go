package host

import (
	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/source"
)

// verb is what follows from an observation.
type verb string

// The verbs.
const (
	stayIdle verb = "stay idle" // not ready, and says why
	create   verb = "create"    // the initial document, if there still is none
	activate verb = "activate"  // run the document, or what its cohort has committed
	resume   verb = "resume"    // run what the cohort has committed; the source says nothing that could be run
	stand    verb = "stand"     // it is what runs already
	reload   verb = "reload"    // take the change over
	propose  verb = "propose"   // put it to the cohort, if that is due
	refuse   verb = "refuse"    // keep the last good; the document is told to be refused
	keep     verb = "keep"      // keep the last good, degraded
	quiesce  verb = "quiesce"   // stop intake, drain, and be idle
	leave    verb = "leave"     // stop intake, drain, and end the process
)

// situation is all that the judgement of an observation depends on.
type situation struct {
	running *document.Document // nil: idle
	rung    Rung
	// remembers: the cohort has had its first activation: this member's disk says what is confirmed.
	remembers bool
	// initial: this process may create an absent document, and has not yet run one.
	initial bool
}

// judge says what follows from what was observed. valid is the document, nil when there is none or it is not valid.
func judge(s situation, state source.State, valid *document.Document) verb {
	if s.running == nil && !s.rung.cohort() {
		return judgeIdle(s, state, valid)
	}
	switch {
	case state == source.Missing && s.rung == Standalone:
		return quiesce
	case state == source.Missing:
		return leave
	case state == source.Failed:
		return keep
	case valid == nil:
		return refuse
	case s.rung.cohort():
		return propose
	case document.Same(s.running, valid):
		return stand
	case s.rung == Standalone && valid.Bridge.Mode == document.Standalone:
		return reload
	}
	return refuse
}

// judgeIdle is before the first activation, and after a standalone bridge's document has gone.
func judgeIdle(s situation, state source.State, valid *document.Document) verb {
	switch {
	case state == source.Missing && s.initial:
		return create
	case state == source.Missing:
		// Nor what is on the disk: who took the document away wants nothing to run.
		return stayIdle
	case valid != nil:
		return activate
	case s.remembers:
		return resume
	}
	return stayIdle
}
