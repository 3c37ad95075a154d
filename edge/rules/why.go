package rules

import "github.com/guardyn-edge/guardyn/internal/expr"

// Why evaluates an expression as a rule of the set would be, with its lists, and tells which parts made it false. The
// error is that the expression does not compile or erred; a rule that errs does not match.
func (s *Set) Why(r *Request, expression string) (matches bool, why []string, err error) {
	c, err := expr.Check(expression, expr.Bool)
	if err != nil {
		return false, nil, err
	}
	of := &lists{}
	if s != nil {
		of = &s.lists
	}
	r.lists(of)
	return c.Explain(r)
}
