package host

import (
	"strconv"

	mdns "github.com/miekg/dns"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/guardyn-edge/guardyn/edge/dns"
	"github.com/guardyn-edge/guardyn/edge/pool"
	"github.com/guardyn-edge/guardyn/edge/web"
)

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
	descDNSSeconds  = desc("dns_udp_answer_seconds", "Time from reading DNS messages by UDP, up to 32 at once, until their answers were given to the system.")
	descHTTP        = desc("http_requests_total", "HTTP requests by status class; none when the client left first.", "class")
	descHTTPSeconds = desc("http_request_duration_seconds", "Time from the head of an HTTP request to the end of its answer, by status class; 1xx: WebSockets, to their end.", "class")
	descRuleMatches = desc("rule_matches_total", "Rules that matched.")
	descRuleErrors  = desc("rule_errors_total", "Expressions that erred and so did not match.")
	descOriginErr   = desc("origin_errors_total", "Requests answered 502 or 504, and answers that an origin broke off.")
	descConnect     = desc("origin_connect_seconds", "Time to open a connection to an origin, name resolution and TLS included.")
	descFirstByte   = desc("origin_first_byte_seconds", "Time from sending a request to an origin to the head of its answer.")
	descOriginGuard = desc("origin_refused_total", "Connections to origins that the origin guard stopped.")
	descShed        = desc("http_shed_total", "Requests answered 503 for lack of a slot.")
	descAccessLost  = desc("access_log_lost_total", "Access records that were not written: more waited than may, or writing failed.", "reason")
	descInFlight    = desc("http_in_flight", "Requests being handled.")
	descHTTPConns   = desc("http_connections", "Open client connections.")
)

// Of traces; absent when nobody takes them.
var (
	descSpans     = desc("trace_spans_total", "Spans that the collector took.")
	descSpansLost = desc("trace_spans_lost_total", "Spans that did not reach the collector: too many waited, or it did not take them.", "reason")
)

// Of single zones; absent unless the operator asks for them.
var (
	descZoneHTTP    = desc("zone_http_requests_total", "HTTP requests by zone and status class.", "zone", "class")
	descZoneSeconds = desc("zone_http_request_duration_seconds", "Time from the head of an HTTP request to the end of its answer, by zone.", "zone")
	descZoneDNS     = desc("zone_dns_queries_total", "DNS queries by zone and response code, those whose answer rate limiting held back included.", "zone", "rcode")
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
			count(descDNSAnswers, n, rcodeName(rcode))
		}
	}
	count(descDNSTrunc, d.Truncated)
	count(descDNSLimited, d.RateDropped, "dropped")
	count(descDNSLimited, d.RateSlipped, "slipped")
	count(descDNSPanics, d.Panics)
	gauge(descDNSConns, float64(d.OpenConnections))
	histogram(out, descDNSSeconds, d.UDPSeconds)

	c.e.collectPools(out)
	c.e.collectPurges(gauge, count)
	c.e.collectCache(gauge, count)
	c.e.collectFunctions(out)
	m := c.e.web.Metrics()
	for class, n := range m.Requests {
		count(descHTTP, n, statusClass(class))
		histogram(out, descHTTPSeconds, m.RequestSeconds[class], statusClass(class))
	}
	count(descRuleMatches, m.RuleMatches)
	count(descRuleErrors, m.RuleErrors)
	count(descOriginErr, m.OriginErrors)
	count(descOriginGuard, m.OriginRefused)
	histogram(out, descConnect, m.OriginConnect)
	histogram(out, descFirstByte, m.OriginFirstByte)
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
	if end := c.e.expiry.first(); !end.IsZero() {
		gauge(descCertEnd, float64(end.Unix()))
	}
	if c.e.tracer != nil {
		s := c.e.tracer.Stats()
		count(descSpans, s.Sent)
		count(descSpansLost, s.Dropped, "dropped")
		count(descSpansLost, s.Failed, "failed")
	}
	c.e.collectZones(out)
}

// collectZones sends what is counted of single zones: of each at most 28 series of HTTP and one for each response code of DNS.
func (e *Edge) collectZones(out chan<- prometheus.Metric) {
	e.webZones.Each(func(zone string, z *web.ZoneCounts) {
		for class, n := range z.Requests() {
			if n > 0 {
				out <- prometheus.MustNewConstMetric(descZoneHTTP, prometheus.CounterValue, float64(n), zone, statusClass(class))
			}
		}
		histogram(out, descZoneSeconds, z.Seconds(), zone)
	})
	e.dnsZones.Each(func(zone string, z *dns.ZoneCounts) {
		for rcode, n := range z.Queries() {
			if n > 0 {
				out <- prometheus.MustNewConstMetric(descZoneDNS, prometheus.CounterValue, float64(n), zone, rcodeName(rcode))
			}
		}
	})
}

func histogram(out chan<- prometheus.Metric, d *prometheus.Desc, v pool.HistogramValues, labels ...string) {
	out <- prometheus.MustNewConstHistogram(d, v.Count, v.Sum, v.Buckets, labels...)
}

// statusClass names the first digit of a status.
func statusClass(class int) string {
	if class == 0 {
		return "none"
	}
	return strconv.Itoa(class) + "xx"
}

// rcodeName names a response code. 16 is BADVERS in answers of a server that speaks no TSIG (RFC 6895 §2.3).
func rcodeName(rcode int) string {
	if rcode == mdns.RcodeBadVers {
		return "BADVERS"
	}
	return mdns.RcodeToString[rcode]
}
