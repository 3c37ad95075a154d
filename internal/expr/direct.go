package expr

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// Direct evaluates a Bool expression without CEL's values, for a tenth of what the program costs. known is false where it
// cannot tell: what the program says holds then, which else is the same value and no error. It is safe for concurrent
// use and keeps nothing of the request.
type Direct func(*Request) (value, known bool)

// Direct returns nil for an expression that has a part which only the program evaluates: what is not compared, matched, looked
// up or joined in the ways that rules mostly are.
func (c *Checked) Direct() Direct {
	d := director{c.ast.NativeRep()}
	return d.boolean(d.of.Expr())
}

// director turns what type-checks into functions. Each of its methods returns nil for what it does not know.
type director struct{ of *ast.AST }

type (
	directText func(*Request) string
	directInt  func(*Request) int64
)

func (d director) boolean(e ast.Expr) Direct {
	switch e.Kind() {
	case ast.LiteralKind:
		if b, ok := e.AsLiteral().(types.Bool); ok {
			return func(*Request) (bool, bool) { return bool(b), true }
		}
	case ast.SelectKind:
		if s := e.AsSelect(); s.IsTestOnly() {
			return d.has(s.Operand(), s.FieldName())
		}
	case ast.CallKind:
		call := e.AsCall()
		args := call.Args()
		if call.IsMemberFunction() {
			args = append([]ast.Expr{call.Target()}, args...)
		}
		switch len(args) {
		case 1:
			if call.FunctionName() == operators.LogicalNot {
				return not(d.boolean(args[0]))
			}
		case 2:
			return d.two(call.FunctionName(), args[0], args[1])
		case 3:
			if call.FunctionName() == inListFunction {
				return d.inList(args[1], args[2])
			}
		}
	}
	return nil
}

func not(of Direct) Direct {
	if of == nil {
		return nil
	}
	return func(r *Request) (bool, bool) {
		v, known := of(r)
		return !v, known
	}
}

// two is a function of two arguments.
func (d director) two(name string, a, b ast.Expr) Direct {
	switch name {
	case operators.LogicalAnd, operators.LogicalOr:
		return junction(name == operators.LogicalOr, d.boolean(a), d.boolean(b))
	case operators.Equals:
		return d.equal(a, b)
	case operators.NotEquals:
		return not(d.equal(a, b))
	case operators.In:
		return d.in(a, b)
	case operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		return d.order(name, a, b)
	case "matches":
		pattern, ok := literal(b)
		if !ok {
			return nil
		}
		of, err := regexp.Compile(pattern)
		if s := d.text(a); s != nil && err == nil {
			return func(r *Request) (bool, bool) { return of.MatchString(s(r)), true }
		}
		return nil
	case "contains":
		if prefix, ok := d.prefix(a); ok && d.isSource(b) {
			return func(r *Request) (bool, bool) { return prefix.Contains(r.Source.Unmap()), true }
		}
		return d.texts(a, b, strings.Contains)
	case "startsWith", "starts_with":
		return d.texts(a, b, strings.HasPrefix)
	case "endsWith", "ends_with":
		return d.texts(a, b, strings.HasSuffix)
	case "glob":
		return d.texts(a, b, globMatch)
	}
	return nil
}

// junction is a || b when decided is true, else a && b: the first that is decided settles it. Where one part is not known
// the other may settle it too, which CEL says in which order.
func junction(decided bool, a, b Direct) Direct {
	if a == nil || b == nil {
		return nil
	}
	return func(r *Request) (bool, bool) {
		if v, known := a(r); !known || v == decided {
			return v, known
		}
		return b(r)
	}
}

func (d director) texts(a, b ast.Expr, f func(s, t string) bool) Direct {
	s := d.text(a)
	if s == nil {
		return nil
	}
	if t, ok := literal(b); ok {
		return func(r *Request) (bool, bool) { return f(s(r), t), true }
	}
	t := d.text(b)
	if t == nil {
		return nil
	}
	return func(r *Request) (bool, bool) { return f(s(r), t(r)), true }
}

func equalTexts(s, t string) bool { return s == t }

func (d director) equal(a, b ast.Expr) Direct {
	if _, ok := literal(a); ok {
		a, b = b, a
	}
	if t := d.texts(a, b, equalTexts); t != nil {
		return t
	}
	if m, n := d.integer(a), d.integer(b); m != nil && n != nil {
		return func(r *Request) (bool, bool) { return m(r) == n(r), true }
	}
	if d.isSource(b) {
		a, b = b, a
	}
	if to, ok := d.address(b); ok && d.isSource(a) {
		return func(r *Request) (bool, bool) { return r.Source.Unmap() == to, true }
	}
	return nil
}

func (d director) order(operator string, a, b ast.Expr) Direct {
	m, n := d.integer(a), d.integer(b)
	if m == nil || n == nil {
		return nil
	}
	switch operator {
	case operators.Less:
		return func(r *Request) (bool, bool) { return m(r) < n(r), true }
	case operators.LessEquals:
		return func(r *Request) (bool, bool) { return m(r) <= n(r), true }
	case operators.Greater:
		return func(r *Request) (bool, bool) { return m(r) > n(r), true }
	}
	return func(r *Request) (bool, bool) { return m(r) >= n(r), true }
}

// fewTexts is up to how many texts are compared one by one.
const fewTexts = 8

