package web

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/edge/pool"
	"github.com/guardyn-edge/guardyn/internal/originguard"
	"github.com/guardyn-edge/guardyn/zone"
)

// target is where one request goes. Two targets of equal key are reached by the same connections.
type target struct {
	scheme zone.Scheme
	// addresses are tried in turn; else host is resolved at each dial.
	addresses []netip.AddrPort
	host      string // host:port
	// sni is the TLS server name.
	sni        string
	hostHeader string
	key        originKey
	origin     *pool.Origin // nil for a record's own content
}

// poolTarget makes the target a pool's origin.
func (x *exchange) poolTarget(o *pool.Origin) *target {
	z, host, t := x.zone.Config, x.rule.Host, &x.to
	*t = target{scheme: o.Scheme, host: o.Address, hostHeader: host, origin: o}
	if o.HostHeader != "" {
		t.hostHeader = o.HostHeader
	}
	if t.scheme == zone.SchemeHTTPS {
		if t.sni = o.SNI; t.sni == "" {
			if t.sni, _, _ = strings.Cut(t.hostHeader, ":"); strings.HasPrefix(t.hostHeader, "[") {
				t.sni = t.hostHeader
			}
		}
	}
	t.key = originKey{zone: z.ID, scheme: t.scheme, host: t.host, sni: t.sni}
	return t
}

// recordTarget is the target of a proxied record's own content, by plain HTTP on port 80.
func recordTarget(z *zone.Zone, o edge.Origin, host string) *target {
	t := &target{scheme: zone.SchemeHTTP, hostHeader: host}
	t.key = originKey{zone: z.ID, scheme: t.scheme}
	if o.Target != "" {
		t.host = o.Target + ":80"
		t.key.host = t.host
		return t
	}
	t.addresses = make([]netip.AddrPort, len(o.Addresses))
	var all []byte
	for i, a := range o.Addresses {
		t.addresses[i] = netip.AddrPortFrom(a, 80)
		if len(o.Addresses) > 1 {
			all = append(t.addresses[i].AppendTo(all), ' ')
		}
	}
	if len(o.Addresses) == 1 {
		t.key.address = t.addresses[0]
	} else {
		t.key.host = string(all)
	}
	return t
}

// secure reports whether the target is spoken to by TLS.
func (t *target) secure() bool { return t.scheme == zone.SchemeHTTPS }

// dialer opens connections to origins, each address judged after resolution and just before it is used.
type dialer struct {
	net  net.Dialer
	tls  *tls.Config
	wait time.Duration // of the TLS handshake
	turn atomic.Uint32 // where the next dial begins among several addresses
}

// newDialer counts in refused the connections that the guard stopped.
func newDialer(c *Config, refused *atomic.Uint64) *dialer {
	guard := originguard.Control(c.AllowedOrigins)
	return &dialer{
		net: net.Dialer{
			Timeout:  c.DialTimeout,
			Resolver: c.Resolver,
			Control: func(network, address string, conn syscall.RawConn) error {
				err := guard(network, address, conn)
				if _, ok := errors.AsType[*originguard.RefusedError](err); ok {
					refused.Add(1)
				}
				return err
			},
		},
		tls:  &tls.Config{RootCAs: c.OriginRoots, MinVersion: tls.VersionTLS12, ClientSessionCache: tls.NewLRUClientSessionCache(1024)},
		wait: c.DialTimeout,
	}
}

// dialTarget opens a TCP connection to t.
func (d *dialer) dialTarget(ctx context.Context, t *target) (net.Conn, error) {
	if len(t.addresses) == 0 {
		address, err := originguard.Absolute(t.host)
		if err != nil {
			return nil, err
		}
		return d.net.DialContext(ctx, "tcp", address)
	}
	var errs []error
	start := int(d.turn.Add(1))
	for i := range t.addresses {
		a := t.addresses[(start+i)%len(t.addresses)]
		// A name with several addresses stays within the dial timeout that one of a name would have.
		one, cancel := context.WithTimeout(ctx, d.net.Timeout/time.Duration(len(t.addresses)))
		conn, err := d.net.DialContext(one, "tcp", a.String())
		cancel()
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
		if ctx.Err() != nil {
			break
		}
	}
	return nil, errors.Join(errs...)
}
