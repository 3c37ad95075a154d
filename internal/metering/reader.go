package metering

import (
	"errors"
	"fmt"
)

var errShort = errors.New("it is not a whole WebAssembly module")

// reader reads the binary format. After an error, which it keeps, it reads zeros.
type reader struct {
	b   []byte
	at  int
	err error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.at = len(r.b)
}

func (r *reader) done() bool { return r.at >= len(r.b) }

func (r *reader) byte() byte {
	if r.at >= len(r.b) {
		r.fail(errShort)
		return 0
	}
	c := r.b[r.at]
	r.at++
	return c
}

func (r *reader) take(n uint32) []byte {
	if uint64(n) > uint64(len(r.b)-r.at) {
		r.fail(errShort)
		return nil
	}
	p := r.b[r.at : r.at+int(n)]
	r.at += int(n)
	return p
}

// u32 reads an unsigned LEB128 of at most 32 bits.
func (r *reader) u32() uint32 {
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		c := r.byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			if v >= 1<<32 {
				break
			}
			return uint32(v)
		}
	}
	r.fail(errors.New("a number has more than 32 bits"))
	return 0
}

// i32 reads a signed LEB128 of at most 32 bits.
func (r *reader) i32() int32 {
	var v int64
	for shift := 0; shift < 35; shift += 7 {
		c := r.byte()
		v |= int64(c&0x7f) << shift
		if c < 0x80 {
			if c&0x40 != 0 {
				v |= -1 << (shift + 7)
			}
			return int32(v)
		}
	}
	r.fail(errors.New("a number has more than 32 bits"))
	return 0
}

// skipLEB passes over a LEB128 of at most so many bytes.
func (r *reader) skipLEB(most int) {
	for range most {
		if r.byte() < 0x80 {
			return
		}
	}
	r.fail(errors.New("a number is too long"))
}

// count reads the length of a vector of what, of which there may be so many.
func (r *reader) count(what string, most uint32) uint32 {
	n := r.u32()
	if n > most {
		r.fail(fmt.Errorf("it has %d %s, nodes take %d", n, what, most))
		return 0
	}
	if int(n) > len(r.b)-r.at {
		r.fail(errShort)
		return 0
	}
	return n
}

func (r *reader) name() string { return string(r.take(r.u32())) }

func appendU32(b []byte, v uint32) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

// appendI32 appends a signed LEB128.
func appendI32(b []byte, v int32) []byte {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

func appendName(b []byte, s string) []byte {
	return append(appendU32(b, uint32(len(s))), s...)
}
