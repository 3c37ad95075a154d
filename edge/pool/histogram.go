package pool

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Histogram counts durations in buckets whose upper bounds double from 250 µs to 65.536 s. Observe takes no lock and does not
// allocate. It is safe for concurrent use; the zero Histogram is empty.
type Histogram struct {
	buckets [histogramBuckets + 1]atomic.Uint64 // the last: longer than all bounds
	sum     atomic.Int64                        // nanoseconds
}

const (
	histogramBuckets = 19
	shortestBucket   = 250 * time.Microsecond
)

// Observe counts d.
func (h *Histogram) Observe(d time.Duration) { h.ObserveEach(d, 1) }

// ObserveEach counts n durations of d.
func (h *Histogram) ObserveEach(d time.Duration, n int) {
	d = max(d, 0)
	i := 0
	if d > shortestBucket {
		i = bits.Len64(uint64((d - 1) / shortestBucket)) // the least i with d ≤ 2^i of the shortest
	}
	h.buckets[min(i, histogramBuckets)].Add(uint64(n))
	h.sum.Add(int64(d) * int64(n))
}

// Count is how many were observed.
func (h *Histogram) Count() (n uint64) {
	for i := range h.buckets {
		n += h.buckets[i].Load()
	}
	return n
}

// HistogramValues is a Histogram at one moment, in the form of Prometheus.
type HistogramValues struct {
	Count   uint64
	Sum     float64            // seconds
	Buckets map[float64]uint64 // by upper bound in seconds, each with what the lower ones count
}

// Values returns what was observed.
func (h *Histogram) Values() HistogramValues { return Values(h) }

// Values returns what several histograms observed together.
func Values(all ...*Histogram) HistogramValues {
	v := HistogramValues{Buckets: make(map[float64]uint64, histogramBuckets)}
	var sum time.Duration
	for _, h := range all {
		sum += time.Duration(h.sum.Load())
	}
	v.Sum = sum.Seconds()
	for i := range histogramBuckets + 1 {
		for _, h := range all {
			v.Count += h.buckets[i].Load()
		}
		if i < histogramBuckets {
			v.Buckets[(shortestBucket << i).Seconds()] = v.Count
		}
	}
	return v
}
