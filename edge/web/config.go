package web

import (
	"crypto/x509"
	"io"
	"log"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/edge/cache"
	"github.com/guardyn-edge/guardyn/edge/perzone"
)

// maxHeaderBytes bounds the head of a request by HTTP/2 (431 beyond; net/http reads a little more before it says so) and of an
// origin's response (502 beyond). That by HTTP/1.1 is bounded by http1.MaxHead.
const maxHeaderBytes = 64 << 10

// Config of a Server. Zero fields take the default that is told; a negative duration or number is as zero.
type Config struct {
	// View returns the view to serve from, nil when there is none yet: requests are answered 503 then.
	View func() *edge.View
	// Addr is host:port to listen on by TCP; port 0 takes a free one.
	Addr string
	// TLSAddr is the same for TLS, with HTTP/2 and HTTP/1.1 by ALPN; empty: TLS is not served. All bounds are those of both
	// addresses together.
	TLSAddr string
	// AllowedOrigins are ranges that origins may be in although they are private, loopback or the like.
	AllowedOrigins []netip.Prefix
	// Logger takes what an operator must know; nil: nothing is logged.
	Logger *slog.Logger
	// AccessLog takes one record per request that the zone's log_sampling picks; nil: no access log.
	AccessLog *slog.Logger
	// Trace takes the trace of each request that is picked by its zone's trace_sampling, or by a trusted proxy before the node, once
	// the request has ended, a WebSocket once the connection has switched. What it is given is its own. It must not wait. nil: no request
	// is traced.
	Trace func(*Trace)
	// Zones counts requests by zone, beside Metrics; nil: no zone's are.
	Zones *perzone.Set[ZoneCounts]
	// Cache is where answers are kept, beyond the server too; nil: nothing is cached.
	Cache *cache.Cache
	// CacheWait is how long a request waits for the answer that another one of the same key brings, default 10s, before it asks the
	// origin itself. MaxRequestsPerZone bounds how many wait.
	CacheWait time.Duration
	// Resolver of origin host names; nil: the system's.
	Resolver *net.Resolver
	// OriginRoots are the authorities that origins' certificates are verified against; nil: the system's.
	OriginRoots *x509.CertPool
	// Now is the clock of access log records, traces and how long requests took; nil: time.Now.
	Now func() time.Time

	// MaxConnections of clients, default 16,384: others wait in the kernel's accept queue.
	MaxConnections int
	// MaxRequests being handled, WebSockets included, default 8,192: others are answered 503.
	MaxRequests int
	// MaxRequestsPerZone of them, default three quarters of MaxRequests: others of that zone are answered 503, and what one zone's
	// slow origins hold up is not all that the node has.
	MaxRequestsPerZone int
	// MaxHandshakes of TLS that are worked on at once, default 1,024: what another one has sent waits. One that waits for its client is
	// none of them. HandshakeTimeout bounds each, default 10s.
	MaxHandshakes    int
	HandshakeTimeout time.Duration
	// HeaderTimeout for reading a request's head, default 10s. IdleTimeout between requests, default 75s.
	HeaderTimeout, IdleTimeout time.Duration
	// BodyStall is how long a request's body may bring nothing (408), default 30s; WriteStall how long a
	// client, or an origin that a body is sent to (504), may take nothing, default 60s.
	BodyStall, WriteStall time.Duration
	// DialTimeout for reaching an origin, and again for TLS with it, default 5s.
	DialTimeout time.Duration
	// OriginHeaderTimeout is how long an origin may think after it got the request (504), default 60s.
	OriginHeaderTimeout time.Duration
	// StreamIdleTimeout is how long nothing may pass either way over an answer that has begun, a stream of both directions or a
	// WebSocket, default 5 min.
	StreamIdleTimeout time.Duration
	// OriginIdleTimeout closes an idle connection to an origin, default 90s. MaxIdleOriginConns are kept over
	// all, default 4,096, and MaxIdleConnsPerOrigin for one origin of one zone, default 256.
	OriginIdleTimeout                         time.Duration
	MaxIdleOriginConns, MaxIdleConnsPerOrigin int
	// Grace is how long requests may take to end once serving stops, default 10s.
	Grace time.Duration
}

func (c Config) withDefaults() Config {
	for _, d := range []struct {
		v     *time.Duration
		value time.Duration
	}{
		{&c.HeaderTimeout, 10 * time.Second},
		{&c.IdleTimeout, 75 * time.Second},
		{&c.HandshakeTimeout, 10 * time.Second},
		{&c.BodyStall, 30 * time.Second},
		{&c.WriteStall, 60 * time.Second},
		{&c.DialTimeout, 5 * time.Second},
		{&c.OriginHeaderTimeout, 60 * time.Second},
		{&c.StreamIdleTimeout, 5 * time.Minute},
		{&c.OriginIdleTimeout, 90 * time.Second},
		{&c.Grace, 10 * time.Second},
		{&c.CacheWait, 10 * time.Second},
	} {
		if *d.v <= 0 {
			*d.v = d.value
		}
	}
	for _, n := range []struct {
		v     *int
		value int
	}{
		{&c.MaxConnections, 16384},
		{&c.MaxRequests, 8192},
		{&c.MaxHandshakes, defaultHandshakes},
		{&c.MaxIdleOriginConns, 4096},
		{&c.MaxIdleConnsPerOrigin, 256},
	} {
		if *n.v <= 0 {
			*n.v = n.value
		}
	}
	if c.MaxRequestsPerZone <= 0 {
		c.MaxRequestsPerZone = (3*c.MaxRequests + 3) / 4
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

// stdLogger is what net/http's own complaints (a handler's panic, an accept that failed) go to.
func (c *Config) stdLogger() *log.Logger {
	if c.Logger == nil {
		return log.New(io.Discard, "", 0)
	}
	return slog.NewLogLogger(c.Logger.Handler(), slog.LevelWarn)
}
