package snapshot

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/guardyn-edge/guardyn/internal/metering"
	"github.com/guardyn-edge/guardyn/zone"
)

// functions judges modules: that they compile as WASI commands within the plan's memory, and their bounds.
func (j *judge) functions() {
	limit := j.z.Ceilings.Effective()
	exceeded := make(map[string][]zone.Exceeded)
	if len(j.z.Functions) > 0 {
		for _, e := range j.z.Exceeded() {
			exceeded[e.Function] = append(exceeded[e.Function], e)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(j.z.Functions)) {
		f := j.z.Functions[name]
		object := "function " + name
		tooLarge := false
		for _, e := range exceeded[name] {
			if e.Ceiling == "function_size" {
				tooLarge = true
				j.problem(object, "function_too_large", "the module has %s and the plan allows %s; make it smaller or ask for a larger plan", e.Have, e.Limit)
				continue
			}
			j.problem(object, "ceiling_exceeded", "its %s is %s and the plan allows %s; lower it or ask for a larger plan", e.What, e.Have, e.Limit)
		}
		if tooLarge {
			continue
		}
		memory := limit.FunctionMemory
		if f.Memory > 0 {
			memory = min(memory, f.Memory)
		}
		if j.live != nil {
			if old, ok := j.live.Functions[name]; ok && old.Memory == f.Memory &&
				j.live.Ceilings.Effective().FunctionMemory == limit.FunctionMemory && bytes.Equal(old.Module, f.Module) {
				continue // it compiled when it was published
			}
		}
		if err := compile(f.Module, memory); err != nil {
			j.problem(object, "function_invalid", "the module is refused: %v; build it for WASI preview 1 (wasip1)", err)
		}
	}
}

// compile judges a module as nodes do, without making machine code of it: as it is, and as nodes rewrite it.
func compile(module []byte, memory zone.Size) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("it cannot be compiled: %v", r)
		}
	}()
	ctx := context.Background()
	rt := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2).WithDebugInfoEnabled(false))
	defer func() { _ = rt.Close(ctx) }()
	if _, err := rt.CompileModule(ctx, module); err != nil {
		return err
	}
	rewritten, err := metering.Rewrite(module, int64(memory))
	if err != nil {
		return err
	}
	_, err = rt.CompileModule(ctx, rewritten)
	return err
}
