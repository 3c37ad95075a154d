package cli

import (
	"net/http"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/edge/cache"
	"github.com/guardyn-edge/guardyn/edge/rules"
	"github.com/guardyn-edge/guardyn/edge/web"
	"github.com/guardyn-edge/guardyn/zone"
)

// cacheOutcome is the cache's part in a request. Without is why it has none: disabled, method, rule, or what of the request keeps it
// out; then the rest is empty.
type cacheOutcome struct {
	Without string `json:"without,omitempty"`
	// Key is the URL that answers are kept under, Pool or Function who answers; other pools' and functions' answers are apart.
	Key      string `json:"key,omitempty"`
	Pool     string `json:"pool,omitempty"`
	Function string `json:"function,omitempty"`
	// Fields are those of the request that rules set or removed: answers to requests of which they did otherwise are apart.
	Fields []string `json:"fields,omitempty"`
	// TTL is a rule's, which stands over what answers say, DefaultTTL for those that say nothing, MaxTTL for all.
	TTL        zone.Duration `json:"ttl,omitzero"`
	DefaultTTL zone.Duration `json:"default_ttl,omitzero"`
	MaxTTL     zone.Duration `json:"max_ttl,omitzero"`
	// For how long an answer is served stale: a rule's stands over what answers say.
	StaleWhileRevalidate zone.Duration `json:"stale_while_revalidate,omitzero"`
	StaleIfError         zone.Duration `json:"stale_if_error,omitzero"`
}

// cachePart is what the cache does for a request, once the rules have made of it what they do.
func (o *testOutcome) cachePart(z *zone.Zone, p *cache.Policy, r *rules.Request) *cacheOutcome {
	switch why := web.Uncacheable(r.Header); {
	case o.Status != 0:
		return nil // it is answered before
	case p == nil:
		return &cacheOutcome{Without: "disabled"}
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return &cacheOutcome{Without: "method"}
	case p.Bypass:
		return &cacheOutcome{Without: "rule"}
	case why != "":
		return &cacheOutcome{Without: why}
	}
	if key := (cache.Key{Zone: z.ID, Scheme: r.Scheme, Host: r.Host, Path: r.Path, Query: p.Query.Of(r.Query)}); key.Len() > cache.MaxKey {
		return &cacheOutcome{Without: "key"}
	}
	out := &cacheOutcome{
		Key: r.Scheme + "://" + r.Host + target(r.Path, p.Query.Of(r.Query)), Function: o.Function, Fields: o.changed,
		TTL: zone.Duration(p.TTL), DefaultTTL: zone.Duration(p.DefaultTTL), MaxTTL: zone.Duration(p.MaxTTL),
		StaleWhileRevalidate: zone.Duration(p.StaleWhileRevalidate), StaleIfError: zone.Duration(p.StaleIfError),
	}
	if out.Function == "" {
		out.Pool = o.Pool
	}
	return out
}

// String is a line for people.
func (c *cacheOutcome) String() string {
	switch c.Without {
	case "":
	case "disabled":
		return "not cached: the zone's cache is turned off"
	case "method":
		return "not cached: answers to GET and HEAD are"
	case "rule":
		return "not cached: by a rule"
	default:
		return "not cached, by what the request is: " + c.Without
	}
	var b strings.Builder
	b.WriteString("cached as " + c.Key)
	switch {
	case c.Function != "":
		b.WriteString(" of function " + c.Function)
	case c.Pool != "":
		b.WriteString(" of pool " + c.Pool)
	}
	if len(c.Fields) > 0 {
		b.WriteString(", asked with what rules make of " + join(c.Fields))
	}
	switch {
	case c.TTL > 0:
		b.WriteString(", fresh for " + c.TTL.String() + " whatever the answer says")
	case c.DefaultTTL > 0:
		b.WriteString(", fresh for as long as the answer says, else " + c.DefaultTTL.String())
	default:
		b.WriteString(", fresh for as long as the answer says")
	}
	for _, part := range []struct {
		d    zone.Duration
		text string
	}{
		{c.MaxTTL, " at most"}, {c.StaleWhileRevalidate, " stale while it is validated"}, {c.StaleIfError, " stale while the origin fails"},
	} {
		if part.d > 0 {
			b.WriteString(", " + part.d.String() + part.text)
		}
	}
	return b.String()
}

// cacheRule tells what a rule of action cache says.
func cacheRule(p zone.Parameters) string {
	if p.Bypass {
		return "takes the cache out of the way"
	}
	var parts []string
	for _, part := range []struct {
		d    time.Duration
		text string
	}{
		{time.Duration(p.TTL), "fresh for "},
		{time.Duration(p.StaleWhileRevalidate), "stale while it is validated for "},
		{time.Duration(p.StaleIfError), "stale while the origin fails for "},
	} {
		if part.d > 0 {
			parts = append(parts, part.text+zone.Duration(part.d).String())
		}
	}
	return "has the answer cached: " + join(parts)
}
