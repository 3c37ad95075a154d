package dynamo_test

import (
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/barrier/barriertest"
)

func TestConformance(t *testing.T) {
	table := newTable(t)
	barriertest.Run(t, func(t testing.TB) barriertest.Opener {
		o := options(table)
		o.RequestTimeout = 180 * time.Millisecond // the suite waits for the margin often
		return func(t testing.TB) barriertest.Handles {
			s := open(t, o)
			return barriertest.Handles{Store: s, Leases: s, Artefacts: s}
		}
	})
}
