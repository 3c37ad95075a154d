package expr

import (
	"fmt"
	"net/netip"
	"reflect"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// Addr is an IP address as a CEL value.
type Addr struct{ netip.Addr }

// Prefix is an IP prefix as a CEL value, its host bits zero.
type Prefix struct{ netip.Prefix }

// Lists answers what in_list asks of the lists of one zone. It is safe for concurrent use; its cost
// should not follow the size of a list.
type Lists interface {
	// ContainsAddr reports whether the list called name holds a, and whether there is such a list of
	// kind ip.
	ContainsAddr(name string, a netip.Addr) (in, known bool)
	// ContainsString reports whether the list called name holds s, and whether there is such a list of
	// kind hostname or string. A list of host names folds s itself.
	ContainsString(name, s string) (in, known bool)
}

// listsValue carries a zone's lists through an evaluation.
type listsValue struct{ of Lists }

// ConvertToNative gives the netip.Addr or, where a string is asked for, its text.
func (a Addr) ConvertToNative(t reflect.Type) (any, error) { return native(a.Addr, a.String(), t) }

// ConvertToType converts to ip itself, to string and to type.
func (a Addr) ConvertToType(t ref.Type) ref.Val { return convert(a, a.String(), t) }

// Equal compares addresses.
func (a Addr) Equal(other ref.Val) ref.Val {
	b, ok := other.(Addr)
	return types.Bool(ok && a.Addr == b.Addr)
}

// Type is ip.
func (a Addr) Type() ref.Type { return addrType }

// Value returns the netip.Addr.
func (a Addr) Value() any { return a.Addr }

// ConvertToNative gives the netip.Prefix or, where a string is asked for, its text.
func (p Prefix) ConvertToNative(t reflect.Type) (any, error) { return native(p.Prefix, p.String(), t) }

// ConvertToType converts to cidr itself, to string and to type.
func (p Prefix) ConvertToType(t ref.Type) ref.Val { return convert(p, p.String(), t) }

// Equal compares prefixes.
func (p Prefix) Equal(other ref.Val) ref.Val {
	q, ok := other.(Prefix)
	return types.Bool(ok && p.Prefix == q.Prefix)
}

// Type is cidr.
func (p Prefix) Type() ref.Type { return prefixType }

// Value returns the netip.Prefix.
func (p Prefix) Value() any { return p.Prefix }

func (l listsValue) ConvertToNative(t reflect.Type) (any, error) { return native(l.of, "", t) }
func (l listsValue) ConvertToType(t ref.Type) ref.Val            { return convert(l, "", t) }
func (l listsValue) Equal(ref.Val) ref.Val                       { return types.False }
func (l listsValue) Type() ref.Type                              { return listsType }
func (l listsValue) Value() any                                  { return l.of }

func native(v any, text string, t reflect.Type) (any, error) {
	switch {
	case reflect.TypeOf(v) != nil && reflect.TypeOf(v).AssignableTo(t):
		return v, nil
	case t.Kind() == reflect.String:
		return text, nil
	}
	return nil, fmt.Errorf("%T does not convert to %s", v, t)
}

func convert(v ref.Val, text string, t ref.Type) ref.Val {
	switch t.TypeName() {
	case v.Type().TypeName():
		return v
	case types.StringType.TypeName():
		return types.String(text)
	case types.TypeType.TypeName():
		return v.Type().(*types.Type)
	}
	return types.NewErr("%s does not convert to %s", v.Type().TypeName(), t.TypeName())
}
