package snapshot

import (
	"github.com/guardyn-edge/guardyn/zone"
)

// carriedPhases are the phases whose rules this build's nodes carry and do not run.
var carriedPhases = []zone.Phase{zone.PhaseCache}

// carried warns of what a snapshot holds and this build's nodes do not act on: who publishes a cache rule must
// not believe that it caches.
func (j *judge) carried() {
	const word = "nodes of this build carry this and do not act on it yet"
	for _, phase := range carriedPhases {
		if len(j.z.Rulesets[phase]) > 0 {
			j.warn("ruleset "+string(phase), "not_acted_on", word)
		}
	}
}
