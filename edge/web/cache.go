package web

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/edge/cache"
	"github.com/guardyn-edge/guardyn/edge/http1"
	"github.com/guardyn-edge/guardyn/internal/fieldname"
	"github.com/guardyn-edge/guardyn/zone"
)

// caching is an exchange's part in the cache. The zero value has none.
type caching struct {
	on         bool // the zone caches
	background bool // no client waits for the exchange itself
	policy     cache.Policy
	sent       cache.Changes // by rules of transform_request
	skips      skips         // before the phase
	asked      cache.Asked
	key        cache.Key
	found      cache.Found
	// conditions are the client's, which the origin does not get when the answer is to be stored.
	conditions cache.Conditions
	// forwarded is why the request goes to the origin, as Cache-Status tells it.
	forwarded string
	begun     time.Time

	flight      *cache.Flight // that this exchange brings, nil for none
	validating  bool          // the origin is asked whether flight.Base is its answer yet
	again       bool          // it said something of another answer: it is asked anew
	conditional bool          // the client asked with conditions, which the origin did not get
	over        bool          // the flight has ended, or its answer is this request's alone
	whole       bool          // the body came with its head
	object      *cache.Object // that the flight brings
	setCookie   []string      // of the answer, which the object does not have
	served      bool          // the client has its whole answer
	waited      bool          // for an answer of another request that was not for this one
	told        told          // what Cache-Status says, when it is no hit
	stream      *clientStream // brings the client what the flight has, nil when none does
	unhook      func()        // ends the watch over the client
	outcome     string        // of the access log
}

// cachePhase answers from the cache, or decides what becomes of the origin's answer. Rules that match refine the zone's policy in
// their order.
func (x *exchange) cachePhase(name zone.Phase) bool {
	s := x.server
	if s.config.Cache == nil || x.zone.Cache == nil {
		return false
	}
	c := &x.cache
	c.on = true
	c.policy, c.skips.cache = *x.zone.Cache, x.skipped[name]
	c.policy.Sent = c.sent
	if x.zone.Rules != nil && !x.skipped[name] {
		for rule := range x.zone.Rules.Matching(name, &x.rule) {
			if x.common(rule) {
				break
			}
			if rule.Action == zone.ActionCache {
				c.policy.Apply(&rule.Parameters)
			}
		}
	}
	if x.r.Method != http.MethodGet && x.r.Method != http.MethodHead {
		x.tellMethod()
		return false
	}
	h := x.r.Header
	c.key = cache.Key{
		Zone: x.zone.Config.ID, Apex: x.zone.Config.Name, Scheme: x.scheme, Host: x.rule.Host, Path: x.rule.Path, Query: c.policy.Query.Of(x.rule.Query),
	}
	why := x.notCached()
	if c.policy.Bypass {
		why = "rule"
	}
	if why != "" {
		s.config.Cache.Count(cache.Bypass)
		x.tell("bypass", told{forwarded: forwardedBypass, detail: why})
		return false
	}
	c.asked = cache.Asked{
		Header: h, Authorized: len(h["Authorization"]) > 0, Cookies: len(h["Cookie"]) > 0, Generation: x.view.Generation(),
	}
	if x.choose() || x.fromCache() {
		return true
	}
	x.chosen()
	return false
}

// notCached tells why the cache has no part in a request by what it is: a body, which is not part of the key, a connection that
// leaves HTTP, conditions that only an origin can judge, or a field by which origins let a client choose another method, path or host
// than the key has. Empty: it has.
func (x *exchange) notCached() string {
	r := x.r
	if x.body != nil || r.ContentLength != 0 {
		return "body"
	}
	if x.cache.key.Len() > cache.MaxKey {
		return "key"
	}
	return Uncacheable(r.Header)
}

// Uncacheable tells why the cache has no part in a request with such a header, empty: it has.
func Uncacheable(h http.Header) string {
	for name := range h {
		switch name[0] {
		case 'X', 'x', 'F', 'f', 'R', 'r':
			if override(name) {
				return "override"
			}
		case 'E':
			if name == "Expect" {
				return "expect"
			}
		case 'I':
			if name == "If-Match" || name == "If-Unmodified-Since" {
				return "conditional"
			}
		case 'U':
			if name == "Upgrade" {
				return "upgrade"
			}
		}
	}
	return ""
}

