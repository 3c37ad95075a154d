package snapshot

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/guardyn-edge/guardyn/zone"
)

// diffMaps visits the keys of old and new in order, with nil for a side that has none.
func diffMaps[K comparable, V any](old, new map[K]V, order func(a, b K) int, visit func(k K, o, n *V)) {
	keys := make(map[K]struct{}, len(new))
	for k := range old {
		keys[k] = struct{}{}
	}
	for k := range new {
		keys[k] = struct{}{}
	}
	for _, k := range slices.SortedFunc(maps.Keys(keys), order) {
		var o, n *V
		if v, ok := old[k]; ok {
			o = &v
		}
		if v, ok := new[k]; ok {
			n = &v
		}
		visit(k, o, n)
	}
}

// setDifference counts the items of a that are not in b; neither has duplicates.
func setDifference(a, b []string) int {
	in := make(map[string]struct{}, len(b))
	for _, s := range b {
		in[s] = struct{}{}
	}
	n := 0
	for _, s := range a {
		if _, ok := in[s]; !ok {
			n++
		}
	}
	return n
}

// edits prints how many items came and went: "3 items added, 1 removed".
func edits(came, gone int, noun string) string {
	switch {
	case gone == 0:
		return count(came, noun) + " added"
	case came == 0:
		return count(gone, noun) + " removed"
	default:
		return fmt.Sprintf("%s added, %d removed", count(came, noun), gone)
	}
}

func pointerChange[T any](o, n *T) string {
	switch {
	case o == nil:
		return "added"
	case n == nil:
		return "removed"
	default:
		return "changed"
	}
}

func sameHealth(a, b *zone.HealthCheck) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	same := slices.Equal(x.ExpectedStatus, y.ExpectedStatus)
	x.ExpectedStatus, y.ExpectedStatus = nil, nil
	return same && fmt.Sprint(x) == fmt.Sprint(y)
}

func orDefault[S ~string](s, def S) string { return string(cmp.Or(s, def)) }

func orNone(s string) string { return cmp.Or(s, "none") }

func durationOrNone(d zone.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

func durationOrCeiling(d zone.Duration) string {
	if d == 0 {
		return "the plan's"
	}
	return d.String()
}

func sizeOrCeiling(s zone.Size) string {
	if s == 0 {
		return "the plan's"
	}
	return s.String()
}
