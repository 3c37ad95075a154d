package seal

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// What a payload has in common with the one before are whole runs, and compressed bytes that differ have nothing to
// gain from an entropy coder. So a coding copies what is in the dictionary, found by a rolling hash however long that is,
// and sends the rest as it is: blocks that every decoder reads, made without an encoder's tables and its window.
const (
	// grain is how many bytes of the dictionary one entry of the index stands for: what is copied is at least twice that
	// long, or may be overlooked.
	grain = 64
	// leastCopy is worth the 15 bytes of a block, and long enough for the codes of appendCopy.
	leastCopy = 2 * grain
	// rollBy is odd and random.
	rollBy = 0x9e3779b97f4a7c15
)

// appendDelta appends one frame of payload, which refers to dictionary (RFC 8878 §5) and is of one segment.
func appendDelta(b, payload, dictionary []byte) []byte {
	const magic, single, sizeIn4 = 0xfd2fb528, 1 << 5, 2 << 6
	b = binary.LittleEndian.AppendUint32(b, magic)
	b = append(b, sizeIn4|single)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	last := len(b)
	raw := func(p []byte) {
		for len(p) > 0 {
			n := min(len(p), maxBlock)
			last = len(b)
			b = appendRaw(b, p[:n])
			p = p[n:]
		}
	}
	done := 0
	eachCopy(payload, dictionary, func(at, from, size int) {
		raw(payload[done:at])
		for done = at; size >= leastCopy+3; {
			n := min(size, maxBlock)
			last = len(b)
			b = appendCopy(b, n, done+len(dictionary)-from)
			done, from, size = done+n, from+n, size-n
		}
	})
	raw(payload[done:])
	setLast(b, last)
	return b
}

// appendCopy appends a block of one match without literals: size bytes from so far back, 131 to 128 KiB. All of its tables
// are of one symbol, which takes no bits (RFC 8878 §3.1.1.3.2).
func appendCopy(b []byte, size, back int) []byte {
	const noLiterals, one, oneSymbolEach = 0, 1, 1<<6 | 1<<4 | 1<<2
	// Codes of offsets are powers of two, of what is 3 more; those of lengths too, from 2^7+3 on, which is code 43.
	offset, length := uint64(back+3), uint64(size-3)
	n, k := bits.Len64(offset)-1, bits.Len64(length)-1
	// Read from its end: a bit that marks it, those of the offset, those of the length.
	stream := offset<<k | length&(1<<k-1) // the offset's own highest bit is the mark
	var text [8]byte
	binary.LittleEndian.PutUint64(text[:], stream)
	used := (n + k + 8) / 8
	b = appendBlockHeader(b, blockCompressed, 6+used)
	b = append(b, noLiterals, one, oneSymbolEach, 0, byte(n), byte(k-7+43))
	return append(b, text[:used]...)
}

// eachCopy calls do for what of payload is in dictionary, in order of payload.
func eachCopy(payload, dictionary []byte, do func(at, from, size int)) {
	if len(payload) < grain || len(dictionary) < grain {
		return
	}
	// The index has the first of equal grains, at a place that their hash says; a second one for the same place is left out.
	width := bits.Len(uint(len(dictionary)/grain)) + 1
	index := make([]uint32, 1<<width) // position plus one
	slot := func(h uint64) *uint32 { return &index[h*rollBy>>(64-width)] }
	for at := 0; at+grain <= len(dictionary); at += grain {
		if s := slot(hashGrain(dictionary[at:])); *s == 0 {
			*s = uint32(at) + 1
		}
	}
	var out uint64 = 1 // what a byte has become by the time that it leaves
	for range grain - 1 {
		out *= rollBy
	}
	done, at := 0, 0
	h := hashGrain(payload)
	for {
		if s := *slot(h); s != 0 {
			from := int(s) - 1
			if n := same(payload[at:], dictionary[from:]); n >= grain {
				back := sameBack(payload[done:at], dictionary[:from])
				if n+back >= leastCopy+3 {
					do(at-back, from-back, n+back)
					done = at + n
					if at = done; at+grain > len(payload) {
						return
					}
					h = hashGrain(payload[at:])
					continue
				}
			}
		}
		if at+grain >= len(payload) {
			return
		}
		h = (h-uint64(payload[at])*out)*rollBy + uint64(payload[at+grain])
		at++
	}
}

// hashGrain is a polynomial of the first grain of bytes, which rolls.
func hashGrain(b []byte) (h uint64) {
	for _, c := range b[:grain] {
		h = h*rollBy + uint64(c)
	}
	return h
}

// same is how many bytes a and b begin with in common.
func same(a, b []byte) int {
	n := min(len(a), len(b))
	const step = 256
	i := 0
	for i+step <= n && bytes.Equal(a[i:i+step], b[i:i+step]) {
		i += step
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// sameBack is how many bytes a and b end with in common.
func sameBack(a, b []byte) int {
	n := 0
	for n < min(len(a), len(b)) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	return n
}
