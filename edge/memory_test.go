package edge_test

import (
	"fmt"
	"runtime"
	"testing"
)

// TestChangeSharesMemory: the view of a one-record change, with its snapshot, adds less than a hundredth to the one that it
// is beside.
func TestChangeSharesMemory(t *testing.T) {
	held, added := residentMemory(t, 10_000)
	if added > held/100 {
		t.Errorf("a change adds %d bytes to %d", added, held)
	}
}

// BenchmarkResident is the memory of a platform in a node: held-MB for a snapshot and its view, added-% for those of a
// one-record change beside them.
func BenchmarkResident(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("zones=%d", n), func(b *testing.B) {
			var held, added uint64
			for b.Loop() {
				held, added = residentMemory(b, n)
			}
			b.ReportMetric(0, "ns/op") // of no meaning here
			b.ReportMetric(float64(held)/1e6, "held-MB")
			b.ReportMetric(100*float64(added)/float64(held), "added-%")
		})
	}
}

// residentMemory returns how many bytes a platform of n zones takes, and how many more those of a change.
func residentMemory(t testing.TB, n int) (held, added uint64) {
	t.Helper()
	zones := platform(t, n)
	start := heap()
	s := parse(t, build(t, 1, zones...), nil)
	view := compile(t, nil, s, 1)
	held = heap() - start
	zones[n/2] = newZone(t, n/2, fmt.Sprintf("zone%d.example", n/2), "www A 192.0.2.1")
	changed := parse(t, build(t, 2, zones...), s)
	after := compile(t, view, changed, 2)
	if both := heap() - start; both > held {
		added = both - held
	}
	runtime.KeepAlive([]any{zones, s, view, changed, after})
	return held, added
}
