package function

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"
	"weak"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/zeebo/blake3"

	"github.com/guardyn-edge/guardyn/internal/metering"
	"github.com/guardyn-edge/guardyn/zone"
)

// Config of an Engine. Zero fields take the default that is told.
type Config struct {
	// Dir keeps machine code for the next start; empty: there is none. No other process uses it.
	Dir string
	// Memory is how many bytes all calls together may hold, default 1 GiB: a call that would need more is refused it.
	Memory int64
	// Calls under way over all, default 1,024, and of one function, default 64. Waiting for a place are at most so many over all,
	// default 4,096, and of one function, default 256.
	Calls, CallsPerFunction, Waiting, WaitingPerFunction int
	// Processors that calls compute on at once, default as many as Go uses.
	Processors int
	// Logger takes what an operator must know; nil: nothing is logged.
	Logger *slog.Logger
	// Now is the clock that functions see, cut to milliseconds; nil: time.Now.
	Now func() time.Time
}

// Engine compiles and runs functions. It is safe for concurrent use and owns no goroutine.
type Engine struct {
	config     Config
	admission  admission
	processors *processors
	memories   memories
	disk       *disk // nil without Config.Dir

	mu       sync.Mutex // of what follows, and held while one compiles
	runtime  wazero.Runtime
	cache    wazero.CompilationCache
	programs map[[32]byte]weak.Pointer[program]
	closed   bool

	counts counters
}

// New returns an engine. The error is of its directory.
func New(c Config) (*Engine, error) {
	for _, n := range []struct {
		v     *int
		value int
	}{
		{&c.Calls, 1024},
		{&c.CallsPerFunction, 64},
		{&c.Waiting, 4096},
		{&c.WaitingPerFunction, 256},
		{&c.Processors, runtime.GOMAXPROCS(0)},
	} {
		if *n.v <= 0 {
			*n.v = n.value
		}
	}
	if c.Memory <= 0 {
		c.Memory = 1 << 30
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	e := &Engine{
		config:     c,
		admission:  admission{most: c.Calls, perFunction: c.CallsPerFunction, mostWaiting: c.Waiting, waitingPerFunc: c.WaitingPerFunction},
		processors: newProcessors(c.Processors),
		memories:   memories{limit: c.Memory},
		programs:   make(map[[32]byte]weak.Pointer[program]),
	}
	if c.Dir != "" {
		var err error
		if e.disk, err = openDisk(c.Dir); err != nil {
			return nil, fmt.Errorf("machine code of functions: %w", err)
		}
	}
	return e, nil
}

// program is a module's machine code. It is let go when no function has it.
type program struct {
	key         [32]byte
	compiled    wazero.CompiledModule
	least, most int64 // bytes of memory that it begins with and may ask for
}

// start makes the runtime, with what modules may import. The caller holds the lock.
func (e *Engine) start(ctx context.Context) error {
	if e.closed {
		return errors.New("the engine is closed")
	}
	if e.runtime != nil {
		return nil
	}
	config := wazero.NewRuntimeConfig().WithCoreFeatures(api.CoreFeaturesV2).WithDebugInfoEnabled(false)
	if e.disk != nil {
		cache, err := wazero.NewCompilationCacheWithDir(e.disk.dir)
		if err != nil {
			// Its absence costs time, and no request.
			e.config.Logger.Warn("machine code of functions is not kept for the next start", "error", err)
			e.disk = nil
		} else {
			e.cache = cache
			config = config.WithCompilationCache(cache)
		}
	}
	r := wazero.NewRuntimeWithConfig(ctx, config)
	if err := errors.Join(instantiateWASI(ctx, r), instantiateHost(ctx, r)); err != nil {
		return errors.Join(err, r.Close(ctx))
	}
	e.runtime = r
	return nil
}

// program returns the machine code of a module that may have so many bytes of memory, compiling it when nobody has it.
func (e *Engine) program(module []byte, memory int64) (*program, error) {
	rewritten, err := metering.Rewrite(module, memory)
	if err != nil {
		return nil, err
	}
	key := blake3.Sum256(rewritten)
	e.mu.Lock()
	defer e.mu.Unlock()
	if p := e.programs[key].Value(); p != nil {
		e.counts.shared.Add(1)
		return p, nil
	}
	ctx := experimental.WithCompilationWorkers(context.Background(), runtime.GOMAXPROCS(0))
	if err := e.start(ctx); err != nil {
		return nil, err
	}
	p := &program{key: key}
	if p.least, p.most, err = metering.Memory(rewritten); err != nil {
		return nil, err
	}
	begun := time.Now()
	if p.compiled, err = e.compile(ctx, key, rewritten); err != nil {
		return nil, err
	}
	e.counts.compileTime.Add(int64(time.Since(begun)))
	e.programs[key] = weak.Make(p)
	runtime.AddCleanup(p, e.forget, forgotten{key, p.compiled})
	return p, nil
}

// compile makes machine code of a rewritten module, or reads it from the directory. The caller holds the lock.
func (e *Engine) compile(ctx context.Context, key [32]byte, rewritten []byte) (m wazero.CompiledModule, err error) {
	defer func() {
		if r := recover(); r != nil {
			m, err = nil, fmt.Errorf("it cannot be compiled: %v", r)
		}
	}()
	if e.disk == nil {
		if m, err = e.runtime.CompileModule(ctx, rewritten); err == nil {
			e.counts.compiled.Add(1)
		}
		return m, err
	}
	kept := e.disk.check(key)
	if m, err = e.runtime.CompileModule(ctx, rewritten); err != nil && kept {
		// What is on disk is of no use to this build.
		e.disk.drop(key)
		kept = false
		m, err = e.runtime.CompileModule(ctx, rewritten)
	}
	unwritten := err
	if err != nil {
		// What compiled and could not be written, as on a disk that is full, the runtime has by now, and counts as given to somebody, whom
		// it was not given to.
		if m, err = e.runtime.CompileModule(ctx, rewritten); err != nil {
			return nil, err
		}
		_ = m.Close(ctx)
	}
	written := false
	if unwritten == nil {
		written, unwritten = e.disk.note(key)
	}
	if unwritten != nil {
		e.config.Logger.Warn("machine code of a function is not kept for the next start", "error", unwritten)
	}
	if kept && !written {
		e.counts.loaded.Add(1)
	} else {
		e.counts.compiled.Add(1)
	}
	return m, nil
}

type forgotten struct {
	key      [32]byte
	compiled wazero.CompiledModule
}

// forget lets the machine code of a program go that nobody has.
func (e *Engine) forget(f forgotten) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.programs[f.key].Value() == nil {
		delete(e.programs, f.key)
	}
	if !e.closed {
		_ = f.compiled.Close(context.Background()) // it has nothing to fail with
	}
}

