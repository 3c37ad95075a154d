// Package dns answers DNS queries over UDP and TCP, authoritatively, from the view that is live when each
// query comes.
package dns

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/edge/perzone"
)

// Config is what a server needs. Only Live and Addr must be set.
type Config struct {
	// Live is where each query takes its view; while it has none the answer is SERVFAIL.
	Live *edge.Live
	// Addr is host:port for UDP and TCP both; port 0 is one that is free for both. An empty host is every
	// address, of IPv4 and IPv6.
	Addr string
	// AllowVersion are the clients that CHAOS TXT version.guardyn. is answered to; nobody else learns it.
	AllowVersion []netip.Prefix
	// NSID is told to clients that ask (RFC 5001), at most 128 bytes; empty tells nothing.
	NSID string

	// RateLimit is how many answers a second a prefix (/24 of IPv4, /64 of IPv6) gets by UDP for one name:
	// default 200, at most 100,000; negative limits nothing.
	RateLimit int
	// RateLimitSlip makes one in so many limited answers a truncated one, so that a real client comes back
	// by TCP; default 2, 1 is every one, negative none.
	RateLimitSlip int
	// RateLimitExempt are clients that are not limited.
	RateLimitExempt []netip.Prefix

	// Sockets is how many UDP sockets share the address; default GOMAXPROCS, at most 64. Systems without
	// SO_REUSEPORT have one.
	Sockets int
	// MaxConnections bounds TCP connections, default 1,024; MaxConnectionsPerSource those of one IPv4 address or
	// IPv6 /64, default 32. More are closed at once.
	MaxConnections, MaxConnectionsPerSource int
	// IdleTimeout is how long a connection may take for each whole message, sent or received; default 10 s.
	// ConnectionTimeout is how long it may last; default 2 min.
	IdleTimeout, ConnectionTimeout time.Duration

	// Zones counts queries by zone, beside Stats; nil: no zone's are.
	Zones *perzone.Set[ZoneCounts]
	// Logger gets faults; default: none.
	Logger *slog.Logger
	// Now is the clock of rate limiting; default time.Now.
	Now func() time.Time
}

const (
	maxNSID    = 128
	maxSockets = 64
)

// Server answers queries on one address. Listen, then Serve; a server is used once.
type Server struct {
	config  Config
	limiter *rateLimiter // nil: no limit
	udp     []udpSocket
	tcp     tcpListener
	addr    netip.AddrPort

	closing   chan struct{}
	closeOnce sync.Once
}

// NewServer returns a server that does not listen yet, or says what is wrong with c.
func NewServer(c Config) (*Server, error) {
	if c.Live == nil {
		return nil, errors.New("dns: Live is not set")
	}
	if len(c.NSID) > maxNSID {
		return nil, fmt.Errorf("dns: the NSID has %d bytes, at most %d are sent", len(c.NSID), maxNSID)
	}
	if c.RateLimit > rateTicks {
		return nil, fmt.Errorf("dns: a rate limit of %d answers a second is above %d: use a negative one for no limit", c.RateLimit, rateTicks)
	}
	c.RateLimit = cmp.Or(c.RateLimit, 200)
	c.RateLimitSlip = cmp.Or(c.RateLimitSlip, 2)
	c.Sockets = min(max(cmp.Or(c.Sockets, runtime.GOMAXPROCS(0)), 1), maxSockets)
	c.MaxConnections = cmp.Or(c.MaxConnections, 1024)
	c.MaxConnectionsPerSource = cmp.Or(c.MaxConnectionsPerSource, 32)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, 10*time.Second)
	c.ConnectionTimeout = cmp.Or(c.ConnectionTimeout, 2*time.Minute)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	s := &Server{config: c, closing: make(chan struct{})}
	if c.RateLimit > 0 {
		s.limiter = newRateLimiter(c.RateLimit, c.Now())
	}
	s.tcp.perSource = make(map[netip.Addr]int)
	s.tcp.conns = make(map[net.Conn]struct{})
	return s, nil
}

// Addr is the address that the server listens on, after Listen.
func (s *Server) Addr() netip.AddrPort { return s.addr }

// Serve answers until ctx ends or Close is called, then lets what is being answered end, for at most the
// idle timeout, and returns nil. All that it started has ended by then. An error is that of a socket that
// failed.
func (s *Server) Serve(ctx context.Context) error {
	if len(s.udp) == 0 {
		return errors.New("dns: Serve before Listen")
	}
	stop := context.AfterFunc(ctx, s.Close)
	defer stop()
	failed := make(chan error, len(s.udp)+1)
	var sockets sync.WaitGroup
	for i := range s.udp {
		sockets.Go(func() { failed <- s.serveUDP(&s.udp[i]) })
	}
	sockets.Go(func() { failed <- s.serveTCP() })
	var err error
	for range cap(failed) {
		// The first that ends, ends the others.
		if e := <-failed; err == nil {
			err = e
		}
		s.Close()
	}
	sockets.Wait()
	return err
}

// Close stops the server: no further message is read. It does not wait; Serve does. It may be called at any
// time and more than once.
func (s *Server) Close() {
	s.closeOnce.Do(func() {
		close(s.closing)
		for i := range s.udp {
			s.udp[i].conn.Close()
		}
		s.tcp.close()
	})
}

// isClosing reports whether Close was called.
func (s *Server) isClosing() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

// limited applies response-rate limiting to the answer that r has just made and returns what to send.
func (s *Server) limited(r *responder, c *counters, from netip.Addr, now time.Time, answer []byte) []byte {
	if s.limiter == nil || contains(s.config.RateLimitExempt, from) {
		return answer
	}
	name := rateName{node: r.node, class: r.message.rcode}
	if r.zone != nil {
		name.apex, name.class = r.zone.Apex(), -1
	}
	if s.limiter.allow(from, name, now) {
		return answer
	}
	slip := s.config.RateLimitSlip
	if n := c.dropped.Load() + c.slipped.Load() + 1; slip > 0 && n%uint64(slip) == 0 {
		if answer = r.refuse(); answer != nil {
			c.slipped.Add(1)
			return answer
		}
	}
	c.dropped.Add(1)
	return nil
}
