package perzone

import (
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
)

func (s *Set[T]) shown(of func(*T) int64) map[string]int64 {
	all := map[string]int64{}
	s.Each(func(zone string, t *T) { all[zone] = of(t) })
	return all
}

func count(n *atomic.Int64) int64 { return n.Load() }

func TestSet(t *testing.T) {
	for _, row := range []struct {
		name      string
		selection Selection
		want      map[string]int64
		forgotten map[string]int64 // after a.example is served no more
	}{
		{"none", Selection{}, map[string]int64{}, map[string]int64{}},
		{
			"by name",
			Selection{Names: []string{"a.example", "c.example"}},
			map[string]int64{"a.example": 2, "c.example": 0, Other: 2},
			map[string]int64{"a.example": 2, "c.example": 0, Other: 2},
		},
		{
			"all",
			Selection{All: true},
			map[string]int64{"a.example": 2, "b.example": 1, Other: 1},
			map[string]int64{"b.example": 1, Other: 1},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := New[atomic.Int64](row.selection)
			for _, zone := range []string{"a.example", "b.example", "", "a.example"} {
				if n := s.Of(zone); n != nil {
					n.Add(1)
				} else if !row.selection.None() {
					t.Fatalf("nowhere to count %q", zone)
				}
			}
			if got := s.shown(count); !maps.Equal(got, row.want) {
				t.Errorf("got %v, want %v", got, row.want)
			}
			s.Forget([]string{"a.example"})
			if got := s.shown(count); !maps.Equal(got, row.forgotten) {
				t.Errorf("afterwards got %v, want %v", got, row.forgotten)
			}
		})
	}
}

// More zones than there is room for, all at once: what is counted adds up, and a zone that is forgotten makes room for another.
func TestSetIsBounded(t *testing.T) {
	s := New[atomic.Int64](Selection{All: true})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range Max + 100 {
				s.Of(fmt.Sprintf("z%d.example", i)).Add(1)
			}
		})
	}
	all.Wait()
	got := s.shown(count)
	var sum int64
	for _, n := range got {
		sum += n
	}
	if len(got) != Max+1 || sum != 4*(Max+100) || got[Other] != 400 {
		t.Errorf("%d zones count %d, %d of them as others", len(got), sum, got[Other])
	}
	if s.Of("late.example") != s.Of("") {
		t.Error("there was room for one more")
	}
	for zone := range got {
		if zone != Other {
			s.Forget([]string{zone})
			break
		}
	}
	if s.Of("late.example") == s.Of("") {
		t.Error("no room was made")
	}
}

func TestOfDoesNotAllocate(t *testing.T) {
	s := New[atomic.Int64](Selection{All: true})
	s.Of("a.example")
	if n := testing.AllocsPerRun(1000, func() { s.Of("a.example").Add(1); s.Of("").Add(1) }); n != 0 {
		t.Errorf("%g allocations", n)
	}
}
