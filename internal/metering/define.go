package metering

import (
	"errors"
	"fmt"
)

// What a module defines beside functions and data: tables, memory, globals and the elements of tables.

func (m *module) rewriteTables(r *reader) ([]byte, error) {
	n := r.count("tables", 16)
	out := appendU32(nil, n)
	var left uint32 = MaxTable
	for i := range n {
		kind := r.byte()
		least, most, _, err := limits(r)
		if err != nil {
			return nil, err
		}
		if kind != 0x70 && kind != 0x6f {
			return nil, errors.New("it has a table of a kind that nodes do not know (WebAssembly 2.0)")
		}
		if least > left {
			return nil, fmt.Errorf("its tables have more than %d elements", MaxTable)
		}
		// All but the last get what they ask for at first, so that they share the bound.
		most = min(most, left)
		if i+1 < n {
			most = min(most, max(least, left/2))
		}
		left -= most
		out = appendU32(appendU32(append(out, kind, 1), least), most)
	}
	return out, r.err
}

// limits reads those of a table or a memory; bounded tells whether there is a most.
func limits(r *reader) (least, most uint32, bounded bool, err error) {
	flags := r.byte()
	if r.err == nil && flags > 1 {
		return 0, 0, false, errors.New("it has a shared or 64-bit memory or table, which nodes do not know (WebAssembly 2.0)")
	}
	if least, most = r.u32(), 1<<32-1; flags == 1 {
		most, bounded = r.u32(), true
	}
	if most < least {
		return 0, 0, false, errors.New("it has a memory or table with a minimum above its maximum")
	}
	return least, most, bounded, r.err
}

func (m *module) rewriteMemory(r *reader) ([]byte, error) {
	for range r.count("memories", 1) {
		least, _, _, err := limits(r)
		if err != nil {
			return nil, err
		}
		if least > m.pages {
			return nil, fmt.Errorf("it begins with %d KiB of memory and may have %d KiB", least*64, m.pages*64)
		}
	}
	// The bound is not written there: what is asked for beyond it the host refuses, and so knows of it.
	return r.b, r.err
}

func (m *module) rewriteGlobals(r *reader) ([]byte, error) {
	n := r.count("globals", MaxGlobals)
	out := appendU32(nil, n+2)
	for range n {
		out = append(out, r.byte(), r.byte())
		out = m.constant(out, r)
	}
	m.fuel, m.stack = n, n+1
	out = append(appendI32(append(out, i32, 1, opI32Const), Quantum), opEnd)
	return append(out, i32, 1, opI32Const, 0, opEnd), r.err
}

// constant copies a constant expression.
func (m *module) constant(out []byte, r *reader) []byte {
	for r.err == nil {
		in := r.next(nil)
		switch in.op {
		case opRefFunc:
			out = appendU32(append(out, opRefFunc), m.function(in.index))
		case opEnd:
			return append(out, opEnd)
		default:
			out = append(out, r.b[in.start:r.at]...)
		}
	}
	return out
}

func (m *module) rewriteElements(r *reader) ([]byte, error) {
	n := r.count("element segments", MaxTable)
	out := appendU32(nil, n)
	var all uint32
	for range n {
		flags := r.u32()
		if flags > 7 {
			return nil, errors.New("it has an element segment of a kind that nodes do not know (WebAssembly 2.0)")
		}
		out = appendU32(out, flags)
		if flags&1 == 0 { // active
			if flags&2 != 0 {
				out = appendU32(out, r.u32())
			}
			out = m.constant(out, r)
		}
		if flags&3 != 0 {
			out = append(out, r.byte()) // kind or type
		}
		count := r.count("elements in one segment", MaxTable)
		if all += count; all > MaxTable {
			return nil, fmt.Errorf("its element segments have more than %d elements", MaxTable)
		}
		out = appendU32(out, count)
		for range count {
			if flags&4 != 0 {
				out = m.constant(out, r)
			} else {
				out = appendU32(out, m.function(r.u32()))
			}
		}
	}
	return out, r.err
}
