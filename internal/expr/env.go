package expr

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/parser"
)

// Bounds of one expression.
const (
	// MaxSource is the most code points of its text.
	MaxSource = 8192
	// MaxNodes is the most nodes of its syntax tree, macros expanded.
	MaxNodes = 2000
	// MaxDepth is how deep it may nest.
	MaxDepth = 64
	// MaxCost is the most that its cost, estimated for the largest request, may be. A unit is about one
	// step of the evaluator or ten octets of a string looked at.
	MaxCost = 1_000_000
)

// Names that no expression can spell: what in_list expands to.
const (
	listsVariable  = "@lists"
	inListFunction = "@in_list"
)

// The kinds of values that the environment adds to CEL's.
var (
	addrType   = cel.OpaqueType("ip")
	prefixType = cel.OpaqueType("cidr")
	listsType  = cel.OpaqueType("lists")
)

// environment is made once and never changes.
var environment = sync.OnceValues(func() (*cel.Env, error) { return cel.NewEnv(options()...) })

// Env returns the one environment. It is immutable and shared.
func Env() (*cel.Env, error) { return environment() }

// options returns what the environment is made of, beside CEL's standard library.
func options() []cel.EnvOption {
	str, boolean := cel.StringType, cel.BoolType
	fields := cel.MapType(str, str)
	two := []*cel.Type{str, str}
	return []cel.EnvOption{
		cel.EnableMacroCallTracking(),
		cel.ParserExpressionSizeLimit(MaxSource),
		cel.ParserRecursionLimit(MaxDepth),
		cel.ExpressionNestingDepthLimit(MaxDepth),
		cel.ExpressionNodeLimit(MaxNodes),
		cel.Macros(cel.GlobalMacro("in_list", 2, expandInList,
			cel.MacroDocs("whether a value is in a list of the zone"),
			cel.MacroExamples(`in_list(ip.src, "office")`))),
		cel.ASTValidators(literalValidator{}),

		cel.Variable("http.host", str), cel.Variable("http.method", str), cel.Variable("http.path", str),
		cel.Variable("http.query", str), cel.Variable("http.uri", str), cel.Variable("http.scheme", str),
		cel.Variable("http.version", str), cel.Variable("http.headers", fields), cel.Variable("http.cookies", fields),
		cel.Variable("ip.src", addrType), cel.Variable("tls.sni", str), cel.Variable("tls.version", str),
		cel.Variable("zone.name", str), cel.Variable(listsVariable, listsType),

		cel.Function("ip", cel.Overload("ip_string", []*cel.Type{str}, addrType,
			cel.UnaryBinding(func(v ref.Val) ref.Val {
				a, err := parseAddr(text(v))
				if err != nil {
					return types.WrapErr(err)
				}
				return Addr{a}
			}))),
		cel.Function("cidr", cel.Overload("cidr_string", []*cel.Type{str}, prefixType,
			cel.UnaryBinding(func(v ref.Val) ref.Val {
				p, err := parsePrefix(text(v))
				if err != nil {
					return types.WrapErr(err)
				}
				return Prefix{p}
			}))),
		cel.Function("contains",
			cel.MemberOverload("cidr_contains_ip", []*cel.Type{prefixType, addrType}, boolean,
				cel.BinaryBinding(func(p, a ref.Val) ref.Val {
					return types.Bool(p.(Prefix).Contains(a.(Addr).Addr))
				})),
			cel.Overload("contains_string_string", two, boolean, onStrings(strings.Contains))),
		cel.Function("starts_with", cel.Overload("starts_with_string_string", two, boolean, onStrings(strings.HasPrefix))),
		cel.Function("ends_with", cel.Overload("ends_with_string_string", two, boolean, onStrings(strings.HasSuffix))),
		cel.Function("glob", cel.Overload("glob_string_string", two, boolean, onStrings(globMatch))),
		cel.Function("lower", cel.Overload("lower_string", []*cel.Type{str}, str, fold('A', 'Z'))),
		cel.Function("upper", cel.Overload("upper_string", []*cel.Type{str}, str, fold('a', 'z'))),
		cel.Function("string", cel.Overload("ip_to_string", []*cel.Type{addrType}, str,
			cel.UnaryBinding(func(v ref.Val) ref.Val { return types.String(v.(Addr).String()) }))),
		cel.Function(inListFunction,
			cel.Overload("in_list_ip", []*cel.Type{listsType, addrType, str}, boolean, cel.FunctionBinding(inList)),
			cel.Overload("in_list_string", []*cel.Type{listsType, str, str}, boolean, cel.FunctionBinding(inList))),
	}
}

// expandInList puts the lists of the zone, which no expression can name, before the arguments.
func expandInList(h parser.ExprHelper, _ ast.Expr, args []ast.Expr) (ast.Expr, *common.Error) {
	name := args[1]
	if name.Kind() != ast.LiteralKind || name.AsLiteral().Type() != types.StringType {
		return nil, h.NewError(name.ID(), `the second argument of in_list is the name of a list in quotes, as in in_list(ip.src, "office")`)
	}
	return h.NewCall(inListFunction, h.NewIdent(listsVariable), args[0], name), nil
}

func inList(args ...ref.Val) ref.Val {
	lists, ok := args[0].(listsValue)
	if !ok || lists.of == nil {
		return types.NewErr("no lists are bound")
	}
	name := text(args[2])
	var in, known bool
	switch v := args[1].(type) {
	case Addr:
		in, known = lists.of.ContainsAddr(name, v.Addr)
	case types.String:
		in, known = lists.of.ContainsString(name, string(v))
	}
	if !known {
		return types.NewErr("there is no list %q of this kind", name)
	}
	return types.Bool(in)
}

func text(v ref.Val) string {
	s, _ := v.(types.String)
	return string(s)
}

func onStrings(f func(s, t string) bool) cel.OverloadOpt {
	return cel.BinaryBinding(func(a, b ref.Val) ref.Val { return types.Bool(f(text(a), text(b))) })
}

// fold changes the case of the ASCII letters from first to last.
func fold(first, last byte) cel.OverloadOpt {
	return cel.UnaryBinding(func(v ref.Val) ref.Val { return types.String(folded(text(v), first, last)) })
}

func folded(s string, first, last byte) string {
	i := 0
	for i < len(s) && (s[i] < first || s[i] > last) {
		i++
	}
	if i == len(s) {
		return s
	}
	b := []byte(s)
	for ; i < len(b); i++ {
		if b[i] >= first && b[i] <= last {
			b[i] ^= 'a' - 'A'
		}
	}
	return string(b)
}

func parseAddr(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" {
		return netip.Addr{}, fmt.Errorf("%q is not an IP address", s)
	}
	return a.Unmap(), nil
}

func parsePrefix(s string) (netip.Prefix, error) {
	if !strings.Contains(s, "/") {
		a, err := parseAddr(s)
		if err != nil {
			return netip.Prefix{}, fmt.Errorf("%q is not an address or a prefix such as 192.0.2.0/24", s)
		}
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is not an address or a prefix such as 192.0.2.0/24", s)
	}
	if p.Addr().Is4In6() {
		if p.Bits() < 96 {
			return netip.Prefix{}, errors.New("a prefix of mapped addresses needs a length of 96 or more")
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked(), nil
}
