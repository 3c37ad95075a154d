package sim

import (
	"flag"
	"testing"
)

var (
	seed  = flag.Int64("sim.seed", -1, "run this schedule alone, and print its trace")
	count = flag.Int("sim.count", 20_000, "how many schedules TestSchedules runs")
)

func TestSchedules(t *testing.T) {
	if *seed >= 0 {
		r := Run(Options{Seed: uint64(*seed), Trace: true})
		for _, line := range r.Trace {
			t.Log(line)
		}
		t.Logf("reached:\n%v", r.Coverage)
		if r.Violation != nil {
			t.Fatal(Shrink(&Failure{Options{Seed: uint64(*seed)}, r}))
		}
		return
	}
	f, cov := Search(Options{}, *count)
	t.Logf("reached in %d schedules:\n%v", *count, cov)
	if f != nil {
		t.Fatal(Shrink(f))
	}
}
