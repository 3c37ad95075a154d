package host

import "github.com/prometheus/client_golang/prometheus"

// Of the cache; all are absent without one.
var (
	descCacheRequests  = desc("cache_requests_total", "Requests to zones that cache, by what the cache did for them.", "result")
	descCacheCollapsed = desc("cache_collapsed_total", "Requests that waited for another's answer, by what came of it.", "result")
	descCacheAnswers   = desc("cache_answers_total", "Answers that were to be stored, by whether they were.", "result")
	descCacheEvictions = desc("cache_evictions_total", "Objects that made room, after they had been served or before they ever were.", "used")
	descCachePurged    = desc("cache_purged_total", "Objects that purges took out.")
	descCacheInvalid   = desc("cache_invalidations_total", "Keys that requests with an effect made invalid.")
	descCacheObjects   = desc("cache_objects", "Keys that are stored.")
	descCacheBytes     = desc("cache_bytes", "Bytes that the cache takes, by what for.", "of")
	descCacheLimit     = desc("cache_limit_bytes", "The most bytes that it may take.")
)

func (e *Edge) collectCache(gauge func(*prometheus.Desc, float64, ...string), count func(*prometheus.Desc, uint64, ...string)) {
	if e.cache == nil {
		return
	}
	s := e.cache.Stats()
	count(descCacheRequests, s.Hits, "hit")
	count(descCacheRequests, s.StaleHits, "stale")
	count(descCacheRequests, s.Misses, "miss")
	count(descCacheRequests, s.Expired, "expired")
	count(descCacheRequests, s.Bypassed, "bypass")
	count(descCacheCollapsed, s.Collapsed-min(s.Collapsed, s.Released+s.TimedOut), "shared")
	count(descCacheCollapsed, s.Released, "released")
	count(descCacheCollapsed, s.TimedOut, "timed_out")
	count(descCacheAnswers, s.Stored-min(s.Stored, s.Revalidated), "stored")
	count(descCacheAnswers, s.Revalidated, "revalidated")
	count(descCacheAnswers, s.NotStored, "not_stored")
	count(descCacheEvictions, s.Evicted, "yes")
	count(descCacheEvictions, s.Rejected, "no")
	count(descCachePurged, s.Purged)
	count(descCacheInvalid, s.Invalidations)
	gauge(descCacheObjects, float64(s.Objects))
	gauge(descCacheBytes, float64(s.Bytes), "stored")
	gauge(descCacheBytes, float64(s.FillBytes), "on_their_way")
	gauge(descCacheLimit, float64(s.Limit))
}
