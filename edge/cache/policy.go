package cache

import (
	"net/url"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/zone"
)

// Policy is what a zone's cache policy and the rules that matched say of a request. Equal policies treat requests alike: an
// object is served only under a policy that equals the one that stored it. It must not be changed once it is shared.
type Policy struct {
	// Bypass: the cache neither serves nor stores.
	Bypass bool
	// TTL, of a rule, is how long an answer that succeeded or moved for good is fresh whatever its origin says; zero: that is the
	// origin's to say. DefaultTTL is the same where the origin says nothing. MaxTTL caps all freshness; zero does not.
	TTL, DefaultTTL, MaxTTL time.Duration
	// StaleWhileRevalidate and StaleIfError are those of an answer that says nothing of them, or of every one when they are a
	// rule's.
	StaleWhileRevalidate, StaleIfError         time.Duration
	RuleStaleWhileRevalidate, RuleStaleIfError bool
	// StoreSetCookie stores answers that carry Set-Cookie, without it.
	StoreSetCookie bool
	// Pool or Function is what answers in place of the host's own origin, by rules that may choose by whatever a request has; empty:
	// neither. Program is the function's identity, with its code.
	Pool, Function, Program string
	// Sent is what rules changed of the request's header before it goes to whoever answers.
	Sent Changes
	// Query says which parameters of the query are part of the key.
	Query QueryRule
}

// Changes stands for fields that rules set and removed, in their order: the same for the same, zero for none. It is a hash (FNV-1a) of what a
// zone's own rules say, and nothing that clients choose.
type Changes uint64

// Set returns c and that a field was set.
func (c Changes) Set(name, value string) Changes { return c.add("=", name).add(":", value) }

// Remove returns c and that a field was removed.
func (c Changes) Remove(name string) Changes { return c.add("-", name) }

func (c Changes) add(kind, text string) Changes {
	const offset, prime = 14695981039346656037, 1099511628211
	if c == 0 {
		c = offset
	}
	for _, s := range [...]string{kind, text} {
		for i := range len(s) {
			c = (c ^ Changes(s[i])) * prime
		}
	}
	return (c ^ 0xff) * prime // no text has that octet at its end
}

// SameSource reports whether what p and q are of is answered by the same pool or function.
func (p *Policy) SameSource(q *Policy) bool {
	return p.Pool == q.Pool && p.Function == q.Function && p.Program == q.Program
}

// QueryRule picks the parameters of a query that are part of the key.
type QueryRule struct {
	mode  string
	names string // each followed by a zero octet
}

// NewPolicy is the policy of a zone, before rules. It is nil when the zone's cache is turned off.
func NewPolicy(c zone.CachePolicy) *Policy {
	if c.Disabled {
		return nil
	}
	p := &Policy{
		DefaultTTL: time.Duration(c.DefaultTTL), MaxTTL: time.Duration(c.MaxTTL),
		StaleWhileRevalidate: time.Duration(c.StaleWhileRevalidate), StaleIfError: time.Duration(c.StaleIfError),
		StoreSetCookie: c.StoreSetCookie, Query: QueryRule{mode: c.QueryMode},
	}
	if c.QueryMode == "include" || c.QueryMode == "exclude" {
		p.Query.names = strings.Join(c.QueryParameters, "\x00") + "\x00"
	}
	return p
}

// Apply lets a rule of action cache say what it names. Of several rules the last word counts, bypass too.
func (p *Policy) Apply(r *zone.Parameters) {
	if r.Bypass {
		p.Bypass = true
		return
	}
	p.Bypass = false
	if r.TTL > 0 {
		p.TTL = time.Duration(r.TTL)
	}
	if r.StaleWhileRevalidate > 0 {
		p.StaleWhileRevalidate, p.RuleStaleWhileRevalidate = time.Duration(r.StaleWhileRevalidate), true
	}
	if r.StaleIfError > 0 {
		p.StaleIfError, p.RuleStaleIfError = time.Duration(r.StaleIfError), true
	}
}

// Of is the part of a query in normal form that belongs to the key: the parameters that are picked, in their order, repeated ones
// too. A parameter's name is compared decoded.
func (q *QueryRule) Of(query string) string {
	switch q.mode {
	case "", "all":
		return query
	case "none":
		return ""
	}
	if query == "" {
		return ""
	}
	include := q.mode == "include"
	kept := make([]byte, 0, len(query))
	for parameter := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(parameter, "=")
		if q.has(name) != include {
			continue
		}
		if len(kept) > 0 {
			kept = append(kept, '&')
		}
		kept = append(kept, parameter...)
	}
	return string(kept)
}

func (q *QueryRule) has(name string) bool {
	if strings.ContainsAny(name, "%+") {
		if decoded, err := url.QueryUnescape(name); err == nil {
			name = decoded
		}
	}
	for names := q.names; names != ""; {
		var one string
		if one, names, _ = strings.Cut(names, "\x00"); one == name {
			return true
		}
	}
	return false
}
