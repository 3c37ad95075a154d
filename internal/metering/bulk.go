package metering

// memory.fill and memory.copy become calls of these functions of (i32 destination, i32 value or source, i32 length). A length of up to
// one piece is paid and done. More is done by pieces, unless it is out of bounds: then the instruction itself traps, with nothing
// changed, as it must.

// Their locals.
const (
	bulkTo = iota
	bulkFrom
	bulkLength
	bulkScratch
)

var (
	memoryFill = []byte{opMisc, miscMemoryFill, 0}
	memoryCopy = []byte{opMisc, miscMemoryCopy, 0, 0}
)

// bulkBody returns the code of the function that takes the place of an instruction, with its locals before it.
func (m *module) bulkBody(sub uint32) []byte {
	do := memoryFill
	if sub == miscMemoryCopy {
		do = memoryCopy
	}
	out := []byte{1, 1, i32} // the scratch
	// A small one, or one that is out of bounds.
	out = append(out, opLocalGet, bulkLength, opI32Const)
	out = appendI32(out, piece)
	out = append(out, opI32LeU)
	out = appendBeyond(out, bulkTo)
	out = append(out, opI32Or)
	if sub == miscMemoryCopy {
		out = appendBeyond(out, bulkFrom)
		out = append(out, opI32Or)
	}
	out = append(out, opIf, void)
	out = m.appendPayForLength(out)
	out = append(out, opLocalGet, bulkTo, opLocalGet, bulkFrom, opLocalGet, bulkLength)
	out = append(out, do...)
	out = append(out, opReturn, opEnd)
	if sub == miscMemoryCopy {
		// Towards higher addresses the last piece goes first, or it would be overwritten.
		out = append(out, opLocalGet, bulkTo, opLocalGet, bulkFrom, opI32GtU, opIf, void)
		out = m.appendPieces(out, do, true, true)
		out = append(out, opReturn, opEnd)
	}
	out = m.appendPieces(out, do, sub == miscMemoryCopy, false)
	return append(out, opEnd)
}

// appendBeyond leaves 1 when length bytes from where the local says are not in memory, else 0.
func appendBeyond(out []byte, local byte) []byte {
	out = append(out, opLocalGet, local, opI64ExtendU, opLocalGet, bulkLength, opI64ExtendU, opI64Add)
	return append(out, opMemorySize, 0, opI64ExtendU, opI64Const, 16, opI64Shl, opI64GtU)
}

// appendPayForLength pays for at most one piece, or for an instruction that traps.
func (m *module) appendPayForLength(out []byte) []byte {
	out = append(out, opGlobalGet)
	out = appendU32(out, m.fuel)
	out = append(out, opLocalGet, bulkLength, opI32Const, 4, opI32ShrU, opI32Const)
	out = appendI32(out, piece/16)
	// The lesser of both.
	out = append(out, opLocalGet, bulkLength, opI32Const)
	out = appendI32(out, piece)
	out = append(out, opI32LeU, opSelect)
	return m.appendPaid(out, bulkScratch)
}

// appendPieces does a length of more than one piece, from its end or from its beginning.
func (m *module) appendPieces(out, do []byte, source, fromEnd bool) []byte {
	size := func(out []byte) []byte { return appendI32(append(out, opI32Const), piece) }
	step := func(out []byte, local byte) []byte {
		out = size(append(out, opLocalGet, local))
		return append(out, opI32Add, opLocalSet, local)
	}
	less := func(out []byte) []byte {
		out = size(append(out, opLocalGet, bulkLength))
		return append(out, opI32Sub, opLocalSet, bulkLength)
	}
	place := func(out []byte, local byte) []byte {
		out = append(out, opLocalGet, local)
		if fromEnd && (local == bulkTo || source) {
			out = append(out, opLocalGet, bulkLength, opI32Add)
		}
		return out
	}
	out = append(out, opLoop, void)
	out = m.appendPayment(out, bulkScratch, piece/16)
	if fromEnd {
		out = less(out)
	}
	out = place(out, bulkTo)
	out = place(out, bulkFrom)
	out = append(size(out), do...)
	if !fromEnd {
		out = step(out, bulkTo)
		if source {
			out = step(out, bulkFrom)
		}
		out = less(out)
	}
	out = size(append(out, opLocalGet, bulkLength))
	out = append(out, opI32GtU, opBrIf, 0, opEnd)
	// What is left, at the beginning or at the end, is one piece at most.
	out = append(out, opLocalGet, bulkTo, opLocalGet, bulkFrom, opLocalGet, bulkLength)
	return append(out, do...)
}
