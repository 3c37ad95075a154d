package host

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/guardyn-edge/guardyn/control"
)

var descResolved = rolloutDesc("resolved_total", "Rollouts that this process ended, or its database in a call of its, by outcome and kind of reason.", "outcome", "reason")

// resolvedCollector tells of the rollouts that this process has ended.
type resolvedCollector struct{ svc *control.Service }

// Describe sends nothing: before the first rollout there is nothing to tell of one.
func (resolvedCollector) Describe(chan<- *prometheus.Desc) {}

func (c resolvedCollector) Collect(out chan<- prometheus.Metric) {
	for r, n := range c.svc.Stats().Resolved {
		out <- prometheus.MustNewConstMetric(descResolved, prometheus.CounterValue, float64(n), string(r.Outcome), r.Reason)
	}
}
