package web

import (
	"crypto/tls"
	"encoding/hex"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/guardyn-edge/guardyn/edge/http1"
	"github.com/guardyn-edge/guardyn/edge/pool"
	"github.com/guardyn-edge/guardyn/edge/rules"
	"github.com/guardyn-edge/guardyn/zone"
)

// counters only rise.
type counters struct {
	ruleMatches   atomic.Uint64
	ruleErrors    atomic.Uint64
	originErrors  atomic.Uint64
	originRefused atomic.Uint64
	shed          atomic.Uint64

	handshakes12      atomic.Uint64
	handshakes13      atomic.Uint64
	resumed           atomic.Uint64
	unknownNames      atomic.Uint64
	handshakeTimeouts atomic.Uint64
	handshakeFailures atomic.Uint64
}

// Metrics are what a server counted since it was made, and what is in it now.
type Metrics struct {
	// Requests answered, by the first digit of the status; at 0 those whose client left first.
	Requests [6]uint64
	// RuleMatches counts rules that matched, RuleErrors expressions that erred and so did not.
	RuleMatches, RuleErrors uint64
	// OriginErrors counts requests answered 502 or 504 and answers that an origin broke off; OriginRefused connections that the origin guard
	// stopped.
	OriginErrors, OriginRefused uint64
	// RequestSeconds is how long requests took, by the same digit, from when their head had come to the end of the answer; at 1 are
	// WebSockets, to their end.
	RequestSeconds [6]pool.HistogramValues
	// OriginConnect is how long it took to open connections to origins, name resolution and TLS included. OriginFirstByte is the
	// time from a request's head being sent over one to the head of the final answer.
	OriginConnect, OriginFirstByte pool.HistogramValues
	// Shed counts requests answered 503 for lack of a slot.
	Shed uint64
	// InFlight are requests being handled, Connections those of clients.
	InFlight, Connections int
	// HandshakesTLS12 and HandshakesTLS13 succeeded, HandshakesResumed of them with the session of one before. Of those that did not,
	// UnknownNames asked for a name without a certificate, HandshakeTimeouts took too long, and HandshakeFailures are the others.
	HandshakesTLS12, HandshakesTLS13, HandshakesResumed uint64
	UnknownNames, HandshakeTimeouts, HandshakeFailures  uint64
}

// Metrics returns the server's counts.
func (s *Server) Metrics() Metrics {
	c := &s.counters
	m := Metrics{
		RuleMatches: c.ruleMatches.Load(), RuleErrors: c.ruleErrors.Load(),
		OriginErrors: c.originErrors.Load(), OriginRefused: c.originRefused.Load(),
		Shed: c.shed.Load(), InFlight: len(s.requests), Connections: s.conns.len(),
		HandshakesTLS12: c.handshakes12.Load(), HandshakesTLS13: c.handshakes13.Load(), HandshakesResumed: c.resumed.Load(),
		UnknownNames: c.unknownNames.Load(), HandshakeTimeouts: c.handshakeTimeouts.Load(), HandshakeFailures: c.handshakeFailures.Load(),
	}
	m.RequestSeconds, m.OriginFirstByte = s.meters.values()
	for i := range m.Requests {
		m.Requests[i] = m.RequestSeconds[i].Count
	}
	m.OriginConnect = s.origins.connects.Values()
	return m
}

// note keeps a rule for the access log.
func (x *exchange) note(rule *rules.Rule) {
	if x.server.config.AccessLog != nil && len(x.logged) < maxLogged {
		x.logged = append(x.logged, ruleLabel(rule))
	}
}

// ruleLabel names a rule in access log records and traces: phase/number/action.
func ruleLabel(rule *rules.Rule) string {
	return string(rule.Phase) + "/" + strconv.Itoa(rule.Index+1) + "/" + string(rule.Action)
}

// maxLogged bounds how many rules an access log record, or a trace, names.
const maxLogged = 16

// finish counts a request, hands its trace on, and writes its access log record when the sample picks it.
func (s *Server) finish(x *exchange, start time.Time) {
	class := x.w.status / 100
	if class > 5 || x.w.status == statusClientGone {
		class = 0
	}
	end := s.config.Now()
	x.meters.requests[class].Observe(end.Sub(start))
	if s.config.Zones != nil {
		name := ""
		if x.zone != nil {
			name = x.zone.Config.Name.String()
		}
		s.config.Zones.Of(name).count(class, end.Sub(start))
	}
	if n := x.rule.Errors; n > 0 {
		s.counters.ruleErrors.Add(uint64(n))
	}
	x.endTrace(end)
	if s.config.AccessLog == nil {
		return
	}
	if x.zone != nil && !picked(x.zone.Config.Settings.LogSampling, zone.DefaultLogSampling) {
		return
	}
	client, path := x.rule.Client, x.rule.Path
	if !client.IsValid() { // refused before anything was made of it
		client, path = x.peerOf(), pathOf(x.r.RequestURI)
	}
	attrs := make([]slog.Attr, 0, 16)
	attrs = append(attrs,
		slog.Time("start", start),
		slog.Float64("seconds", end.Sub(start).Seconds()),
		slog.String("client", client.String()),
		slog.String("host", x.r.Host),
		slog.String("method", x.r.Method),
		slog.String("protocol", x.r.Proto),
		slog.String("path", path), // without the query, which holds secrets too often
		slog.Int("status", x.w.status),
		slog.Int64("bytes", x.w.bytes),
	)
	if x.r.TLS != nil {
		attrs = append(attrs, slog.String("tls", strings.TrimPrefix(tls.VersionName(x.r.TLS.Version), "TLS ")))
	}
	if x.zone != nil {
		attrs = append(attrs, slog.String("zone", x.zone.Config.Name.String()), slog.Uint64("version", x.view.Version()))
	}
	if x.cache.outcome != "" {
		attrs = append(attrs, slog.String("cache", x.cache.outcome))
	}
	if x.target != nil && x.target.origin != nil && x.result.Status != 0 {
		attrs = append(attrs, slog.String("origin", x.target.origin.Pool+"/"+x.target.origin.Name))
	}
	if len(x.logged) > 0 {
		attrs = append(attrs, slog.Any("rules", x.logged))
	}
	if x.originErr != nil {
		attrs = append(attrs, slog.String("error", x.originErr.Error()))
	}
	switch {
	case x.w.status == statusClientGone && s.life.Err() != nil:
		attrs = append(attrs, slog.Bool("stopped", true))
	case x.w.status != statusClientGone && (!x.ended || x.w.failed):
		attrs = append(attrs, slog.Bool("cut_off", true))
	}
	if x.trace != nil {
		attrs = append(attrs, slog.String("trace_id", hex.EncodeToString(x.trace.ID[:])))
	}
	s.config.AccessLog.LogAttrs(x.r.Context(), slog.LevelInfo, "request", attrs...)
}

// pathOf is the path of a request's target that was refused, as it came.
func pathOf(target string) string {
	if target == "" || target[0] != '/' {
		u, err := url.ParseRequestURI(target)
		if err != nil {
			return ""
		}
		return u.EscapedPath()
	}
	path, _, _ := strings.Cut(target, "?")
	return path
}

// refusedHead counts a request whose head was not to be understood, and writes its access log record.
func (s *Server) refusedHead(c *http1.Conn, status int) {
	s.meters.next().requests[status/100].Observe(0)
	if s.config.AccessLog != nil {
		s.config.AccessLog.LogAttrs(s.life, slog.LevelInfo, "request", slog.Time("start", s.config.Now()), slog.String("client", c.Peer().String()),
			slog.Int("status", status), slog.String("error", "the request's head was refused"))
	}
}
