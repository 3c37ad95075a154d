package control

import (
	"errors"
	"fmt"
	"strings"

	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

// Errors of Service, beside the ports' ErrNotFound, ErrExists and ErrConflict; test with errors.Is.
var (
	// ErrUnauthenticated: no token, a malformed one, or one that does not stand (unknown, revoked or
	// expired; which of these is not told).
	ErrUnauthenticated = errors.New("no valid token")
	// ErrForbidden: the caller may know of the object but not do this to it.
	ErrForbidden = errors.New("not allowed")
	// ErrNoRoute is an ErrNotFound for a caller who must not learn that the operation exists: it is
	// answered exactly as a path that does not exist.
	ErrNoRoute = fmt.Errorf("no such route: %w", ErrNotFound)
	// ErrNodeAhead: a node shows an epoch, generation or version that this control plane never issued.
	ErrNodeAhead = errors.New("the node is ahead of this control plane")
	// ErrKeyMismatch: what was sealed does not open with the keys that nodes trust. Nothing was stored.
	ErrKeyMismatch = errors.New("the signing key does not match the trusted public keys")
	// ErrKeyReused: the idempotency key came with another request before. Nothing was changed.
	ErrKeyReused = errors.New("the idempotency key was used with another request")
	// ErrBusy: a stated bound is reached; try again later.
	ErrBusy = errors.New("busy, try again")
)

// Problem is one thing that is wrong with a request or with a configuration. Line and Column, from 1,
// point into an imported file; 0 where there is none.
type Problem struct {
	Zone    string `json:"zone,omitempty"`
	Object  string `json:"object,omitempty"` // "rule 3 of custom", "record www A", "setting trace_sampling"
	Code    string `json:"code"`             // snake_case, stable
	Message string `json:"message"`          // a sentence that says what to do
	Line    int    `json:"line,omitzero"`
	Column  int    `json:"column,omitzero"`
}

// ProblemsError holds everything that is wrong at once (422). Nothing was changed.
type ProblemsError struct{ Problems []Problem }

func (e *ProblemsError) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i == 10 {
			fmt.Fprintf(&b, "; and %d more", len(e.Problems)-i)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		if p.Zone != "" {
			b.WriteString(p.Zone + ": ")
		}
		if p.Line > 0 {
			fmt.Fprintf(&b, "line %d: ", p.Line)
		}
		if p.Object != "" {
			b.WriteString(p.Object + ": ")
		}
		b.WriteString(p.Message)
	}
	return b.String()
}

// malformed is a ProblemsError of one entry.
func malformed(zoneName, object, code, format string, a ...any) error {
	return &ProblemsError{Problems: []Problem{{
		Zone: zoneName, Object: object, Code: code, Message: fmt.Sprintf(format, a...),
	}}}
}

// malformedBy turns what a Normalize or Parse function of zone says into problems, one for each joined error.
func malformedBy(zn zone.Name, object string, err error) error {
	var ps []Problem
	for _, e := range unjoin(err) {
		p := Problem{Zone: zn.String(), Object: object, Code: "malformed", Message: e.Error()}
		var of *zone.ObjectError
		if errors.As(e, &of) {
			p.Object, p.Message = of.Object, of.Err.Error()
		}
		ps = append(ps, p)
	}
	return &ProblemsError{Problems: ps}
}

// unjoin flattens errors.Join.
func unjoin(err error) []error {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, e := range j.Unwrap() {
			all = append(all, unjoin(e)...)
		}
		return all
	}
	return []error{err}
}

// buildProblems turns the error of snapshot.Build into a ProblemsError; any other error is returned as it is.
func buildProblems(err error) error {
	var ps snapshot.Problems
	if !errors.As(err, &ps) {
		return err
	}
	e := &ProblemsError{Problems: make([]Problem, len(ps))}
	for i, p := range ps {
		e.Problems[i] = Problem{Zone: p.Zone.String(), Object: p.Object, Code: p.Code, Message: p.Message}
	}
	return e
}

// ZoneClash says how a new zone would stand to one of another workspace.
type ZoneClash int

// The clashes.
const (
	ClashTaken ZoneClash = iota // of the same name
	ClashBelow                  // below it, and it does not delegate the name
	ClashAbove                  // above it: a new zone delegates nothing
)

// ZoneClashError refuses a new zone that could not be published beside one of another workspace. Nothing was changed.
type ZoneClashError struct {
	Name  zone.Name
	Kind  ZoneClash
	Above zone.Name // of ClashBelow: the zone that it lies below
}

func (e *ZoneClashError) Error() string { return e.problem().Message }

func (e *ZoneClashError) problem() Problem {
	p := Problem{Zone: e.Name.String(), Code: "zone_not_delegated"}
	switch e.Kind {
	case ClashTaken:
		p.Code = "zone_taken"
		p.Message = "another workspace has a zone of this name, and a name belongs to one zone: have it deleted there first, or ask an operator of this platform"
	case ClashBelow:
		p.Message = fmt.Sprintf("it lies below zone %s of another workspace, which does not delegate it: have NS records for %s added there first", e.Above, e.Name)
	case ClashAbove:
		p.Message = "a zone below it belongs to another workspace, and a new zone delegates nothing: have that one deleted there, create this one with NS records for it, and have it created again"
	}
	return p
}

// DisruptiveError refuses an apply that can interrupt traffic and was not told that this is accepted.
type DisruptiveError struct{ Plan *snapshot.Plan }

func (e *DisruptiveError) Error() string { return "the plan can interrupt traffic" }

// PlanChangedError refuses an apply whose expected content hash is not what it would publish; Plan is what
// it would.
type PlanChangedError struct{ Plan *snapshot.Plan }

func (e *PlanChangedError) Error() string {
	return "the configuration changed since the plan was made"
}

// StaleError is the ErrConflict of an apply that lost a race: somebody else published in between. Plan is
// fresh, against what is live now; it is nil when what stands now does not build.
type StaleError struct{ Plan *snapshot.Plan }

func (e *StaleError) Error() string        { return "something else was published meanwhile" }
func (e *StaleError) Is(target error) bool { return target == ErrConflict }

// outcome is the word that the audit log keeps for an error.
func outcome(err error) string {
	var (
		problems   *ProblemsError
		disruptive *DisruptiveError
		changed    *PlanChangedError
		target     *TargetError
		ahead      *AheadNodeError
	)
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &problems):
		return "problems"
	case errors.As(err, &disruptive):
		return "disruptive"
	case errors.As(err, &changed):
		return "plan_changed"
	case errors.As(err, &target):
		return target.Code
	case errors.As(err, &ahead):
		return "ahead_node"
	case errors.Is(err, ErrRolloutOpen):
		return "rollout_open"
	case errors.Is(err, ErrRolloutState):
		return "rollout_state"
	case errors.Is(err, ErrKeyReused):
		return "idempotency_key_reused"
	case errors.Is(err, ErrConflict):
		return "conflict"
	case errors.Is(err, ErrKeyMismatch):
		return "key_mismatch"
	case errors.Is(err, ErrNodeAhead):
		return "node_ahead"
	}
	return "error"
}
