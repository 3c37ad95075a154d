package api

import (
	"net/http"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/zone"
)

func (h *Handler) objectRoutes() []*route {
	// The objects of a kind may be large in sum: listings of lists and functions tell their sizes alone.
	same := func(n int64) int64 { return max(n, MaxBody) }
	var all []*route
	all = append(all, kindRoutes("rulesets", "phase", "ruleset", same(0), h.svc.Rulesets(),
		func(rules []zone.Rule) Ruleset { return Ruleset{Rules: rules} },
		func(r Ruleset) []zone.Rule { return r.Rules },
		func(rules []zone.Rule) Ruleset { return Ruleset{Rules: rules} })...)
	all = append(all, kindRoutes("lists", "name", "list", same(MaxLargeBody), h.svc.Lists(), keep[zone.List], keep[zone.List],
		func(l zone.List) ListSummary { return ListSummary{Kind: l.Kind, Items: len(l.Items)} })...)
	all = append(all, kindRoutes("pools", "name", "pool", same(0), h.svc.Pools(), keep[zone.Pool], keep[zone.Pool], keep[zone.Pool])...)
	all = append(all, h.poolRoutes()...)
	all = append(all, h.purgeRoutes()...)
	all = append(all, kindRoutes("load-balancers", "host", "load balancer", same(0), h.svc.LoadBalancers(),
		keep[zone.LoadBalancer], keep[zone.LoadBalancer], keep[zone.LoadBalancer])...)
	all = append(all, kindRoutes("tls-hosts", "host", "TLS host", same(0), h.svc.TLSHosts(),
		keep[zone.TLSHost], keep[zone.TLSHost], keep[zone.TLSHost])...)
	all = append(all, kindRoutes("functions", "name", "function", same(MaxLargeBody), h.svc.Functions(),
		keep[zone.Function], keep[zone.Function],
		func(f zone.Function) FunctionSummary {
			return FunctionSummary{Bytes: len(f.Module), Memory: f.Memory, Timeout: f.Timeout, Output: f.Output}
		})...)
	all = append(all, singleRoutes("cache-policy", "cache policy", h.svc.CachePolicy())...)
	all = append(all, singleRoutes("settings", "settings", h.svc.Settings())...)
	return append(all, write(route{
		method: http.MethodPatch, pattern: "/v1/zones/{zone}/settings", access: forUsers, role: "editor", conditional: true,
		summary: "Change some of a zone's settings",
	}, func(c *call, in SettingsPatch) (zone.Settings, error) {
		o, err := h.svc.PatchSettings(c.r.Context(), c.principal, c.param("zone"), in.Set, c.condition.revision)
		if err == nil {
			c.setRevision(o.Revision)
		}
		return o.Value, err
	}))
}

func keep[T any](v T) T { return v }

// kindRoutes are the routes of the named objects of one kind: out and in convert between the value and its
// message, listed makes what a listing tells of it.
func kindRoutes[T, W, L any](segment, param, what string, limit int64, objects control.Objects[T],
	out func(T) W, in func(W) T, listed func(T) L,
) []*route {
	base := "/v1/zones/{zone}/" + segment
	one := base + "/{" + param + "}"
	return []*route{
		read(route{
			pattern: base, access: forUsers, role: "viewer", query: []string{"limit", "cursor"},
			summary: "List a zone's objects of the kind " + what + ", by name",
		}, func(c *call) (Page[Object[L]], error) {
			p, err := c.page()
			if err != nil {
				return Page[Object[L]]{}, err
			}
			rows, err := objects.List(c.r.Context(), c.principal, c.param("zone"))
			if err != nil {
				return Page[Object[L]]{}, err
			}
			l := cut(rows, func(o control.Object[T]) string { return o.Name }, p)
			return pageOf(l, func(o control.Object[T]) Object[L] {
				return Object[L]{Name: o.Name, Revision: o.Revision, Value: listed(o.Value)}
			}), nil
		}),
		read(route{
			pattern: one, access: forUsers, role: "viewer", summary: "Return a " + what,
		}, func(c *call) (W, error) {
			o, err := objects.Get(c.r.Context(), c.principal, c.param("zone"), c.param(param))
			if err == nil {
				c.setRevision(o.Revision)
			}
			return out(o.Value), err
		}),
		write(route{
			method: http.MethodPut, pattern: one, access: forUsers, role: "editor", conditional: true, limit: limit,
			summary: "Create or replace a " + what,
		}, func(c *call, v W) (W, error) {
			o, err := objects.Put(c.r.Context(), c.principal, c.param("zone"), c.param(param), in(v), c.condition.revision)
			if err == nil {
				c.setRevision(o.Revision)
			}
			return out(o.Value), err
		}),
		remove(route{
			pattern: one, access: forUsers, role: "editor", conditional: true, summary: "Delete a " + what,
		}, func(c *call) error {
			return objects.Delete(c.r.Context(), c.principal, c.param("zone"), c.param(param), c.condition.revision)
		}),
	}
}

// singleRoutes are the routes of an object that every zone has one of.
func singleRoutes[T any](segment, what string, objects control.Objects[T]) []*route {
	pattern := "/v1/zones/{zone}/" + segment
	return []*route{
		read(route{
			pattern: pattern, access: forUsers, role: "viewer", summary: "Return a zone's " + what,
		}, func(c *call) (T, error) {
			o, err := objects.Get(c.r.Context(), c.principal, c.param("zone"), "zone")
			if err == nil {
				c.setRevision(o.Revision)
			}
			return o.Value, err
		}),
		write(route{
			method: http.MethodPut, pattern: pattern, access: forUsers, role: "editor", conditional: true,
			summary: "Replace a zone's " + what,
		}, func(c *call, v T) (T, error) {
			o, err := objects.Put(c.r.Context(), c.principal, c.param("zone"), "zone", v, c.condition.revision)
			if err == nil {
				c.setRevision(o.Revision)
			}
			return o.Value, err
		}),
	}
}
