package edge

import (
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/edge/rrset"
	"github.com/guardyn-edge/guardyn/edge/rules"
	"github.com/guardyn-edge/guardyn/zone"
)

// TestCompileFailsWhole: each zone that does not compile is named with its record, up to a bound.
func TestCompileFailsWhole(t *testing.T) {
	var zones []*zone.Zone
	for i := range 30 {
		z := &zone.Zone{Name: zone.MustName(fmt.Sprintf("z%d.example", i))}
		if i > 0 {
			z.Records = []zone.Record{{Name: z.Name, Type: zone.TypeA, Content: "not an address"}}
		}
		zones = append(zones, z)
	}
	out, err := compileZones(new(index), zones[:1], &View{programs: rules.NewPrograms(0)})
	if err != nil || out[0] == nil {
		t.Fatal(err)
	}
	_, err = compileZones(new(index), zones[:3], &View{programs: rules.NewPrograms(0)})
	for _, want := range []string{"zone z1.example: record z1.example A: ", "zone z2.example: record z2.example A: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	_, err = compileZones(new(index), zones, &View{programs: rules.NewPrograms(0)})
	if n := strings.Count(err.Error(), "\n") + 1; n != maxErrors+1 || !strings.HasSuffix(err.Error(), "and more") {
		t.Errorf("%d lines: %v", n, err)
	}
}

func indexed(name string) *Zone {
	wire, _ := rrset.AppendWire(nil, name)
	return &Zone{apex: string(wire), Config: &zone.Zone{Name: zone.MustName(name)}}
}

// TestIndexModel compares the index with a map through random changes, and every earlier index with what it was.
func TestIndexModel(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	type state struct {
		index index
		model map[string]*Zone
	}
	states := []state{{index{}, map[string]*Zone{}}}
	for range 60 {
		last := states[len(states)-1]
		model := make(map[string]*Zone)
		var removed, added []*Zone
		gone := make(map[string]bool)
		for name, z := range last.model {
			if random.IntN(8) == 0 {
				removed = append(removed, z)
				gone[name] = true
				continue
			}
			model[name] = z
		}
		for range random.IntN(200) {
			name := fmt.Sprintf("z%d.example", random.IntN(3000))
			if z := model[name]; z != nil && gone[name] {
				continue
			}
			z := indexed(name)
			model[name] = z
			added = append(added, z)
		}
		states = append(states, state{last.index.with(removed, added), model})
	}
	for i, s := range states {
		if s.index.n != len(s.model) {
			t.Errorf("state %d: %d zones, want %d", i, s.index.n, len(s.model))
		}
		for n := range 3000 {
			name := fmt.Sprintf("z%d.example", n)
			wire, _ := rrset.AppendWire(nil, "a.b."+name)
			if got, _ := s.index.find(wire); got != s.model[name] {
				t.Fatalf("state %d: %s is %p, want %p", i, name, got, s.model[name])
			}
		}
	}
}

// TestIndexSharesBuckets: a change of one zone copies one bucket.
func TestIndexSharesBuckets(t *testing.T) {
	var zones []*Zone
	for i := range 20_000 {
		zones = append(zones, indexed(fmt.Sprintf("z%d.example", i)))
	}
	old := index{}.with(nil, zones)
	changed := old.with(zones[:1], []*Zone{indexed("z0.example")})
	copied := 0
	for i := range old.buckets {
		if len(old.buckets[i]) > 0 && &old.buckets[i][0] != &changed.buckets[i][0] {
			copied++
		}
	}
	if copied != 1 {
		t.Errorf("%d buckets copied", copied)
	}
}

// TestIndexCollision: zones whose hashes are equal are told apart.
func TestIndexCollision(t *testing.T) {
	a, b, c := indexed("a.example"), indexed("b.example"), indexed("c.example")
	x := index{seed: maphash.MakeSeed(), buckets: new([fanout][]indexEntry)}
	h := maphash.String(x.seed, b.apex)
	x.buckets[bucketOf(h)] = []indexEntry{{h, a}, {h, b}, {h, c}}
	if got := x.get([]byte(b.apex)); got != b {
		t.Error("another zone")
	}
	replaced := indexed("b.example")
	y := x.with(nil, []*Zone{replaced})
	if y.get([]byte(b.apex)) != replaced || y.n != 0 || x.get([]byte(b.apex)) != b {
		t.Error("not replaced, or in both")
	}
	if y = x.with([]*Zone{b}, nil); y.get([]byte(b.apex)) != nil {
		t.Error("not removed")
	}
}
