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
// (RFC 8878 §3.1.1) with a window of at most maxWindow and no dictionary. It returns the most bytes that the
// frame can unpack to, judged by its number of blocks and not by what its header claims.
func checkFrame(payload []byte) (int64, error) {
	var h zstd.Header
	if err := h.Decode(payload); err != nil {
		return 0, fmt.Errorf("it is not a zstd frame: %w", err)
	}
	switch {
	case h.Skippable:
		return 0, errors.New("it starts with a skippable frame")
	case h.DictionaryID != 0:
		return 0, errors.New("it needs a dictionary")
	case h.HasFCS && h.FrameContentSize > MaxDocument:
		return 0, fmt.Errorf("it claims to unpack to %d bytes, the most is %d", h.FrameContentSize, int64(MaxDocument))
	case h.SingleSegment && h.FrameContentSize > maxWindow || !h.SingleSegment && h.WindowSize > maxWindow:
		return 0, fmt.Errorf("its window is over %d bytes", maxWindow)
	}
	rest := payload[h.HeaderSize:]
	var most int64
	for last := false; !last; {
		if len(rest) < 3 {
			return 0, errors.New("it ends too early")
		}
		head := int(rest[0]) | int(rest[1])<<8 | int(rest[2])<<16
		rest = rest[3:]
		last = head&1 != 0
		size := head >> 3
		if size > maxBlock {
			return 0, errors.New("it has a block that is too large")
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
			return 0, errors.New("it has a block of a reserved type")
		}
		if len(rest) < size {
			return 0, errors.New("it ends too early")
		}
		rest = rest[size:]
	}
	if h.HasCheckSum {
		if len(rest) < 4 {
			return 0, errors.New("it ends too early")
		}
		rest = rest[4:]
	}
	if len(rest) > 0 {
		return 0, fmt.Errorf("%d bytes follow its frame", len(rest))
	}
	if h.HasFCS {
		most = min(most, int64(h.FrameContentSize))
	}
	return most, nil
}

// unpack decompresses a payload of which nothing is known but that it is signed. It uses no more memory than
// the document, at most MaxDocument, and a window.
func unpack(payload []byte) ([]byte, error) {
	most, err := checkFrame(payload)
	if err != nil {
		return nil, err
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow),
		zstd.WithDecoderMaxMemory(MaxDocument), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, err
	}
	defer dec.Close()
	return dec.DecodeAll(payload, make([]byte, 0, min(most, maxHint)))
}

// maxHint bounds what is reserved before anything was unpacked; beyond it the document grows as it comes.
const maxHint = 128 << 20
