// Package rules evaluates a zone's rulesets against requests: expressions compiled ahead, lists as sets whose
// lookup cost does not follow their size, and no I/O.
package rules

import (
	"iter"

	"github.com/guardyn-edge/guardyn/zone"
)

// Options of Compile. The zero value works.
type Options struct {
	// Programs, when not nil, is where equal expressions of different zones share one program.
	Programs *Programs
}

// Programs is a bounded cache of compiled expressions by their text. Programs hold no zone's state. It is
// safe for concurrent use and owned by its caller, who keeps it from one Compile to the next.
type Programs struct{}

// NewPrograms returns a cache of at most max programs; max below 1 reads as 16,384.
func NewPrograms(max int) *Programs { return &Programs{} }

// Set is the compiled rulesets of one zone, immutable and safe for concurrent use. A nil Set has no rules.
type Set struct{}

// Compile compiles z's rulesets and lists. The error joins one error for each rule or list that does not
// compile, naming it.
func Compile(z *zone.Zone, o Options) (*Set, error) { return &Set{}, nil }

// Len returns how many rules phase has.
func (s *Set) Len(phase zone.Phase) int { return 0 }

// Matching yields the rules of phase that match r, in order, each evaluated when its turn comes, so that
// what the caller changes in r is seen by the rules after it.
func (s *Set) Matching(phase zone.Phase, r *Request) iter.Seq[*Rule] { return func(func(*Rule) bool) {} }

// Rule is one compiled rule.
type Rule struct {
	Phase zone.Phase
	// Index of the rule in its phase, from 0.
	Index      int
	Action     zone.Action
	Parameters zone.Parameters
}

// Request is what expressions read. It serves one request at a time and may be used again after Reset.
type Request struct{}
