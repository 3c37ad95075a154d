package web

import (
	"iter"
	"net/http"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/edge/cache"
	"github.com/guardyn-edge/guardyn/edge/rules"
	"github.com/guardyn-edge/guardyn/zone"
)

// skips are the phases that decide what is stored and served and were skipped by rules of earlier ones.
type skips struct{ cache, origin, function bool }

func (s *skips) of(name zone.Phase) *bool {
	switch name {
	case zone.PhaseCache:
		return &s.cache
	case zone.PhaseOrigin:
		return &s.origin
	case zone.PhaseFunction:
		return &s.function
	}
	return new(bool)
}

// choose runs the phases that come after the cache's before anything is looked for: what is stored is served only to requests that
// the same pool or function would answer, whatever it was that their rules chose by. true: the request is answered.
func (x *exchange) choose() bool {
	c := &x.cache
	if x.zone.Rules == nil {
		return false
	}
	c.skips.origin, c.skips.function = x.skipped[zone.PhaseOrigin], x.skipped[zone.PhaseFunction]
	if x.run(x.server.behindCache) {
		return true
	}
	switch {
	case x.function != nil:
		c.policy.Function, c.policy.Program = x.function.Name(), x.function.Identity()
	default:
		c.policy.Pool = x.pool
	}
	return false
}

// sentWith is what rules changed of a request, and what one more did.
func sentWith(c cache.Changes, action zone.Action, p *zone.Parameters) cache.Changes {
	name := http.CanonicalHeaderKey(p.Name)
	if action == zone.ActionSetHeader {
		return c.Set(name, p.Value)
	}
	return c.Remove(name)
}

// chosen keeps the phases that choose has run from being run again.
func (x *exchange) chosen() {
	if x.zone.Rules == nil {
		return
	}
	if x.skipped == nil {
		x.skipped = make(map[zone.Phase]bool, 2)
	}
	x.skipped[zone.PhaseOrigin], x.skipped[zone.PhaseFunction] = true, true
}

// policyUnder is the policy that another view of the zone has for the request, with what would answer it there. It has no effect on
// the request.
func (x *exchange) policyUnder(z *edge.Zone) cache.Policy {
	policy, skipped := *z.Cache, x.cache.skips
	policy.Sent = x.cache.policy.Sent // as it was asked, whatever rules say now
	for rule := range x.under(z, zone.PhaseCache, &skipped) {
		if rule.Action == zone.ActionCache {
			policy.Apply(&rule.Parameters)
		}
	}
	for rule := range x.under(z, zone.PhaseOrigin, &skipped) {
		if rule.Action == zone.ActionRoute {
			policy.Pool = rule.Parameters.Pool
			break
		}
	}
	for rule := range x.under(z, zone.PhaseFunction, &skipped) {
		if rule.Action == zone.ActionFunction {
			policy.Pool, policy.Function = "", rule.Parameters.Function
			if f := z.Functions[policy.Function]; f != nil {
				policy.Program = f.Identity()
			}
			break
		}
	}
	return policy
}

// under goes over the rules of a phase that match in another view, up to one that ends the phase.
func (x *exchange) under(z *edge.Zone, name zone.Phase, skipped *skips) iter.Seq[*rules.Rule] {
	return func(yield func(*rules.Rule) bool) {
		if *skipped.of(name) {
			return
		}
		for rule := range z.Rules.Matching(name, &x.rule) {
			switch rule.Action {
			case zone.ActionAllow:
				return
			case zone.ActionSkip:
				for _, p := range rule.Parameters.Phases {
					*skipped.of(p) = true
				}
				if len(rule.Parameters.Phases) == 0 || *skipped.of(name) {
					return
				}
			}
			if !yield(rule) {
				return
			}
		}
	}
}
