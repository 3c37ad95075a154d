package edge_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/zone"
)

// TestChanged: what one view has and the other does not share, under its apex, whatever the buckets hold beside it.
func TestChanged(t *testing.T) {
	const n = 3000 // several zones in each bucket
	zones := make([]*zone.Zone, n)
	for i := range zones {
		zones[i] = newZone(t, i, fmt.Sprintf("z%d.example", i), "www A 192.0.2.1")
	}
	at := func(i int, address string) *zone.Zone {
		return newZone(t, i, fmt.Sprintf("z%d.example", i), "www A "+address)
	}
	before := compile(t, nil, build(t, 1, zones...), 1)
	same := compile(t, before, build(t, 1, zones...), 2)
	edited := slices.Clone(zones)
	edited[7], edited[8] = at(7, "192.0.2.9"), at(8, "192.0.2.9")
	edited[9] = newZone(t, 9, "renamed.example", "www A 192.0.2.1")                                                                      // another apex
	edited[10], edited[11] = newZone(t, 10, "z11.example", "www A 192.0.2.1"), newZone(t, 11, "z10.example", "www A 192.0.2.1")          // swapped
	edited[12] = newZone(t, n+1, "z12.example", "www A 192.0.2.1")                                                                       // in other hands
	edited = append(slices.Delete(edited, 20, 21), newZone(t, n+2, "new.example", "www A 192.0.2.1"), newZone(t, n+3, "sub.z7.example")) // one less, two more
	after := compile(t, before, build(t, 3, edited...), 3)
	for _, tc := range []struct {
		name      string
		old, view *edge.View
		want      []string
	}{
		{"itself", before, before, nil},
		{"the same content again", before, same, nil},
		{"changes", before, after, []string{
			"+new.example", "+renamed.example", "+sub.z7.example", "-z20.example", "-z9.example", "z10.example", "z11.example", "z12.example", "z7.example", "z8.example",
		}},
		{"and back", after, before, []string{
			"+z20.example", "+z9.example", "-new.example", "-renamed.example", "-sub.z7.example", "z10.example", "z11.example", "z12.example", "z7.example", "z8.example",
		}},
		{"an empty one", compile(t, nil, build(t, 1), 1), compile(t, nil, build(t, 2, zones[0], zones[1]), 2), []string{"+z0.example", "+z1.example"}},
		{"nothing", nil, compile(t, nil, build(t, 2, zones[0], zones[1]), 2), []string{"+z0.example", "+z1.example"}},
		// Compiled apart, so that not even the hashes are the same.
		{"of another line", compile(t, nil, build(t, 1, zones[0], zones[1]), 1), compile(t, nil, build(t, 2, zones[1], zones[2]), 2), []string{"+z2.example", "-z0.example", "z1.example"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			tc.view.Changed(tc.old, func(was, is *edge.Zone) {
				switch {
				case was == nil && is == nil:
					t.Error("told of nothing")
				case was == nil:
					got = append(got, "+"+is.Config.Name.String())
				case is == nil:
					got = append(got, "-"+was.Config.Name.String())
				default:
					if was == is || was.Config.Name != is.Config.Name {
						t.Errorf("%s and %s", was.Config.Name, is.Config.Name)
					}
					got = append(got, is.Config.Name.String())
				}
				if is != nil && tc.view.ZoneFor(is.Config.Name.String()) != is {
					t.Errorf("%s is not the view's", is.Config.Name)
				}
				if was != nil && tc.old.ZoneFor(was.Config.Name.String()) != was {
					t.Errorf("%s is not the old view's", was.Config.Name)
				}
			})
			slices.Sort(got)
			if !slices.Equal(got, tc.want) {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}
