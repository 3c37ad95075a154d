package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"
)

// Bounds of a demo origin. One message of a WebSocket has at most 32 KiB.
const (
	maxOriginConns = 1024
	maxOriginHead  = 64 << 10
	originWrite    = 30 * time.Second // for an answer, or an event of one; what is slow on purpose has its time on top
	webSocketIdle  = 10 * time.Minute // without a message
)

// demoOrigin is a web server to try nodes with. It says in each answer which one it is, answers some paths in a special way, and can
// be told to fail or to be slow; see answer and told.
type demoOrigin struct {
	number int
	addr   string
	server *http.Server

	stop    context.CancelFunc // ends answers that stream, and WebSockets
	streams sync.WaitGroup     // WebSockets, which the server does not wait for
	ended   chan struct{}
	err     error // valid once ended is closed

	mu     sync.Mutex
	status int           // what every request is answered with; 0: as its path says
	delay  time.Duration // before every answer

	cacheable atomic.Uint64 // requests for /cached
}

func startDemoOrigin(ctx context.Context, number int, address string) (*demoOrigin, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	o := &demoOrigin{number: number, addr: listener.Addr().String(), stop: stop, ended: make(chan struct{})}
	o.server = &http.Server{
		Handler:           http.HandlerFunc(o.serve),
		BaseContext:       func(net.Listener) context.Context { return running },
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      maxSlow + maxSlow + originWrite, // told to be slow, and asked to be
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxOriginHead,
	}
	go func() {
		defer close(o.ended)
		if err := o.server.Serve(netutil.LimitListener(listener, maxOriginConns)); !errors.Is(err, http.ErrServerClosed) {
			o.err = fmt.Errorf("demo origin %d: %w", number, err)
		}
	}()
	return o, nil
}

// Addr is the address that was bound, as host:port.
func (o *demoOrigin) Addr() string { return o.addr }

// Wait returns when the origin has ended.
func (o *demoOrigin) Wait() error {
	<-o.ended
	return o.err
}

// Close ends streams and WebSockets, and the origin once other requests are answered, or when ctx is done.
func (o *demoOrigin) Close(ctx context.Context) error {
	o.stop()
	err := o.server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, o.server.Close())
	}
	<-o.ended
	o.streams.Wait()
	return err
}

// serve answers as the origin was told to.
func (o *demoOrigin) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Demo-Origin", fmt.Sprint(o.number))
	if o.told(w, r) {
		return
	}
	o.mu.Lock()
	status, delay := o.status, o.delay
	o.mu.Unlock()
	if !delayed(w, r, delay) {
		return
	}
	if status != 0 {
		w.WriteHeader(status)
		fmt.Fprintf(w, "Demo origin %d was told to answer %d.\n", o.number, status)
		return
	}
	o.answer(w, r)
}

// delayed waits for d. When it returns false the request was answered, or nobody waits for that.
func delayed(w http.ResponseWriter, r *http.Request, d time.Duration) bool {
	if d == 0 || pause(r.Context(), d) {
		return true
	}
	http.Error(w, "The demo origin stops.", http.StatusServiceUnavailable)
	return false
}
