// Package perzone keeps what is counted of single zones, for a bounded number of them.
package perzone

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
)

// Max is how many zones have counts of their own, in one Set; Other names what is counted of all the rest.
const (
	Max   = 1000
	Other = "other"
)

// Selection says which zones are counted one by one. The zero Selection: none.
type Selection struct {
	// All takes each zone as it is first counted, up to Max.
	All bool
	// Names are the apexes of zones, in normal form, at most Max; they are counted from the start, at 0.
	Names []string
}

// None reports whether no zone is selected.
func (s Selection) None() bool { return !s.All && len(s.Names) == 0 }

// Set holds a T for each zone of a Selection, over every view that has the zone. T counts by atomic operations, its zero value
// is ready. A Set is safe for concurrent use; Of takes no lock but for a zone that it has not seen before. A nil Set counts nothing.
type Set[T any] struct {
	open  bool // takes zones on
	other T

	own atomic.Pointer[map[string]*T] // a map once stored does not change
	mu  sync.Mutex                    // of those who store another
}

// New returns an empty Set, nil when nothing is selected.
func New[T any](s Selection) *Set[T] {
	if s.None() {
		return nil
	}
	set := &Set[T]{open: s.All}
	own := make(map[string]*T, len(s.Names))
	for _, name := range s.Names {
		if len(own) < Max {
			own[name] = new(T)
		}
	}
	set.own.Store(&own)
	return set
}

// Of returns where to count what belongs to the zone of that apex, "" for what belongs to none. It is nil when s is.
func (s *Set[T]) Of(zone string) *T {
	if s == nil {
		return nil
	}
	own := *s.own.Load()
	if t := own[zone]; t != nil {
		return t
	}
	if !s.open || zone == "" || len(own) >= Max {
		return &s.other
	}
	return s.take(zone)
}

func (s *Set[T]) take(zone string) *T {
	s.mu.Lock()
	defer s.mu.Unlock()
	own := *s.own.Load()
	if t := own[zone]; t != nil {
		return t
	}
	if len(own) >= Max {
		return &s.other
	}
	more := maps.Clone(own)
	t := new(T)
	more[strings.Clone(zone)] = t // the zone's own text is a part of its snapshot, which is to go
	s.own.Store(&more)
	return t
}

// Forget gives up the counts of zones that are served no more, which makes room for others. Those that were selected by name
// stay.
func (s *Set[T]) Forget(zones []string) {
	if s == nil || !s.open || len(zones) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	less := maps.Clone(*s.own.Load())
	for _, z := range zones {
		delete(less, z)
	}
	s.own.Store(&less)
}

// Each calls f for each zone with counts of its own, in no order, and last for Other.
func (s *Set[T]) Each(f func(zone string, t *T)) {
	if s == nil {
		return
	}
	for zone, t := range *s.own.Load() {
		f(zone, t)
	}
	f(Other, &s.other)
}
