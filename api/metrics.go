package api

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/seal"
)

// fleetAge is how old the count of nodes that are behind may be: /metrics needs no token, and must not be a
// way to make the database work.
const fleetAge = 10 * time.Second

// metrics are what a handler counts, in one registry.
type metrics struct {
	handler   http.Handler
	requests  *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
	applies   *prometheus.CounterVec
	rollbacks *prometheus.CounterVec
	refusals  *prometheus.CounterVec
	polls     [4]prometheus.Counter // by pollResult
}

func newMetrics(reg *prometheus.Registry, svc *control.Service, now func() time.Time) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "guardyn_http_requests_total", Help: "Requests other than polls, by route and status.",
		}, []string{"method", "route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "guardyn_http_request_seconds", Help: "Time to answer a request other than a poll, by route.",
			Buckets: []float64{.001, .005, .025, .1, .5, 2, 10, 60},
		}, []string{"route"}),
		applies: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "guardyn_applies_total", Help: "Requests to publish, by outcome: applied, no_changes or the code of the refusal.",
		}, []string{"outcome"}),
		rollbacks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "guardyn_rollbacks_total", Help: "Requests to go back, by outcome: rolled_back or the code of the refusal.",
		}, []string{"outcome"}),
	}
	m.refusals = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "guardyn_node_refusals_total", Help: "Reports of nodes that refused an artefact, by why: signature, activation, content or other.",
	}, []string{"reason"})
	for _, reason := range []string{"signature", "activation", "content", "other"} {
		m.refusals.WithLabelValues(reason)
	}
	polls := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "guardyn_polls_total", Help: "Polls of nodes, by result: current (204), artefact (200), ahead (409) or refused.",
	}, []string{"result"})
	for i, result := range []string{"current", "artefact", "ahead", "refused"} {
		m.polls[i] = polls.WithLabelValues(result)
	}
	for _, c := range []prometheus.Collector{
		m.requests, m.seconds, m.applies, m.rollbacks, m.refusals, polls, &stats{svc: svc, now: now},
	} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
	}
	m.handler = promhttp.HandlerFor(reg, promhttp.HandlerOpts{MaxRequestsInFlight: 4, Timeout: 10 * time.Second})
	return m, nil
}

// poll counts the answer to a poll.
func (m *metrics) poll(status int) {
	switch status {
	case http.StatusNoContent:
		m.polls[0].Inc()
	case http.StatusOK:
		m.polls[1].Inc()
	case http.StatusConflict:
		m.polls[2].Inc()
	default:
		m.polls[3].Inc()
	}
}

// request counts an answer. Methods are a closed set, so that clients cannot make series.
func (m *metrics) request(method, route string, status int, took time.Duration) {
	switch method {
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodHead, http.MethodOptions:
	default:
		method = "other"
	}
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(route).Observe(took.Seconds())
}

// apply counts what came of a request to publish, rollback of one to go back.
func (m *metrics) apply(outcome string)    { m.applies.WithLabelValues(outcome).Inc() }
func (m *metrics) rollback(outcome string) { m.rollbacks.WithLabelValues(outcome).Inc() }

// refusal counts what a node reported. Its words are the node's own: the reasons here are a closed set.
func (m *metrics) refusal(code string) {
	reason := "other"
	switch code {
	case seal.CodeUnsigned, seal.CodeKeyUntrusted, seal.CodeSignatureMalformed, seal.CodeSignatureInvalid, seal.CodeFreshnessInvalid:
		reason = "signature"
	case seal.CodeActivationInvalid, seal.CodeStaleGeneration, seal.CodeEquivocation, seal.CodeGenerationJump:
		reason = "activation"
	case seal.CodeTooLarge, seal.CodePayloadMalformed, seal.CodeFormatUnsupported, seal.CodeHashMismatch, seal.CodeZoneIDMismatch,
		seal.CodeHostDuplicate, seal.CodeEnvelopeMismatch:
		reason = "content"
	}
	m.refusals.WithLabelValues(reason).Inc()
}

// stats collects what the control plane counts itself.
type stats struct {
	svc *control.Service
	now func() time.Time

	mu     sync.Mutex
	at     time.Time
	behind float64
	fleet  float64
	err    error
}

// The descriptions of stats, made once per scrape: they are cheap and hold no state.
func desc(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, nil) }

// Describe sends nothing, which makes the collector unchecked: Collect alone says what there is.
func (s *stats) Describe(chan<- *prometheus.Desc) {}

// Collect reads the counters and, when the last reading is old, the fleet.
func (s *stats) Collect(ch chan<- prometheus.Metric) {
	st := s.svc.Stats()
	send := func(kind prometheus.ValueType, name, help string, v float64) {
		ch <- prometheus.MustNewConstMetric(desc(name, help), kind, v)
	}
	counter, gauge := prometheus.CounterValue, prometheus.GaugeValue
	send(counter, "guardyn_polls_coded_total", "Polls answered with the difference from the payload that the node holds.", float64(st.PollsCoded))
	send(counter, "guardyn_polls_coded_saved_bytes_total", "Bytes of payloads that were not sent since a difference was.", float64(st.CodedSaved))
	send(gauge, "guardyn_long_polls", "Polls that wait now.", float64(st.LongPolls))
	send(counter, "guardyn_acks_total", "Reports of nodes.", float64(st.Acks))
	send(counter, "guardyn_node_rejections_total", "Reports of nodes that refused what they were offered.", float64(st.NodeRejections))
	send(counter, "guardyn_builds_total", "Snapshots built.", float64(st.Builds))
	send(counter, "guardyn_build_seconds_total", "Time spent building snapshots.", st.BuildSeconds)
	send(counter, "guardyn_apply_failures_total", "Requests to publish that failed.", float64(st.ApplyFailures))
	send(counter, "guardyn_purges_total", "Purges made by this process.", float64(st.Purges))
	send(counter, "guardyn_purge_answers_total", "Statements of purges that nodes were sent.", float64(st.PurgeAnswers))
	send(gauge, "guardyn_purge_sequence", "Number of the newest purge, 0 for none.", float64(st.PurgeSequence))
	send(gauge, "guardyn_live_version", "The version that is live, 0 for none.", float64(st.LiveVersion))
	send(gauge, "guardyn_live_generation", "The generation that is live, 0 for none.", float64(st.LiveGeneration))
	if fleet, behind, err := s.nodes(); err == nil {
		send(gauge, "guardyn_nodes", "Nodes that are registered.", fleet)
		send(gauge, "guardyn_nodes_behind", "Nodes that do not serve the live generation, or never said what they serve.", behind)
	}
}

// nodes counts the fleet, at most once per fleetAge.
func (s *stats) nodes() (fleet, behind float64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.now(); s.at.IsZero() || now.Sub(s.at) >= fleetAge {
		ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
		defer cancel()
		// The platform looks at its own fleet here; there is no request that it does so for.
		nodes, err := s.svc.ListNodes(ctx, control.Principal{UserID: "metrics", Operator: true})
		s.at, s.err, s.fleet, s.behind = now, err, float64(len(nodes)), 0
		for _, n := range nodes {
			if n.GenerationsBehind == nil || *n.GenerationsBehind > 0 {
				s.behind++
			}
		}
	}
	return s.fleet, s.behind, s.err
}
