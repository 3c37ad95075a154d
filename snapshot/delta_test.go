package snapshot_test

import (
	"runtime"
	"slices"
	"testing"
	"weak"

	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

func parse(tb testing.TB, doc []byte, prev *snapshot.Snapshot) *snapshot.Snapshot {
	tb.Helper()
	s, err := snapshot.Parse(doc, prev)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func names(zones []*zone.Zone) []string {
	var out []string
	for _, z := range zones {
		out = append(out, z.Name.String())
	}
	return out
}

func TestParseSharesWhatIsUnchanged(t *testing.T) {
	gone := lab(t)
	gone.ID, gone.Name = id3, zone.MustName("gone.example.net")
	gone.Records = nil
	prev := parse(t, mustBuild(t, meta42, amthal(t), lab(t), gone).JSON(), nil)
	edited := lab(t)
	edited.Records = append(edited.Records, record(t, "lab.example.org", "x", "TXT", "new", 0, false))
	fresh := &zone.Zone{ID: "01890a5d-ac96-774b-bcce-b302099a8060", Name: zone.MustName("fresh.example")}
	next := mustBuild(t, meta42, amthal(t), edited, fresh)

	s := parse(t, next.JSON(), prev)
	if s.Zone(id1) != prev.Zone(id1) {
		t.Error("an unchanged zone was decoded again")
	}
	if s.Zone(id2) == prev.Zone(id2) {
		t.Error("a changed zone is shared")
	}
	check := func(what string, d snapshot.Delta) {
		t.Helper()
		if got := names(d.Changed); !slices.Equal(got, []string{"lab.example.org", "fresh.example"}) {
			t.Errorf("%s: changed %v", what, got)
		}
		if got := names(d.Removed); !slices.Equal(got, []string{"gone.example.net"}) {
			t.Errorf("%s: removed %v", what, got)
		}
	}
	check("learnt by Parse", s.Delta(prev))
	check("walked", next.Delta(prev))
	check("other meta", s.Delta(prev.WithMeta(snapshot.Meta{Version: 1})))
	if d := s.Delta(nil); len(d.Changed) != 3 || len(d.Removed) != 0 {
		t.Errorf("against nothing: %v %v", names(d.Changed), names(d.Removed))
	}
	if d := s.Delta(next); len(d.Changed)+len(d.Removed) != 0 {
		t.Errorf("against itself: %v %v", names(d.Changed), names(d.Removed))
	}
	if d := prev.Delta(s); !slices.Equal(names(d.Removed), []string{"fresh.example"}) || len(d.Changed) != 2 {
		t.Errorf("back: %v %v", names(d.Changed), names(d.Removed))
	}
}

// A node parses each snapshot against the one before: that must not keep them all alive.
func TestParseKeepsNoChain(t *testing.T) {
	doc := func(v uint64, txt string) []byte {
		z := lab(t)
		z.Records = append(z.Records, record(t, "lab.example.org", "x", "TXT", txt, 0, false))
		return mustBuild(t, snapshot.Meta{Version: v, CreatedAt: at}, amthal(t), z).JSON()
	}
	s := parse(t, doc(1, "0"), nil)
	var old []weak.Pointer[snapshot.Snapshot]
	var oldZones []weak.Pointer[zone.Zone]
	for i := range 5 {
		old = append(old, weak.Make(s))
		oldZones = append(oldZones, weak.Make(s.Zone(id2)))
		s = parse(t, doc(uint64(i)+2, string(rune('a'+i))), s)
	}
	runtime.GC()
	for i := range old {
		if old[i].Value() != nil {
			t.Errorf("snapshot %d is still there", i+1)
		}
		if oldZones[i].Value() != nil {
			t.Errorf("the zone that snapshot %d alone had is still there", i+1)
		}
	}
	if s.Len() != 2 {
		t.Error("the last one lost zones")
	}
}
