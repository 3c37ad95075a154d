package edge

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// changes prints what Changed tells: "-name", "+name" or "~name".
func changes(t *testing.T, old, v *View) []string {
	t.Helper()
	var out []string
	v.Changed(old, func(before, after *Zone) {
		switch {
		case before == nil && after == nil || before == after:
			t.Errorf("told of %p and %p", before, after)
		case after == nil:
			out = append(out, "-"+before.Config.Name.String())
		case before == nil:
			out = append(out, "+"+after.Config.Name.String())
		case before.apex != after.apex:
			t.Errorf("%s became %s", before.Config.Name, after.Config.Name)
		default:
			out = append(out, "~"+after.Config.Name.String())
		}
	})
	slices.Sort(out)
	return out
}

func TestChanged(t *testing.T) {
	a, b, c, other := indexed("a.example"), indexed("b.example"), indexed("c.example"), indexed("a.example")
	of := func(zones ...*Zone) *View { return &View{index: index{}.with(nil, zones)} }
	from := func(old *View, removed, added []*Zone) *View { return &View{index: old.index.with(removed, added)} }
	two := of(a, b)
	for _, row := range []struct {
		name     string
		old, new *View
		want     []string
	}{
		{"the first", nil, two, []string{"+a.example", "+b.example"}},
		{"the first, of nothing", nil, new(View), nil},
		{"itself", two, two, nil},
		{"nothing after nothing", new(View), new(View), nil},
		{"everything goes", two, new(View), []string{"-a.example", "-b.example"}},
		{"everything comes", new(View), two, []string{"+a.example", "+b.example"}},
		{"one is compiled anew", two, from(two, nil, []*Zone{other}), []string{"~a.example"}},
		{"one goes", two, from(two, []*Zone{b}, nil), []string{"-b.example"}},
		{"one comes", two, from(two, nil, []*Zone{c}), []string{"+c.example"}},
		{"each of them", two, from(two, []*Zone{b}, []*Zone{other, c}), []string{"+c.example", "-b.example", "~a.example"}},
		{"removed, and put back", two, from(from(two, []*Zone{b}, nil), nil, []*Zone{b}), nil},
		{"compiled on its own", two, of(a, c), []string{"+c.example", "-b.example"}}, // hashed by another seed
		{"compiled on its own, another value", two, of(other, b), []string{"~a.example"}},
	} {
		if got := changes(t, row.old, row.new); !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}

// Through random changes, one or several at a time, Changed tells what a comparison of all zones finds.
func TestChangedModel(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	type state struct {
		view  *View
		zones map[string]*Zone
	}
	states := []state{{new(View), map[string]*Zone{}}}
	for range 40 {
		last := states[len(states)-1]
		zones := maps.Clone(last.zones)
		var removed, added []*Zone
		for _, name := range slices.Sorted(maps.Keys(last.zones)) {
			if random.IntN(20) == 0 {
				removed = append(removed, last.zones[name])
				delete(zones, name)
			}
		}
		for range random.IntN(100) {
			name := fmt.Sprintf("z%d.example", random.IntN(3000))
			if last.zones[name] != nil && zones[name] == nil {
				continue // removed just now
			}
			zones[name] = indexed(name)
		}
		for name, z := range zones {
			if last.zones[name] != z {
				added = append(added, z)
			}
		}
		states = append(states, state{&View{index: last.view.index.with(removed, added)}, zones})
	}
	for range 200 {
		old, is := states[random.IntN(len(states))], states[random.IntN(len(states))]
		var want []string
		for name, z := range old.zones {
			switch is.zones[name] {
			case nil:
				want = append(want, "-"+name)
			case z:
			default:
				want = append(want, "~"+name)
			}
		}
		for name := range is.zones {
			if old.zones[name] == nil {
				want = append(want, "+"+name)
			}
		}
		slices.Sort(want)
		if got := changes(t, old.view, is.view); !slices.Equal(got, want) {
			t.Fatalf("%d changes, want %d", len(got), len(want))
		}
	}
}
