package pool

import (
	"hash/fnv"
	"net"

	"github.com/guardyn-edge/guardyn/zone"
)

// Origin is one server of a pool. Its fields are set by Compile and never change.
type Origin struct {
	// Zone, Pool and Name say which origin it is.
	Zone       zone.ID
	Pool, Name string
	Scheme     zone.Scheme
	// Address is host:port, the port always written.
	Address string
	// HostHeader and SNI are as in zone.Origin; empty means the default that is told there.
	HostHeader, SNI string
	// Weight is at least 1.
	Weight int

	seed uint64
	pool *pool
	// state outlives this value when the next snapshot has an origin that speaks to the same server in
	// the same way.
	state *originState
}

// Begin counts a request towards o until End, which the caller must call once for each Begin.
func (o *Origin) Begin() { o.state.inflight.Add(1) }

// End is the counterpart of Begin and tells how the request went. A run of failures ejects o.
func (o *Origin) End(r Result) {
	o.state.inflight.Add(-1)
	kind := r.Kind()
	o.pool.monitor.count(kind, r.Latency)
	switch {
	case kind == Canceled:
	case o.pool.outlier.fails(kind, r.Status):
		if n := o.state.failures.Add(1); o.pool.outlier.on && int(n) >= o.pool.outlier.failures {
			o.pool.eject(o, r)
		}
	case o.state.failures.Load() != 0:
		o.state.failures.Store(0)
	}
}

// Inflight is how many requests are between Begin and End, those under earlier snapshots included.
func (o *Origin) Inflight() int64 { return o.state.inflight.Load() }

// identity is what makes two origins of one pool the same server, spoken to in the same way. Weight and
// name are not part of it.
type identity struct {
	pool            string
	scheme          zone.Scheme
	address         string
	hostHeader, sni string
}

func (o *Origin) identity() identity {
	return identity{o.Pool, o.Scheme, o.Address, o.HostHeader, o.SNI}
}

// Key tells servers apart: it is the same for an origin of an earlier and of a later snapshot when these speak to the same
// server in the same way.
type Key struct{ state *originState }

// Key returns o's.
func (o *Origin) Key() Key { return Key{o.state} }

// newOrigin resolves the defaults of c. Its pool and state are the caller's to give.
func newOrigin(id zone.ID, pool string, c zone.Origin) *Origin {
	o := &Origin{
		Zone: id, Pool: pool, Name: c.Name, Scheme: c.Scheme, Address: c.Address,
		HostHeader: c.HostHeader, SNI: c.SNI, Weight: max(c.Weight, 1),
	}
	if o.Scheme == "" {
		o.Scheme = zone.SchemeHTTP
	}
	if _, _, err := net.SplitHostPort(o.Address); err != nil {
		port := "80"
		if o.Scheme == zone.SchemeHTTPS {
			port = "443"
		}
		o.Address = net.JoinHostPort(unbracket(o.Address), port)
	}
	h := fnv.New64a()
	for _, s := range []string{string(o.Scheme), o.Address, o.HostHeader, o.SNI} {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	o.seed = h.Sum64()
	return o
}

func unbracket(host string) string {
	if len(host) > 1 && host[0] == '[' && host[len(host)-1] == ']' {
		return host[1 : len(host)-1]
	}
	return host
}
