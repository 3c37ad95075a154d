package host

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"
)

func TestIdleMemoryIsGivenBack(t *testing.T) {
	const mb = 1 << 20
	for _, row := range []struct {
		name    string
		samples []heapSample // at the start, and every 30 seconds
		given   int
	}{
		{"a burst is over", []heapSample{{5, 400 * mb, 900 * mb}, {9, 20 * mb, 800 * mb}, {9, 20 * mb, 800 * mb}, {10, 20 * mb, 25 * mb}, {10, 20 * mb, 25 * mb}}, 1},
		{"the collector's own cycle", []heapSample{{5, 400 * mb, 800 * mb}, {6, 20 * mb, 800 * mb}, {7, 20 * mb, 25 * mb}}, 1},
		{"there is work", []heapSample{{5, 20 * mb, 800 * mb}, {7, 20 * mb, 800 * mb}, {9, 20 * mb, 800 * mb}}, 0},
		{"what it grows to by itself", []heapSample{{5, 300 * mb, 660 * mb}, {5, 300 * mb, 660 * mb}}, 0},
		{"a small process", []heapSample{{5, 2 * mb, 60 * mb}, {5, 2 * mb, 60 * mb}}, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				given, at := 0, 0
				last := make(chan struct{}) // closed when the last sample is taken
				m := &idleMemory{
					sample: func() heapSample {
						if at++; at == len(row.samples) {
							close(last)
						}
						return row.samples[at-1]
					},
					give: func() { given++ },
				}
				ended := make(chan struct{})
				go func() {
					m.run(ctx)
					close(ended)
				}()
				<-last
				synctest.Wait()
				cancel()
				<-ended
				if given != row.given || at != len(row.samples) {
					t.Errorf("given back %d times after %d samples, want %d after %d", given, at, row.given, len(row.samples))
				}
			})
		})
	}
}

// TestSampleHeap sees that the names of the runtime's metrics are known to it, and mean what they are taken for.
func TestSampleHeap(t *testing.T) {
	ballast := make([]byte, 100<<20)
	for i := 0; i < len(ballast); i += 4096 {
		ballast[i] = 1
	}
	runtime.GC()
	with := sampleHeap()
	runtime.KeepAlive(ballast)
	ballast = nil
	debug.FreeOSMemory()
	without := sampleHeap()
	if with.live < 100<<20 || with.held < with.live || without.cycles <= with.cycles || without.live+90<<20 > with.live || without.held+90<<20 > with.held {
		t.Errorf("with 100 MiB %+v, without %+v", with, without)
	}
}
