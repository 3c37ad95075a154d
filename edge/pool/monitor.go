package pool

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/guardyn-edge/guardyn/zone"
)

// Monitor is what a node knows of the origins of all its zones, over every view: which do not take their full
// share, and counts. It is safe for concurrent use; a nil Monitor keeps nothing.
type Monitor struct {
	results   [kinds]atomic.Uint64
	ejections atomic.Uint64
	retries   atomic.Uint64
	latency   Histogram

	// changes rises whenever what Impaired returns may have changed.
	changes atomic.Uint64

	mu       sync.Mutex
	impaired map[*originState]*Origin // bounded by the origins of the views that are served
}

// NewMonitor returns a Monitor that knows nothing yet.
func NewMonitor() *Monitor { return &Monitor{impaired: make(map[*originState]*Origin)} }

// Counts only rise.
type Counts struct {
	// Results of requests to origins, by Kind.
	Results map[Kind]uint64
	// Ejections of origins, and requests that went on to another origin since none had taken them.
	Ejections, Retries uint64
	// Latency of results but Canceled.
	Latency HistogramValues
}

// Counts returns what was counted since the Monitor was made.
func (m *Monitor) Counts() Counts {
	c := Counts{Results: make(map[Kind]uint64, kinds), Ejections: m.ejections.Load(), Retries: m.retries.Load(), Latency: m.latency.Values()}
	for k := range kinds {
		c.Results[k] = m.results[k].Load()
	}
	return c
}

func (m *Monitor) count(k Kind, latency time.Duration) {
	if m == nil {
		return
	}
	m.results[k].Add(1)
	if k != Canceled {
		m.latency.Observe(latency)
	}
}

func (m *Monitor) ejected() {
	if m != nil {
		m.ejections.Add(1)
	}
}

func (m *Monitor) retried() {
	if m != nil {
		m.retries.Add(1)
	}
}

// note takes notice of a change of o's state. The caller may hold the state's lock.
func (m *Monitor) note(o *Origin) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.enter(o)
}

// enter lists o, or lists it no more. The caller holds mu.
func (m *Monitor) enter(o *Origin) {
	_, listed := m.impaired[o.state]
	switch {
	case !o.state.retired && o.state.impaired.Load() != 0:
		m.impaired[o.state] = o
	case listed:
		delete(m.impaired, o.state)
	default:
		return
	}
	m.changes.Add(1)
}

// Swapped tells that after is served in the place of before, for one zone; either may be nil. Origins that
// only before has are known no more.
func (m *Monitor) Swapped(before, after *Set) {
	if m == nil || before == after {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	before.each(func(o *Origin) {
		if after == nil || after.states[o.identity()] != o.state {
			o.state.retired = true
			m.enter(o)
		}
	})
	after.each(func(o *Origin) {
		o.state.retired = false
		m.enter(o)
	})
}

// Changes rises whenever what Impaired returns may have changed.
func (m *Monitor) Changes() uint64 { return m.changes.Load() }

// Impairment is an origin that does not take its full share of requests.
type Impairment struct {
	Zone         zone.ID
	Pool, Origin string
	Unhealthy    bool // by its health checks
	Ejected      bool // for failures of requests
	// Reason is the newest error, one line of at most 200 bytes; Since when the origin takes no requests. Both are
	// zero for one that is only in its slow start.
	Reason string
	Since  time.Time
	// Until is when the ejection ends.
	Until time.Time
}

// Impaired lists the origins that do not take their full share, by zone, pool and name.
func (m *Monitor) Impaired() []Impairment {
	m.mu.Lock()
	origins := make([]*Origin, 0, len(m.impaired))
	for _, o := range m.impaired {
		origins = append(origins, o)
	}
	m.mu.Unlock()
	now := time.Now()
	list := make([]Impairment, 0, len(origins))
	for _, o := range origins {
		flags, _ := o.refresh(now)
		if flags == 0 {
			continue
		}
		i := Impairment{Zone: o.Zone, Pool: o.Pool, Origin: o.Name, Unhealthy: flags&unhealthy != 0, Ejected: flags&ejected != 0}
		if i.Unhealthy || i.Ejected {
			o.state.mu.Lock()
			i.Reason, i.Since = o.state.reason, o.state.since
			if i.Ejected {
				i.Until = o.state.ejectedUntil
			}
			o.state.mu.Unlock()
		}
		list = append(list, i)
	}
	slices.SortFunc(list, func(a, b Impairment) int {
		return cmp.Or(strings.Compare(string(a.Zone), string(b.Zone)), strings.Compare(a.Pool, b.Pool), strings.Compare(a.Origin, b.Origin))
	})
	return list
}
