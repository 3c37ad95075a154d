package api

import "github.com/guardyn-edge/guardyn/control"

func (h *Handler) poolRoutes() []*route {
	return []*route{
		read(route{
			pattern: "/v1/zones/{zone}/pool-status", access: forUsers, role: "viewer", query: []string{"limit", "cursor"},
			summary: "Tell on how many nodes each origin of each pool takes requests, by the pools' names",
		}, func(c *call) (Page[PoolStatus], error) {
			p, err := c.page()
			if err != nil {
				return Page[PoolStatus]{}, err
			}
			all, err := h.svc.PoolStatuses(c.r.Context(), c.principal, c.param("zone"))
			if err != nil {
				return Page[PoolStatus]{}, err
			}
			return pageOf(cut(all, func(s control.PoolStatus) string { return s.Pool }, p), poolStatusOf), nil
		}),
		read(route{
			pattern: "/v1/zones/{zone}/pools/{name}/status", access: forUsers, role: "viewer",
			summary: "Tell on how many nodes each origin of a pool takes requests",
		}, func(c *call) (PoolStatus, error) {
			s, err := h.svc.PoolStatus(c.r.Context(), c.principal, c.param("zone"), c.param("name"))
			return poolStatusOf(s), err
		}),
	}
}

func poolStatusOf(s control.PoolStatus) PoolStatus {
	out := PoolStatus{Zone: s.Zone.String(), Pool: s.Pool, Nodes: s.Nodes, Unknown: s.Unknown, Origins: make([]OriginStatus, len(s.Origins))}
	for i, o := range s.Origins {
		out.Origins[i] = OriginStatus{
			Name: o.Name, Address: o.Address, Enabled: o.Enabled, Serving: o.Serving, Unhealthy: o.Unhealthy, Ejected: o.Ejected,
			Error: o.Error, DownOn: o.DownOn,
		}
		if !o.Since.IsZero() {
			out.Origins[i].Since = o.Since.UTC()
		}
	}
	return out
}
