package rules

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"

	"github.com/guardyn-edge/guardyn/internal/expr"
	"github.com/guardyn-edge/guardyn/zone"
)

// Options of Compile. The zero value works.
type Options struct {
	// Programs, when not nil, is where equal expressions of different zones share one program.
	Programs *Programs
}

// Set is the compiled rulesets and lists of one zone, immutable and safe for concurrent use. A nil Set has
// no rules.
type Set struct {
	phases map[zone.Phase][]Rule
	lists  lists
}

// Rule is one compiled rule. It must not be changed.
type Rule struct {
	Phase zone.Phase
	// Index of the rule in its phase, from 0.
	Index      int
	Action     zone.Action
	Parameters zone.Parameters

	// program is nil for a rule that matches every request.
	program cel.Program
}

// Compile compiles z's rulesets and lists; it returns nil when there are neither. Rules that are disabled
// or can never match are left out. The error joins one error for each rule or list that does not compile,
// naming it.
func Compile(z *zone.Zone, o Options) (*Set, error) {
	if len(z.Rulesets) == 0 && len(z.Lists) == 0 {
		return nil, nil
	}
	programs := o.Programs
	if programs == nil {
		programs = NewPrograms(0)
	}
	s := &Set{phases: make(map[zone.Phase][]Rule, len(z.Rulesets))}
	var problems []error
	var err error
	if s.lists, err = compileLists(z.Lists); err != nil {
		problems = append(problems, err)
	}
	for phase, rules := range z.Rulesets {
		compiled := make([]Rule, 0, len(rules))
		for i, r := range rules {
			if r.Enabled != nil && !*r.Enabled {
				continue
			}
			c, err := compileRule(r, programs, z.Lists)
			if err != nil {
				problems = append(problems, fmt.Errorf("rule %d of %s: %w", i+1, phase, err))
				continue
			}
			if c.constant != nil && !*c.constant {
				continue
			}
			rule := Rule{Phase: phase, Index: i, Action: r.Action, Parameters: r.Parameters}
			if c.constant == nil {
				rule.program = c.program
			}
			compiled = append(compiled, rule)
		}
		if len(compiled) > 0 {
			s.phases[phase] = compiled
		}
	}
	if len(problems) > 0 {
		slices.SortFunc(problems, func(a, b error) int {
			if a.Error() < b.Error() {
				return -1
			}
			return 1
		})
		return nil, errors.Join(problems...)
	}
	return s, nil
}

// compileRule returns what an expression compiles to and checks that its lists are in the zone.
func compileRule(r zone.Rule, programs *Programs, in map[string]zone.List) (compiled, error) {
	c, err := programs.compile(r.Expression)
	if err != nil {
		return compiled{}, err
	}
	var problems []error
	for _, l := range c.lists {
		switch list, ok := in[l.Name]; {
		case !ok:
			problems = append(problems, fmt.Errorf("list %q does not exist in the zone", l.Name))
		case !l.Accepts(string(list.Kind)):
			problems = append(problems, fmt.Errorf("list %q is of kind %s and is asked for another", l.Name, list.Kind))
		}
	}
	return c, errors.Join(problems...)
}

// Len returns how many rules of phase can match.
func (s *Set) Len(phase zone.Phase) int {
	if s == nil {
		return 0
	}
	return len(s.phases[phase])
}

// Matching yields the rules of phase that match r, in order, each evaluated when its turn comes, so that
// what the caller changes in r is seen by the rules after it.
func (s *Set) Matching(phase zone.Phase, r *Request) iter.Seq[*Rule] {
	if s == nil {
		return none
	}
	rules := s.phases[phase]
	if len(rules) == 0 {
		return none
	}
	return func(yield func(*Rule) bool) {
		r.lists(&s.lists)
		for i := range rules {
			if rules[i].matches(r) && !yield(&rules[i]) {
				return
			}
		}
	}
}

func none(func(*Rule) bool) {}

func (rule *Rule) matches(r *Request) bool {
	if rule.program == nil {
		return true
	}
	v, _, err := rule.program.Eval(r)
	if err != nil {
		r.Errors++
		return false
	}
	return v == types.True
}

var _ expr.Lists = (*lists)(nil)
