package seal

import (
	"encoding/binary"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
	"github.com/zeebo/blake3"

	"github.com/guardyn-edge/guardyn/snapshot"
)

// Where a document is cut, in bytes of it. A run ends after a zone whose digest says so, so that runs before and after
// a change are where they were, but has leastRun bytes first and at most mostRun, unless it is one zone.
const (
	leastRun = 8 << 10
	meanRun  = 16 << 10 // beyond leastRun, on average
	mostRun  = maxBlock
	// maxPart is how much of a zone that is larger is compressed as one, which is as far back as its blocks refer.
	maxPart = 4 << 20
)

// Sealer seals one snapshot after another. Runs of zones that the last one had too are not compressed again. It keeps
// at most as many bytes as the last payload has. The zero value is ready, and safe for concurrent use.
type Sealer struct {
	mu   sync.Mutex
	kept map[runKey][]byte // blocks of the last payload; the values are never changed
}

// runKey is the BLAKE3-256 of what determines a run's bytes.
type runKey [32]byte

// run is a part of the document that is compressed by itself: the members of zones from ≤ i < to.
type run struct {
	from, to int
	size     int // in bytes, the comma before its first member included
	key      runKey
	blocks   []byte // none of them the frame's last
}

// cut divides a document into runs. What it looks at is the zones' digests.
func cut(s *snapshot.Snapshot) []run {
	var (
		runs []run
		r    run
		h    = blake3.New()
	)
	end := func(to int) {
		if to == r.from {
			return
		}
		r.to = to
		h.Sum(r.key[:0])
		runs = append(runs, r)
		r = run{from: to}
		h.Reset()
	}
	for i := range s.Len() {
		m := s.Member(i)
		size := m.Size
		if i > 0 {
			size++
		}
		if r.size+size > mostRun {
			end(i)
		}
		if r.size == 0 {
			_, _ = h.Write([]byte{byte(min(i, 1))}) // whether a comma comes first
		}
		_, _ = h.Write(m.Digest[:])
		r.size += size
		// A zone ends a run as likely as it is large: the mean is of bytes, not of zones.
		if at, _ := bits.Mul64(binary.LittleEndian.Uint64(m.Digest[:]), meanRun); r.size >= leastRun && at < uint64(m.Size) {
			end(i + 1)
		}
	}
	end(s.Len())
	return runs
}

// compress makes the payload of s: one frame of the head and the tail, which are raw, and of the runs' blocks.
func (c *Sealer) compress(s *snapshot.Snapshot) ([]byte, error) {
	runs := cut(s)
	kept := c.reuse(runs)
	if err := compressRuns(s, runs); err != nil {
		return nil, err
	}
	head := s.Head()
	total, longest := len(head)+64, 0
	for i := range runs {
		total += len(runs[i].blocks)
		longest = max(longest, min(runs[i].size, maxPart))
		kept[runs[i].key] = runs[i].blocks
	}
	payload := appendFrameHeader(make([]byte, 0, total), uint32(s.Size()), longest)
	payload = appendRaw(payload, head)
	for i := range runs {
		payload = append(payload, runs[i].blocks...)
	}
	payload = appendRaw(payload, []byte(snapshot.Tail))
	setLast(payload, len(payload)-blockHeader-len(snapshot.Tail))
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept = kept
	return payload, nil
}

// reuse fills in the blocks that are kept, and returns the map for what is to be kept next.
func (c *Sealer) reuse(runs []run) map[runKey][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range runs {
		runs[i].blocks = c.kept[runs[i].key]
	}
	return make(map[runKey][]byte, len(runs))
}

// compressRuns fills in the blocks that are missing, on all processors.
func compressRuns(s *snapshot.Snapshot, runs []run) error {
	var missing []*run
	longest := 0
	for i := range runs {
		if runs[i].blocks == nil {
			missing = append(missing, &runs[i])
			longest = max(longest, min(runs[i].size, maxPart))
		}
	}
	workers := min(runtime.GOMAXPROCS(0), len(missing))
	if workers == 0 {
		return nil
	}
	// An encoder takes twice its window, and has it cleared.
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(runLevel), zstd.WithWindowSize(1<<windowLog(longest)), zstd.WithEncoderCRC(false),
		zstd.WithAllLitEntropyCompression(true), zstd.WithEncoderConcurrency(workers))
	if err != nil {
		return err
	}
	defer enc.Close()
	var (
		next atomic.Int64
		wg   sync.WaitGroup
		errs = make([]error, workers)
	)
	for w := range workers {
		wg.Go(func() {
			p, err := newProver()
			if err != nil {
				errs[w] = err
				return
			}
			defer p.close()
			var doc []byte
			for {
				n := int(next.Add(1)) - 1
				if n >= len(missing) {
					return
				}
				r := missing[n]
				doc = s.AppendMembers(doc[:0], r.from, r.to)
				r.blocks = p.blocks(enc, doc)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
