package host

import (
	"log/slog"
	"net/http"
	"net/http/pprof"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	mdns "github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/guardyn-edge/guardyn/edge"
	"github.com/guardyn-edge/guardyn/internal/nodeproto"
)

// deepHealth is the answer of /deephealth.
type deepHealth struct {
	Serving     bool                `json:"serving"`
	Version     uint64              `json:"version"`
	Generation  uint64              `json:"generation"`
	Epoch       uint64              `json:"epoch"`
	ContentHash string              `json:"content_hash"`
	Zones       int                 `json:"zones"`
	LastPoll    time.Time           `json:"last_poll,omitzero"` // that was answered
	PollsFailed int                 `json:"polls_failed"`       // since then
	Stale       bool                `json:"freshness_stale"`
	Ahead       bool                `json:"ahead_of_control_plane"`
	TrustedKeys []string            `json:"trusted_keys"`
	LastError   *nodeproto.AckError `json:"last_error,omitempty"`
	Rollout     rolloutHealth       `json:"rollout"`
}

// adminServer serves health, metrics and profiles.
func (e *Edge) adminServer() (*http.Server, error) {
	reg := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), edgeCollector{e},
	} {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if e.live.Load() == nil {
			plain(w, http.StatusServiceUnavailable, "no configuration yet")
			return
		}
		plain(w, http.StatusOK, "ok")
	})
	mux.HandleFunc("GET /deephealth", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.MarshalWrite(w, e.deepHealth(), jsontext.WithIndent("  "))
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(e.cfg.Logger.Handler(), slog.LevelWarn),
	}, nil
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n"))
}

func (e *Edge) deepHealth() deepHealth {
	s := e.agent.Status()
	h := deepHealth{
		Version: s.Version, Generation: s.Generation, Epoch: s.Epoch, ContentHash: s.ContentHash,
		LastPoll: s.LastPoll, PollsFailed: s.Failures, Stale: s.Stale, Ahead: s.Ahead, LastError: s.LastError, TrustedKeys: []string{},
		Rollout: e.rolloutHealth(s),
	}
	if v := e.live.Load(); v != nil {
		h.Serving, h.Zones = true, v.Len()
	}
	for _, id := range e.cfg.PublicKeys.IDs() {
		h.TrustedKeys = append(h.TrustedKeys, string(id))
	}
	return h
}

// edgeCollector reads the node's counters when it is scraped; serving knows nothing of Prometheus.
type edgeCollector struct{ e *Edge }

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("guardyn_edge_"+name, help, labels, nil)
}

var (
	descVersion     = desc("config_version", "Version of the snapshot that is served, 0 for none.")
	descGeneration  = desc("config_generation", "Generation of the activation that is served.")
	descZones       = desc("zones", "Zones that are served.")
	descPollAge     = desc("poll_age_seconds", "Time since the control plane answered a poll; absent before the first.")
	descPollFailed  = desc("polls_failed", "Polls that failed since one was answered.")
	descStale       = desc("freshness_stale", "1 when no fresh answer came for three freshness intervals.")
	descAhead       = desc("ahead_of_control_plane", "1 while the control plane says that it never issued what this node serves.")
	descCodings     = desc("config_coded_total", "Payloads that came as the difference from the one before.")
	descCodingSaved = desc("config_coded_saved_bytes_total", "Bytes of payloads that did not come since a difference did.")
	descCodingFails = desc("config_coded_failures_total", "Differences that could not be used, so that the payload was fetched whole.")
	descRefused     = desc("config_refused", "1 while the last offer was refused, by its code.", "code")
	descDNSQueries  = desc("dns_queries_total", "DNS messages received.", "transport")
	descDNSAnswers  = desc("dns_answers_total", "DNS answers sent.", "rcode")
	descDNSTrunc    = desc("dns_truncated_total", "DNS answers sent with TC.")
	descDNSLimited  = desc("dns_rate_limited_total", "DNS answers that rate limiting held back.", "how")
	descDNSPanics   = desc("dns_panics_total", "DNS messages whose handling failed by a fault of the server.")
	descDNSConns    = desc("dns_connections", "Open DNS connections over TCP.")
	descHTTP        = desc("http_requests_total", "HTTP requests by status class; none when the client left first.", "class")
	descRuleMatches = desc("rule_matches_total", "Rules that matched.")
	descRuleErrors  = desc("rule_errors_total", "Expressions that erred and so did not match.")
	descOriginErr   = desc("origin_errors_total", "Requests answered 502 or 504.")
	descOriginGuard = desc("origin_refused_total", "Connections to origins that the origin guard stopped.")
	descShed        = desc("http_shed_total", "Requests answered 503 for lack of a slot.")
	descAccessLost  = desc("access_log_lost_total", "Access records that were not written: more waited than may, or writing failed.", "reason")
	descInFlight    = desc("http_in_flight", "Requests being handled.")
	descHTTPConns   = desc("http_connections", "Open client connections.")
)

