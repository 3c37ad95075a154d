package host

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/barrier/remote"
	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/edge/cache"
	"github.com/guardyn-edge/guardyn/edge/dns"
	"github.com/guardyn-edge/guardyn/edge/function"
	"github.com/guardyn-edge/guardyn/edge/health"
	"github.com/guardyn-edge/guardyn/edge/perzone"
	"github.com/guardyn-edge/guardyn/edge/pool"
	"github.com/guardyn-edge/guardyn/edge/probe"
	"github.com/guardyn-edge/guardyn/edge/web"
	"github.com/guardyn-edge/guardyn/internal/durable"
	"github.com/guardyn-edge/guardyn/internal/telemetry"
	"github.com/guardyn-edge/guardyn/node"
	"github.com/guardyn-edge/guardyn/seal"
)

// Edge is a running edge node: the agent, its part in rollouts with what judges them, and the servers that answer from what it
// installs. It owns a goroutine for each and ends them in Close.
type Edge struct {
	cfg   EdgeConfig
	live  edge.Live
	state *durable.Dir

	rollouts telemetry.Rollouts
	tracer   *telemetry.Tracer // nil: nobody takes traces

	source *api.NodeClient
	remote *remote.Client
	voter  *tracedVoter // over remote
	agent  *node.Agent
	access *accessLog // nil: there is none
	prober *probe.Prober
	pools  *pool.Monitor   // of the origins of every view
	checks *health.Checker // of the origins of the view that is served
	// functions compiles and runs those of every view.
	functions *function.Engine
	dns       *dns.Server
	web       *web.Server
	cache     *cache.Cache // of answers; nil: there is none
	// dnsZones and webZones are counts of single zones, nil when no metric names any.
	dnsZones *perzone.Set[dns.ZoneCounts]
	webZones *perzone.Set[web.ZoneCounts]
	expiry   expiry // of the certificates that are served
	admin    *http.Server

	adminListener net.Listener
	stop          context.CancelFunc
	ended         chan struct{} // closed when every goroutine is done
	failed        chan struct{} // closed when fault is set
	fail          sync.Once
	fault         error
	close         sync.Once
	err           error
}

// StartEdge takes the state directory, listens, serves what the directory holds, and starts to poll. A control
// plane that is away is no error. ctx bounds the start alone; a running Edge is ended by Close.
func StartEdge(ctx context.Context, cfg EdgeConfig) (_ *Edge, err error) {
	if cfg, err = cfg.withDefaults(); err != nil {
		return nil, err
	}
	e := &Edge{ended: make(chan struct{}), failed: make(chan struct{})}
	cfg.Logger = slog.New(e.rollouts.Logs(cfg.Logger.Handler()))
	e.cfg = cfg
	if e.state, err = durable.Open(cfg.StateDir); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := e.start(ctx); err != nil {
		return nil, errors.Join(err, e.release())
	}
	return e, nil
}

func (e *Edge) start(ctx context.Context) (err error) {
	if err := e.connect(); err != nil {
		return err
	}
	e.watchPools()
	if err := e.openFunctions(); err != nil {
		return err
	}
	e.dnsZones, e.webZones = perzone.New[dns.ZoneCounts](e.cfg.MetricsZones), perzone.New[web.ZoneCounts](e.cfg.MetricsZones)
	if e.cfg.CacheMemory >= 0 {
		e.cache = cache.New(int64(e.cfg.CacheMemory))
	}
	agent := node.Config{
		Source: e.source, Host: e, Keys: e.cfg.PublicKeys, Dir: e.state, Interval: e.cfg.Interval, Wait: e.cfg.Wait,
		Logger: e.cfg.Logger, Now: e.cfg.Now, Pools: e.poolReport,
	}
	e.followPurges(&agent)
	e.agent, err = node.New(agent)
	if err != nil {
		return err
	}
	// The disk first: no query meets an empty node that could have answered.
	if _, err := e.agent.Boot(ctx); err != nil {
		return err
	}
	e.dns, err = dns.NewServer(dns.Config{
		Live: &e.live, Addr: e.cfg.DNSAddr, NSID: e.cfg.NSID, AllowVersion: e.cfg.VersionClients,
		RateLimitExempt: e.cfg.RateLimitExempt, Logger: e.cfg.Logger, Now: e.cfg.Now, Zones: e.dnsZones,
	})
	if err != nil {
		return err
	}
	if e.access, err = openAccessLog(e.cfg.AccessLog); err != nil {
		return err
	}
	e.web = web.NewServer(web.Config{
		AccessLog: e.access.logger(), Trace: e.requestTraces(), Zones: e.webZones,
		Cache: e.cache, View: e.live.Load, Addr: e.cfg.HTTPAddr, TLSAddr: e.cfg.HTTPSAddr, AllowedOrigins: e.cfg.AllowedOrigins, Logger: e.cfg.Logger, Now: e.cfg.Now,
	})
	if e.admin, err = e.adminServer(); err != nil {
		return err
	}
	if err := e.dns.Listen(); err != nil {
		return err
	}
	if err := e.web.Listen(); err != nil {
		return err
	}
	if e.adminListener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", e.cfg.AdminAddr); err != nil {
		return fmt.Errorf("listen for the admin address: %w", err)
	}
	e.adminListener = netutil.LimitListener(e.adminListener, maxAdminConns)
	e.prober = e.newProber()
	e.run()
	return nil
}

