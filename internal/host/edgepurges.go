package host

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/guardyn-edge/guardyn/edge/cache"
	"github.com/guardyn-edge/guardyn/node"
	"github.com/guardyn-edge/guardyn/zone"
)

// cachePurger is the node's cache as its agent purges it.
type cachePurger struct{ cache *cache.Cache }

// Purge implements node.Purger.
func (p cachePurger) Purge(_ context.Context, ps []zone.Purge) error {
	p.cache.Purge(ps)
	return nil
}

// Floor implements node.Purger.
func (p cachePurger) Floor(sequence uint64) { p.cache.Floor(sequence) }

// followPurges has the agent follow the log of purges when there is a cache.
func (e *Edge) followPurges(cfg *node.Config) {
	if e.cache != nil {
		cfg.Purger, cfg.Purges = cachePurger{e.cache}, e.source
	}
}

// Of purges; all are absent without a cache, and the first before the node knows its place in the log.
var (
	descPurgeSequence = desc("purge_sequence", "Number of the purge up to which this node has done all.")
	descPurges        = desc("purges_total", "Purges that this node has done.")
	descPurgeFloors   = desc("purge_floors_total", "Times that this node dropped all that it had cached, since it started or had missed purges.")
	descPurgeFailures = desc("purge_failures", "Times that this node could not follow the log of purges since it last did.")
)

func (e *Edge) collectPurges(gauge func(*prometheus.Desc, float64, ...string), count func(*prometheus.Desc, uint64, ...string)) {
	if e.cache == nil {
		return
	}
	s := e.agent.Status()
	if s.PurgesFollowed {
		gauge(descPurgeSequence, float64(s.PurgeSequence))
	}
	count(descPurges, s.Purges)
	count(descPurgeFloors, s.PurgeFloors)
	gauge(descPurgeFailures, float64(s.PurgeFailures))
}
