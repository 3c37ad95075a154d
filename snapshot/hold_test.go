package snapshot_test

import (
	"strings"
	"testing"

	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

// simple is a zone with an address at its apex and more records, as "name type content".
func simple(tb testing.TB, id zone.ID, name string, records ...string) *zone.Zone {
	tb.Helper()
	z := &zone.Zone{ID: id, Name: zone.MustName(name)}
	for _, r := range append(records, "@ A 192.0.2.1") {
		f := strings.SplitN(r, " ", 3)
		proxied := strings.HasSuffix(f[2], " proxied")
		z.Records = append(z.Records, record(tb, name, f[0], f[1], strings.TrimSuffix(f[2], " proxied"), 0, proxied))
	}
	return z
}

func TestBuildHolding(t *testing.T) {
	broken := []string{"b CNAME a.", "b A 192.0.2.9"} // CNAME beside other data
	one := func(extra ...string) *zone.Zone { return simple(t, id1, "one.example", extra...) }
	two := func(extra ...string) *zone.Zone { return simple(t, id2, "two.example", extra...) }
	parent := func(extra ...string) *zone.Zone { return simple(t, id1, "example.net", extra...) }
	child := func(extra ...string) *zone.Zone { return simple(t, id2, "sub.example.net", extra...) }
	for _, tt := range []struct {
		name       string
		live, rows []*zone.Zone
		want       []*zone.Zone     // that the content hash is of
		held       map[zone.ID]bool // whether published
		code       map[zone.ID]string
	}{
		{
			name: "nothing broken", live: []*zone.Zone{one(), two()}, rows: []*zone.Zone{one("a A 192.0.2.7"), two()},
			want: []*zone.Zone{one("a A 192.0.2.7"), two()},
		},
		{
			name: "broken stays, healthy goes", live: []*zone.Zone{one(), two()},
			rows: []*zone.Zone{one(broken...), two("a A 192.0.2.7")}, want: []*zone.Zone{one(), two("a A 192.0.2.7")},
			held: map[zone.ID]bool{id1: true},
		},
		{
			name: "broken and never published is left out", live: []*zone.Zone{two()}, rows: []*zone.Zone{one(broken...), two()},
			want: []*zone.Zone{two()}, held: map[zone.ID]bool{id1: false},
		},
		{
			name: "nothing is live", rows: []*zone.Zone{one(broken...), two()},
			want: []*zone.Zone{two()}, held: map[zone.ID]bool{id1: false},
		},
		{
			name: "the deleted one goes", live: []*zone.Zone{one(), two()}, rows: []*zone.Zone{one(broken...)},
			want: []*zone.Zone{one()}, held: map[zone.ID]bool{id1: true},
		},
		{
			name: "of two with one host the later one is held", live: []*zone.Zone{parent()},
			rows: []*zone.Zone{parent("www.sub A 192.0.2.3 proxied"), child("www A 192.0.2.4 proxied")},
			want: []*zone.Zone{parent("www.sub A 192.0.2.3 proxied")}, held: map[zone.ID]bool{id2: false},
			code: map[zone.ID]string{id2: "host_duplicate"},
		},
		{
			// The later zone is broken and held with its published host, which the earlier one claims now.
			name: "who cannot stand beside a held zone is held too",
			live: []*zone.Zone{parent(), child("www A 192.0.2.4 proxied")},
			rows: []*zone.Zone{parent("www.sub A 192.0.2.3 proxied"), child(broken...)},
			want: []*zone.Zone{parent(), child("www A 192.0.2.4 proxied")},
			held: map[zone.ID]bool{id1: true, id2: true},
			code: map[zone.ID]string{id1: "host_duplicate"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := snapshot.Input{Zones: inputs(tt.rows...), Now: at}
			if tt.live != nil {
				in.Live = mustBuild(t, meta42, tt.live...)
			}
			s, _, held, err := snapshot.BuildHolding(in, meta42)
			if err != nil {
				t.Fatal(err)
			}
			if want := mustBuild(t, meta42, tt.want...); s.ContentHash() != want.ContentHash() {
				t.Errorf("content:\n%s", snapshot.Diff(want, s).Text(false))
			}
			if len(held) != len(tt.held) {
				t.Fatalf("held: %+v", held)
			}
			for _, h := range held {
				if published, ok := tt.held[h.ID]; !ok || published != h.Published || len(h.Problems) == 0 {
					t.Errorf("held: %+v", h)
				}
				if c := tt.code[h.ID]; c != "" && h.Problems[0].Code != c {
					t.Errorf("%s is held for %+v, want %s", h.Name, h.Problems, c)
				}
			}
		})
	}
}

// A zone of another workspace may lie below one that is held without the delegation that it needs.
func TestBuildHoldingNested(t *testing.T) {
	live := mustBuild(t, meta42, simple(t, id1, "example.net"))
	in := snapshot.Input{Live: live, Now: at, Zones: []snapshot.ZoneInput{
		{Workspace: "one", Zone: simple(t, id1, "example.net", "sub NS ns.example.org", "b CNAME a.", "b A 192.0.2.9")},
		{Workspace: "two", Zone: simple(t, id2, "sub.example.net")},
	}}
	s, _, held, err := snapshot.BuildHolding(in, meta42)
	if err != nil {
		t.Fatal(err)
	}
	if s.ContentHash() != live.ContentHash() || len(held) != 2 || held[1].Problems[0].Code != "zone_not_delegated" || held[1].Published {
		t.Errorf("held: %+v, %d zones", held, s.Len())
	}
}

func TestPlanShowsHeldZones(t *testing.T) {
	live := mustBuild(t, meta42, simple(t, id1, "one.example"))
	in := snapshot.Input{Live: live, Now: at, Zones: inputs(
		simple(t, id1, "one.example", "b CNAME a.", "b A 192.0.2.9"), simple(t, id2, "two.example", "@ CNAME a."), simple(t, id3, "three.example"))}
	s, _, held, err := snapshot.BuildHolding(in, meta42)
	if err != nil {
		t.Fatal(err)
	}
	plan := snapshot.Diff(live, s)
	plan.Held = held
	got := plan.Text(false)
	for _, want := range []string{
		"  + three.example\n", "\nheld: one.example stays as it is published\n      record b CNAME: ",
		"\nheld: two.example was never published and is left out\n      record @ CNAME: ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("plan lacks %q:\n%s", want, got)
		}
	}
}
