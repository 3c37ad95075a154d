package pool

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Histogram counts durations in buckets whose upper bounds double from 1 ms to 16.384 s. It is safe for
// concurrent use; the zero Histogram is empty.
type Histogram struct {
	buckets [histogramBuckets + 1]atomic.Uint64 // the last: longer than all bounds
	sum     atomic.Int64                        // nanoseconds
}

const histogramBuckets = 15

// Observe counts d.
func (h *Histogram) Observe(d time.Duration) {
	d = max(d, 0)
	i := 0
	if d > time.Millisecond {
		i = bits.Len64(uint64((d - 1) / time.Millisecond)) // the least i with d ≤ 2^i ms
	}
	h.buckets[min(i, histogramBuckets)].Add(1)
	h.sum.Add(int64(d))
}

// HistogramValues is a Histogram at one moment, in the form of Prometheus.
type HistogramValues struct {
	Count   uint64
	Sum     float64            // seconds
	Buckets map[float64]uint64 // by upper bound in seconds, each with what the lower ones count
}

// Values returns what was observed.
func (h *Histogram) Values() HistogramValues {
	v := HistogramValues{Sum: time.Duration(h.sum.Load()).Seconds(), Buckets: make(map[float64]uint64, histogramBuckets)}
	for i := range h.buckets {
		v.Count += h.buckets[i].Load()
		if i < histogramBuckets {
			v.Buckets[(time.Millisecond << i).Seconds()] = v.Count
		}
	}
	return v
}
