package pool

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/zone"
)

// Client is who a request comes from.
type Client struct {
	Addr netip.Addr
	// Sticky returns the value of the request's cookie of that name, empty when it has none. It is called only
	// for balancers with sticky sessions; nil is a client without cookies.
	Sticky func(cookie string) string
}

// Balancer is one load balancer compiled. A nil Balancer picks nothing.
type Balancer struct {
	pools    []*pool
	fallback *pool
	sticky   *Sticky
}

// Sticky is what keeps clients on one origin.
type Sticky struct {
	// Cookie is the name, TTL whole seconds that it lives.
	Cookie string
	TTL    time.Duration

	values  map[*Origin]string
	origins map[string]*Origin
}

// Value of the cookie that keeps a client on o. It is the same on each node and tells nothing of o to who does
// not know the zone's id. Empty when o is not of the balancer's pools, or of its fallback alone.
func (s *Sticky) Value(o *Origin) string { return s.values[o] }

// Sticky is nil when the balancer keeps nobody on an origin.
func (b *Balancer) Sticky() *Sticky {
	if b == nil {
		return nil
	}
	return b.sticky
}

// Pick chooses an origin: the client's own when that is usable; else a usable one of the first pool that has
// one, in order; else one of the fallback pool, however that does; else, without a fallback, any of the
// first pool, since a check that is wrong must not turn away who could be served. nil: there is no origin.
func (b *Balancer) Pick(c Client) *Origin {
	if b == nil {
		return nil
	}
	if b.sticky != nil && c.Sticky != nil {
		if o := b.sticky.origins[c.Sticky(b.sticky.Cookie)]; o != nil && o.Usable() {
			return o
		}
	}
	return b.pick(c, nil)
}

func (b *Balancer) pick(c Client, tried []*Origin) *Origin {
	for _, p := range b.pools {
		if o := p.pick(c.Addr, tried); o != nil {
			return o
		}
	}
	if b.fallback != nil {
		if o := b.fallback.pickOrAny(c.Addr, tried); o != nil {
			return o
		}
	}
	for _, p := range b.pools {
		if o := p.pickAny(c.Addr, tried); o != nil {
			return o
		}
	}
	return nil
}

func (p *pool) pickOrAny(client netip.Addr, tried []*Origin) *Origin {
	if o := p.pick(client, tried); o != nil {
		return o
	}
	return p.pickAny(client, tried)
}

// balancer returns the load balancer of a host in normal form: the one of exactly that name, else that of the
// nearest wildcard above it (as a DNS wildcard covers every depth, RFC 4592); nil when there is none.
func (s *Set) balancer(host string) *Balancer {
	b, ok := s.balancers[host]
	for parent := host; !ok && len(s.wildcards) > 0; {
		var below bool
		if _, parent, below = strings.Cut(parent, "."); !below {
			return nil
		}
		b, ok = s.wildcards[parent]
	}
	return b
}

// Balancer returns the load balancer of a host in normal form, nil when there is none.
func (s *Set) Balancer(host string) *Balancer {
	if s == nil {
		return nil
	}
	return s.balancer(host)
}

// Pick chooses an origin for a host by its load balancer, nil when there is none.
func (s *Set) Pick(host string, c Client) *Origin { return s.Balancer(host).Pick(c) }

// PickPool chooses an origin of the pool of that name, a usable one if there is one; nil when the pool has
// none or does not exist.
func (s *Set) PickPool(name string, c Client) *Origin {
	if s == nil {
		return nil
	}
	if p := s.pools[name]; p != nil {
		return p.pickOrAny(c.Addr, nil)
	}
	return nil
}

// MaxRetries is how many more origins a request is offered to when a connection to the one that was picked could not be opened.
const MaxRetries = 2

// Next chooses where a request for host goes that the origins of tried, the newest last, did not take: no
// connection could be opened, so none has seen it. It is another usable origin of the same pool, or what the
// host's balancer has beside it when that has this pool. It is nil after MaxRetries, and when nothing is left.
func (s *Set) Next(host string, c Client, tried []*Origin) *Origin {
	if s == nil || len(tried) == 0 || len(tried) > MaxRetries {
		return nil
	}
	last := tried[len(tried)-1].pool
	o := last.pick(c.Addr, tried)
	if b := s.balancer(host); o == nil && b != nil && (b.fallback == last || slices.Contains(b.pools, last)) {
		o = b.pick(c, tried)
	}
	if o == nil {
		o = last.pickAny(c.Addr, tried)
	}
	if o != nil {
		last.monitor.retried()
	}
	return o
}

// compileSticky gives each origin of b the value of its cookie. Those of the fallback pool have none: nobody is to stay there once
// the others are well.
func (b *Balancer) compileSticky(id zone.ID, config *zone.Sticky) {
	e := config.Effective()
	s := &Sticky{Cookie: e.Cookie, TTL: time.Duration(e.TTL), values: make(map[*Origin]string), origins: make(map[string]*Origin)}
	for _, p := range b.pools {
		for _, o := range p.origins {
			v := stickyValue(id, o)
			s.values[o] = v
			if s.origins[v] == nil { // two origins may be one server
				s.origins[v] = o
			}
		}
	}
	b.sticky = s
}

// stickyValue is 128 bits of what the origin is, keyed with the zone's id: the space of addresses is too small
// for a bare hash to hide one.
func stickyValue(id zone.ID, o *Origin) string {
	h := hmac.New(sha256.New, append([]byte("guardyn sticky origin 1\x00"), id...))
	for _, s := range []string{o.Pool, string(o.Scheme), o.Address, o.HostHeader, o.SNI} {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])
}
