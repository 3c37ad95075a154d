package memory_test

import (
	"testing"

	"github.com/guardyn-edge/guardyn/barrier/barriertest"
	"github.com/guardyn-edge/guardyn/barrier/memory"
)

func BenchmarkRollout(b *testing.B) {
	barriertest.Benchmark(b, 1000, func(testing.TB) barriertest.Opener {
		s := memory.New(memory.Options{})
		return func(testing.TB) barriertest.Handles {
			return barriertest.Handles{Store: s, Leases: s, Artefacts: s}
		}
	})
}
