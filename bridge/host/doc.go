// Package host runs a bridge's document on one member: it follows the source, and takes changes over as the document's rung of the ladder
// allows.
//
// # The ladder
//
//	standalone   a valid change is taken over while the process runs
//	refuse       no change is: the cohort is replaced
//	coordinated  a live-safe change is put to the cohort through the barrier; everything else is refused before
//	window       the same, and the cohort takes back what does not connect
//
// A process is on the rung of the document that it first runs, for its whole life. A coordinated member runs what the cohort has
// committed, whatever its source says: the source only proposes.
package host

import (
	"errors"

	"github.com/guardyn-edge/guardyn/bridge/document"
)

// Rung is how a bridge takes changes over.
type Rung string

// The rungs. NoRung is of a process that runs nothing yet.
const (
	NoRung      Rung = ""
	Standalone  Rung = "standalone"
	Refuse      Rung = "refuse"
	Coordinated Rung = "coordinated"
	Window      Rung = "window"
)

// RungOf is the rung that a document asks for.
func RungOf(d *document.Document) Rung {
	switch {
	case d == nil:
		return NoRung
	case d.Bridge.Mode != document.Clustered:
		return Standalone
	case d.Bridge.Cluster.Rollout != document.Coordinated:
		return Refuse
	case d.Bridge.Cluster.ConfirmWindow == 0:
		return Coordinated
	}
	return Window
}

// cohort tells whether r agrees through the barrier.
func (r Rung) cohort() bool { return r == Coordinated || r == Window }

// ErrReplace ends Run when the process must not go on and another one takes its place: the document is gone from a clustered bridge's
// source, or it is not sure that everything has stopped.
var ErrReplace = errors.New("this process is to be replaced by another")

// How a cohort is replaced, for people.
const (
	standaloneMode     = "a standalone bridge does not become a member of a cohort while it runs: stop it, and start the cohort"
	replaceRefuse      = "to take it over, stop every member and then start them all: each runs what the source holds when it starts"
	replaceCoordinated = "to take it over, leave it in the source, stop every member, and start all of them with another --cohort"
)
