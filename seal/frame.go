package seal

import (
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// Bounds of a payload and of what it unpacks to.
const (
	// MaxPayload is the largest payload in bytes that is read.
	MaxPayload = 512 << 20
	// MaxDocument is the largest snapshot document in bytes that a payload may unpack to.
	MaxDocument = 1 << 30
	// maxWindow is the largest zstd window in bytes (RFC 8878 §3.1.1.1.2), which is the least maximum that the RFC
	// recommends to every decoder.
	maxWindow = 8 << 20
	// maxBlock is the largest content of a block (RFC 8878 §3.1.1.2.4).
	maxBlock = 128 << 10
)

// checkFrame walks a payload without unpacking anything and reports whether it is exactly one zstd frame
// (RFC 8878 §3.1.1) that says how much it unpacks to, at most limit bytes and no more than its blocks can
// hold, with a window of at most so many bytes and no id of a dictionary.
func checkFrame(payload []byte, limit int64, window int) error {
	var h zstd.Header
	if err := h.Decode(payload); err != nil {
		return fmt.Errorf("it is not a zstd frame: %w", err)
	}
	switch {
	case h.Skippable:
		return errors.New("it starts with a skippable frame")
	case h.DictionaryID != 0:
		return errors.New("it needs a dictionary")
	case !h.HasFCS:
		return errors.New("its frame does not say how much it unpacks to")
	case h.FrameContentSize > uint64(limit):
		return fmt.Errorf("it unpacks to %d bytes, the most is %d", h.FrameContentSize, limit)
	case h.SingleSegment && h.FrameContentSize > uint64(window) || !h.SingleSegment && h.WindowSize > uint64(window):
		return fmt.Errorf("its window is over %d bytes", window)
	}
	var most int64 // what the blocks can unpack to
	errShort := errors.New("it ends too early")
	rest := payload[h.HeaderSize:]
	for last := false; !last; {
		if len(rest) < 3 {
			return errShort
		}
		head := int(rest[0]) | int(rest[1])<<8 | int(rest[2])<<16
		rest = rest[3:]
		last = head&1 != 0
		size := head >> 3
		if size > maxBlock {
			return errors.New("it has a block that is too large")
		}
		switch head >> 1 & 3 {
		case 0: // raw
			most += int64(size)
		case 1: // one byte, repeated
			most += int64(size)
			size = 1
		case 2:
			most += maxBlock
		default:
			return errors.New("it has a block of a reserved type")
		}
		if len(rest) < size {
			return errShort
		}
		rest = rest[size:]
	}
	if h.HasCheckSum {
		if len(rest) < 4 {
			return errShort
		}
		rest = rest[4:]
	}
	if len(rest) > 0 {
		return fmt.Errorf("%d bytes follow its frame", len(rest))
	}
	if int64(h.FrameContentSize) > most {
		return errors.New("its blocks do not hold as much as its frame says")
	}
	return nil
}

// unpack decompresses a payload of which nothing is known but that it is signed. Beside the payload it uses
// the memory of the document, at most limit bytes, and a window.
func unpack(payload []byte, limit int64) ([]byte, error) {
	if err := checkFrame(payload, limit, maxWindow); err != nil {
		return nil, err
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow),
		zstd.WithDecoderMaxMemory(uint64(limit)), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	defer dec.Close()
	return dec.DecodeAll(payload, nil)
}
