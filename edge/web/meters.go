package web

import (
	"sync/atomic"
	"time"

	"github.com/guardyn-edge/guardyn/edge/pool"
)

// meters are one share of what a server measures of each request. Values that processors lend one another slow all of them down;
// an exchange keeps its share, and the pool of exchanges mostly gives a processor those that it had before.
type meters struct {
	requests  [6]pool.Histogram // by status class; 0: no status
	firstByte pool.Histogram
	_         [64]byte // of another share's cache line
}

// meterShares is the shares of one server, 20 KiB.
type meterShares struct {
	shares [16]meters
	turn   atomic.Uint32
}

// next returns the share of a new exchange.
func (m *meterShares) next() *meters {
	return &m.shares[m.turn.Add(1)%uint32(len(m.shares))]
}

// values adds the shares up.
func (m *meterShares) values() (requests [6]pool.HistogramValues, firstByte pool.HistogramValues) {
	var of [16]*pool.Histogram
	for class := range requests {
		for i := range m.shares {
			of[i] = &m.shares[i].requests[class]
		}
		requests[class] = pool.Values(of[:]...)
	}
	for i := range m.shares {
		of[i] = &m.shares[i].firstByte
	}
	return requests, pool.Values(of[:]...)
}

// ZoneCounts are the requests of one zone. The zero value is ready.
type ZoneCounts struct {
	requests [6]atomic.Uint64
	seconds  pool.Histogram
}

func (z *ZoneCounts) count(class int, took time.Duration) {
	z.requests[class].Add(1)
	z.seconds.Observe(took)
}

// Requests are those answered, by the first digit of the status; at 0 those whose client left first.
func (z *ZoneCounts) Requests() (n [6]uint64) {
	for class := range n {
		n[class] = z.requests[class].Load()
	}
	return n
}

// Seconds is how long they took.
func (z *ZoneCounts) Seconds() pool.HistogramValues { return z.seconds.Values() }
