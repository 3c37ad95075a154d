package snapshot

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/guardyn-edge/guardyn/internal/expr"
	"github.com/guardyn-edge/guardyn/zone"
)

// expressions checks each distinct expression of a build once, whatever zones have it.
type expressions struct {
	mu    sync.Mutex
	known map[exprKey]func() (*expr.Checked, error)
}

type exprKey struct {
	text string
	kind expr.Kind
}

func newExpressions() *expressions {
	return &expressions{known: map[exprKey]func() (*expr.Checked, error){}}
}

func (e *expressions) check(text string, kind expr.Kind) (*expr.Checked, error) {
	e.mu.Lock()
	check, ok := e.known[exprKey{text, kind}]
	if !ok {
		check = sync.OnceValues(func() (*expr.Checked, error) { return expr.Check(text, kind) })
		e.known[exprKey{text, kind}] = check
	}
	e.mu.Unlock()
	return check()
}

// rules judges every rule by what its expression says and by what it names.
func (j *judge) rules() {
	for _, phase := range slices.Sorted(maps.Keys(j.z.Rulesets)) {
		numbers := j.numbers(phase)
		for i := range j.z.Rulesets[phase] {
			j.rule(&j.z.Rulesets[phase][i], fmt.Sprintf("rule %d of %s", numbers(i), phase))
		}
	}
}

// numbers maps the index of a served rule to its number among all rules of the phase, disabled ones
// included: the one that people count.
func (j *judge) numbers(phase zone.Phase) func(i int) int {
	var enabled []int
	for i, r := range j.source.Rulesets[phase] {
		if r.Enabled == nil || *r.Enabled {
			enabled = append(enabled, i+1)
		}
	}
	return func(i int) int {
		if len(enabled) != len(j.z.Rulesets[phase]) {
			return i + 1
		}
		return enabled[i]
	}
}

func (j *judge) rule(r *zone.Rule, object string) {
	if c := j.expression(object, "expression", r.Expression, expr.Bool); c != nil && c.Constant != nil && !*c.Constant {
		j.warn(object, "rule_never_matches", "the expression is false for every request; remove the rule or correct it")
	}
	if key := r.Parameters.Key; key != "" {
		j.expression(object, "key", key, expr.String)
	}
	if p := r.Parameters.Pool; p != "" {
		j.usedPools[p] = true
		if _, ok := j.z.Pools[p]; !ok {
			j.problem(object, "pool_unknown", "it routes to pool %s, which this zone does not have; create the pool or name another", quote(p))
		}
	}
	if f := r.Parameters.Function; f != "" {
		if _, ok := j.z.Functions[f]; !ok {
			j.problem(object, "function_unknown", "it calls function %s, which this zone does not have; upload the function or name another", quote(f))
		}
	}
}

func (j *judge) expression(object, what, text string, kind expr.Kind) *expr.Checked {
	c, err := j.exprs.check(text, kind)
	if err != nil {
		j.problem(object, "expression_invalid", "the %s does not type-check: %v", what, err)
		return nil
	}
	for _, ref := range c.Lists {
		j.usedLists[ref.Name] = true
		l, ok := j.z.Lists[ref.Name]
		switch {
		case !ok:
			j.problem(object, "list_unknown", "the %s names list %s, which this zone does not have; create the list or name another", what, quote(ref.Name))
		case !ref.Accepts(string(l.Kind)) && ref.IsAddr:
			j.problem(object, "list_kind", "the %s looks for an address in list %s, which is of kind %s; use a list of kind ip", what, ref.Name, l.Kind)
		case !ref.Accepts(string(l.Kind)):
			j.problem(object, "list_kind", "the %s looks for a string in list %s, which is of kind %s; use a list of kind hostname or string", what, ref.Name, l.Kind)
		}
	}
	return c
}

// unused warns of lists and pools that nothing names.
func (j *judge) unused() {
	for _, name := range slices.Sorted(maps.Keys(j.z.Lists)) {
		if !j.usedLists[name] {
			j.warn("list "+name, "list_unused", "no rule uses this list; remove it or use it")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(j.z.Pools)) {
		if !j.usedPools[name] {
			j.warn("pool "+name, "pool_unused", "no load balancer and no rule uses this pool, and only the one called default serves without; remove it or use it")
		}
	}
}
