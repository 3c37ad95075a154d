package cache

import (
	"net/http"
	"strings"
	"time"
)

const (
	// heuristicShare of the time since Last-Modified is how long an answer is fresh whose origin says nothing (RFC 9111 §4.2.2),
	// maxHeuristic at most.
	heuristicShare = 10
	maxHeuristic   = 24 * time.Hour
)

// byHeuristic reports whether an answer of that status may be stored without being told (RFC 9110 §15.1).
func byHeuristic(status int) bool {
	switch status {
	case 200, 203, 204, 300, 301, 308, 404, 405, 410, 414, 501:
		return true
	}
	return false
}

// succeeded reports whether an answer of that status has the lifetime that a policy gives: an error of the origin's is not kept for
// longer than it says itself.
func succeeded(status int) bool {
	switch status {
	case 200, 203, 204, 300, 301, 308:
		return true
	}
	return false
}

// understood are the statuses whose requirements on caching this cache implements (RFC 9111 §5.2.2.3).
func understood(status int) bool {
	switch status {
	case 302, 303, 307, 400, 403, 500, 502, 503, 504:
		return true
	}
	return byHeuristic(status)
}

// gatewayError reports whether a status is one that stale-if-error speaks of (RFC 5861 §4).
func gatewayError(status int) bool {
	return status == 500 || status == 502 || status == 503 || status == 504
}

// httpDate reads a field of one HTTP-date (RFC 9110 §5.6.7); ok is false without one and for what is none.
func httpDate(values []string) (t time.Time, ok bool) {
	if len(values) == 0 {
		return time.Time{}, false
	}
	t, err := http.ParseTime(values[0])
	return t, err == nil
}

// timing is what freshness is worked out from.
type timing struct {
	date         time.Time     // of the origin's clock, or when the answer came
	lastModified time.Time     // zero without
	initialAge   time.Duration // RFC 9111 §4.2.3: corrected_initial_age
	lifetime     time.Duration // RFC 9111 §4.2.1
	explicit     bool          // the lifetime is the origin's or the policy's word, not a heuristic
}

// times works out age and lifetime of an answer. cookies says that the request had any: an answer to it whose origin said nothing
// is not guessed to be everybody's.
func (p *Policy) times(h *Head, d *directives, targeted, cookies bool) (t timing) {
	var ok bool
	if t.date, ok = httpDate(h.Header["Date"]); !ok {
		t.date = h.Received
	}
	t.lastModified, _ = httpDate(h.Header["Last-Modified"])
	apparent := max(0, h.Received.Sub(t.date))
	corrected := ageOf(h.Header["Age"]) + max(0, h.Received.Sub(h.Requested))
	t.initialAge = max(apparent, corrected)

	expires, hasExpires := h.Header["Expires"], false
	if !targeted {
		hasExpires = len(expires) > 0
	}
	t.explicit = true
	switch {
	case p.TTL > 0 && succeeded(h.Status):
		t.lifetime = p.TTL
		// From now on, whatever age it came with.
		t.initialAge = max(0, h.Received.Sub(h.Requested))
	case d.sharedMaxAge.set:
		t.lifetime = d.sharedMaxAge.value
	case d.maxAge.set:
		t.lifetime = d.maxAge.value
	case hasExpires:
		// What is no date is in the past (RFC 9111 §5.3).
		if at, ok := httpDate(expires); ok && len(expires) == 1 {
			t.lifetime = max(0, at.Sub(t.date))
		}
	case p.DefaultTTL > 0 && succeeded(h.Status) && !d.noCache:
		t.lifetime = p.DefaultTTL
	default:
		t.explicit = false
		if !cookies && !t.lastModified.IsZero() && (byHeuristic(h.Status) || d.public) {
			t.lifetime = min(max(0, t.date.Sub(t.lastModified))/heuristicShare, maxHeuristic)
		}
	}
	if p.MaxTTL > 0 {
		t.lifetime = min(t.lifetime, p.MaxTTL)
	}
	t.lifetime = t.lifetime.Truncate(time.Second)
	return t
}

// ageOf reads Age: the first member of a list, 0 for what is no number (RFC 9111 §5.1).
func ageOf(values []string) time.Duration {
	if len(values) == 0 {
		return 0
	}
	first, _, _ := strings.Cut(values[0], ",")
	return parseSeconds(strings.Trim(first, " \t"))
}
