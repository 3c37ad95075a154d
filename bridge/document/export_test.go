package document

import (
	"reflect"
	"strings"
)

// FieldsOfEverything are the fields that a document can have, but the version.
func FieldsOfEverything() map[string]bool {
	out := map[string]bool{}
	for section, of := range map[string]reflect.Type{
		"bridge": reflect.TypeFor[wireBridge](), "sessions": reflect.TypeFor[wireSession](), "routes": reflect.TypeFor[wireRoute](),
	} {
		fields(out, section, of)
	}
	return out
}

func fields(out map[string]bool, path string, of reflect.Type) {
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct {
			fields(out, path+"."+name, inner)
		} else {
			out[path+"."+name] = true
		}
	}
}
