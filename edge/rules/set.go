package rules

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"

	"github.com/guardyn-edge/guardyn/edge/ratelimit"
	"github.com/guardyn-edge/guardyn/internal/expr"
	"github.com/guardyn-edge/guardyn/zone"
)

// Options of Compile. The zero value works.
type Options struct {
	// Programs, when not nil, is where equal expressions of different zones share one program.
	Programs *Programs
	// Old, which may be nil, is the set of the same zone before: lists that did not change are taken from it, and the count
	// of errors goes on.
	Old *Set
}

// Set is the compiled rulesets and lists of one zone, immutable and safe for concurrent use. A nil Set has
// no rules.
type Set struct {
	phases map[zone.Phase]ruleset
	lists  lists
	errors *atomic.Uint64 // lasts from one set of a zone to the next
}

// ruleset are the rules of one phase that can match, in order, and what tells which cannot match a request; index is
// nil when nothing does.
type ruleset struct {
	rules []Rule
	index *index
}

// Rule is one compiled rule. It must not be changed.
type Rule struct {
	Phase zone.Phase
	// Index of the rule in its phase, from 0.
	Index      int
	Action     zone.Action
	Parameters zone.Parameters

	// Limit is what a rule of action rate_limit counts by, else nil.
	Limit *ratelimit.Rule

	// program is nil for a rule that matches every request. direct, which is nil for some, is asked before it.
	program cel.Program
	direct  expr.Direct
	key     cel.Program // nil: the client's address
	errors  *atomic.Uint64
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
	s := &Set{phases: make(map[zone.Phase]ruleset, len(z.Rulesets)), errors: new(atomic.Uint64)}
	var old *lists
	if o.Old != nil {
		s.errors, old = o.Old.errors, &o.Old.lists
	}
	var problems []error
	var err error
	if s.lists, err = compileLists(z.Lists, old); err != nil {
		problems = append(problems, err)
	}
	for phase, rules := range z.Rulesets {
		compiled := make([]Rule, 0, len(rules))
		needs := make([]expr.Need, 0, len(rules))
		twins := make(map[string]int)
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
			rule := Rule{Phase: phase, Index: i, Action: r.Action, Parameters: r.Parameters, errors: s.errors}
			if c.constant == nil {
				rule.program, rule.direct = c.program, c.direct
			}
			if r.Action == zone.ActionRateLimit {
				if err := rule.limit(z, r, programs, twins); err != nil {
					problems = append(problems, fmt.Errorf("rule %d of %s: key: %w", i+1, phase, err))
					continue
				}
			}
			compiled = append(compiled, rule)
			needs = append(needs, c.need)
		}
		if len(compiled) > 0 {
			s.phases[phase] = ruleset{compiled, newIndex(needs)}
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
	return compileWith(r.Expression, expr.Bool, programs, in)
}

func compileWith(text string, want expr.Kind, programs *Programs, in map[string]zone.List) (compiled, error) {
	c, err := programs.compile(text, want)
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
	return len(s.phases[phase].rules)
}

// Matching yields the rules of phase that match r, in order, each evaluated when its turn comes, so that
// what the caller changes in r is seen by the rules after it.
func (s *Set) Matching(phase zone.Phase, r *Request) iter.Seq[*Rule] {
	// It is inlined, so that neither this function nor the body of the caller's loop is on the heap.
	return func(yield func(*Rule) bool) { s.match(phase, r, yield) }
}

func (s *Set) match(phase zone.Phase, r *Request, yield func(*Rule) bool) {
	if s == nil {
		return
	}
	of, ok := s.phases[phase]
	if !ok {
		return
	}
	r.lists(&s.lists)
	if of.index == nil {
		for i := range of.rules {
			if of.rules[i].matches(r) && !yield(&of.rules[i]) {
				return
			}
		}
		return
	}
	c := of.index.candidates(r)
	for i := c.next(r, 0); i < len(of.rules); i = c.next(r, i+1) {
		if of.rules[i].matches(r) && !yield(&of.rules[i]) {
			return
		}
	}
}

// Errors counts the expressions of the zone that erred and the rules that could not do what they say, since the first
// set that Options.Old led to.
func (s *Set) Errors() uint64 {
	if s == nil {
		return 0
	}
	return s.errors.Load()
}

func (rule *Rule) matches(r *Request) bool {
	if rule.program == nil {
		return true
	}
	if rule.direct != nil {
		if v, known := rule.direct(&r.seen); known {
			return v
		}
	}
	v, _, err := rule.program.Eval(r)
	if err != nil {
		rule.Failed(r)
		return false
	}
	return v == types.True
}

// Failed counts that the rule could not do what it says.
func (rule *Rule) Failed(r *Request) {
	r.Errors++
	rule.errors.Add(1)
}

var _ expr.Lists = (*lists)(nil)
