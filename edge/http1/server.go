package http1

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// MaxHead bounds the head of a request, its empty line included: 431 beyond.
const MaxHead = 64 << 10

// MaxFields bounds the fields of a head: 431 beyond. What a field takes beside its octets is ten times a short one.
const MaxFields = 256

const (
	// readSize is what a connection reads into while it has no more to hold; a larger head has a larger buffer until it is handled.
	readSize = 4 << 10
	// fewFields is how many a header may have that is kept for the next request.
	fewFields = 32
	// maxDrain bounds what is read and thrown away of a body that no handler wanted, or before a connection closes, in octets.
	maxDrain = 256 << 10
	// farewell is how long an idle connection may still bring a request that is on its way when the server shuts down.
	farewell = 50 * time.Millisecond
)

// Config of a Server. All is required but Logger and Refused.
type Config struct {
	// Handler answers a request. It may use the request, its header and the response until it returns, and what it took out of them
	// beyond: values, not the maps. It may panic with [http.ErrAbortHandler] to break its answer off.
	Handler func(w *Response, r *http.Request)
	// Refused is told of a head that was refused, and with which status; nil: nobody is. It must not wait.
	Refused func(c *Conn, status int)
	// HeaderTimeout is how long the head of a request may take from its first octet on (408), and how long the first one may not come;
	// IdleTimeout how long the next may not.
	// Both are kept to an eighth of the shorter, at most 250 ms.
	HeaderTimeout, IdleTimeout time.Duration
	// WriteStall is how long a client may take nothing of an answer, to an accuracy of half of it.
	WriteStall time.Duration
	// Linger is for how long what nobody wanted of a body, or what comes before a connection closes, is read and thrown away.
	Linger time.Duration
	// Logger takes a handler's panic, nil: nobody does.
	Logger *slog.Logger
}

// Server serves HTTP/1.1 on connections that it is given.
type Server struct {
	config  Config
	base    http.Request // what every request begins as, with its context
	writers sync.Pool    // of *[writeSize]byte

	epoch   time.Time
	now     atomic.Int64 // nanoseconds since epoch, at the last tick
	date    atomic.Pointer[string]
	closing atomic.Bool

	mu      sync.Mutex
	conns   map[*Conn]struct{}
	quit    chan struct{}  // ends the tick; nil while there is none, which is while there are no connections
	closed  bool           // no connection is served any more
	running sync.WaitGroup // of connections and of the tick
}

// NewServer returns a server. ctx is that of every request.
func NewServer(ctx context.Context, c Config) *Server {
	return &Server{config: c, base: *(&http.Request{}).WithContext(ctx), epoch: time.Now(), conns: make(map[*Conn]struct{})}
}

// ServeConn serves one connection until it ends, and closes it, or gives it away ([Response.Hijack]). One over TLS is a *tls.Conn whose
// handshake is done.
func (s *Server) ServeConn(nc net.Conn) {
	c := newConn(s, nc)
	if !s.add(c) {
		nc.Close()
		return
	}
	defer func() {
		if !c.taken {
			s.remove(c)
		}
	}()
	c.serve()
}

// add counts c among those that are served, false when the server is closed.
func (s *Server) add(c *Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.closing.Load() {
		return false
	}
	s.conns[c] = struct{}{}
	s.running.Add(1)
	if s.quit == nil {
		quit := make(chan struct{})
		s.quit = quit
		s.read()
		s.running.Go(func() { s.tick(quit) })
	}
	return true
}

func (s *Server) remove(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.conns, c); len(s.conns) == 0 {
		close(s.quit)
		s.quit = nil
	}
	s.running.Done()
}

// read looks at the clocks.
func (s *Server) read() {
	now := time.Now()
	s.now.Store(int64(now.Sub(s.epoch)))
	date := now.UTC().Format(http.TimeFormat)
	if old := s.date.Load(); old == nil || *old != date {
		s.date.Store(&date)
	}
}

// tick looks at every connection's deadline from time to time.
func (s *Server) tick(quit <-chan struct{}) {
	every := min(max(min(s.config.HeaderTimeout, s.config.IdleTimeout)/8, time.Millisecond), 250*time.Millisecond)
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-quit:
			return
		}
		s.read()
		now := s.now.Load()
		s.mu.Lock()
		for c := range s.conns {
			c.expire(now)
		}
		s.mu.Unlock()
	}
}

// Shutdown lets requests end, and connections with none of them, until ctx does. It returns nil once no connection is left. None is
// served from then on.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closing.Store(true)
	for c := range s.conns {
		c.dismiss()
	}
	s.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		s.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close closes every connection at once, but for those that were given away. It does not wait for handlers.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.closing.Store(true)
	for c := range s.conns {
		c.nc.Close()
	}
}

func (s *Server) panicked(c *Conn, what any) {
	if s.config.Logger != nil && what != http.ErrAbortHandler {
		s.config.Logger.Error("a request's handler panicked", "client", c.remote, "panic", what, "stack", string(debug.Stack()))
	}
}
