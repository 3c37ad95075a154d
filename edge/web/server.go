package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/guardyn-edge/guardyn/edge/http1"
	"github.com/guardyn-edge/guardyn/edge/ratelimit"
	"github.com/guardyn-edge/guardyn/zone"
)

// Server proxies HTTP/1.1 and, over TLS, HTTP/2. Its connections, to clients and to origins, outlive the views that it serves from.
type Server struct {
	config    Config
	http1     *http1.Server
	http2     *http.Server // over TLS
	origins   *origins
	buffers   bufferPool
	exchanges sync.Pool // of *exchange
	meters    meterShares
	conns     *connSet
	plain     *listener
	secure    *tlsListener // nil without Config.TLSAddr
	phases    []phase
	limits    *ratelimit.Limiter // outlives views
	requests  chan struct{}      // a slot for each request being handled
	drained   sync.Once

	// life ends when the grace for what is under way does.
	life    context.Context
	endLife context.CancelFunc
	// Of the cache: what runs behind it, and the exchanges that no client waits for, with a slot for each.
	behindCache []phase
	fetches     chan struct{}
	fetching    sync.WaitGroup
	counters    counters
}

// lingerTime is how long what nobody wants of a request's body is waited for once it was answered.
const lingerTime = 5 * time.Second

// NewServer returns a server that does not listen yet.
func NewServer(c Config) *Server {
	s := &Server{config: c.withDefaults()}
	s.requests = make(chan struct{}, s.config.MaxRequests)
	s.conns = newConnSet(s.config.MaxConnections)
	s.phases = phaseTable(zone.Phases())
	for i := range s.phases {
		if s.phases[i].name == zone.PhaseCache {
			s.behindCache = s.phases[i+1:]
		}
	}
	s.life, s.endLife = context.WithCancel(context.Background())
	s.fetches = make(chan struct{}, maxFetches)
	s.limits = ratelimit.New(0, s.config.Now())
	s.origins = newOrigins(&s.config, newDialer(&s.config, &s.counters.originRefused))
	logger := s.config.stdLogger()
	s.http1 = http1.NewServer(context.Background(), http1.Config{
		Handler:       func(w *http1.Response, r *http.Request) { s.serve(w, r, w.Conn()) },
		Refused:       s.refusedHead,
		HeaderTimeout: s.config.HeaderTimeout, IdleTimeout: s.config.IdleTimeout, WriteStall: s.config.WriteStall,
		Linger: lingerTime, Logger: s.config.Logger,
	})
	s.http2 = &http.Server{
		Handler:                      http.HandlerFunc(s.serveHTTP2),
		ReadHeaderTimeout:            s.config.HeaderTimeout,
		IdleTimeout:                  s.config.IdleTimeout,
		MaxHeaderBytes:               maxHeaderBytes,
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     logger,
		HTTP2:                        http2Bounds(&s.config),
	}
	return s
}

// Listen binds the addresses. The error names the one that cannot be bound; none is bound then.
func (s *Server) Listen() error {
	l, err := net.Listen("tcp", s.config.Addr)
	if err != nil {
		return fmt.Errorf("listen for HTTP on %s: %w", s.config.Addr, err)
	}
	if s.config.TLSAddr != "" {
		secure, err := net.Listen("tcp", s.config.TLSAddr)
		if err != nil {
			return errors.Join(fmt.Errorf("listen for HTTPS on %s: %w", s.config.TLSAddr, err), l.Close())
		}
		s.secure = newTLSListener(secure, s)
	}
	s.plain = newListener(l, s.conns)
	return nil
}

// Addr is the address that Listen bound, nil before.
func (s *Server) Addr() net.Addr {
	if s.plain == nil {
		return nil
	}
	return s.plain.Addr()
}

// TLSAddr is the same for TLS, nil when that is not served.
func (s *Server) TLSAddr() net.Addr {
	if s.secure == nil {
		return nil
	}
	return s.secure.Addr()
}

// Serve serves until ctx ends or Close is called, then stops accepting, lets requests end for at most
// Config.Grace, and closes what is left, WebSockets at once. It returns when no goroutine of the server is
// left: nil after an orderly end.
func (s *Server) Serve(ctx context.Context) error {
	if s.plain == nil {
		return errors.New("serve HTTP: not listening")
	}
	var serving sync.WaitGroup
	failed := make(chan error, 3)
	part := func(address net.Addr, serve func() error) {
		serving.Go(func() {
			if err := serve(); err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
				err = fmt.Errorf("serve HTTP on %s: %w", address, err)
				failed <- err
				return
			}
			failed <- nil
		})
	}
	part(s.plain.Addr(), func() error {
		return s.plain.run(func(c *clientConn) { go s.http1.ServeConn(c) })
	})
	if s.secure != nil {
		part(s.secure.Addr(), s.secure.run)
		part(s.secure.Addr(), func() error { return s.http2.Serve(s.secure) })
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	s.shutdown()
	serving.Wait()
	s.drain()
	return err
}

// shutdown waits for requests within the grace and then closes every connection.
func (s *Server) shutdown() {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.Grace)
	defer cancel()
	if s.secure != nil {
		s.secure.Close() //nolint:errcheck // it ends
	}
	s.plain.Close() //nolint:errcheck // it ends
	var ending sync.WaitGroup
	ending.Go(func() { s.http1.Shutdown(ctx) }) //nolint:errcheck // what it could not end is closed below
	s.http2.Shutdown(ctx)                       //nolint:errcheck // the same
	ending.Wait()
	s.awaitTLS(ctx)
	s.endLife()
	s.http1.Close()
	s.http2.Close()
	s.conns.closeAll()
	s.awaitTLS(context.Background())
}

// awaitTLS waits until every handshake has ended, or ctx has.
func (s *Server) awaitTLS(ctx context.Context) {
	if s.secure == nil {
		return
	}
	ended := make(chan struct{})
	go func() {
		s.secure.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
}

// Close stops listening and serving as the end of Serve's context does, without the grace.
func (s *Server) Close() error {
	s.endLife()
	s.http1.Close()
	s.http2.Close()
	if s.plain == nil {
		return nil
	}
	err := s.plain.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	if s.secure != nil {
		err = errors.Join(err, s.secure.Close())
	}
	s.conns.closeAll()
	s.awaitTLS(context.Background())
	s.drain()
	return err
}

// drain waits until no request is handled, by taking every slot for good, and lets the origins go.
func (s *Server) drain() {
	s.drained.Do(func() {
		for range cap(s.requests) {
			s.requests <- struct{}{}
		}
		s.fetching.Wait()
		s.origins.close()
	})
}

// bufferPool lends the buffers that bodies are copied through.
type bufferPool struct{ pool sync.Pool }

const bufferSize = 32 << 10

func (p *bufferPool) Get() []byte {
	if b, ok := p.pool.Get().(*[bufferSize]byte); ok {
		return b[:]
	}
	return new([bufferSize]byte)[:]
}

func (p *bufferPool) Put(b []byte) {
	if len(b) == bufferSize {
		p.pool.Put((*[bufferSize]byte)(b))
	}
}
