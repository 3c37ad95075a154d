package sim

import (
	"flag"
	"slices"
	"strings"
	"testing"
)

var (
	seed   = flag.Int64("sim.seed", -1, "run this schedule alone, and print its trace")
	count  = flag.Int("sim.count", 5_000, "how many schedules TestSchedules runs")
	from   = flag.Uint64("sim.from", 0, "the first of them")
	ablate = flag.Int("sim.ablation", 0, "which repair is switched off in TestSchedules, by number")
)

// TestSchedules runs schedules until one breaks a promise, and asserts that every case was reached.
func TestSchedules(t *testing.T) {
	if *seed >= 0 {
		o := Options{Seed: uint64(*seed), Ablation: Ablation(*ablate), Trace: true}
		r := Run(o)
		if r.Violation != nil {
			t.Fatal(Shrink(&Failure{o, r}))
		}
		t.Logf("faults:\n  %s\n%s\nreached:\n%v", strings.Join(r.Faults, "\n  "), strings.Join(r.Trace, "\n"), r.Coverage)
		return
	}
	n := *count
	if testing.Short() {
		n = min(n, 2000)
	}
	f, cov := Search(Options{Seed: *from, Ablation: Ablation(*ablate)}, n)
	if f != nil {
		t.Fatal(Shrink(f))
	}
	t.Logf("reached in %d schedules:\n%v", n, cov)
	for c := range lastCase {
		// Whoever finds a trial overdue has read the store's time after D, and nothing is confirmed after D.
		if want := c != DeadmanLost; n >= 2000 && (cov[c] > 0) != want {
			t.Errorf("reached %d times: %v", cov[c], c)
		}
	}
}

// TestFound runs schedules beyond those of TestSchedules that once broke a promise.
func TestFound(t *testing.T) {
	for seed, what := range map[uint64]string{
		219506: "a store is restored to before the bytes of a proposal that comes a moment later, and who did not vote cannot fetch them",
		30144:  "a process that goes back by guess is told of the confirm between its judgement and its act",
		147230: "the join of a process that has died arrives late, and the one that lives stops for it",
		143562: "the store's clock steps back in a window, which is as much longer",
		83531:  "a member whose disk may have a confirm waits for ever when the store is restored to before it",
		31616:  "a new process learns of a confirm, cannot tell whether its disk took it, and serves what was before it",
		27180:  "a member takes back what it has learnt is confirmed, since its disk was full when it learnt it",
	} {
		if r := Run(Options{Seed: seed}); r.Violation != nil {
			t.Errorf("seed %d (%s): %v", seed, what, r.Violation)
		}
	}
}

// TestReplay runs schedules twice: the same seed is the same schedule, to the last line of its trace.
func TestReplay(t *testing.T) {
	for seed := range uint64(20) {
		o := Options{Seed: seed, Trace: true}
		first := Run(o)
		if again := Run(o); !slices.Equal(first.Trace, again.Trace) || first.Coverage != again.Coverage || first.Took != again.Took {
			t.Errorf("seed %d ran differently", seed)
		}
		o.Trace = false
		if silent := Run(o); first.Coverage != silent.Coverage || first.Took != silent.Took {
			t.Errorf("seed %d runs differently without a trace", seed)
		}
	}
}

// TestShrink drops every fault that a violation does not need: each one that is left is needed.
func TestShrink(t *testing.T) {
	f, _ := Search(Options{Ablation: AnyBootsVotes}, 1000)
	if f == nil {
		t.Fatal("no violation")
	}
	small := Shrink(f)
	if small.Result.Violation == nil || small.Result.Violation.Property != f.Result.Violation.Property {
		t.Fatalf("shrunk to %v, not %v", small.Result.Violation, f.Result.Violation)
	}
	if !strings.Contains(small.Result.Trace[len(small.Result.Trace)-1]+small.Result.Trace[len(small.Result.Trace)-2]+small.Result.Trace[len(small.Result.Trace)-3], "BROKEN") {
		t.Errorf("the trace does not end with the violation:\n%v", small)
	}
	for i := range small.Result.Faults {
		if slices.Contains(small.Options.Without, i) {
			continue
		}
		o := small.Options
		o.Without = append(slices.Clone(o.Without), i)
		if r := Run(o); r.Violation != nil && r.Violation.Property == small.Result.Violation.Property {
			t.Errorf("fault %d (%s) is not needed", i, small.Result.Faults[i])
		}
	}
}

// TestStoreClockBack lets the store's clock step back by many seconds, more than grace covers: evidence that is dated in the
// future then ends a trial, and nothing worse happens.
func TestStoreClockBack(t *testing.T) {
	if f, _ := Search(Options{ClockBack: true}, 1000); f != nil {
		t.Fatal(Shrink(f))
	}
}