// in is a text in a list of literals, or a name in a request's fields.
func (d director) in(a, b ast.Expr) Direct {
	s := d.text(a)
	if s == nil {
		return nil
	}
	if fields := d.fields(b); fields != nil {
		return func(r *Request) (bool, bool) { return there(fields(r), s(r)), true }
	}
	if b.Kind() != ast.ListKind {
		return nil
	}
	var texts []string
	set := map[string]bool{}
	for _, e := range b.AsList().Elements() {
		t, ok := literal(e)
		if !ok {
			return nil
		}
		texts, set[t] = append(texts, t), true
	}
	if len(texts) <= fewTexts {
		return func(r *Request) (bool, bool) { return slices.Contains(texts, s(r)), true }
	}
	return func(r *Request) (bool, bool) { return set[s(r)], true }
}

func there(of Fields, name string) bool {
	if of == nil {
		return false
	}
	_, ok := of.Get(name)
	return ok
}

func (d director) has(of ast.Expr, name string) Direct {
	fields := d.fields(of)
	if fields == nil {
		return nil
	}
	return func(r *Request) (bool, bool) { return there(fields(r), name), true }
}

func (d director) inList(value, list ast.Expr) Direct {
	name, ok := literal(list)
	if !ok {
		return nil
	}
	if d.isSource(value) {
		return func(r *Request) (bool, bool) {
			if r.Lists == nil {
				return false, false
			}
			return r.Lists.ContainsAddr(name, r.Source.Unmap())
		}
	}
	s := d.text(value)
	if s == nil {
		return nil
	}
	return func(r *Request) (bool, bool) {
		if r.Lists == nil {
			return false, false
		}
		return r.Lists.ContainsString(name, s(r))
	}
}

func (d director) text(e ast.Expr) directText {
	if s, ok := literal(e); ok {
		return func(*Request) string { return s }
	}
	switch variable(d.of, e) {
	case "http.host":
		return func(r *Request) string { return r.Host }
	case "http.method":
		return func(r *Request) string { return r.Method }
	case "http.path":
		return func(r *Request) string { return r.Path }
	case "http.query":
		return func(r *Request) string { return r.Query }
	case "http.uri":
		return (*Request).URI
	case "http.scheme":
		return func(r *Request) string { return r.Scheme }
	case "http.version":
		return func(r *Request) string { return r.Version }
	case "tls.sni":
		return func(r *Request) string { return r.SNI }
	case "tls.version":
		return func(r *Request) string { return r.TLSVersion }
	case "zone.name":
		return func(r *Request) string { return r.Zone }
	}
	switch e.Kind() {
	case ast.SelectKind:
		if s := e.AsSelect(); !s.IsTestOnly() {
			name := s.FieldName()
			return d.field(s.Operand(), func(*Request) string { return name })
		}
	case ast.CallKind:
		switch call := e.AsCall(); {
		case call.FunctionName() == operators.Index:
			if name := d.text(call.Args()[1]); name != nil {
				return d.field(call.Args()[0], name)
			}
		case call.IsMemberFunction() || len(call.Args()) != 1:
		case call.FunctionName() == "lower" || call.FunctionName() == "upper":
			first, last := byte('A'), byte('Z')
			if call.FunctionName() == "upper" {
				first, last = 'a', 'z'
			}
			if s := d.text(call.Args()[0]); s != nil {
				return func(r *Request) string { return folded(s(r), first, last) }
			}
		}
	}
	return nil
}

// field is the value of a field, empty when there is none.
func (d director) field(of ast.Expr, name directText) directText {
	fields := d.fields(of)
	if fields == nil {
		return nil
	}
	return func(r *Request) string {
		from := fields(r)
		if from == nil {
			return ""
		}
		s, _ := from.Get(name(r))
		return s
	}
}

func (d director) fields(e ast.Expr) func(*Request) Fields {
	switch variable(d.of, e) {
	case "http.headers":
		return func(r *Request) Fields { return r.Headers }
	case "http.cookies":
		return func(r *Request) Fields { return r.Cookies }
	}
	return nil
}

// integer is a literal, or how many code points a text has.
func (d director) integer(e ast.Expr) directInt {
	switch e.Kind() {
	case ast.LiteralKind:
		if n, ok := e.AsLiteral().(types.Int); ok {
			return func(*Request) int64 { return int64(n) }
		}
	case ast.CallKind:
		call := e.AsCall()
		if call.FunctionName() != "size" {
			return nil
		}
		of := call.Target()
		if !call.IsMemberFunction() {
			of = call.Args()[0]
		}
		if s := d.text(of); s != nil {
			return func(r *Request) int64 { return int64(utf8.RuneCountInString(s(r))) }
		}
	}
	return nil
}

func (d director) isSource(e ast.Expr) bool { return variable(d.of, e) == "ip.src" }

// address is what a call of ip has of a literal.
func (d director) address(e ast.Expr) (netip.Addr, bool) {
	s, ok := d.called(e, "ip")
	if !ok {
		return netip.Addr{}, false
	}
	a, err := parseAddr(s)
	return a, err == nil
}

// prefix is what a call of cidr has of a literal.
func (d director) prefix(e ast.Expr) (netip.Prefix, bool) {
	s, ok := d.called(e, "cidr")
	if !ok {
		return netip.Prefix{}, false
	}
	p, err := parsePrefix(s)
	return p, err == nil
}

// called is the literal that a function is called with.
func (d director) called(e ast.Expr, name string) (string, bool) {
	if e.Kind() != ast.CallKind {
		return "", false
	}
	call := e.AsCall()
	if call.IsMemberFunction() || call.FunctionName() != name || len(call.Args()) != 1 {
		return "", false
	}
	return literal(call.Args()[0])
}
