package expr

import (
	"regexp"
	"strconv"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
)

// literalValidator judges the literals that ip, cidr and matches are given. The pattern of matches must be
// one: a program compiles it once, and no request chooses what is compiled.
type literalValidator struct{}

// Name tells the validator from others.
func (literalValidator) Name() string { return "guardyn.validate.literals" }

// Validate reports every bad literal.
func (literalValidator) Validate(_ *cel.Env, _ cel.ValidatorConfig, a *ast.AST, issues *cel.Issues) {
	ast.PreOrderVisit(a.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind {
			return
		}
		call := e.AsCall()
		if args := call.Args(); call.FunctionName() == "matches" && len(args) > 0 {
			validatePattern(args[len(args)-1], issues)
			return
		}
		if call.IsMemberFunction() {
			return
		}
		for _, arg := range call.Args() {
			if arg.Kind() != ast.LiteralKind || arg.AsLiteral().Type() != types.StringType {
				continue
			}
			var err error
			switch call.FunctionName() {
			case "ip":
				_, err = parseAddr(text(arg.AsLiteral()))
			case "cidr":
				_, err = parsePrefix(text(arg.AsLiteral()))
			}
			if err != nil {
				issues.ReportErrorAtID(arg.ID(), "%s", err.Error())
			}
		}
	}))
}

func validatePattern(e ast.Expr, issues *cel.Issues) {
	if e.Kind() != ast.LiteralKind || e.AsLiteral().Type() != types.StringType {
		issues.ReportErrorAtID(e.ID(), "the pattern of matches is a string in quotes, which no request can change")
		return
	}
	if _, err := regexp.Compile(text(e.AsLiteral())); err != nil {
		issues.ReportErrorAtID(e.ID(), "%s", err.Error())
	}
}

// inert makes control characters harmless to a terminal.
func inert(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strconv.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		q := strconv.QuoteRuneToASCII(r)
		b.WriteString(q[1 : len(q)-1])
	}
	return b.String()
}