// run starts what runs until Close.
func (e *Edge) run() {
	work, stop := context.WithCancel(context.Background())
	e.stop = stop
	var running sync.WaitGroup
	part := func(name string, serve func() error) {
		running.Go(func() {
			if err := serve(); err != nil {
				e.failWith(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	part("agent", func() error { return e.agent.Run(work) })
	part("rollouts", func() error { return e.takePart(work) })
	running.Go(func() { e.prober.Run(work) })
	running.Go(func() { e.checks.Run(work) })
	running.Go(func() { e.tellPools(work) })
	running.Go(func() { e.pruneFunctions(work) })
	running.Go(func() { newIdleMemory().run(work) })
	part("DNS on "+e.DNSAddr(), func() error { return e.dns.Serve(work) })
	part("HTTP on "+e.HTTPAddr(), func() error { return e.web.Serve(work) })
	part("admin on "+e.AdminAddr(), func() error {
		if err := e.admin.Serve(e.adminListener); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	go func() {
		running.Wait()
		close(e.ended)
	}()
}

func (e *Edge) failWith(err error) {
	e.fail.Do(func() {
		e.fault = err
		close(e.failed)
	})
}

// Prepare implements node.Host: it compiles c, sharing with the view that is served.
func (e *Edge) Prepare(_ context.Context, c *seal.Candidate, epoch, generation uint64) (node.Prepared, error) {
	begun := e.cfg.Now()
	view, err := edge.Compile(e.live.Load(), c.Snapshot(), generation, edge.Options{
		ServiceAddresses: e.cfg.ServiceAddresses, Epoch: epoch, Secrets: e.cfg.SecretIdentities, Monitor: e.pools,
		Functions: e.functions,
	})
	if err != nil {
		return nil, err
	}
	e.cfg.Logger.Debug("compiled", "version", view.Version(), "zones", view.Len(), "took", e.cfg.Now().Sub(begun).Round(time.Microsecond))
	return compiled{e, view, generation}, nil
}

type compiled struct {
	e          *Edge
	view       *edge.View
	generation uint64
}

func (c compiled) Swap() {
	before := c.e.live.Load()
	c.e.live.Store(c.view)
	c.e.checks.Swapped(before, c.view)
	c.e.expiry.swapped(before, c.view)
	c.e.forgetZones(before, c.view)
	c.e.voter.swapped(c.generation)
}

// DNSAddr, HTTPAddr and AdminAddr are what the node listens on, host:port.
func (e *Edge) DNSAddr() string   { return e.dns.Addr().String() }
func (e *Edge) HTTPAddr() string  { return e.web.Addr().String() }
func (e *Edge) AdminAddr() string { return e.adminListener.Addr().String() }

// HTTPSAddr is the same for HTTPS, empty when the node does not serve it.
func (e *Edge) HTTPSAddr() string {
	if a := e.web.TLSAddr(); a != nil {
		return a.String()
	}
	return ""
}

// Status is what the agent does now.
func (e *Edge) Status() node.Status { return e.agent.Status() }

// Wait returns when the node cannot go on, with the reason, or was closed, with nil. After the former the
// caller still calls Close.
func (e *Edge) Wait() error {
	select {
	case <-e.failed:
		return e.fault
	case <-e.ended:
	}
	select {
	case <-e.failed:
		return e.fault
	default:
		return nil
	}
}

// Close stops polling and listening, answers what is under way, and gives the state directory back. When ctx
// ends first, connections that are left are cut off.
func (e *Edge) Close(ctx context.Context) error {
	e.close.Do(func() {
		e.stop()
		err := e.admin.Shutdown(ctx)
		if err != nil {
			err = errors.Join(err, e.admin.Close())
		}
		select {
		case <-e.ended:
		case <-ctx.Done():
			err = errors.Join(err, fmt.Errorf("requests were cut off: %w", ctx.Err()), e.web.Close())
			<-e.ended
		}
		e.err = errors.Join(err, e.release())
	})
	return e.err
}

// release gives back what a start took, as far as it came.
func (e *Edge) release() error {
	if e.stop == nil {
		if e.dns != nil {
			e.dns.Close()
		}
		if e.web != nil {
			_ = e.web.Close()
		}
		if e.adminListener != nil {
			_ = e.adminListener.Close()
		}
	}
	if e.remote != nil {
		e.remote.Close()
	}
	if err := e.tracer.Close(); err != nil {
		e.cfg.Logger.Warn("traces were dropped", "error", err)
	}
	if err := e.access.close(); err != nil {
		e.cfg.Logger.Warn("access log not closed", "error", err)
	}
	if e.cache != nil {
		e.cache.Close()
	}
	if e.functions != nil {
		if err := e.functions.Close(); err != nil {
			e.cfg.Logger.Warn("functions were not closed", "error", err)
		}
	}
	return e.state.Close()
}