// Of TLS.
var (
	descHandshakes     = desc("tls_handshakes_total", "TLS handshakes that succeeded, by version.", "version")
	descResumed        = desc("tls_resumed_total", "Of them, those that resumed a session.")
	descHandshakeFails = desc("tls_handshake_failures_total", "TLS handshakes that failed, by reason.", "reason")
	descCertEnd        = desc("tls_certificate_expires_seconds", "When the certificate that ends first does, in Unix time; absent without any.")
)

// Of the node's part in rollouts; all are absent while it takes no part.
var (
	descDiverged    = rolloutDesc("diverged", "1 while this node cannot follow what the cohort has decided.")
	descTerminal    = rolloutDesc("terminal", "1 while this node has given up for now on building or serving what was decided.")
	descObservation = rolloutDesc("observation_age_seconds", "Time since this node last read the rollout; before the first, since it takes part.")
	descFlaps       = rolloutDesc("flaps_total", "Trials that this node took back by guess and that were confirmed.")
)

func rolloutDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("guardyn_rollout_"+name, help, labels, nil)
}

// Describe sends nothing: which metrics there are follows what was counted.
func (edgeCollector) Describe(chan<- *prometheus.Desc) {}

func (c edgeCollector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	count := func(d *prometheus.Desc, v uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
	}
	h := c.e.deepHealth()
	gauge(descVersion, float64(h.Version))
	gauge(descGeneration, float64(h.Generation))
	gauge(descZones, float64(h.Zones))
	gauge(descPollFailed, float64(h.PollsFailed))
	if !h.LastPoll.IsZero() {
		gauge(descPollAge, c.e.cfg.Now().Sub(h.LastPoll).Seconds())
	}
	flag := func(d *prometheus.Desc, on bool) {
		v := 0.0
		if on {
			v = 1
		}
		gauge(d, v)
	}
	s := c.e.agent.Status()
	count(descCodings, s.Codings)
	count(descCodingSaved, s.CodingSaved)
	count(descCodingFails, s.CodingFailures)
	flag(descStale, h.Stale)
	flag(descAhead, h.Ahead)
	if h.LastError != nil {
		gauge(descRefused, 1, h.LastError.Code)
	}

	if r := h.Rollout; r.Cohort {
		flag(descDiverged, r.Diverged != "")
		flag(descTerminal, r.TerminalGeneration != 0)
		gauge(descObservation, float64(r.ObservationAge)/1000)
		count(descFlaps, r.Flaps)
	}

	d := c.e.dns.Stats()
	count(descDNSQueries, d.UDPQueries, "udp")
	count(descDNSQueries, d.TCPQueries, "tcp")
	for rcode, n := range d.Answers {
		if n > 0 {
			count(descDNSAnswers, n, mdns.RcodeToString[rcode])
		}
	}
	count(descDNSTrunc, d.Truncated)
	count(descDNSLimited, d.RateDropped, "dropped")
	count(descDNSLimited, d.RateSlipped, "slipped")
	count(descDNSPanics, d.Panics)
	gauge(descDNSConns, float64(d.OpenConnections))

	c.e.collectPools(out)
	m := c.e.web.Metrics()
	for class, n := range m.Requests {
		label := "none"
		if class > 0 {
			label = strconv.Itoa(class) + "xx"
		}
		count(descHTTP, n, label)
	}
	count(descRuleMatches, m.RuleMatches)
	count(descRuleErrors, m.RuleErrors)
	count(descOriginErr, m.OriginErrors)
	count(descOriginGuard, m.OriginRefused)
	count(descShed, m.Shed)
	if l := c.e.access; l != nil {
		count(descAccessLost, l.dropped.Load(), "dropped")
		count(descAccessLost, l.failed.Load(), "failed")
	}
	gauge(descInFlight, float64(m.InFlight))
	gauge(descHTTPConns, float64(m.Connections))
	count(descHandshakes, m.HandshakesTLS12, "1.2")
	count(descHandshakes, m.HandshakesTLS13, "1.3")
	count(descResumed, m.HandshakesResumed)
	count(descHandshakeFails, m.UnknownNames, "unknown_name")
	count(descHandshakeFails, m.HandshakeTimeouts, "timeout")
	count(descHandshakeFails, m.HandshakeFailures, "other")
	if end := c.e.firstExpiry(); !end.IsZero() {
		gauge(descCertEnd, float64(end.Unix()))
	}
}

// firstExpiry is when the certificate that ends first does; zero without any. It passes over all zones, for each scrape.
func (e *Edge) firstExpiry() (first time.Time) {
	if v := e.live.Load(); v != nil {
		v.TLSHosts(func(_ string, h *edge.TLSHost) bool {
			if end := h.Leaf().NotAfter; first.IsZero() || end.Before(first) {
				first = end
			}
			return true
		})
	}
	return first
}
