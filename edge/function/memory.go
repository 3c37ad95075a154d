package function

import (
	"sync"
	"sync/atomic"

	"github.com/tetratelabs/wazero/experimental"
)

// smallMemory is up to what size memory that was used is overwritten with zeros rather than given back to the system: that is
// cheaper than to get its pages anew.
const smallMemory = 256 << 10

// maxIdleRegions bounds the regions that are kept for later calls. They hold smallMemory each at most.
const maxIdleRegions = 256

// memories is where calls have their memory from, and what it counts.
type memories struct {
	limit int64 // bytes over all
	used  atomic.Int64

	mu   sync.Mutex
	idle map[int][]*region // by size
	n    int               // idle
}

// region is a range of addresses, all zero while it is idle.
type region struct {
	bytes []byte // as many as a call may have; the system gives those that are touched
}

// take returns a region of so many bytes.
func (m *memories) take(size int) (*region, error) {
	m.mu.Lock()
	if list := m.idle[size]; len(list) > 0 {
		r := list[len(list)-1]
		m.idle[size] = list[:len(list)-1]
		m.n--
		m.mu.Unlock()
		return r, nil
	}
	m.mu.Unlock()
	b, err := reserve(size)
	return &region{b}, err
}

// give takes a region back of which the first used bytes may not be zero.
func (m *memories) give(r *region, used int) {
	zero := true
	if used <= smallMemory {
		clear(r.bytes[:used])
	} else {
		zero = discard(r.bytes[:used])
	}
	m.mu.Lock()
	keep := zero && m.n < maxIdleRegions
	if keep {
		if m.idle == nil {
			m.idle = make(map[int][]*region)
		}
		m.idle[len(r.bytes)] = append(m.idle[len(r.bytes)], r)
		m.n++
	}
	m.mu.Unlock()
	if !keep {
		release(r.bytes)
	}
}

// reserveBytes counts n more bytes; false: the node has no more for functions.
func (m *memories) reserveBytes(n int64) bool {
	if m.used.Add(n) > m.limit {
		m.used.Add(-n)
		return false
	}
	return true
}

// linear is the memory of one instance. It implements experimental.MemoryAllocator for that and experimental.LinearMemory.
type linear struct {
	m       *memories
	region  *region
	size    int64 // that the instance has
	refused bool  // more was asked for than the instance or the node may have
}

// instance gives l the memory of one instance, of size bytes at first; false: the node has no more for functions.
func (m *memories) instance(l *linear, size, most int64) (bool, error) {
	if !m.reserveBytes(size) {
		return false, nil
	}
	r, err := m.take(int(most))
	if err != nil {
		m.used.Add(-size)
		return false, err
	}
	*l = linear{m: m, region: r, size: size}
	return true, nil
}

// Allocate implements experimental.MemoryAllocator.
func (l *linear) Allocate(_, _ uint64) experimental.LinearMemory { return l }

// Reallocate implements experimental.LinearMemory; nil: there is no more.
func (l *linear) Reallocate(size uint64) []byte {
	if size > uint64(len(l.region.bytes)) || !l.m.reserveBytes(int64(size)-l.size) {
		l.refused = true
		return nil
	}
	l.size = int64(size)
	return l.region.bytes[:size:size]
}

// Free implements experimental.LinearMemory.
func (l *linear) Free() {
	if l.region == nil {
		return
	}
	l.m.give(l.region, int(l.size))
	l.m.used.Add(-l.size)
	l.region = nil
}

// close gives idle regions back to the system.
func (m *memories) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, list := range m.idle {
		for _, r := range list {
			release(r.bytes)
		}
	}
	m.idle, m.n = nil, 0
}
