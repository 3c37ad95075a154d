package metering

import (
	"cmp"
	"errors"
	"slices"
)

// maxGap is how many zeros are written between two data segments to make one of them, in bytes. Some compilers leave out every run of
// zeros, and a runtime spends more on each of their ten thousand segments, for every instance, than on the zeros.
const maxGap = 256

var errData = errors.New("it has a data segment of a kind that nodes do not know (WebAssembly 2.0)")

// readData learns how long data segments are.
func (m *module) readData() error {
	if !m.present[sectionData] {
		return nil
	}
	r := reader{b: m.section[sectionData]}
	for range r.count("data segments", 100_000) {
		switch flags := r.u32(); flags {
		case 0:
			r.skipConstant()
		case 1:
		case 2:
			r.u32()
			r.skipConstant()
		default:
			return errData
		}
		n := r.u32()
		r.take(n)
		m.data = append(m.data, n)
	}
	return r.err
}

// skipConstant passes over a constant expression.
func (r *reader) skipConstant() {
	for r.err == nil && r.next(nil).op != opEnd {
	}
}

// rewriteData makes segments that are near each other one, when none lies over another and code names none. Memory is all zero before.
func (m *module) rewriteData(r *reader) ([]byte, error) {
	same := r.b
	n := r.count("data segments", 100_000)
	if m.named || n < 2 {
		r.at = len(r.b)
		return same, r.err
	}
	type segment struct {
		at    uint32
		bytes []byte
		own   bool // bytes are not the module's
	}
	segments := make([]segment, n)
	for i := range segments {
		flags, op, at := r.u32(), r.byte(), uint32(r.i32())
		if end := r.byte(); flags != 0 || op != opI32Const || end != opEnd {
			r.at = len(r.b) // of another kind
			return same, nil
		}
		segments[i] = segment{at: at, bytes: r.take(r.u32())}
	}
	slices.SortStableFunc(segments, func(a, b segment) int { return cmp.Compare(a.at, b.at) })
	var zeros [maxGap]byte
	merged := segments[:1]
	for _, s := range segments[1:] {
		last := &merged[len(merged)-1]
		end := uint64(last.at) + uint64(len(last.bytes))
		if uint64(s.at) < end {
			return same, r.err // they lie over each other
		}
		gap := uint64(s.at) - end
		if gap > maxGap {
			merged = append(merged, s)
			continue
		}
		if !last.own {
			last.bytes, last.own = append(make([]byte, 0, 2*len(last.bytes)+len(s.bytes)), last.bytes...), true
		}
		last.bytes = append(append(last.bytes, zeros[:gap]...), s.bytes...)
	}
	out := appendU32(make([]byte, 0, len(same)), uint32(len(merged)))
	for _, s := range merged {
		out = append(appendI32(append(out, 0, opI32Const), int32(s.at)), opEnd)
		out = append(appendU32(out, uint32(len(s.bytes))), s.bytes...)
	}
	m.section[sectionDataCount] = appendU32(nil, uint32(len(merged)))
	return out, r.err
}
