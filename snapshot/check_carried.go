package snapshot

import (
	"maps"
	"slices"

	"github.com/guardyn-edge/guardyn/zone"
)

// carriedPhases are the phases whose rules this build's nodes carry and do not run.
var carriedPhases = []zone.Phase{zone.PhaseCache, zone.PhaseFunction}

// carried warns of what a snapshot holds and this build's nodes do not act on: who publishes a cache rule must
// not believe that it caches.
func (j *judge) carried() {
	const word = "nodes of this build carry this and do not act on it yet"
	for _, phase := range carriedPhases {
		if len(j.z.Rulesets[phase]) > 0 {
			j.warn("ruleset "+string(phase), "not_acted_on", word)
		}
	}
	for _, host := range slices.SortedFunc(maps.Keys(j.z.TLSHosts), zone.Name.Compare) {
		j.warn("tls host "+host.String(), "not_acted_on", word)
	}
	for _, name := range slices.Sorted(maps.Keys(j.z.Pools)) {
		if j.z.Pools[name].Health != nil {
			j.warn("pool "+name, "not_acted_on", "nodes of this build carry the health check and do not make it yet")
		}
	}
	if s := j.z.Settings; s.AlwaysHTTPS || s.HSTS != 0 || s.TLSMinVersion != "" || len(s.TLSCiphers) > 0 {
		j.warn("settings", "not_acted_on", "nodes of this build carry the TLS settings and do not act on them yet")
	}
}
