package metering

import "fmt"

// Opcodes that matter here.
const (
	opUnreachable  = 0x00
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opDrop         = 0x1a
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opMemorySize   = 0x3f
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI64Const     = 0x42
	opI32LtS       = 0x48
	opI32LeU       = 0x4d
	opI32GtU       = 0x4b
	opI64GtU       = 0x56
	opI32Add       = 0x6a
	opI32Sub       = 0x6b
	opI32ShrU      = 0x76
	opI64Add       = 0x7c
	opI64Shl       = 0x86
	opI64ExtendU   = 0xad
	opI32Or        = 0x72
	opSelect       = 0x1b
	opRefFunc      = 0xd2
	opMisc         = 0xfc
	opVector       = 0xfd

	miscMemoryInit = 8
	miscDataDrop   = 9
	miscMemoryCopy = 10
	miscMemoryFill = 11
	miscTableInit  = 12
	miscTableCopy  = 14
	miscTableGrow  = 15
	miscTableFill  = 17

	void = 0x40
)

// instruction is one of a body.
type instruction struct {
	op    byte
	sub   uint32 // of opMisc and opVector
	index uint32 // of a function (call, ref.func), a label (br, br_if) or a data segment (memory.init)
	start int    // where it begins in the body
}

// next reads the instruction at r. labels takes the labels of br_table when it is not nil.
func (r *reader) next(labels func(uint32)) (in instruction) {
	in.start = r.at
	in.op = r.byte()
	switch op := in.op; {
	case op <= 0x01 || op == opElse || op == opEnd || op == opReturn || op == opDrop || op == opSelect ||
		0x45 <= op && op <= 0xc4 || op == 0xd1:
	case op == opBlock || op == opLoop || op == opIf:
		r.skipLEB(5)
	case op == opBr || op == opBrIf || op == opCall || op == opRefFunc:
		in.index = r.u32()
	case op == opBrTable:
		n := r.count("labels of one br_table", 1<<20)
		for range n + 1 {
			label := r.u32()
			if labels != nil {
				labels(label)
			}
		}
	case op == opCallIndirect:
		r.u32()
		r.u32()
	case op == 0x1c: // select with types
		r.take(r.count("types of one select", 16))
	case 0x20 <= op && op <= 0x26:
		r.u32()
	case 0x28 <= op && op <= 0x3e:
		r.memarg()
	case op == opMemorySize || op == opMemoryGrow || op == 0xd0:
		r.byte()
	case op == opI32Const:
		r.skipLEB(5)
	case op == opI64Const:
		r.skipLEB(10)
	case op == 0x43:
		r.take(4)
	case op == 0x44:
		r.take(8)
	case op == opMisc:
		r.misc(&in)
	case op == opVector:
		r.vector(&in)
	default:
		r.fail(fmt.Errorf("it has the instruction 0x%02x, which nodes do not know (WebAssembly 2.0)", op))
	}
	return in
}

func (r *reader) memarg() {
	r.u32()
	r.u32()
}

func (r *reader) misc(in *instruction) {
	switch in.sub = r.u32(); {
	case in.sub < 8:
	case in.sub == miscMemoryInit:
		in.index = r.u32()
		r.byte()
	case in.sub == miscMemoryCopy:
		r.take(2)
	case in.sub == miscMemoryFill:
		r.byte()
	case in.sub == miscTableInit || in.sub == miscTableCopy:
		r.u32()
		r.u32()
	case in.sub <= miscTableFill: // data.drop, elem.drop, table.grow, table.size, table.fill
		r.u32()
	default:
		r.fail(fmt.Errorf("it has the instruction 0xfc %d, which nodes do not know (WebAssembly 2.0)", in.sub))
	}
}

func (r *reader) vector(in *instruction) {
	switch in.sub = r.u32(); {
	case in.sub <= 11 || in.sub == 92 || in.sub == 93:
		r.memarg()
	case in.sub == 12 || in.sub == 13:
		r.take(16)
	case 21 <= in.sub && in.sub <= 34:
		r.byte()
	case 84 <= in.sub && in.sub <= 91:
		r.memarg()
		r.byte()
	case in.sub > 255:
		r.fail(fmt.Errorf("it has the instruction 0xfd %d, which nodes do not know (WebAssembly 2.0)", in.sub))
	}
}

// weight is what an instruction is paid with. imports is how many functions the module imports, data the lengths of its data
// segments.
func (in *instruction) weight(imports uint32, data []uint32) int {
	switch in.op {
	case opCall:
		if in.index < imports {
			return hostWeight
		}
		return callWeight
	case opCallIndirect:
		return 2 * callWeight // it is one of the host's seldom
	case opMemoryGrow:
		return growWeight
	case opMisc:
		switch in.sub {
		case miscMemoryInit:
			if int(in.index) < len(data) {
				return 16 + int(data[in.index]/16)
			}
		case miscMemoryCopy, miscMemoryFill:
			return callWeight
		case miscTableInit, miscTableCopy, miscTableFill, miscTableGrow:
			return bulkWeight
		}
	case 0x6d, 0x6e, 0x6f, 0x70, 0x7f, 0x80, 0x81, 0x82: // division
		return 8
	}
	return 1
}
