package dynamo_test

import (
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier/barriertest"
)

func BenchmarkRollout(b *testing.B) {
	table := newTable(b)
	barriertest.Benchmark(b, 100, func(testing.TB) barriertest.Opener {
		o := options(table)
		o.Poll = 250 * time.Millisecond // there is no hint: every member asks
		return func(t testing.TB) barriertest.Handles {
			s := open(t, o)
			return barriertest.Handles{Store: s, Leases: s, Artefacts: s}
		}
	})
}
