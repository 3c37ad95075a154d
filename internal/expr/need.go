package expr

import (
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// MaxNeed is the most values of one variable that Need tells of.
const MaxNeed = 64

// Need is what a request must have for an expression not to be false: one of the values that it names of each
// variable. A request that lacks it makes the expression false, not an error, so it need not be evaluated.
type Need struct {
	Host, Method, Path Values
}

// Values are those of a string, of which one is needed. The zero Values is any string.
type Values struct {
	// Some says that only what is in Exact or begins with one of Prefixes will do.
	Some            bool
	Exact, Prefixes []string
}

// Need returns what is known without evaluating: from comparisons of http.host, http.method and http.path with
// literals, starts_with, glob and in, joined by && and ||.
func (c *Checked) Need() Need {
	n := need(c.ast.NativeRep(), c.ast.NativeRep().Expr())
	for _, v := range []*Values{&n.Host, &n.Method, &n.Path} {
		v.settle()
	}
	return n
}

func need(a *ast.AST, e ast.Expr) Need {
	if e.Kind() != ast.CallKind {
		return Need{}
	}
	call := e.AsCall()
	args := call.Args()
	if call.IsMemberFunction() {
		args = append([]ast.Expr{call.Target()}, args...)
	}
	if len(args) != 2 {
		return Need{}
	}
	switch call.FunctionName() {
	case operators.LogicalAnd:
		x, y := need(a, args[0]), need(a, args[1])
		return Need{and(x.Host, y.Host), and(x.Method, y.Method), and(x.Path, y.Path)}
	case operators.LogicalOr:
		x, y := need(a, args[0]), need(a, args[1])
		return Need{or(x.Host, y.Host), or(x.Method, y.Method), or(x.Path, y.Path)}
	case operators.Equals:
		if s, ok := literal(args[1]); ok {
			return about(a, args[0], Values{Some: true, Exact: []string{s}})
		}
		if s, ok := literal(args[0]); ok {
			return about(a, args[1], Values{Some: true, Exact: []string{s}})
		}
	case operators.In:
		if args[1].Kind() != ast.ListKind {
			return Need{}
		}
		v := Values{Some: true}
		for _, item := range args[1].AsList().Elements() {
			s, ok := literal(item)
			if !ok {
				return Need{}
			}
			v.Exact = append(v.Exact, s)
		}
		return about(a, args[0], v)
	case "startsWith", "starts_with":
		if s, ok := literal(args[1]); ok {
			return about(a, args[0], Values{Some: true, Prefixes: []string{s}})
		}
	case "glob":
		if s, ok := literal(args[1]); ok {
			if at := strings.IndexAny(s, `*?\`); at >= 0 {
				return about(a, args[0], Values{Some: true, Prefixes: []string{s[:at]}})
			}
			return about(a, args[0], Values{Some: true, Exact: []string{s}})
		}
	}
	return Need{}
}

// about says that a variable must have v.
func about(a *ast.AST, e ast.Expr, v Values) (n Need) {
	if slices.Contains(v.Prefixes, "") {
		return n // every string begins with it
	}
	switch variable(a, e) {
	case "http.host":
		n.Host = v
	case "http.method":
		n.Method = v
	case "http.path":
		n.Path = v
	}
	return n
}

// variable returns the name of the variable that e is, "" when it is none.
func variable(a *ast.AST, e ast.Expr) string {
	if r, ok := a.ReferenceMap()[e.ID()]; ok && r.Name != "" && len(r.OverloadIDs) == 0 {
		return r.Name
	}
	if e.Kind() == ast.IdentKind {
		return e.AsIdent()
	}
	return ""
}

func literal(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}

// and keeps one of two needs, which both are true: the one that names less, exact values before prefixes.
func and(x, y Values) Values {
	switch {
	case !x.Some:
		return y
	case !y.Some:
		return x
	case len(x.Prefixes) != len(y.Prefixes):
		if len(x.Prefixes) < len(y.Prefixes) {
			return x
		}
		return y
	case len(y.Exact) < len(x.Exact):
		return y
	}
	return x
}

func or(x, y Values) Values {
	if !x.Some || !y.Some {
		return Values{}
	}
	return Values{Some: true, Exact: slices.Concat(x.Exact, y.Exact), Prefixes: slices.Concat(x.Prefixes, y.Prefixes)}
}

// settle sorts the values and lets too many of them be any.
func (v *Values) settle() {
	slices.Sort(v.Exact)
	slices.Sort(v.Prefixes)
	v.Exact, v.Prefixes = slices.Compact(v.Exact), slices.Compact(v.Prefixes)
	if len(v.Exact)+len(v.Prefixes) > MaxNeed {
		*v = Values{}
	}
}