// override reports whether origins take a field, or what they may read it as, for another method, path, host, scheme or form of an answer.
func override(name string) bool {
	name = fieldname.Read(name)
	switch name {
	case "Front-End-Https", "Rsc", "X-Arr-Ssl", "X-Backend-Host", "X-Host", "X-Host-Override", "X-Matched-Path", "X-Method-Override",
		"X-Nextjs-Data", "X-Now-Route-Matches", "X-Proto", "X-Protocol", "X-Request-Uri", "X-Scheme", "X-Script-Name", "X-Url-Scheme",
		"X-Waws-Unencoded-Url":
		return true
	}
	for _, prefix := range [...]string{"X-Http-", "X-Invoke-", "X-Middleware-", "X-Original-", "X-Override-", "X-Rewrite-"} {
		if strings.HasPrefix(name, prefix) {
			return !fieldname.AddressClaim(name) // which a trusted proxy in front may add to all that it sends
		}
	}
	return false
}

// maxRounds bounds how often a request waits for another's answer: one that then is not for it, by Vary, makes it look again.
const maxRounds = 3

// fromCache answers from what is stored or on its way. When it returns false the origin is to be asked, and flight is what its answer
// goes into.
func (x *exchange) fromCache() (answered bool) {
	s, c := x.server, &x.cache
	store := s.config.Cache
	for round := 1; ; round++ {
		now := s.config.Now()
		c.found = store.Lookup(&c.key, &c.policy, &c.asked, now)
		o := c.found.Object
		switch c.found.Outcome {
		case cache.Fresh:
			x.hit(o, now, cache.Hit)
			return true
		case cache.Stale:
			if resting := o.Resting(now); resting || o.WhileRevalidating(now) {
				if !resting {
					x.refresh()
				}
				x.hit(o, now, cache.StaleHit)
				return true
			}
			c.forwarded = forwardedStale
		case cache.Unselected:
			c.forwarded = forwardedVaryMiss
		case cache.Unshared:
			c.forwarded = forwardedRequest
		default:
			c.forwarded = forwardedURIMiss
		}
		if round == 1 {
			x.countMiss()
		}
		if len(c.asked.Header["Cache-Control"]) > 0 && http1.Lists(c.asked.Header["Cache-Control"], "only-if-cached") {
			x.tell("miss", told{detail: "only-if-cached"}) // RFC 9111 §5.2.1.7
			x.fail(http.StatusGatewayTimeout, "This is not in the cache, and no other answer was wanted.")
			return true
		}
		if x.r.Method == http.MethodHead {
			x.tell("miss", told{forwarded: c.forwarded})
			return false
		}
		if c.asked.Authorized || c.found.Outcome == cache.Passing || round > maxRounds {
			x.alone()
			return false
		}
		flight, leads := store.Join(&c.key, &c.policy, &c.found)
		switch {
		case flight == nil:
			x.alone()
			return false
		case leads && len(c.asked.Header["Range"]) == 0:
			x.lead(flight)
			return false
		case leads:
			// A part is served from the whole, which is fetched beside the request: what came of it decides.
			flight.Share()
			if !x.fetch(flight) {
				flight.Release(now, false)
				flight.Leave()
				flight.Close()
				x.alone()
				return false
			}
		}
		answered, again := x.await(flight, leads)
		if answered {
			return true
		}
		c.waited = c.waited || !leads
		if !again {
			x.alone()
			return false
		}
	}
}

func (x *exchange) countMiss() {
	kind := cache.Miss
	if x.cache.found.Object != nil {
		kind = cache.Expire
	}
	x.server.config.Cache.Count(kind)
	x.cache.outcome = "miss"
}

// invalidate makes invalid what an unsafe method that succeeded may have changed: its target, and what Location and Content-Location
// name of the same host (RFC 9111 §4.4), by either scheme.
func (x *exchange) invalidate(h http.Header) {
	x.invalidateTarget(x.rule.Path, x.rule.Query)
	for _, name := range [...]string{"Location", "Content-Location"} {
		for _, v := range h[name] {
			ref, err := url.Parse(v)
			if err != nil {
				continue
			}
			if ref.Host != "" {
				if host, err := zone.NormalizeHost(ref.Host); err != nil || host != x.rule.Host {
					continue
				}
			}
			base := url.URL{Scheme: x.scheme, Host: x.rule.Host, Path: "/"}
			if self, err := base.Parse(x.rule.Path); err == nil {
				base = *self
			}
			if path, query, err := zone.NormalizeTarget(base.ResolveReference(ref).RequestURI()); err == nil {
				x.invalidateTarget(path, query)
			}
		}
	}
}

func (x *exchange) invalidateTarget(path, query string) {
	k := cache.Key{Zone: x.zone.Config.ID, Apex: x.zone.Config.Name, Host: x.rule.Host, Path: path, Query: x.cache.policy.Query.Of(query)}
	for _, k.Scheme = range [...]string{"http", "https"} {
		x.server.config.Cache.Invalidate(&k)
	}
}
