package host

import (
	"context"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/guardyn-edge/guardyn/edge/function"
	"github.com/guardyn-edge/guardyn/edge/web"
)

// pruneInterval is how often machine code goes from the disk that no function has any more.
const pruneInterval = 10 * time.Minute

// openFunctions makes what compiles and runs the functions of zones. Machine code is kept in the state directory.
func (e *Edge) openFunctions() (err error) {
	e.functions, err = function.New(function.Config{
		Dir: filepath.Join(e.cfg.StateDir, "functions"), Memory: int64(e.cfg.FunctionMemory), Logger: e.cfg.Logger, Now: e.cfg.Now,
	})
	return err
}

// pruneFunctions keeps what is on disk to what is served, until ctx ends.
func (e *Edge) pruneFunctions(ctx context.Context) {
	tick := time.NewTicker(pruneInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if e.live.Load() == nil {
			continue // what is on disk may be what it will be given
		}
		if err := e.functions.Prune(); err != nil {
			e.cfg.Logger.Warn("machine code of functions was not removed", "error", err)
		}
	}
}

var (
	descFunctionCalls     = desc("function_calls_total", "Calls of functions by what became of them.", "result")
	descFunctionSeconds   = desc("function_seconds_total", "Time that calls of functions took, waiting included.")
	descFunctionPeak      = desc("function_memory_peak_bytes", "The most memory that one call of a function had.")
	descFunctionMemory    = desc("function_memory_bytes", "Memory that calls of functions hold.")
	descFunctionsRunning  = desc("functions_running", "Calls of functions under way.")
	descFunctionsWaiting  = desc("functions_waiting", "Calls of functions that wait for a place.")
	descFunctionModules   = desc("function_modules_total", "Modules by where their machine code came from.", "from")
	descFunctionCompiling = desc("function_compile_seconds_total", "Time that making or loading machine code took.")

	descZoneFunctionCalls   = desc("zone_function_calls_total", "Calls of one function by what became of them.", "zone", "function", "result")
	descZoneFunctionSeconds = desc("zone_function_seconds_total", "Time that calls of one function took, waiting included.", "zone", "function")
	descZoneFunctionPeak    = desc("zone_function_memory_peak_bytes", "The most memory that one call of the function had.", "zone", "function")
)

// collectFunctions sends what was counted of functions; of single ones for the zones that metrics name.
func (e *Edge) collectFunctions(out chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, v, labels...)
	}
	m := e.functions.Metrics()
	for _, k := range function.Kinds() {
		send(descFunctionCalls, prometheus.CounterValue, float64(m.Calls.Results[k]), k.String())
	}
	send(descFunctionSeconds, prometheus.CounterValue, m.Calls.Time.Seconds())
	send(descFunctionPeak, prometheus.GaugeValue, float64(m.Calls.Memory))
	send(descFunctionMemory, prometheus.GaugeValue, float64(m.Memory))
	send(descFunctionsRunning, prometheus.GaugeValue, float64(m.Running))
	send(descFunctionsWaiting, prometheus.GaugeValue, float64(m.Waiting))
	send(descFunctionModules, prometheus.CounterValue, float64(m.Compiled), "compiled")
	send(descFunctionModules, prometheus.CounterValue, float64(m.Loaded), "disk")
	send(descFunctionModules, prometheus.CounterValue, float64(m.Shared), "memory")
	send(descFunctionCompiling, prometheus.CounterValue, m.CompileTime.Seconds())

	v := e.live.Load()
	if v == nil {
		return
	}
	e.webZones.Each(func(name string, _ *web.ZoneCounts) {
		z := v.ZoneFor(name)
		if z == nil || z.Config.Name.String() != name {
			return
		}
		for f, compiled := range z.Functions {
			counts := compiled.Counts()
			for _, k := range function.Kinds() {
				if n := counts.Results[k]; n > 0 {
					send(descZoneFunctionCalls, prometheus.CounterValue, float64(n), name, f, k.String())
				}
			}
			send(descZoneFunctionSeconds, prometheus.CounterValue, counts.Time.Seconds(), name, f)
			send(descZoneFunctionPeak, prometheus.GaugeValue, float64(counts.Memory), name, f)
		}
	})
}
