package seal

import (
	"bytes"
	"encoding/binary"
	"math/bits"

	"github.com/klauspost/compress/zstd"
)

// runLevel is what a run is compressed at. Runs are compressed when they change, so it may take longer than the
// fastest, and it has to make up for what a run cannot refer to: the runs before it.
const runLevel = zstd.SpeedDefault

// blockHeader is the length of the header of a block (RFC 8878 §3.1.1.2).
const blockHeader = 3

// Types of blocks (RFC 8878 §3.1.1.2.2).
const (
	blockRaw        = 0
	blockRLE        = 1
	blockCompressed = 2
)

func appendBlockHeader(b []byte, kind, size int) []byte {
	h := size<<3 | kind<<1
	return append(b, byte(h), byte(h>>8), byte(h>>16))
}

// setLast marks the block at offset as the frame's last.
func setLast(b []byte, offset int) { b[offset] |= 1 }

// appendRaw appends p in raw blocks.
func appendRaw(b, p []byte) []byte {
	for len(p) > 0 {
		n := min(len(p), maxBlock)
		b = append(appendBlockHeader(b, blockRaw, n), p[:n]...)
		p = p[n:]
	}
	return b
}

// appendFrameHeader begins a frame that unpacks to size bytes, whose blocks refer at most far back (RFC 8878 §3.1.1.1).
func appendFrameHeader(b []byte, size uint32, far int) []byte {
	const (
		magic      = 0xfd2fb528
		sizeIn4    = 2 << 6
		windowBase = 10
	)
	b = binary.LittleEndian.AppendUint32(b, magic)
	b = append(b, sizeIn4, byte(windowLog(far)-windowBase)<<3)
	return binary.LittleEndian.AppendUint32(b, size)
}

// windowLog is the logarithm of the least window that reaches far back and has room for the largest block.
func windowLog(far int) int { return bits.Len(uint(max(far, maxBlock) - 1)) }

// prover compresses runs and proves of each that its blocks mean the same wherever in a frame they stand. It is one
// goroutine's.
type prover struct {
	dec                 *zstd.Decoder
	frame, out, scratch []byte
}

func newProver() (*prover, error) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(4*maxPart), zstd.WithDecoderMaxMemory(4*maxPart))
	if err != nil {
		return nil, err
	}
	return &prover{dec: dec}, nil
}

func (p *prover) close() { p.dec.Close() }

// blocks returns the blocks of doc, a part of a document.
func (p *prover) blocks(enc *zstd.Encoder, doc []byte) []byte {
	var out []byte
	for len(doc) > 0 {
		part := doc[:min(len(doc), maxPart)]
		doc = doc[len(part):]
		p.scratch = enc.EncodeAll(part, p.scratch[:0])
		if b, ok := inner(p.scratch); ok && len(b) < len(part) && p.independent(b, part) {
			out = append(out, b...)
		} else {
			out = appendRaw(out, part)
		}
	}
	return out
}

// inner returns the blocks of a frame that one call of an encoder made, the last one not marked as such.
func inner(frame []byte) ([]byte, bool) {
	var h zstd.Header
	if err := h.Decode(frame); err != nil || h.HasCheckSum || h.HeaderSize >= len(frame) {
		return nil, false
	}
	b := frame[h.HeaderSize:]
	for at := 0; at+blockHeader <= len(b); {
		head := int(b[at]) | int(b[at+1])<<8 | int(b[at+2])<<16
		size := head >> 3
		if head>>1&3 == blockRLE {
			size = 1
		}
		if head&1 != 0 {
			b[at] &^= 1
			return b, at+blockHeader+size == len(b)
		}
		at += blockHeader + size
	}
	return nil, false
}

// independent reports whether blocks unpack to doc whatever stands before them. First alone, which leaves no table of an
// earlier block to repeat (RFC 8878 §3.1.1.3): a decoder refuses that. Then behind blocks that leave other repeated
// offsets (§3.1.1.5) than a frame begins with, each longer than doc: the first byte that is copied from one of them is
// 0xff, which no UTF-8 has.
func (p *prover) independent(blocks, doc []byte) bool {
	p.frame = appendFrameHeader(p.frame[:0], uint32(len(doc)), maxPart)
	return p.unpacks(blocks, 0, doc) && p.unpacksBehind(blocks, doc)
}

func (p *prover) unpacksBehind(blocks, doc []byte) bool {
	// Offsets travel plus 3; those with code n are 2^n and n bits more (RFC 8878 §3.1.1.3.2.1.1).
	n := bits.Len(uint(len(doc) + 3))
	const apart, matches, shortest = 16, 3, 3
	before := 1<<n + matches*apart
	rle := (before + maxBlock - 1) / maxBlock
	before = rle*maxBlock + matches*shortest
	f := appendFrameHeader(p.frame[:0], uint32(before+len(doc)), 4*maxPart)
	for range rle {
		f = append(appendBlockHeader(f, blockRLE, maxBlock), 0xff)
	}
	// Three matches of 3 bytes without literals, all tables of one symbol, which take no bits (§3.1.1.3.2.1).
	const noLiterals, oneSymbolEach = 0, 1<<6 | 1<<4 | 1<<2
	sequences := []byte{noLiterals, matches, oneSymbolEach, 0, byte(n), 0}
	bit := len(sequences) * 8
	put := func(v, width int) {
		for i := range width {
			if bit/8 == len(sequences) {
				sequences = append(sequences, 0)
			}
			sequences[bit/8] |= byte(v>>i&1) << (bit % 8)
			bit++
		}
	}
	for i := range matches {
		put((i+1)*apart, n)
	}
	put(1, 1) // where the bits end
	f = append(appendBlockHeader(f, blockCompressed, len(sequences)), sequences...)
	p.frame = f
	return p.unpacks(blocks, before, doc)
}

// unpacks reports whether p.frame, blocks and an empty last block unpack to before bytes and doc.
func (p *prover) unpacks(blocks []byte, before int, doc []byte) bool {
	f := append(p.frame, blocks...)
	f = appendBlockHeader(f, blockRaw, 0)
	setLast(f, len(f)-blockHeader)
	p.frame = f
	out, err := p.dec.DecodeAll(f, p.out[:0])
	p.out = out
	return err == nil && len(out) == before+len(doc) && bytes.Equal(out[before:], doc)
}
