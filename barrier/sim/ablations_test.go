package sim

import "testing"

// TestAblations switches each repair off and asserts that the promise that it keeps is then broken, within about three times as many
// seeds as it took on average. Where a check on the write itself would notice first, the second row of an
// ablation ignores that one: what must break is what the repair is for.
func TestAblations(t *testing.T) {
	tests := []struct {
		ablation Ablation
		ignore   []Property
		want     []Property // any of them
		seeds    int
	}{
		{ClockAtSending, nil, []Property{I7}, 1000},
		{ClockAtSending, []Property{I7}, []Property{S4}, 2000},
		{DeadmanAlone, nil, []Property{S5}, 300},
		{AnyBootsVotes, nil, []Property{S9}, 80},
		{AnyBootsEvidence, nil, []Property{I7}, 170},
		{AnyBootsEvidence, []Property{I7}, []Property{S4}, 170},
		{NewestOnly, nil, []Property{S5, S7}, 10},
		{PointerLater, nil, []Property{Pointers}, 5},
		{PointerLater, []Property{Pointers}, []Property{S5}, 60},
		{SaveLater, nil, []Property{Durable}, 5},
		{SaveLater, []Property{Durable}, []Property{Highest}, 20},
		{SlotIsRunning, nil, []Property{S6}, 10},
		{NoClaim, nil, []Property{I3}, 800},
	}
	for _, tt := range tests {
		name := tt.ablation.String()
		for _, p := range tt.ignore {
			name += ", not looking at " + string(p)
		}
		t.Run(name, func(t *testing.T) {
			f, _ := Search(Options{Ablation: tt.ablation, Ignore: tt.ignore}, tt.seeds)
			if f == nil {
				t.Fatalf("no promise is broken in %d schedules", tt.seeds)
			}
			got := f.Result.Violation
			for _, want := range tt.want {
				if got.Property == want {
					t.Logf("seed %d of %d: %v", f.Options.Seed, tt.seeds, got)
					return
				}
			}
			t.Errorf("seed %d broke %v; want one of %v", f.Options.Seed, got, tt.want)
		})
	}
}

// TestDeadmansWordIsSpare shows that one half of the deadman is there twice. A member that has read, after D + grace, that its trial is
// still open could take it back without writing Revert: Confirm tests D inside its write, so it cannot come any more. What
// the write adds is the decision itself, when no coordinator is there to make it.
func TestDeadmansWordIsSpare(t *testing.T) {
	if f, _ := Search(Options{Ablation: DeadmanReads}, 1000); f != nil {
		t.Fatal(Shrink(f))
	}
}
