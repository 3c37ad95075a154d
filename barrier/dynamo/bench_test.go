package dynamo_test

import (
	"testing"

	"github.com/guardyn-edge/guardyn/barrier/barriertest"
)

func BenchmarkRollout(b *testing.B) {
	table := newTable(b)
	barriertest.Benchmark(b, 1000, func(testing.TB) barriertest.Opener {
		o := options(table)
		return func(t testing.TB) barriertest.Handles {
			s := open(t, o)
			return barriertest.Handles{Store: s, Leases: s, Artefacts: s}
		}
	})
}