// Prune takes machine code out of the directory that no function has. A node calls it once it serves what it was started with and after it
// has installed something else.
func (e *Engine) Prune() error {
	if e.disk == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.disk.prune(func(key [32]byte) bool { return e.programs[key].Value() != nil })
}

// Close lets everything go. No call is under way, and none may follow.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	ctx := context.Background()
	var err error
	if e.runtime != nil {
		err = e.runtime.Close(ctx)
	}
	if e.cache != nil {
		err = errors.Join(err, e.cache.Close(ctx))
	}
	e.memories.close()
	return err
}

// Function is one function of a zone, compiled, with its limits. It is safe for concurrent use.
type Function struct {
	name        string
	engine      *Engine
	program     *program
	timeout     time.Duration
	output      int
	memory      int64
	environment []variable // sorted by name
	state       *state
	identity    string
}

type variable struct{ name, value string }

// state is what stays of a function when another module takes its place.
type state struct {
	place       place
	light, long line // for a processor
	counts      Counts
}

// Compile returns a zone's function under its plan's ceilings. old is what went by the name before, nil for nothing: counts go
// on, and calls of both count against the same bounds.
func (e *Engine) Compile(name string, f zone.Function, ceilings zone.Ceilings, old *Function) (*Function, error) {
	limits := LimitsOf(f, ceilings)
	p, err := e.program(f.Module, int64(limits.Memory))
	if err != nil {
		return nil, fmt.Errorf("function %s: %w", name, err)
	}
	out := &Function{
		name: name, engine: e, program: p, timeout: time.Duration(limits.Timeout), output: int(limits.Output),
		memory: min(int64(limits.Memory)/metering.PageSize*metering.PageSize, p.most), state: new(state),
		environment: sortedVariables(f.Environment),
	}
	out.identity = out.digest()
	if old != nil && old.engine == e {
		out.state = old.state
	}
	return out, nil
}

// Limits of one call.
type Limits struct {
	Memory, Output zone.Size
	Timeout        zone.Duration
}

// LimitsOf returns what a function asks for, and of what it does not ask for what its plan allows.
func LimitsOf(f zone.Function, ceilings zone.Ceilings) Limits {
	c := ceilings.Effective()
	l := Limits{c.FunctionMemory, c.FunctionOutput, c.FunctionTime}
	if f.Memory > 0 {
		l.Memory = min(l.Memory, f.Memory)
	}
	if f.Output > 0 {
		l.Output = min(l.Output, f.Output)
	}
	if f.Timeout > 0 {
		l.Timeout = min(l.Timeout, f.Timeout)
	}
	return l
}

// Name is the function's in its zone.
func (f *Function) Name() string { return f.name }

// Identity is the same for functions that answer alike: a digest of code, limits and environment.
func (f *Function) Identity() string { return f.identity }

func (f *Function) digest() string {
	h := blake3.New()
	h.Write(f.program.key[:])
	fmt.Fprintf(h, "%d %d %d", f.timeout, f.output, f.memory)
	for _, v := range f.environment {
		fmt.Fprintf(h, " %q %q", v.name, v.value)
	}
	return string(h.Sum(nil))
}
