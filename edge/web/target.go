package web

import (
	"net/http"
	"strconv"
	"time"

	"github.com/guardyn-edge/guardyn/edge/cookie"
	"github.com/guardyn-edge/guardyn/edge/pool"
	"github.com/guardyn-edge/guardyn/zone"
)

// chooseTarget decides which origin serves, in the order that the package comment tells. When it returns false
// the request is answered.
func (x *exchange) chooseTarget() bool {
	z, host := x.zone, x.rule.Host
	client := x.client()
	o := z.Pools.PickPool(x.pool, client)
	if x.pool != "" && o == nil {
		x.fail(http.StatusServiceUnavailable, "The site has no server for this request.")
		return false
	}
	if o == nil {
		b := z.Pools.Balancer(host)
		o = b.Pick(client)
		x.stick(b.Sticky(), o)
	}
	record, proxied := z.ProxiedOrigin(host)
	if o == nil && proxied {
		o = z.Pools.PickPool(zone.DefaultPool, client)
	}
	if o != nil {
		x.target = x.poolTarget(o)
		return true
	}
	if !proxied {
		x.fail(http.StatusNotFound, "No site is served at this host.")
		return false
	}
	x.target = recordTarget(z.Config, record, host)
	return true
}

// client is who a pool chooses an origin for.
func (x *exchange) client() pool.Client {
	return pool.Client{Addr: x.rule.Client, Sticky: x.cookie}
}

// cookie returns the first value of the request's cookie of that name.
func (x *exchange) cookie(name string) string {
	value, _ := cookie.Get(x.r.Header["Cookie"], name)
	return value
}

// stick notes the cookie that is to keep the client on o, unless it has that already.
func (x *exchange) stick(s *pool.Sticky, o *pool.Origin) {
	x.sticky = ""
	if s == nil || o == nil {
		return
	}
	value := s.Value(o)
	if value == "" || x.cookie(s.Cookie) == value {
		return
	}
	x.sticky = s.Cookie + "=" + value + "; Path=/; Max-Age=" + strconv.Itoa(int(s.TTL.Seconds())) + "; HttpOnly; SameSite=Lax"
	if x.scheme == "https" {
		x.sticky += "; Secure"
	}
}

// next takes the request to another origin, since err kept a connection to its target from being opened:
// nothing of it was sent. false: there is none, or it has been to enough of them.
func (x *exchange) next(err error) bool {
	failed := x.target.origin
	if failed == nil {
		return false
	}
	x.tried = append(x.tried, failed)
	host := x.rule.Host
	if x.pool != "" {
		host = "" // a rule chose the pool, whatever the host's balancer has beside it
	}
	o := x.zone.Pools.Next(host, x.client(), x.tried)
	if o == nil {
		return false
	}
	if x.pool == "" {
		x.stick(x.zone.Pools.Balancer(x.rule.Host).Sticky(), o)
	}
	failed.End(pool.Result{Err: err, Latency: time.Since(x.sent)})
	x.tryFailed(err)
	o.Begin()
	x.sent, x.target = time.Now(), x.poolTarget(o)
	x.try()
	return true
}
