package web

import (
	"net/http"

	"github.com/guardyn-edge/guardyn/zone"
)

// chooseTarget decides which origin serves, in the order that the package comment tells. When it returns false
// the request is answered.
func (x *exchange) chooseTarget() bool {
	z, client, host := x.zone, x.rule.Client, x.rule.Host
	o := z.Pools.PickPool(x.pool, client)
	if x.pool != "" && o == nil {
		x.fail(http.StatusServiceUnavailable, "The site has no server for this request.")
		return false
	}
	if o == nil {
		o = z.Pools.Pick(host, client)
	}
	record, proxied := z.ProxiedOrigin(host)
	if o == nil && proxied {
		o = z.Pools.PickPool(zone.DefaultPool, client)
	}
	if o != nil {
		x.target = poolTarget(z.Config, o, host)
		return true
	}
	if !proxied {
		x.fail(http.StatusNotFound, "No site is served at this host.")
		return false
	}
	x.target = recordTarget(z.Config, record, host)
	return true
}
