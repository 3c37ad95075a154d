package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// table prints a row's medians. The ratio is this node's processor time over the peer's, round by round, so that a machine whose
// speed drifts spoils it least; the first server is this node.
func table(r row, samples [][]sample) string {
	var out strings.Builder
	fmt.Fprintf(&out, "%-34s %11s %11s %9s %12s\n", r.title, "CPU µs", "requests/s", "p99 ms", "node/peer")
	for i, s := range r.servers {
		var cpu, rate, p99, ratio []float64
		for round, m := range samples[i] {
			cpu, rate = append(cpu, m.cpu), append(rate, m.perSecond)
			p99 = append(p99, m.p99.Seconds()*1000)
			ratio = append(ratio, samples[0][round].cpu/m.cpu)
		}
		against := ""
		if i > 0 {
			against = fmt.Sprintf("%.2f", median(ratio))
		}
		fmt.Fprintf(&out, "  %-32s %11.1f %11.0f %9.2f %12s\n", s.name, median(cpu), median(rate), median(p99), against)
	}
	for _, m := range r.missing {
		fmt.Fprintf(&out, "  %s\n", m)
	}
	out.WriteString("\n")
	return out.String()
}

func median[T cmp.Ordered](v []T) T {
	return slices.Sorted(slices.Values(v))[len(v)/2]
}
