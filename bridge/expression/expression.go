// Package expression is the CEL of routes: filters and payloads over one message's topic, properties and JSON payload.
//
// # Variables
//
//	topic       string               as it came
//	captures    list(string)         what each wildcard of the route's filter stood for, from 0
//	properties  map(string, string)  user properties or headers; of several with one name, the last
//	payload     dyn                  the payload as JSON; a filter or payload that reads it errs on a message that has none
//	text        string               the payload as text; errs when it is not UTF-8
//	qos         int
//	retain      bool
//
// CEL's own functions and macros are there, and those of strings (charAt, indexOf, join, lowerAscii, replace, split, substring,
// trim, upperAscii). A number in JSON is a double: write payload.c > 0.0.
package expression

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/ext"
)

// Bounds of one expression.
const (
	MaxSource = 8192 // code points
	MaxNodes  = 2000
	MaxDepth  = 64
	// MaxCost bounds what evaluating one message may cost, in CEL's units: about one step each.
	MaxCost = 1_000_000
)

// environment is made once and never changes.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.EnableMacroCallTracking(), // a macro is printed as it was written
		cel.ParserExpressionSizeLimit(MaxSource),
		cel.ParserRecursionLimit(MaxDepth),
		cel.ExpressionNestingDepthLimit(MaxDepth),
		cel.ExpressionNodeLimit(MaxNodes),
		ext.Strings(),
		cel.Variable("topic", cel.StringType),
		cel.Variable("captures", cel.ListType(cel.StringType)),
		cel.Variable("properties", cel.MapType(cel.StringType, cel.StringType)),
		cel.Variable("payload", cel.DynType),
		cel.Variable("text", cel.StringType),
		cel.Variable("qos", cel.IntType),
		cel.Variable("retain", cel.BoolType),
	)
})

// Filter tells which messages a route takes. It is immutable and safe for concurrent use.
type Filter struct {
	text    string
	program cel.Program
}

// Payload makes a new payload. It is immutable and safe for concurrent use.
type Payload struct {
	text    string
	program cel.Program
}

// ParseFilter reads an expression of type bool, or of a type that is known only when it runs. The error joins all that is wrong, each with line and column.
func ParseFilter(src string) (*Filter, error) {
	text, program, err := compile(src, cel.BoolType)
	if err != nil {
		return nil, err
	}
	return &Filter{text, program}, nil
}

// ParsePayload reads an expression of any type: a string or bytes become the payload as they are, everything else as JSON.
func ParsePayload(src string) (*Payload, error) {
	text, program, err := compile(src, nil)
	if err != nil {
		return nil, err
	}
	return &Payload{text, program}, nil
}

// String returns the normal form: parsed and printed, without comments, on one line.
func (f *Filter) String() string { return f.text }

// String returns the normal form.
func (p *Payload) String() string { return p.text }

func compile(src string, want *cel.Type) (string, cel.Program, error) {
	env, err := environment()
	if err != nil {
		return "", nil, err
	}
	if strings.TrimSpace(src) == "" {
		return "", nil, errors.New("the expression is empty")
	}
	a, issues := env.Compile(src)
	if err := issuesError(issues); err != nil {
		return "", nil, err
	}
	if out := a.OutputType(); want != nil && !out.IsExactType(want) && !out.IsExactType(cel.DynType) {
		return "", nil, fmt.Errorf("the expression is of type %s, it must be %s", out, want)
	}
	// The text that is kept is printed, so that spaces and comments are no change.
	text, err := cel.AstToString(a, cel.FormatWrapOnColumn(1<<30))
	if err != nil {
		return "", nil, fmt.Errorf("print: %w", err)
	}
	program, err := env.Program(a, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(MaxCost))
	if err != nil {
		return "", nil, err
	}
	return text, program, nil
}

// issuesError joins issues as "line L, column C: what".
func issuesError(issues *cel.Issues) error {
	if issues == nil || issues.Err() == nil {
		return nil
	}
	var errs []error
	for _, e := range issues.Errors() {
		if e.Location == nil || e.Location.Line() < 1 {
			errs = append(errs, errors.New(e.Message))
			continue
		}
		errs = append(errs, fmt.Errorf("line %d, column %d: %s", e.Location.Line(), e.Location.Column()+1, e.Message))
	}
	if len(errs) == 0 {
		return issues.Err()
	}
	return errors.Join(errs...)
}

// Takes tells whether the message passes. An error says why that cannot be told; such a message does not pass.
func (f *Filter) Takes(m *Message) (bool, error) {
	out, _, err := f.program.Eval(m)
	if err != nil {
		return false, fmt.Errorf("filter: %w", err)
	}
	b, ok := out.(types.Bool)
	if !ok {
		return false, fmt.Errorf("filter: it gave a %s, not true or false", out.Type().TypeName())
	}
	return bool(b), nil
}
