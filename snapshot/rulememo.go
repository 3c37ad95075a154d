package snapshot

import (
	"sync"

	"github.com/zeebo/blake3"

	"github.com/guardyn-edge/guardyn/zone"
)

// ruleMemo remembers rules that are in normal form for the length of one Build or Parse. Finding that out
// takes parsing and printing an expression, by far the dearest part of a zone, and zones have many rules in
// common. It holds 32 bytes for each distinct rule.
type ruleMemo struct {
	mu    sync.Mutex
	known map[[32]byte]struct{}
}

func newRuleMemo() *ruleMemo { return &ruleMemo{known: map[[32]byte]struct{}{}} }

// normalize is z.Normalize, which passes over rulesets whose every rule is known.
func (m *ruleMemo) normalize(z *zone.Zone, scratch *[]byte) error {
	if len(z.Rulesets) == 0 {
		return z.Normalize()
	}
	if m.knows(z.Rulesets, scratch) {
		rulesets := z.Rulesets
		z.Rulesets = nil
		err := z.Normalize()
		z.Rulesets = rulesets
		return err
	}
	if err := z.Normalize(); err != nil {
		return err
	}
	for phase, rules := range z.Rulesets {
		for i := range rules {
			if d, ok := ruleDigest(phase, &rules[i], scratch); ok {
				m.mu.Lock()
				m.known[d] = struct{}{}
				m.mu.Unlock()
			}
		}
	}
	return nil
}

func (m *ruleMemo) knows(rulesets map[zone.Phase][]zone.Rule, scratch *[]byte) bool {
	for phase, rules := range rulesets {
		if len(rules) == 0 {
			return false // the normal form has no empty ruleset
		}
		for i := range rules {
			d, ok := ruleDigest(phase, &rules[i], scratch)
			if !ok {
				return false
			}
			m.mu.Lock()
			_, ok = m.known[d]
			m.mu.Unlock()
			if !ok {
				return false
			}
		}
	}
	return true
}

// ruleDigest is of a rule in its phase; false when the rule has no canonical bytes.
func ruleDigest(phase zone.Phase, r *zone.Rule, scratch *[]byte) ([32]byte, bool) {
	c := canonical{b: (*scratch)[:0]}
	c.string(string(phase))
	c.rule(r)
	*scratch = c.b
	return blake3.Sum256(c.b), c.err == nil
}
