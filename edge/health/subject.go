package health

import (
	"slices"

	"github.com/guardyn-edge/guardyn/zone"
)

// hostOf is the host that origins of a pool are asked for which have no host header of their own: the first, by
// name, whose load balancer has the pool; else the zone's name.
func hostOf(z *zone.Zone, pool string) string {
	first := ""
	for host, b := range z.LoadBalancers {
		if host.IsWildcard() || b.Fallback != pool && !slices.Contains(b.Pools, pool) {
			continue
		}
		if name := host.String(); first == "" || name < first {
			first = name
		}
	}
	if first != "" {
		return first
	}
	return z.Name.String()
}

func sameCheck(a, b zone.HealthCheck) bool {
	return a.Type == b.Type && a.Path == b.Path && a.Interval == b.Interval && a.Timeout == b.Timeout &&
		a.HealthyThreshold == b.HealthyThreshold && a.UnhealthyThreshold == b.UnhealthyThreshold &&
		slices.Equal(a.ExpectedStatus, b.ExpectedStatus)
}

// schedule is a heap of entries by when they are due.
type schedule []*entry

func (s schedule) Len() int           { return len(s) }
func (s schedule) Less(i, j int) bool { return s[i].at.Before(s[j].at) }

func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].place, s[j].place = i, j
}

// Push implements heap.Interface.
func (s *schedule) Push(x any) {
	e := x.(*entry)
	e.place = len(*s)
	*s = append(*s, e)
}

// Pop implements heap.Interface.
func (s *schedule) Pop() any {
	last := len(*s) - 1
	e := (*s)[last]
	(*s)[last], *s = nil, (*s)[:last]
	e.place = -1
	return e
}
