package sim

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
)

// Failure is a schedule that broke a promise.
type Failure struct {
	Options Options
	Result  Result
}

func (f *Failure) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %v\nfaults that it takes:\n", f.Options.Seed, f.Result.Violation)
	for i, s := range f.Result.Faults {
		if !dropped(f.Options.Without, i) {
			fmt.Fprintf(&b, "  %d  %s\n", i, s)
		}
	}
	fmt.Fprintf(&b, "%s\nreplay: go test ./barrier/sim -run TestSchedules -sim.seed=%d -v\n", strings.Join(f.Result.Trace, "\n"), f.Options.Seed)
	return b.String()
}

func dropped(without []int, i int) bool {
	for _, j := range without {
		if i == j {
			return true
		}
	}
	return false
}

// Search runs n schedules from o.Seed on, on all cores, and returns the one with the lowest seed that breaks a promise, or nil,
// and what all that ran have reached.
func Search(o Options, n int) (*Failure, Coverage) {
	var (
		next   atomic.Uint64
		mu     sync.Mutex // guards first and sum
		first  *Failure
		sum    Coverage
		group  sync.WaitGroup
		lowest atomic.Uint64
	)
	lowest.Store(uint64(n))
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			var own Coverage
			for i := next.Add(1) - 1; i < lowest.Load(); i = next.Add(1) - 1 {
				one := o
				one.Seed += i
				r := Run(one)
				own.Add(r.Coverage)
				if r.Violation == nil {
					continue
				}
				mu.Lock()
				if i < lowest.Load() {
					lowest.Store(i)
					first = &Failure{one, r}
				}
				mu.Unlock()
			}
			mu.Lock()
			sum.Add(own)
			mu.Unlock()
		})
	}
	group.Wait()
	return first, sum
}

// Shrink drops the faults that the violation does not need, and runs what is left with a trace.
func Shrink(f *Failure) *Failure {
	o, want := f.Options, f.Result.Violation.Property
	for i := range f.Result.Faults {
		if dropped(o.Without, i) {
			continue
		}
		try := o
		try.Without = append(append([]int(nil), o.Without...), i)
		if r := Run(try); r.Violation != nil && r.Violation.Property == want {
			o = try
		}
	}
	o.Trace = true
	return &Failure{o, Run(o)}
}
