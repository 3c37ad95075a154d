package snapshot

import (
	"testing"

	"github.com/guardyn-edge/guardyn/zone"
)

// A rule that is known is passed over only in its normal form and its own phase.
func TestRuleMemo(t *testing.T) {
	mk := func(phase zone.Phase, rules ...zone.Rule) *zone.Zone {
		return &zone.Zone{ID: "01890a5d-ac96-774b-bcce-b302099a8057", Name: zone.MustName("example.com"), Rulesets: map[zone.Phase][]zone.Rule{phase: rules}}
	}
	block := func(e string) zone.Rule { return zone.Rule{Expression: e, Action: zone.ActionBlock} }
	const normal = `http.path == "/a"`
	m := newRuleMemo()
	var scratch []byte
	for range 2 {
		z := mk(zone.PhaseCustom, block(`http.path   == '/a'`), block(normal))
		if err := m.normalize(z, &scratch); err != nil {
			t.Fatal(err)
		}
		for _, r := range z.Rulesets[zone.PhaseCustom] {
			if r.Expression != normal {
				t.Errorf("not folded: %s", r.Expression)
			}
		}
	}
	if len(m.known) != 1 {
		t.Errorf("%d rules are known", len(m.known))
	}
	if !m.knows(mk(zone.PhaseCustom, block(normal)).Rulesets, &scratch) {
		t.Error("the rule is not known")
	}
	if err := m.normalize(mk(zone.PhaseRedirect, block(normal)), &scratch); err == nil {
		t.Error("a block in the redirect phase passed")
	}
	if err := m.normalize(mk(zone.PhaseCustom, block(normal), block(`http.path ==`)), &scratch); err == nil {
		t.Error("a rule that does not parse passed beside a known one")
	}
	if z := mk(zone.PhaseCustom); m.normalize(z, &scratch) != nil || z.Rulesets != nil {
		t.Error("an empty ruleset stayed")
	}
	bad := mk(zone.PhaseCustom, block(normal))
	bad.Records = []zone.Record{{Name: zone.MustName("elsewhere.example"), Type: zone.TypeA, Content: "192.0.2.1"}}
	if err := m.normalize(bad, &scratch); err == nil || bad.Rulesets == nil {
		t.Error("what else the zone holds was not judged, or its rules are gone")
	}
}
