package expr

import (
	"net/netip"
	"reflect"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// Request is what an expression sees: the activation that a program is evaluated with. The owner fills it
// and may change it between evaluations, not during one.
type Request struct {
	Host, Method, Path, Query, Scheme, Version string

	Headers, Cookies Fields
	Source           netip.Addr
	SNI, TLSVersion  string
	Zone             string
	// Lists are the zone's; nil makes every in_list an error.
	Lists Lists

	uri string // of Path and Query, empty before it is asked for
}

// Rewrite changes Path and Query, once they have been evaluated with.
func (r *Request) Rewrite(path, query string) { r.Path, r.Query, r.uri = path, query, "" }

// URI is the path, and "?" with the query when there is one.
func (r *Request) URI() string {
	if r.Query == "" {
		return r.Path
	}
	if r.uri == "" {
		r.uri = r.Path + "?" + r.Query
	}
	return r.uri
}

var _ cel.Activation = (*Request)(nil)

// ResolveName returns the value of a variable.
func (r *Request) ResolveName(name string) (any, bool) {
	switch name {
	case "http.host":
		return types.String(r.Host), true
	case "http.method":
		return types.String(r.Method), true
	case "http.path":
		return types.String(r.Path), true
	case "http.query":
		return types.String(r.Query), true
	case "http.uri":
		return types.String(r.URI()), true
	case "http.scheme":
		return types.String(r.Scheme), true
	case "http.version":
		return types.String(r.Version), true
	case "http.headers":
		return fieldsValue{r.Headers}, true
	case "http.cookies":
		return fieldsValue{r.Cookies}, true
	case "ip.src":
		return Addr{r.Source.Unmap()}, true
	case "tls.sni":
		return types.String(r.SNI), true
	case "tls.version":
		return types.String(r.TLSVersion), true
	case "zone.name":
		return types.String(r.Zone), true
	case listsVariable:
		return listsValue{r.Lists}, true
	}
	return nil, false
}

// Parent returns nil: there is no activation beside the request.
func (r *Request) Parent() cel.Activation { return nil }

// Fields are named values of a request. A nil Fields has none.
type Fields interface {
	// Get returns the value of name and whether it is there.
	Get(name string) (string, bool)
	// Names returns every name once, in any order that does not change. The caller does not change it.
	Names() []string
}

// fieldsValue is Fields as a CEL map in which what is missing reads as "". It is no traits.Mapper: has()
// and indexing would ask one Find then, and must hear different answers.
type fieldsValue struct{ of Fields }

var _ interface {
	traits.Container
	traits.FieldTester
	traits.Indexer
	traits.Iterable
	traits.Sizer
} = fieldsValue{}

func (f fieldsValue) get(key ref.Val) (string, bool) {
	if f.of == nil {
		return "", false
	}
	return f.of.Get(text(key))
}

func (f fieldsValue) names() []string {
	if f.of == nil {
		return nil
	}
	return f.of.Names()
}

func (f fieldsValue) Contains(key ref.Val) ref.Val {
	_, ok := f.get(key)
	return types.Bool(ok)
}

// IsSet is what has() asks.
func (f fieldsValue) IsSet(key ref.Val) ref.Val { return f.Contains(key) }

func (f fieldsValue) Get(key ref.Val) ref.Val {
	s, _ := f.get(key)
	return types.String(s)
}

func (f fieldsValue) Size() ref.Val { return types.Int(len(f.names())) }

func (f fieldsValue) Iterator() traits.Iterator {
	return types.NewStringList(types.DefaultTypeAdapter, f.names()).(traits.Iterable).Iterator()
}

func (f fieldsValue) toMap() map[string]string {
	m := make(map[string]string, len(f.names()))
	for _, name := range f.names() {
		m[name], _ = f.of.Get(name)
	}
	return m
}

func (f fieldsValue) ConvertToNative(t reflect.Type) (any, error) { return native(f.toMap(), "", t) }
func (f fieldsValue) ConvertToType(t ref.Type) ref.Val            { return convert(f, "", t) }
func (f fieldsValue) Equal(other ref.Val) ref.Val {
	return types.NewStringStringMap(types.DefaultTypeAdapter, f.toMap()).Equal(other)
}
func (f fieldsValue) Type() ref.Type { return types.MapType }
func (f fieldsValue) Value() any     { return f.toMap() }
