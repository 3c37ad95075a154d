package host

import (
	"context"
	"strings"
	"time"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/guardyn-edge/guardyn/edge/health"
	"github.com/guardyn-edge/guardyn/edge/pool"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
)

// watchPools makes what checks the origins of pools and keeps what is known of them.
func (e *Edge) watchPools() {
	e.pools = pool.NewMonitor()
	e.checks = health.New(health.Config{
		Client: health.NewClient(health.ClientConfig{AllowedOrigins: e.cfg.AllowedOrigins}), Monitor: e.pools, Logger: e.cfg.Logger,
	})
}

// tellPools has the agent acknowledge again when other origins are down than it told of, as often as it polls at
// most, until ctx ends.
func (e *Edge) tellPools(ctx context.Context) {
	tick := time.NewTicker(e.cfg.Interval)
	defer tick.Stop()
	told := e.pools.Changes()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		e.pools.Impaired() // ends ejections that have had their time
		if now := e.pools.Changes(); now != told {
			told = now
			e.agent.Report()
		}
	}
}

// poolReport is what an acknowledgement says of the pools.
func (e *Edge) poolReport() *nodeproto.Pools {
	r := &nodeproto.Pools{Checked: e.checks.Counts().Origins, Down: []nodeproto.OriginDown{}}
	for _, i := range e.pools.Impaired() {
		d := nodeproto.OriginDown{Zone: string(i.Zone), Pool: i.Pool, Origin: i.Origin, Since: i.Since.UTC().Truncate(time.Second), Error: oneLine(i.Reason)}
		switch {
		case i.Unhealthy:
			d.State = nodeproto.OriginUnhealthy
		case i.Ejected:
			d.State = nodeproto.OriginEjected
		default:
			continue // in its slow start
		}
		if len(r.Down) == nodeproto.MaxOriginsDown {
			r.Omitted++
			continue
		}
		r.Down = append(r.Down, d)
	}
	return r
}

// oneLine leaves out what does not print, so that a message is as long as it looks in JSON, too.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

var (
	descOriginRequests  = desc("origin_requests_total", "Requests to origins of pools by how they went.", "result")
	descOriginSeconds   = desc("origin_seconds", "Time from a request to an origin of a pool to the head of its answer, or to the failure.")
	descOriginEjections = desc("origin_ejections_total", "Origins taken out of their pool for failures of requests.")
	descOriginRetries   = desc("origin_retries_total", "Requests offered to another origin since no connection could be opened.")
	descOriginsDown     = desc("origins_down", "Origins that take no requests, by why.", "state")
	descOriginsChecked  = desc("origins_checked", "Origins whose health is checked.")
	descHealthChecks    = desc("health_checks_total", "Health checks of origins by how they ended.", "result")
	descHealthSeconds   = desc("health_check_seconds", "How long health checks took.")
)

// collectPools sends what is known of origins. No metric names one: a fleet's zones have any number of them.
func (e *Edge) collectPools(out chan<- prometheus.Metric) {
	count := func(d *prometheus.Desc, v uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	gauge := func(d *prometheus.Desc, v int, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	c := e.pools.Counts()
	for k, n := range c.Results {
		count(descOriginRequests, n, k.String())
	}
	histogram(out, descOriginSeconds, c.Latency)
	count(descOriginEjections, c.Ejections)
	count(descOriginRetries, c.Retries)
	var unhealthy, ejected int
	for _, i := range e.pools.Impaired() {
		if i.Unhealthy {
			unhealthy++
		} else if i.Ejected {
			ejected++
		}
	}
	gauge(descOriginsDown, unhealthy, nodeproto.OriginUnhealthy)
	gauge(descOriginsDown, ejected, nodeproto.OriginEjected)
	h := e.checks.Counts()
	gauge(descOriginsChecked, h.Origins)
	count(descHealthChecks, h.Made-h.Failed, "passed")
	count(descHealthChecks, h.Failed, "failed")
	histogram(out, descHealthSeconds, h.Latency)
}
