package memory_test

import (
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier/barriertest"
	"github.com/guardyn-edge/guardyn/barrier/memory"
)

// The suite waits for the store's time alone, so a store whose time runs faster is tested faster.
func TestConformance(t *testing.T) {
	start := time.Now()
	fast := func() time.Time { return start.Add(10 * time.Since(start)) }
	barriertest.Run(t, func(testing.TB) barriertest.Opener {
		s := memory.New(memory.Options{Clock: fast})
		return func(testing.TB) barriertest.Handles {
			return barriertest.Handles{Store: s, Leases: s, Artefacts: s}
		}
	})
}
