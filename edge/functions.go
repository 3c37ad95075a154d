package edge

import (
	"bytes"
	"errors"
	"maps"
	"slices"

	"github.com/guardyn-edge/guardyn/edge/function"
	"github.com/guardyn-edge/guardyn/zone"
)

// compileFunctions returns the functions of z by name, nil for none. What the old zone, which may be nil, has in the same form is shared.
func compileFunctions(z *zone.Zone, old *Zone, engine *function.Engine) (map[string]*function.Function, error) {
	if len(z.Functions) == 0 {
		return nil, nil
	}
	out := make(map[string]*function.Function, len(z.Functions))
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(z.Functions)) {
		f := z.Functions[name]
		var before *function.Function
		if old != nil {
			if before = old.Functions[name]; before != nil && sameFunction(f, z.Ceilings, old.Config.Functions[name], old.Config.Ceilings) {
				out[name] = before
				continue
			}
		}
		compiled, err := engine.Compile(name, f, z.Ceilings, before)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		out[name] = compiled
	}
	return out, errors.Join(problems...)
}

// sameFunction reports whether two functions run the same under their ceilings.
func sameFunction(a zone.Function, aCeilings zone.Ceilings, b zone.Function, bCeilings zone.Ceilings) bool {
	return function.LimitsOf(a, aCeilings) == function.LimitsOf(b, bCeilings) && maps.Equal(a.Environment, b.Environment) && bytes.Equal(a.Module, b.Module)
}
