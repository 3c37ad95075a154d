package snapshot

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// chunk is how many zones a worker takes at a time: enough to make taking them cheap, few enough that the
// buffers in flight stay small beside the document.
const chunk = 64

// each calls do for 0 to n-1 from GOMAXPROCS goroutines and returns when all are done. scratch is a buffer
// that a goroutine's calls hand on to one another.
func each(n int, do func(i int, scratch *[]byte)) {
	workers := min(runtime.GOMAXPROCS(0), (n+chunk-1)/chunk)
	if workers <= 1 {
		var scratch []byte
		for i := range n {
			do(i, &scratch)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			var scratch []byte
			for {
				end := int(next.Add(chunk))
				if end-chunk >= n {
					return
				}
				for i := end - chunk; i < min(end, n); i++ {
					do(i, &scratch)
				}
			}
		})
	}
	wg.Wait()
}

// ordered makes the bytes of 0 to n-1 in parallel and passes them on in order, a chunk at a time: at most
// twice GOMAXPROCS chunks are in memory. part appends the bytes of i; write must not keep what it is given.
// The first error of write ends the work and is returned.
func ordered(n int, part func(b []byte, i int) []byte, write func([]byte) error) error {
	chunks := (n + chunk - 1) / chunk
	make1 := func(b []byte, k int) []byte {
		for i := k * chunk; i < min((k+1)*chunk, n); i++ {
			b = part(b, i)
		}
		return b
	}
	workers := min(runtime.GOMAXPROCS(0), chunks)
	if workers <= 1 {
		var b []byte
		for k := range chunks {
			b = make1(b[:0], k)
			if err := write(b); err != nil {
				return err
			}
		}
		return nil
	}
	// Chunk k is made by worker k mod workers, so reading the workers in turn gives the order back.
	type lane struct{ full, empty chan []byte }
	lanes := make([]lane, workers)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(stop)
	for w := range lanes {
		l := lane{full: make(chan []byte, 2), empty: make(chan []byte, 2)}
		l.empty <- nil
		l.empty <- nil
		lanes[w] = l
		wg.Go(func() {
			for k := w; k < chunks; k += workers {
				select {
				case b := <-l.empty:
					l.full <- make1(b[:0], k)
				case <-stop:
					return
				}
			}
		})
	}
	for k := range chunks {
		l := lanes[k%workers]
		b := <-l.full
		if err := write(b); err != nil {
			return err
		}
		l.empty <- b
	}
	return nil
}
