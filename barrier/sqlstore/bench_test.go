package sqlstore_test

import (
	"crypto/rand"
	"testing"

	"github.com/guardyn-edge/guardyn/barrier/barriertest"
)

func BenchmarkRollout(b *testing.B) {
	for _, d := range databases {
		b.Run(string(d.dialect), func(b *testing.B) {
			url := d.url(b)
			migrate(b, url)
			barriertest.Benchmark(b, 1000, func(testing.TB) barriertest.Opener {
				cohort := rand.Text()
				return func(t testing.TB) barriertest.Handles {
					s := open(t, url, cohort)
					return barriertest.Handles{Store: s, Leases: s, Artefacts: s}
				}
			})
		})
	}
}
