package web

import (
	"net/http"
	"strconv"
	"time"

	"github.com/guardyn-edge/guardyn/zone"
)

// withinRate counts the request against what the zone's plan allows this node; false: it is answered.
func (x *exchange) withinRate(now time.Time) bool {
	wait := x.zone.Requests.Take(x.zone.Rate, now)
	if wait == 0 {
		return true
	}
	x.w.Header().Set("Retry-After", retryAfter(wait))
	x.fail(http.StatusServiceUnavailable, "This site gets more requests than its plan allows.")
	return false
}

// ratelimit counts the request against every rule that matches, until one refuses it.
func (x *exchange) ratelimit(name zone.Phase) bool {
	for rule := range x.zone.Rules.Matching(name, &x.rule) {
		if x.common(rule) {
			return false
		}
		if rule.Action != zone.ActionRateLimit {
			continue
		}
		wait := rule.Take(x.server.limits, &x.rule, x.server.config.Now())
		if wait == 0 {
			continue
		}
		x.note(rule)
		x.w.Header().Set("Retry-After", retryAfter(wait))
		x.refuse(rule, "There are too many requests.")
		return true
	}
	return false
}

// retryAfter prints a wait as RFC 9110 §10.2.3 has it: whole seconds, rounded up.
func retryAfter(wait time.Duration) string {
	return strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10)
}
