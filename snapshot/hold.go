package snapshot

import (
	"cmp"
	"slices"

	"github.com/guardyn-edge/guardyn/zone"
)

// HeldZone is a zone whose saved content has problems and is not published.
type HeldZone struct {
	ID   zone.ID   `json:"id"`
	Name zone.Name `json:"name"` // as it was saved
	// Published tells that it stays as it is published; else it never was and is left out.
	Published bool      `json:"published"`
	Problems  []Problem `json:"problems"`
}

// BuildHolding builds what is sound: a zone with problems stays as in.Live has it, whatever its ceilings are
// now, and is left out when in.Live does not have it. What is held is not judged anew, and a sound zone that
// cannot stand beside it is held too. held is in order of name, then id; warnings are of what is not held. The
// error is Problems, and means that zones cannot stand together as they are published.
func BuildHolding(in Input, meta Meta) (s *Snapshot, warnings []Problem, held []HeldZone, err error) {
	built := buildZones(&in)
	var sound []*builtZone
	// Each round holds one zone more at least, or is the last.
	for again := true; again; {
		again = false
		for i := range built {
			b := &built[i]
			if len(b.problems) == 0 {
				continue
			}
			if b.held {
				sortProblems(b.problems)
				return nil, nil, nil, Problems(b.problems)
			}
			held = append(held, b.hold(in.Zones[i].Zone, in.Live))
		}
		sound = soundZones(built)
		checkTogether(sound)
		for _, b := range sound {
			again = again || len(b.problems) > 0
		}
	}
	for i := range built {
		warnings = append(warnings, built[i].warnings...)
	}
	sortProblems(warnings)
	slices.SortFunc(held, func(a, b HeldZone) int { return cmp.Or(a.Name.Compare(b.Name), cmp.Compare(a.ID, b.ID)) })
	return assemble(sound, meta), warnings, held, nil
}

// hold puts what is published in the place of what has problems.
func (b *builtZone) hold(saved *zone.Zone, live *Snapshot) HeldZone {
	sortProblems(b.problems)
	h := HeldZone{Problems: b.problems}
	b.entry, b.problems, b.warnings = nil, nil, nil
	if saved == nil {
		return h
	}
	h.ID, h.Name = saved.ID, saved.Name
	if live != nil {
		if i, ok := live.content.find(saved.ID); ok {
			b.entry, b.held, h.Published = live.content.zones[i], true, true
		}
	}
	return h
}
