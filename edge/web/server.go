package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/guardyn-edge/guardyn/zone"
)

// Server proxies HTTP/1.1. Its connections, to clients and to origins, outlive the views that it serves from.
type Server struct {
	config   Config
	http     *http.Server
	origins  *origins
	buffers  bufferPool
	listener *listener
	phases   []phase
	requests chan struct{} // a slot for each request being handled
	drained  sync.Once
	counters counters
}

// NewServer returns a server that does not listen yet.
func NewServer(c Config) *Server {
	s := &Server{config: c.withDefaults()}
	s.requests = make(chan struct{}, s.config.MaxRequests)
	s.phases = phaseTable(zone.Phases())
	s.origins = newOrigins(&s.config, newDialer(&s.config, &s.counters.originRefused))
	logger := s.config.stdLogger()
	s.http = &http.Server{
		Handler:                      s,
		ReadHeaderTimeout:            s.config.HeaderTimeout,
		IdleTimeout:                  s.config.IdleTimeout,
		MaxHeaderBytes:               maxHeaderBytes,
		DisableGeneralOptionsHandler: true,
		ConnContext:                  withConn,
		ErrorLog:                     logger,
	}
	return s
}

// Listen binds the address. The error names it.
func (s *Server) Listen() error {
	l, err := net.Listen("tcp", s.config.Addr)
	if err != nil {
		return fmt.Errorf("listen for HTTP on %s: %w", s.config.Addr, err)
	}
	s.listener = newListener(l, s.config.MaxConnections, s.config.WriteStall)
	return nil
}

// Addr is the address that Listen bound, nil before.
func (s *Server) Addr() net.Addr {
	if s.listener == nil {
		return nil
	}
	return s.listener.Addr()
}

// Serve serves until ctx ends or Close is called, then stops accepting, lets requests end for at most
// Config.Grace, and closes what is left, WebSockets at once. It returns when no goroutine of the server is
// left: nil after an orderly end.
func (s *Server) Serve(ctx context.Context) error {
	if s.listener == nil {
		return errors.New("serve HTTP: not listening")
	}
	failed := make(chan error, 1)
	go func() { failed <- s.http.Serve(s.listener) }()
	var err error
	select {
	case <-ctx.Done():
		s.shutdown()
		<-failed
	case err = <-failed:
		s.shutdown()
		if errors.Is(err, http.ErrServerClosed) {
			err = nil
		}
	}
	s.drain()
	if err != nil {
		return fmt.Errorf("serve HTTP on %s: %w", s.listener.Addr(), err)
	}
	return nil
}

// shutdown waits for requests within the grace and then closes every connection.
func (s *Server) shutdown() {
	ctx, cancel := context.WithTimeout(context.Background(), s.config.Grace)
	defer cancel()
	s.http.Shutdown(ctx) //nolint:errcheck // what it could not end is closed below
	s.http.Close()
	s.listener.closeConns()
}

// Close stops listening and serving as the end of Serve's context does, without the grace.
func (s *Server) Close() error {
	s.http.Close()
	if s.listener == nil {
		return nil
	}
	err := s.listener.Close()
	s.listener.closeConns()
	s.drain()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// drain waits until no request is handled, by taking every slot for good, and lets the origins go.
func (s *Server) drain() {
	s.drained.Do(func() {
		for range cap(s.requests) {
			s.requests <- struct{}{}
		}
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
