package web

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
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
	key        string
	origin     *pool.Origin // nil for a record's own content
}

// poolTarget is the target of a pool's origin for a request to host.
func poolTarget(z *zone.Zone, o *pool.Origin, host string) *target {
	t := &target{scheme: o.Scheme, host: o.Address, hostHeader: host, origin: o}
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
	t.key = connectionKey(z.ID, t.host, t.sni)
	return t
}

// recordTarget is the target of a proxied record's own content, by plain HTTP on port 80.
func recordTarget(z *zone.Zone, o edge.Origin, host string) *target {
	t := &target{scheme: zone.SchemeHTTP, hostHeader: host}
	if o.Target != "" {
		t.host = o.Target + ":80"
		t.key = connectionKey(z.ID, t.host, "")
		return t
	}
	t.addresses = make([]netip.AddrPort, len(o.Addresses))
	key := make([]byte, 0, 64)
	for i, a := range o.Addresses {
		t.addresses[i] = netip.AddrPortFrom(a, 80)
		key = t.addresses[i].AppendTo(key)
	}
	t.key = connectionKey(z.ID, string(key), "")
	return t
}

// connectionKey names idle connections in the form of a host name, which is what http.Transport keeps them
// by. The zone is part of it: a connection that one zone's traffic has brought into a bad state never
// carries another's.
func connectionKey(id zone.ID, address, sni string) string {
	var buf [256]byte
	key := append(append(buf[:0], id...), '~')
	key = appendKey(key, address)
	if sni != "" {
		key = appendKey(append(key, '~'), sni)
	}
	return string(key)
}

// appendKey appends what remains of s when a URL is to take it for a host without a port.
func appendKey(b []byte, s string) []byte {
	for i := range len(s) {
		switch c := s[i]; c {
		case '[', ']':
		case ':':
			b = append(b, '_')
		default:
			b = append(b, c)
		}
	}
	return b
}

// dialer opens connections to origins, each address judged after resolution and just before it is used.
type dialer struct {
	net  net.Dialer
	tls  *tls.Config
	wait time.Duration // of the TLS handshake
	turn atomic.Uint32 // where the next dial begins among several addresses
}

// newDialer counts in refused the connections that the guard stopped.
func newDialer(c *Config, refused *atomic.Uint64) *dialer {
	allowed := c.AllowedOrigins
	return &dialer{
		net: net.Dialer{
			Timeout:  c.DialTimeout,
			Resolver: c.Resolver,
			Control: func(_, address string, _ syscall.RawConn) error {
				a, err := netip.ParseAddrPort(address)
				if err != nil {
					return err
				}
				if err := originguard.Check(a.Addr(), allowed); err != nil {
					refused.Add(1)
					return err
				}
				return nil
			},
		},
		tls:  &tls.Config{RootCAs: c.OriginRoots, MinVersion: tls.VersionTLS12, ClientSessionCache: tls.NewLRUClientSessionCache(1024)},
		wait: c.DialTimeout,
	}
}

// dial opens a connection to the target of the request that ctx belongs to.
func (d *dialer) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	t, err := targetOf(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := d.dialTarget(ctx, t)
	if err != nil {
		return nil, err
	}
	return &originConn{Conn: conn}, nil
}

func targetOf(ctx context.Context) (*target, error) {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	if x == nil || x.target == nil {
		return nil, errors.New("dial without a target")
	}
	return x.target, nil
}

func (d *dialer) dialTarget(ctx context.Context, t *target) (net.Conn, error) {
	if len(t.addresses) == 0 {
		host, port, err := net.SplitHostPort(t.host)
		if err != nil {
			return nil, err
		}
		if _, err := netip.ParseAddr(host); err != nil {
			host += "." // absolute: no search domain of this machine applies
		}
		return d.net.DialContext(ctx, "tcp", net.JoinHostPort(host, port))
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

// dialTLS is dial, and a handshake in the target's server name.
func (d *dialer) dialTLS(ctx context.Context, _, _ string) (net.Conn, error) {
	t, err := targetOf(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := d.dialTarget(ctx, t)
	if err != nil {
		return nil, err
	}
	c := d.tls.Clone()
	c.ServerName = strings.Trim(t.sni, "[]")
	secured := tls.Client(conn, c)
	ctx, cancel := context.WithTimeout(ctx, d.wait)
	defer cancel()
	if err := secured.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, fmt.Errorf("TLS handshake as %s: %w", strconv.Quote(c.ServerName), err)
	}
	return &originConn{Conn: secured}, nil
}

// newTransport returns the one transport of a server. It outlives every view.
func newTransport(c *Config, d *dialer) *http.Transport {
	return &http.Transport{
		DialContext:            d.dial,
		DialTLSContext:         d.dialTLS,
		DisableCompression:     true,
		MaxIdleConns:           c.MaxIdleOriginConns,
		MaxIdleConnsPerHost:    c.MaxIdleConnsPerOrigin,
		IdleConnTimeout:        c.OriginIdleTimeout,
		ResponseHeaderTimeout:  c.OriginHeaderTimeout,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
}
