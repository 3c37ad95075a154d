// Package metering rewrites a WebAssembly module so that its host gets control back within a bounded number of instructions, and
// judges whether a module is one that nodes run.
//
// A runtime that compiles to machine code runs a module where nothing can stop it, the scheduler and the collector of
// garbage included, until the module calls out. Runtimes check for the end at the head of loops at most, and a tree of calls without
// any loop runs for years. A rewritten module counts what it executes in a global of its own, and calls its host, [Yield] of
// [Module], when [Quantum] of it is used up:
//
//   - at the entry of every function that calls, at the head of every loop, and on every straight path that is longer than
//     some thousand instructions, the longest path to the next such place is paid ahead;
//   - memory.fill and memory.copy go by pieces of 64 KiB that are each paid for;
//   - an instruction is paid with one unit, a call with 32, a call of the host with 200.
//
// It also counts the frames of calls that have not returned, by an estimate of their size, and tells the host when they are more
// than [MaxStack]. The bound of tables is written into the module; that of memory is the host's to hold.
//
// What the module computes is not changed by any of that.
package metering

// Module and Yield name what a rewritten module imports beside WASI: a function from i32 to i32. Its argument is [Exhausted] or
// [Overflow]; it returns how much the module may use until the next call. After Overflow the module traps.
const (
	Module = "guardyn"
	Yield  = "yield"
)

// Arguments of Yield.
const (
	Exhausted = 0
	Overflow  = 1
)

// Bounds of a module, beside those of its size and memory.
const (
	// Quantum is what a module may use before its first call of Yield, in instructions: some tens of microseconds.
	Quantum = 100_000
	// MaxStack bounds the frames of calls that have not returned, in bytes of an estimate that counts parameters and locals with 8
	// bytes each and every instruction of a function with one.
	MaxStack = 1 << 20
	// MaxTable bounds the elements of all tables, declared or grown, and those of all element segments.
	MaxTable = 1 << 17
	// MaxGlobals, MaxFunctions and MaxTypes bound what is made anew for every instance or looked up.
	MaxGlobals   = 1 << 14
	MaxFunctions = 1 << 17
	MaxTypes     = 1 << 14
	// MaxLocals bounds those of one function, parameters included.
	MaxLocals = 10_000
)

// PageSize is WebAssembly's unit of memory, in bytes.
const PageSize = 64 << 10

// What is paid, in units of one instruction.
const (
	callWeight = 32
	hostWeight = 200
	bulkWeight = 20_000 // a table of MaxTable, moved
	growWeight = 2_000
	// maxPath is the longest path between two payments in one function.
	maxPath = 4096
	// afterCall is how much of it may be left once a call has returned: frames that return one after another pay nothing else.
	afterCall = 256
	// freeLeaf is the weight of a function that calls nothing and loops nowhere up to which its caller's payment is enough.
	freeLeaf = 64
	// piece of memory that is filled or copied at once, in bytes.
	piece = 64 << 10
)
