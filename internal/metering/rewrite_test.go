package metering_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/guardyn-edge/guardyn/internal/metering"
	"github.com/guardyn-edge/guardyn/internal/wat"
)

// start is what every module must export.
const start = `(func (export "_start"))`

func assemble(t testing.TB, fields string) []byte {
	t.Helper()
	b, err := wat.Assemble("(module " + fields + ")")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

var errOverflow = errors.New("overflow")

// host runs modules and counts their calls of Yield.
type host struct {
	wazero.Runtime
	yields int
}

func newHost(t testing.TB) *host {
	ctx := context.Background()
	h := &host{Runtime: wazero.NewRuntime(ctx)}
	t.Cleanup(func() { h.Close(ctx) })
	_, err := h.NewHostModuleBuilder(metering.Module).NewFunctionBuilder().WithFunc(func(why uint32) uint32 {
		if why == metering.Overflow {
			panic(errOverflow)
		}
		h.yields++
		return metering.Quantum
	}).Export(metering.Yield).Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// run calls run with x in an instance of its own, and returns its results and its memory.
func (h *host) run(t testing.TB, module []byte, x uint64) (results []uint64, memory []byte, err error) {
	t.Helper()
	ctx := context.Background()
	m, err := h.InstantiateWithConfig(ctx, module, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(ctx)
	results, err = m.ExportedFunction("run").Call(ctx, x)
	if mem := m.Memory(); !reflect.ValueOf(mem).IsNil() { // without memory it is a nil pointer
		b, _ := mem.Read(0, mem.Size())
		memory = bytes.Clone(b)
	}
	return results, memory, err
}

func rewrite(t testing.TB, module []byte) []byte {
	t.Helper()
	out, err := metering.Rewrite(module, 4<<20)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// same runs a module as it is and rewritten, and compares what comes of it.
func same(t *testing.T, h *host, module []byte, x uint64) {
	t.Helper()
	want, wantMemory, wantErr := h.run(t, module, x)
	got, gotMemory, gotErr := h.run(t, rewrite(t, module), x)
	if fmt.Sprint(got) != fmt.Sprint(want) || !bytes.Equal(gotMemory, wantMemory) {
		t.Errorf("run(%d) = %v, want %v; the same memory: %v", x, got, want, bytes.Equal(gotMemory, wantMemory))
	}
	if first(gotErr) != first(wantErr) {
		t.Errorf("run(%d) ended in %v, want %v", x, gotErr, wantErr)
	}
}

// first is an error's first line: traces differ.
func first(err error) string {
	if err == nil {
		return ""
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

func TestNothingElseChanges(t *testing.T) {
	tests := []struct {
		name, module string
		args         []uint64
	}{
		{"a loop", `(func (export "run") (param $n i64) (result i64) (local $s i64)
			loop $l local.get $s local.get $n i64.add local.set $s local.get $n i64.const 1 i64.sub local.tee $n i64.eqz i32.eqz br_if $l end
			local.get $s)`, []uint64{1, 1000, 1_000_000}},
		{"recursion", `(func $fib (export "run") (param $n i64) (result i64)
			local.get $n i64.const 2 i64.lt_u if (result i64) local.get $n else
			local.get $n i64.const 1 i64.sub call $fib local.get $n i64.const 2 i64.sub call $fib i64.add end)`, []uint64{1, 20}},
		{"returns from within blocks, with several results", `(func $pair (param $n i64) (result i64 i64)
			block $b loop $l local.get $n i64.eqz br_if $b
			local.get $n i64.const 7 i64.rem_u i64.eqz if local.get $n i64.const 70 call $one return end
			local.get $n i64.const 1 i64.sub local.set $n br $l end end i64.const 1 i64.const 2)
			(func $one (result i64) i64.const 5 call $two drop)
			(func $two (param i64) (result i64 i64) i64.const 8 i64.const 9)
			(func (export "run") (param i64) (result i64) local.get 0 call $pair i64.const 3 i64.mul i64.add)`, nil},
		{"a table of functions", `(table 4 8 funcref) (elem (i32.const 1) $a $b)
			(func $a (result i64) i64.const 10) (func $b (result i64) i64.const 20)
			(func (export "run") (param i64) (result i64) local.get 0 i32.wrap_i64 call_indirect (result i64))`, []uint64{0, 1, 2, 9}},
		{"references of functions", `(table 4 funcref) (elem (i32.const 1) $a) (global $g funcref (ref.func $a))
			(func $a (result i64) i64.const 10)
			(func (export "run") (param i64) (result i64) i32.const 2 ref.func $a table.set 0 i32.const 3 global.get $g table.set 0
			local.get 0 i32.wrap_i64 call_indirect (result i64))`, []uint64{1, 2, 3}},
		{
			"a switch", `(func (export "run") (param i64) (result i64)
			block $c block $b block $a local.get 0 i32.wrap_i64 br_table $a $b $c end i64.const 10 return end i64.const 20 return end i64.const 30)`,
			[]uint64{0, 1, 2, 3},
		},
		{"a start function", `(global $g (mut i64) (i64.const 1)) (start $s) (func $s i64.const 42 global.set $g)
			(func (export "run") (param i64) (result i64) global.get $g)`, []uint64{0}},
		{"a trap in a call", `(func $f (result i64) unreachable) (func (export "run") (param i64) (result i64) call $f)`, []uint64{0}},
		{"vectors and numbers", `(func $f (result i32) i32.const 3 i8x16.splat i32.const 4 i8x16.splat i32x4.add i32x4.extract_lane 2)
			(func (export "run") (param i64) (result i64) call $f i64.extend_i32_u f64.const 2.5 i32.trunc_sat_f64_u i64.extend_i32_u i64.add)`, []uint64{0}},
		{"code that nothing comes to", `(func $f) (func (export "run") (param i64) (result i64)
			block $b br $b call $f loop $l br $l end end local.get 0 return call $f unreachable)`, []uint64{4}},
		{"segments", `(memory 1) (data "hello") (func $f) (func (export "run") (param i64) (result i64)
			i32.const 3 i32.const 1 i32.const 4 memory.init 0 data.drop 0 call $f i32.const 3 i64.load)`, []uint64{0}},
		{"data segments near each other", `(memory 1) (data (i32.const 8) "abc") (data (i32.const 11) "def") (data (i32.const 20) "ghi") (data (i32.const 1000) "x")
			(data (i32.const 65535) "z") (func (export "run") (param i64) (result i64) i32.const 8 i64.load)`, []uint64{0}},
		{"data segments in any order", `(memory 1) (data (i32.const 20) "abc") (data (i32.const 8) "def") (data (i32.const 11) "ghi")
			(func (export "run") (param i64) (result i64) i32.const 8 i64.load)`, []uint64{0}},
		{"data segments over each other", `(memory 1) (data (i32.const 8) "abcdef") (data (i32.const 10) "x") (data (i32.const 9) "y")
			(func (export "run") (param i64) (result i64) i32.const 8 i64.load)`, []uint64{0}},
		{"data segments that code names", `(memory 1) (data (i32.const 8) "abc") (data (i32.const 12) "def") (data "ghi")
			(func (export "run") (param i64) (result i64) i32.const 30 i32.const 0 i32.const 3 memory.init 2 i32.const 30 i64.load)`, []uint64{0}},
		{"memory that grows", `(memory 1 3) (func $f) (func (export "run") (param i64) (result i64) call $f
			local.get 0 i32.wrap_i64 memory.grow memory.size i32.const 100 i32.mul i32.add i64.extend_i32_u)`, []uint64{0, 1, 2, 3}},
	}
	h := newHost(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			module := assemble(t, start+tt.module)
			if tt.args == nil {
				tt.args = []uint64{0, 6, 7, 8}
			}
			for _, x := range tt.args {
				same(t, h, module, x)
			}
		})
	}
}

// TestBulkMemory does memory.fill and memory.copy over every kind of range: by pieces, over each other, and out of bounds.
func TestBulkMemory(t *testing.T) {
	const top = 5 * 64 << 10
	places := []uint32{0, 1, 1000, 64<<10 + 1, 3 * 64 << 10, top, 1<<32 - 1}
	lengths := []uint32{0, 1, 64 << 10, 64<<10 + 1, 3*64<<10 + 17, top, 1<<32 - 1}
	// Memory is filled with what tells places apart.
	const pattern = `(func $pattern (local $i i32) loop $l local.get $i local.get $i i32.const 7919 i32.mul i32.store
		local.get $i i32.const 4 i32.add local.tee $i i32.const 327680 i32.lt_u br_if $l end)`
	h := newHost(t)
	for _, op := range []string{"memory.fill", "memory.copy"} {
		module := assemble(t, start+pattern+`(memory 5) (global $a (mut i32) (i32.const 0)) (global $b (mut i32) (i32.const 0)) (global $n (mut i32) (i32.const 0))
			(func (export "run") (param i32) (param i32) (param i32) call $pattern local.get 0 local.get 1 local.get 2 `+op+`)`)
		type outcome struct {
			memory []byte
			err    string
		}
		run := func(m api.Module, a, b, n uint32) outcome {
			_, err := m.ExportedFunction("run").Call(context.Background(), uint64(a), uint64(b), uint64(n))
			memory, _ := m.Memory().Read(0, m.Memory().Size())
			return outcome{memory, first(err)}
		}
		var instances [2]api.Module
		for i, code := range [][]byte{module, rewrite(t, module)} {
			m, err := h.InstantiateWithConfig(context.Background(), code, wazero.NewModuleConfig().WithName("").WithStartFunctions())
			if err != nil {
				t.Fatal(err)
			}
			instances[i] = m
		}
		for _, a := range places {
			for _, b := range places {
				if op == "memory.fill" && b != 1000 {
					continue
				}
				for _, n := range lengths {
					want, got := run(instances[0], a, b, n), run(instances[1], a, b, n)
					if want.err != got.err || !bytes.Equal(want.memory, got.memory) {
						t.Errorf("%s(%d, %d, %d): %q, want %q; the same memory: %v", op, a, b, n, got.err, want.err, bytes.Equal(want.memory, got.memory))
					}
				}
			}
		}
	}
}

// program writes functions that compute something, at random, and end.
type program struct {
	*rand.Rand
	b      strings.Builder
	loops  int
	budget int
}

func (p *program) value() string {
	switch p.IntN(4) {
	case 0:
		return fmt.Sprintf("i64.const %d", p.IntN(1000))
	default:
		return fmt.Sprintf("local.get %d", p.IntN(3))
	}
}

func (p *program) statement(depth, function int) {
	p.budget--
	add := func(format string, args ...any) { fmt.Fprintf(&p.b, format+"\n", args...) }
	if depth > 6 || p.budget < 0 {
		add("%s %s i64.add local.set %d", p.value(), p.value(), p.IntN(3))
		return
	}
	row := func(most int) {
		for range 1 + p.IntN(most) {
			p.statement(depth+1, function)
		}
	}
	switch p.IntN(10) {
	case 0:
		add("%s i64.const 3 i64.rem_u i64.eqz if", p.value())
		row(3)
		if p.IntN(2) == 0 {
			add("else")
			row(3)
		}
		add("end")
	case 1:
		add("block")
		row(3)
		add("%s i64.const 2 i64.rem_u i64.eqz br_if 0", p.value())
		row(2)
		add("end")
	case 2:
		if p.loops == 3 {
			return
		}
		p.loops++
		counter := 2 + p.loops
		add("i64.const %d local.set %d loop", 1+p.IntN(6), counter)
		row(3)
		add("local.get %d i64.const 1 i64.sub local.tee %d i64.eqz i32.eqz br_if 0 end", counter, counter)
		p.loops--
	case 3:
		if function > 0 {
			add("%s %s call $f%d local.set %d", p.value(), p.value(), p.IntN(function), p.IntN(3))
		}
	case 4:
		add("%s i64.const 5 i64.rem_u i64.eqz if %s return end", p.value(), p.value())
	case 5:
		add("block block block %s i64.const 3 i64.rem_u i32.wrap_i64 br_table 0 1 2 end", p.value())
		row(2)
		add("end")
		row(2)
		add("end")
	default:
		for range 1 + p.IntN(80) {
			add("%s %s i64.%s local.set %d", p.value(), p.value(), []string{"add", "xor", "mul"}[p.IntN(3)], p.IntN(3))
		}
	}
}

func TestRandomPrograms(t *testing.T) {
	h := newHost(t)
	for seed := range uint64(20) {
		p := &program{Rand: rand.New(rand.NewPCG(seed, 1))}
		p.b.WriteString(start)
		const functions = 4
		for i := range functions {
			p.budget = 60
			fmt.Fprintf(&p.b, "(func $f%d (param i64) (param i64) (result i64) (local i64) (local i64) (local i64) (local i64)\n", i)
			for range 6 {
				p.statement(0, i)
			}
			p.b.WriteString("local.get 0 local.get 1 i64.xor local.get 2 i64.add)")
		}
		fmt.Fprintf(&p.b, `(func (export "run") (param i64) (result i64) local.get 0 i64.const 17 call $f%d)`, functions-1)
		module := assemble(t, p.b.String())
		for x := range uint64(3) {
			same(t, h, module, x)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// TestHostIsCalled lets modules execute some hundred million instructions and counts how often they call.
func TestHostIsCalled(t *testing.T) {
	straight := strings.Repeat("local.get 0 i64.const 3 i64.mul local.set 0 ", 25_000) // 100,000 instructions
	tests := []struct {
		name, module string
		n            uint64
		least        int // calls
	}{
		{"a loop", `(func (export "run") (param i64) loop local.get 0 i64.const 1 i64.sub local.tee 0 i64.eqz i32.eqz br_if 0 end)`, 4_000_000, 200},
		{"a tree of calls", `(func $f (export "run") (param i64) local.get 0 i64.eqz br_if 0 local.get 0 i64.const 1 i64.sub call $f
			local.get 0 i64.const 1 i64.sub call $f)`, 19, 25},
		{"a tree of calls by table", `(table 1 funcref) (elem (i32.const 0) $f) (func $f (export "run") (param i64) local.get 0 i64.eqz br_if 0
			local.get 0 i64.const 1 i64.sub i32.const 0 call_indirect (param i64) local.get 0 i64.const 1 i64.sub i32.const 0 call_indirect (param i64))`, 19, 25},
		{"a tree whose leaves do the work", `(func $leaf (param i64) (result i64) ` + strings.Repeat("local.get 0 i64.const 3 i64.mul local.set 0 ", 15) + ` local.get 0)
			(func $f (export "run") (param i64) local.get 0 call $leaf drop local.get 0 i64.eqz br_if 0 local.get 0 i64.const 1 i64.sub call $f
			local.get 0 i64.const 1 i64.sub call $f)`, 17, 60},
		{"one straight path", `(func (export "run") (param i64) ` + strings.Repeat(straight, 4) + `)`, 1, 3},
		{"blocks that are left over the next payment", `(func (export "run") (param i64) ` +
			strings.Repeat("block "+strings.Repeat("local.get 0 i64.const 3 i64.mul local.set 0 ", 1000)+" br 0 nop end ", 100) + `)`, 1, 3},
		{"memory that is filled over and over", `(memory 16) (func (export "run") (param i64) ` + strings.Repeat("i32.const 0 i32.const 1 i32.const 1048576 memory.fill ", 50) + `)`, 1, 30},
		{"memory that is copied over and over", `(memory 16) (func (export "run") (param i64) ` + strings.Repeat("i32.const 8 i32.const 0 i32.const 1048568 memory.copy ", 50) + `)`, 1, 30},
		{"a table that is filled over and over", `(table 100000 funcref) (func (export "run") (param i64) ` +
			strings.Repeat("i32.const 0 ref.null funcref i32.const 100000 table.fill 0 ", 50) + `)`, 1, 9},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHost(t)
			if _, _, err := h.run(t, rewrite(t, assemble(t, start+tt.module)), tt.n); err != nil {
				t.Fatal(err)
			}
			if h.yields < tt.least || h.yields > 100*tt.least {
				t.Errorf("the host was called %d times, want at least %d and not a hundred times that", h.yields, tt.least)
			}
			t.Log(h.yields)
		})
	}
}

func TestStackIsBounded(t *testing.T) {
	tests := []struct{ name, module string }{
		{"small frames", `(func $f (export "run") (param i64) local.get 0 i64.const 1 i64.add call $f)`},
		{"by two functions", `(func $f (export "run") (param i64) local.get 0 call $g) (func $g (param i64) local.get 0 call $f)`},
		{"by a table", `(table 1 funcref) (elem (i32.const 0) $f) (func $f (export "run") (param i64) local.get 0 i32.const 0 call_indirect (param i64))`},
	}
	h := newHost(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := h.run(t, rewrite(t, assemble(t, start+tt.module)), 0)
			if !errors.Is(err, errOverflow) {
				t.Errorf("ended in %v", first(err))
			}
		})
	}
	t.Run("frames are taken off", func(t *testing.T) {
		_, _, err := h.run(t, rewrite(t, assemble(t, start+`(func $f (param i64) (result i64) local.get 0 i64.const 2 i64.rem_u i64.eqz if i64.const 1 return end local.get 0 call $g)
			(func $g (param i64) (result i64) local.get 0 i64.const 1 i64.sub call $f)
			(func (export "run") (param i64) loop local.get 0 call $f drop local.get 0 i64.const 1 i64.sub local.tee 0 i64.eqz i32.eqz br_if 0 end)`)), 1_000_000)
		if err != nil {
			t.Error(err)
		}
	})
}
