package expr

import (
	"fmt"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
	"cel.dev/cel-go/parser"
)

// Explain evaluates a Bool expression and tells, when it is false, which parts made it so, each with the values of what
// it asks. It is much slower than the program.
func (c *Checked) Explain(a cel.Activation) (value bool, why []string, err error) {
	env, err := Env()
	if err != nil {
		return false, nil, err
	}
	program, err := env.Program(c.ast, cel.EvalOptions(cel.OptTrackState))
	if err != nil {
		return false, nil, err
	}
	v, details, err := program.Eval(a)
	if err != nil {
		return false, nil, err
	}
	if v == types.True {
		return true, nil, nil
	}
	x := explanation{c.ast.NativeRep(), details.State(), nil}
	x.falsehood(x.of.Expr())
	return false, x.why, nil
}

type explanation struct {
	of    *ast.AST
	state interpreter.EvalState
	why   []string
}

// falsehood tells why e is false.
func (x *explanation) falsehood(e ast.Expr) {
	if e.Kind() == ast.CallKind {
		args := e.AsCall().Args()
		switch e.AsCall().FunctionName() {
		case operators.LogicalAnd:
			for _, arg := range args {
				if v, ok := x.state.Value(arg.ID()); ok && v == types.False {
					x.falsehood(arg)
				}
			}
			return
		case operators.LogicalOr:
			for _, arg := range args {
				x.falsehood(arg)
			}
			return
		}
	}
	text, err := parser.Unparse(e, x.of.SourceInfo(), parser.WrapOnColumn(1<<30))
	if err != nil {
		text = "a part of it"
	}
	line := text + " is false"
	seen := map[string]bool{}
	ast.PreOrderVisit(e, ast.NewExprVisitor(func(part ast.Expr) {
		name := x.asked(part)
		v, ok := x.state.Value(part.ID())
		if name == "" || !ok || seen[name] {
			return
		}
		seen[name] = true
		if shown, ok := show(v); ok {
			line += ": " + name + " is " + shown
		}
	}))
	x.why = append(x.why, line)
}

// asked returns the text of a variable or of one field of a header or cookie, else "".
func (x *explanation) asked(e ast.Expr) string {
	if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.Index {
		text, err := parser.Unparse(e, x.of.SourceInfo(), parser.WrapOnColumn(1<<30))
		if err == nil {
			return text
		}
	}
	return variable(x.of, e)
}

func show(v ref.Val) (string, bool) {
	switch v := v.(type) {
	case types.String:
		return fmt.Sprintf("%q", string(v)), true
	case Addr:
		return v.String(), true
	}
	return "", false
}
