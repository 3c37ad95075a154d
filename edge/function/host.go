package function

import (
	"context"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/guardyn-edge/guardyn/internal/metering"
)

// instantiateHost makes what rewritten modules call.
func instantiateHost(ctx context.Context, r wazero.Runtime) error {
	_, err := r.NewHostModuleBuilder(metering.Module).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, _ api.Module, stack []uint64) {
			c := callOf(ctx)
			if uint32(stack[0]) == metering.Overflow {
				c.end(StackOver)
			}
			c.compute()
			stack[0] = metering.Quantum
		}), []api.ValueType{api.ValueTypeI32}, []api.ValueType{api.ValueTypeI32}).
		Export(metering.Yield).Instantiate(ctx)
	return err
}

// hostFunction is one of WASI: it gets the call, the instance's memory and the arguments.
type hostFunction func(c *call, m api.Memory, a []uint64) errno

// instantiateWASI makes all functions of WASI preview 1; those that need what no function has answer that.
func instantiateWASI(ctx context.Context, r wazero.Runtime) error {
	b := r.NewHostModuleBuilder(metering.WASI)
	known := wasiFunctions()
	for _, name := range metering.WASIFunctions() {
		params, returns, _ := metering.WASIParameters(name)
		var results []api.ValueType
		if returns {
			results = []api.ValueType{api.ValueTypeI32}
		}
		f, ok := known[name]
		if !ok {
			f = absent
		}
		b = b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, m api.Module, stack []uint64) {
			c := callOf(ctx)
			for i, t := range params {
				if t == api.ValueTypeI32 { // what stands above it means nothing
					stack[i] = uint64(uint32(stack[i]))
				}
			}
			var memory api.Memory
			if c.f.program.most > 0 { // else what the runtime returns is a nil pointer
				memory = m.Memory()
			}
			number := f(c, memory, stack)
			if returns {
				stack[0] = uint64(number)
			}
		}), params, results).Export(name)
	}
	_, err := b.Instantiate(ctx)
	return err
}
