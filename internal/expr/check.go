package expr

import (
	"errors"
	"fmt"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
)

// Kind is the type that an expression must have.
type Kind int

// The kinds: a rule asks for a Bool, the key of a rate limit for a String.
const (
	Bool Kind = iota
	String
)

func (k Kind) String() string {
	if k == String {
		return "string"
	}
	return "bool"
}

// Normalize parses src and prints it from its syntax tree, on one line, macros as they are written. White
// space and comments are gone, string literals are in double quotes. What it prints is its own normal
// form. The error joins all that does not parse, each with line and column.
func Normalize(src string) (string, error) {
	env, err := Env()
	if err != nil {
		return "", err
	}
	_, text, err := parse(env, src)
	return text, err
}

func parse(env *cel.Env, src string) (*cel.Ast, string, error) {
	if strings.TrimSpace(src) == "" {
		return nil, "", errors.New("the expression is empty")
	}
	a, issues := env.Parse(src)
	if err := issuesError(issues); err != nil {
		return nil, "", err
	}
	text, err := unparse(a)
	if err != nil {
		return nil, "", err
	}
	if text == src {
		return a, text, nil
	}
	// What is printed is what is kept, so it must read back to itself.
	b, issues := env.Parse(text)
	if err := issuesError(issues); err != nil {
		return nil, "", fmt.Errorf("the expression has no printed form that reads back: %w", err)
	}
	if again, err := unparse(b); err != nil || again != text {
		return nil, "", errors.New("the expression has no one printed form; write it more simply")
	}
	return a, text, nil
}

func unparse(a *cel.Ast) (string, error) {
	return cel.AstToString(a, cel.FormatWrapOnColumn(1<<30))
}

// Checked is an expression that type-checks.
type Checked struct {
	// Text is the normal form.
	Text string
	// Lists are the uses of in_list, once each, in the order of the text.
	Lists []ListRef
	// Constant is the value of a Bool expression that is the same for every request, else nil.
	Constant *bool
	// Cost is the estimate for the largest request, at most MaxCost.
	Cost uint64

	ast *cel.Ast
}

// ListRef is a use of a list.
type ListRef struct {
	Name string
	// IsAddr: the list is asked for an address and must be of kind ip; else for a string and must be of
	// kind hostname or string.
	IsAddr bool
}

// Accepts reports whether a list of kind ("ip", "hostname", "string") answers what is asked.
func (r ListRef) Accepts(kind string) bool { return (kind == "ip") == r.IsAddr }

// Check type-checks src against the environment, judges its literals and its cost, and tells what it
// refers to. The error joins all that is wrong, each with line and column.
func Check(src string, want Kind) (*Checked, error) {
	env, err := Env()
	if err != nil {
		return nil, err
	}
	_, text, err := parse(env, src)
	if err != nil {
		return nil, err
	}
	// The source itself is compiled, so that places in errors are places in it.
	a, issues := env.Compile(src)
	if err := issuesError(issues); err != nil {
		return nil, err
	}
	wanted := cel.BoolType
	if want == String {
		wanted = cel.StringType
	}
	if !a.OutputType().IsExactType(wanted) {
		return nil, fmt.Errorf("the expression is of type %s, it must be %s", a.OutputType(), want)
	}
	cost, err := env.EstimateCost(a, sizes{})
	if err != nil {
		return nil, fmt.Errorf("cost: %w", err)
	}
	if cost.Max > MaxCost {
		return nil, fmt.Errorf("the expression may cost %d on a large request, the most is %d: use in_list for many values, "+
			"shorter patterns, and no loop within a loop", cost.Max, MaxCost)
	}
	c := &Checked{Text: text, Cost: cost.Max, ast: a, Lists: listRefs(a.NativeRep())}
	if want == Bool {
		c.Constant = constant(env, a)
	}
	return c, nil
}

// Program makes what evaluates the expression: see the package comment. A caller that has many equal
// expressions keeps one program by Text.
func (c *Checked) Program() (cel.Program, error) {
	env, err := Env()
	if err != nil {
		return nil, err
	}
	return env.Program(c.ast, cel.EvalOptions(cel.OptOptimize))
}

func listRefs(a *ast.AST) []ListRef {
	var refs []ListRef
	seen := map[ListRef]bool{}
	ast.PreOrderVisit(a.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != inListFunction {
			return
		}
		args := e.AsCall().Args()
		r := ListRef{
			Name:   text(args[2].AsLiteral()),
			IsAddr: a.GetType(args[1].ID()).IsExactType(addrType),
		}
		if !seen[r] {
			seen[r] = true
			refs = append(refs, r)
		}
	}))
	return refs
}

// constant evaluates what can be without a request.
func constant(env *cel.Env, a *cel.Ast) *bool {
	folding, err := cel.NewConstantFoldingOptimizer()
	if err != nil {
		return nil
	}
	optimizer, err := cel.NewStaticOptimizer(folding)
	if err != nil {
		return nil
	}
	folded, issues := optimizer.Optimize(env, a)
	if issues != nil && issues.Err() != nil {
		return nil
	}
	e := folded.NativeRep().Expr()
	if e.Kind() != ast.LiteralKind {
		return nil
	}
	b, ok := e.AsLiteral().(types.Bool)
	if !ok {
		return nil
	}
	v := bool(b)
	return &v
}

// issuesError joins issues as "line L, column C: what".
func issuesError(issues *cel.Issues) error {
	if issues == nil || issues.Err() == nil {
		return nil
	}
	var errs []error
	for _, e := range issues.Errors() {
		message := inert(e.Message)
		if e.Location == nil || e.Location.Line() < 1 {
			errs = append(errs, errors.New(message))
			continue
		}
		errs = append(errs, fmt.Errorf("line %d, column %d: %s", e.Location.Line(), e.Location.Column()+1, message))
	}
	if len(errs) == 0 {
		return errors.New(inert(issues.Err().Error()))
	}
	return errors.Join(errs...)
}
