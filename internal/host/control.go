package host

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/net/netutil"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/barrier/metrics"
	"github.com/guardyn-edge/guardyn/barrier/sqlstore"
	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/internal/telemetry"
	"github.com/guardyn-edge/guardyn/store"
)

// Control is a running control plane: a store, the cohort in its database, the service on both, a coordinator of rollouts, and the API
// that listens. It owns four goroutines (the service's work, the coordinator's, the listener's, the one that waits for these), one more
// when it sends traces, and ends them in Close.
type Control struct {
	cfg      ControlConfig
	db       *store.DB
	cohort   *sqlstore.Store
	rollouts telemetry.Rollouts
	tracer   *telemetry.Tracer // nil: nobody takes traces
	trace    *rolloutTrace
	svc      *control.Service
	listener net.Listener
	handler  *api.Handler
	server   *http.Server

	drain    context.CancelFunc // ends long polls, and coordinating
	stopWork context.CancelFunc // ends the service's background work
	ended    chan struct{}      // closed when all goroutines are done
	failed   chan struct{}      // closed when fault is set
	fail     sync.Once
	fault    error // the first failure
	close    sync.Once
	err      error // of Close
}

// StartControl opens the database, whose schema it migrates when cfg says so or the database is SQLite,
// listens, and serves. ctx bounds the start alone; a running Control is ended by Close.
func StartControl(ctx context.Context, cfg ControlConfig) (*Control, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	c := &Control{ended: make(chan struct{}), failed: make(chan struct{})}
	cfg.Logger = slog.New(c.rollouts.Logs(cfg.Logger.Handler()))
	c.cfg = cfg
	if cfg.Migrate || strings.HasPrefix(cfg.DatabaseURL, "sqlite:") {
		if err := Migrate(ctx, cfg.DatabaseURL); err != nil {
			return nil, err
		}
	}
	if c.db, err = store.Open(ctx, cfg.DatabaseURL); err != nil {
		return nil, err
	}
	// The service is made on what calls it. Nothing changes the cohort before start has both.
	decided := func(ctx context.Context, f control.DecisionFacts) (control.Decision, error) {
		return c.svc.Decided(ctx, f)
	}
	c.trace = &rolloutTrace{rollouts: &c.rollouts}
	if c.cohort, err = openCohort(ctx, c.db, decided, c.trace.step); err != nil {
		return nil, errors.Join(err, c.db.Close())
	}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.release())
	}
	return c, nil
}

func (c *Control) start(ctx context.Context) (err error) {
	c.tracer, err = telemetry.New(telemetry.Config{
		Endpoint: c.cfg.TraceEndpoint, Service: "guardyn-control", Instance: instance(c.cfg.Listen), Logger: c.cfg.Logger,
	})
	if err != nil {
		return err
	}
	c.trace.tracer = c.tracer
	reg := prometheus.NewRegistry()
	st, err := timed(c.db, reg)
	if err != nil {
		return err
	}
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	c.svc, err = control.New(control.Config{
		Store: st, Cohort: c.cohort, SigningKey: c.cfg.SigningKey, TrustedKeys: c.cfg.TrustedKeys, AllowedOrigins: c.cfg.AllowedOrigins,
		Now: c.cfg.Now, Logger: c.cfg.Logger,
	})
	if err != nil {
		return err
	}
	reg.MustRegister(resolvedCollector{c.svc}, metrics.NewRow(c.cohort, time.Now))
	schema, err := schemasOf(ctx, c.db)
	if err != nil {
		return err
	}
	checks := readiness{db: c.db, schema: schema, own: c.cfg.SigningKey.Public(), trusted: c.cfg.TrustedKeys}
	draining, drain := context.WithCancel(context.Background())
	handler, err := api.NewHandler(c.svc, api.Options{
		Logger: c.cfg.Logger, Registry: reg, Now: c.cfg.Now, Ready: checks.problems, Draining: draining,
		Rollouts: c.cohort, SecretRecipient: c.cfg.SecretRecipient,
	})
	if err != nil {
		drain()
		return err
	}
	c.handler, c.server = handler, api.NewHTTPServer(handler, c.cfg.Logger)
	if c.cfg.TLSCert != "" {
		pair, err := tls.LoadX509KeyPair(c.cfg.TLSCert, c.cfg.TLSKey)
		if err != nil {
			drain()
			return fmt.Errorf("certificate of the API: %w", err)
		}
		c.server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.cfg.Listen)
	if err != nil {
		drain()
		return fmt.Errorf("listen for the API: %w", err)
	}
	c.listener = netutil.LimitListener(listener, c.cfg.MaxConns)
	work, stopWork := context.WithCancel(context.Background())
	c.drain, c.stopWork = drain, stopWork

	var running sync.WaitGroup
	running.Go(func() {
		if err := c.svc.Run(work); err != nil && work.Err() == nil {
			c.failWith(fmt.Errorf("control plane: %w", err))
		}
	})
	coordinator := c.newCoordinator()
	running.Go(func() { coordinator.Run(draining) })
	if c.tracer != nil {
		running.Go(func() { c.trace.follow(work, c.cohort) })
	}
	running.Go(func() {
		serve := func() error { return c.server.Serve(c.listener) }
		if c.server.TLSConfig != nil {
			serve = func() error { return c.server.ServeTLS(c.listener, "", "") }
		}
		if err := serve(); !errors.Is(err, http.ErrServerClosed) {
			c.failWith(fmt.Errorf("serve the API on %s: %w", c.Addr(), err))
		}
	})
	go func() {
		running.Wait()
		close(c.ended)
	}()
	c.cfg.Logger.Info("control plane is up", "listen", c.Addr(), "key_id", string(c.cfg.SigningKey.ID()))
	return nil
}

func (c *Control) failWith(err error) {
	c.fail.Do(func() {
		c.fault = err
		close(c.failed)
	})
}

// Addr is what the API listens on, host:port.
func (c *Control) Addr() string { return c.listener.Addr().String() }

// Store is the control plane's store, for what has no route: the first operator (control.Bootstrap). Close
// closes it.
func (c *Control) Store() control.Store { return c.db }

// Service is the running control plane without HTTP.
func (c *Control) Service() *control.Service { return c.svc }

// Wait returns when the control plane cannot go on, with the reason, or was closed, with nil. After the former
// the caller still calls Close.
func (c *Control) Wait() error {
	select {
	case <-c.failed:
		return c.fault
	case <-c.ended:
	}
	select {
	case <-c.failed:
		return c.fault
	default:
		return nil
	}
}

// Close gives the coordinator's lease back, stops listening, answers long polls at once and other requests to their end, writes
// what was heard of nodes, and closes the database. When ctx ends first, requests that are left are cut off.
func (c *Control) Close(ctx context.Context) error {
	c.close.Do(func() {
		c.drain()
		err := c.server.Shutdown(ctx)
		if err != nil {
			err = errors.Join(fmt.Errorf("requests were cut off: %w", err), c.server.Close())
		}
		c.stopWork()
		<-c.ended
		c.err = errors.Join(err, c.release())
	})
	return c.err
}

// release gives back what a start took, as far as it came, once nothing that it began runs.
func (c *Control) release() error {
	if c.handler != nil {
		c.handler.Close()
	}
	if err := c.tracer.Close(); err != nil {
		c.cfg.Logger.Warn("traces of rollouts were dropped", "error", err)
	}
	return errors.Join(c.cohort.Close(), c.db.Close())
}
