package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// demoOrigin is a web server that answers every request with a few lines about it.
type demoOrigin struct {
	server *http.Server
	addr   string
	ended  chan struct{}
	err    error // valid once ended is closed
}

func startDemoOrigin(ctx context.Context, address string) (*demoOrigin, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	o := &demoOrigin{
		addr:  listener.Addr().String(),
		ended: make(chan struct{}),
		server: &http.Server{
			Handler:           http.HandlerFunc(answerDemo),
			ReadHeaderTimeout: 10 * time.Second,
			ReadTimeout:       30 * time.Second,
			WriteTimeout:      30 * time.Second,
			IdleTimeout:       2 * time.Minute,
			MaxHeaderBytes:    64 << 10,
		},
	}
	go func() {
		defer close(o.ended)
		if err := o.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			o.err = fmt.Errorf("demo origin: %w", err)
		}
	}()
	return o, nil
}

func answerDemo(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintf(w, "Hello from the demo origin.\n%s %q for host %q, forwarded for %q by %s\n",
		r.Method, r.URL.RequestURI(), r.Host, r.Header.Get("X-Forwarded-For"), r.RemoteAddr)
}

// Addr is the address that was bound, as host:port.
func (o *demoOrigin) Addr() string { return o.addr }

// Wait returns when the origin has ended.
func (o *demoOrigin) Wait() error {
	<-o.ended
	return o.err
}

// Close ends the origin once running requests are answered, or when ctx is done.
func (o *demoOrigin) Close(ctx context.Context) error {
	err := o.server.Shutdown(ctx)
	<-o.ended
	return err
}
