package archtest

import (
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sources reads constants, and defaults of configurations, out of the source of packages, the unexported ones too.
type sources struct {
	t        *testing.T
	packages map[string]*constants
}

// constants are those of one package, and what its functions fill the fields of a configuration with.
type constants struct {
	files    []*ast.File
	declared map[string]ast.Expr
	defaults map[string]ast.Expr // by field
	imports  map[string]string   // directory in the module, by name
}

func newSources(t *testing.T) *sources { return &sources{t: t, packages: make(map[string]*constants)} }

func (s *sources) of(dir string) *constants {
	if c := s.packages[dir]; c != nil {
		return c
	}
	c := &constants{declared: make(map[string]ast.Expr), defaults: make(map[string]ast.Expr), imports: make(map[string]string)}
	s.packages[dir] = c
	files, err := filepath.Glob(filepath.Join(top(s.t), dir, "*.go"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			s.t.Fatal(err)
		}
		c.files = append(c.files, f)
		for _, i := range f.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				s.t.Fatal(err)
			}
			if in, ok := own(p); ok {
				c.imports[path.Base(p)] = in
			}
		}
		ast.Inspect(f, c.visit)
	}
	return c
}

// visit notes constants, the pairs {&c.Field, value} of a table, cmp.Or(c.Field, value), and the fields of a literal.
func (c *constants) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		if n.Tok != token.CONST {
			return true
		}
		for _, spec := range n.Specs {
			v, ok := spec.(*ast.ValueSpec)
			for i := range v.Names {
				if ok && i < len(v.Values) {
					c.declared[v.Names[i].Name] = v.Values[i]
				}
			}
		}
	case *ast.CompositeLit:
		if len(n.Elts) == 2 {
			if u, ok := n.Elts[0].(*ast.UnaryExpr); ok && u.Op == token.AND {
				if f, ok := u.X.(*ast.SelectorExpr); ok {
					c.defaults[f.Sel.Name] = n.Elts[1]
				}
			}
		}
		for _, e := range n.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok {
				if name, ok := kv.Key.(*ast.Ident); ok && c.defaults[name.Name] == nil {
					c.defaults[name.Name] = kv.Value
				}
			}
		}
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Or" && len(n.Args) == 2 {
			if field, ok := n.Args[0].(*ast.SelectorExpr); ok {
				c.defaults[field.Sel.Name] = n.Args[1]
			}
		}
	}
	return true
}

var errNoConstant = errors.New("there is none")

// value is that of a source: "edge/web maxHeaderBytes", or "edge/web .IdleTimeout" for the default of a field.
func (s *sources) value(source string) (int64, error) {
	dir, name, _ := strings.Cut(source, " ")
	c := s.of(dir)
	field, isField := strings.CutPrefix(name, ".")
	e := c.declared[name]
	if isField {
		e = c.defaults[field]
	}
	if e == nil {
		return 0, fmt.Errorf("%s: %w", source, errNoConstant)
	}
	v, err := s.eval(dir, e)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", source, err)
	}
	n, ok := constant.Int64Val(constant.ToInt(v))
	if !ok {
		return 0, fmt.Errorf("%s is no integer", source)
	}
	return n, nil
}

// durations of package time in nanoseconds.
var durations = map[string]int64{"Millisecond": 1e6, "Second": 1e9, "Minute": 60e9, "Hour": 3600e9}

func (s *sources) eval(dir string, e ast.Expr) (constant.Value, error) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0), nil
	case *ast.ParenExpr:
		return s.eval(dir, e.X)
	case *ast.CallExpr: // a conversion
		if len(e.Args) == 1 {
			return s.eval(dir, e.Args[0])
		}
	case *ast.Ident:
		if v := s.of(dir).declared[e.Name]; v != nil {
			return s.eval(dir, v)
		}
	case *ast.SelectorExpr:
		p, ok := e.X.(*ast.Ident)
		if !ok {
			break
		}
		if d, ok := durations[e.Sel.Name]; ok && p.Name == "time" {
			return constant.MakeInt64(d), nil
		}
		if in, ok := s.of(dir).imports[p.Name]; ok {
			if v := s.of(in).declared[e.Sel.Name]; v != nil {
				return s.eval(in, v)
			}
		}
	case *ast.BinaryExpr:
		x, err := s.eval(dir, e.X)
		if err != nil {
			return nil, err
		}
		y, err := s.eval(dir, e.Y)
		if err != nil {
			return nil, err
		}
		if e.Op == token.SHL {
			n, _ := constant.Uint64Val(constant.ToInt(y))
			return constant.Shift(constant.ToInt(x), token.SHL, uint(n)), nil
		}
		return constant.BinaryOp(x, e.Op, y), nil
	}
	return nil, errNoConstant
}

// bounds are the names of constants in dir that read like bounds of what grows.
func (s *sources) bounds(dir string) (names []string) {
	for name := range s.of(dir).declared {
		for _, prefix := range []string{"max", "Max"} {
			if rest, ok := strings.CutPrefix(name, prefix); ok && (rest == "" || rest[0] >= 'A' && rest[0] <= 'Z') {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// shown prints n as the documents do, in a unit: "n" a number, "b" octets, "t" nanoseconds.
func shown(n int64, unit string) string {
	plain := func(n int64) string {
		s := strconv.FormatInt(n, 10)
		for i := len(s) - 3; i > 0; i -= 3 {
			s = s[:i] + "," + s[i:]
		}
		return s
	}
	switch unit {
	case "b":
		for _, u := range []struct {
			of   int64
			name string
		}{{1 << 30, " GiB"}, {1 << 20, " MiB"}, {1 << 10, " KiB"}} {
			if n >= u.of && n%u.of == 0 {
				return plain(n/u.of) + u.name
			}
		}
		return plain(n) + " octets"
	case "t":
		for _, u := range []struct {
			of   int64
			name string
		}{{3600e9, " h"}, {60e9, " min"}, {1e9, " s"}, {1e6, " ms"}} {
			if n >= u.of && n%u.of == 0 && (u.of < 60e9 || n/u.of > 1) {
				return plain(n/u.of) + u.name
			}
		}
	}
	return plain(n)
}
