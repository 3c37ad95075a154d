package barrier_test

import (
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier/barriertest"
	"github.com/guardyn-edge/guardyn/barrier/memory"
)

func TestScenarios(t *testing.T) {
	barriertest.Scenarios(t, "testdata/scenarios/*.txt", func(_ testing.TB, clock func() time.Time) barriertest.Handles {
		s := memory.New(memory.Options{Clock: clock})
		return barriertest.Handles{Store: s, Leases: s, Artefacts: s}
	})
}
