package web

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/guardyn-edge/guardyn/edge/function"
	"github.com/guardyn-edge/guardyn/edge/rules"
	"github.com/guardyn-edge/guardyn/zone"
)

// Trace is what a node did for one request that is traced: the server's span, and below it one for each try at an origin or the call
// of a function.
// Names are those of OpenTelemetry's semantic conventions for HTTP where there is one.
type Trace struct {
	ID [16]byte
	// State is the caller's tracestate, empty for none.
	State string
	Spans []Span // the server's first; at most maxSpans
}

// SpanKind tells what a span is of: a request that was answered, one that was made, or work within the node.
type SpanKind uint8

// The kinds.
const (
	SpanServer SpanKind = iota
	SpanClient
	SpanInternal
)

// Span is one part of a Trace.
type Span struct {
	ID, Parent [8]byte // Parent is zero where the trace begins; the first span's is the caller's
	Kind       SpanKind
	Name       string
	Start, End time.Time
	Failed     bool
	Error      string // why, if that is known in words
	Attributes []slog.Attr
	Events     []SpanEvent
}

// SpanEvent is a moment in a Span.
type SpanEvent struct {
	Name       string
	At         time.Time
	Attributes []slog.Attr
}

// Bounds of one trace. What comes beyond them is left out.
const (
	maxSpans      = 16
	maxAttributes = 64
	maxEvents     = 32
)

// requestTrace is the trace of a request on its way. A request that is not traced has none; what it would cost to describe
// something is only spent after a look at that.
type requestTrace struct {
	Trace
	flags byte
	rules []string // that matched
	open  bool     // the last span is a try or a call that has not ended
	told  bool     // it was handed on
}

// follow takes the caller's trace context from the request and decides whether this request is traced. The trace goes on with
// the caller's id, whoever that is. Whether it is sampled is the caller's to say when that is a trusted proxy, since else a stranger could
// have every request of theirs exported; by the zone's rate otherwise, at random: who makes up the id would choose, too, if it
// were derived from that.
func (x *exchange) follow(trustedPeer bool, start time.Time) {
	from, continued := readTraceContext(x.r.Header)
	if x.server.config.Trace == nil {
		return
	}
	if continued && trustedPeer {
		if from.flags&flagSampled == 0 {
			return
		}
	} else if !picked(x.zone.Config.Settings.TraceSampling, zone.DefaultTraceSampling) {
		return
	}
	x.trace = newRequestTrace(x, from, continued, start)
}

// picked picks by a share, or by otherwise when none is set.
func picked(share *zone.Percent, otherwise zone.Percent) bool {
	if share != nil {
		otherwise = *share
	}
	return otherwise > 0 && rand.IntN(100_00) < int(otherwise)
}

func newRequestTrace(x *exchange, from traceContext, continued bool, start time.Time) *requestTrace {
	t := &requestTrace{flags: flagSampled}
	t.Spans = make([]Span, 1, 2)
	server := &t.Spans[0]
	if continued {
		t.ID, server.Parent = from.trace, from.parent
		t.flags |= from.flags & flagRandom
		t.State = strings.Join(x.r.Header[tracestateField], ",")
	} else {
		t.flags |= flagRandom
		for t.ID == [16]byte{} {
			binary.NativeEndian.PutUint64(t.ID[:8], rand.Uint64())
			binary.NativeEndian.PutUint64(t.ID[8:], rand.Uint64())
		}
	}
	server.ID, server.Kind, server.Start = newSpanID(), SpanServer, start
	name, attributes := describeMethod(x.r.Method, make([]slog.Attr, 0, 20))
	server.Name = name
	server.Attributes = append(attributes,
		slog.String("url.scheme", x.scheme),
		slog.String("server.address", x.rule.Host),
		slog.String("url.path", x.rule.Path), // without the query, which holds secrets too often
		slog.String("client.address", x.rule.Client.String()),
		slog.String("network.protocol.version", x.rule.Version),
		slog.String("guardyn.zone", x.rule.Zone),
		slog.Uint64("guardyn.version", x.view.Version()),
		slog.Uint64("guardyn.generation", x.view.Generation()),
	)
	if x.r.TLS != nil {
		server.Attributes = append(server.Attributes,
			slog.String("tls.protocol.version", strings.TrimPrefix(tls.VersionName(x.r.TLS.Version), "TLS ")))
	}
	return t
}

func newSpanID() (id [8]byte) {
	for id == [8]byte{} {
		binary.NativeEndian.PutUint64(id[:], rand.Uint64())
	}
	return id
}

// describeMethod appends the attributes of a method and returns the span's name. A client may make up any number of methods.
func describeMethod(method string, attributes []slog.Attr) (string, []slog.Attr) {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, http.MethodPatch:
		return method, append(attributes, slog.String("http.request.method", method))
	}
	return "HTTP", append(attributes, slog.String("http.request.method", "_OTHER"), slog.String("http.request.method_original", method))
}

// attribute adds to the span that is open: the last try at an origin, or the server's.
func (t *requestTrace) attribute(a ...slog.Attr) {
	s := t.current()
	s.Attributes = append(s.Attributes, a[:min(len(a), maxAttributes-len(s.Attributes))]...)
}

// event adds a moment to that span.
func (t *requestTrace) event(at time.Time, name string, a ...slog.Attr) {
	if s := t.current(); len(s.Events) < maxEvents {
		s.Events = append(s.Events, SpanEvent{Name: name, At: at, Attributes: a})
	}
}

func (t *requestTrace) current() *Span {
	if t.open {
		return &t.Spans[len(t.Spans)-1]
	}
	return &t.Spans[0]
}

// matched notes a rule.
func (t *requestTrace) matched(rule *rules.Rule) {
	if len(t.rules) < maxLogged {
		t.rules = append(t.rules, ruleLabel(rule))
	}
}

// try begins a span for a try at the target and makes it the parent that the target is told.
func (x *exchange) try() {
	t := x.trace
	if t == nil {
		return
	}
	now := x.server.config.Now()
	t.endTry(now)
	if len(t.Spans) == maxSpans {
		return
	}
	s := Span{ID: newSpanID(), Parent: t.Spans[0].ID, Kind: SpanClient, Start: now}
	s.Name, s.Attributes = describeMethod(x.r.Method, make([]slog.Attr, 0, 12))
	s.Attributes = append(x.target.describe(s.Attributes),
		slog.String("url.full", x.target.urlScheme()+"://"+x.target.hostHeader+x.rule.Path))
	if n := len(t.Spans) - 1; n > 0 {
		s.Attributes = append(s.Attributes, slog.Int("http.request.resend_count", n))
	}
	t.Spans = append(t.Spans, s)
	t.open = true
	x.r.Header[traceparentField] = []string{traceContext{t.ID, s.ID, t.flags}.String()}
}

// called begins the span of a call of the function that answers; what ends a try ends it.
func (x *exchange) called() {
	if t := x.trace; t != nil && len(t.Spans) < maxSpans {
		t.Spans = append(t.Spans, Span{
			ID: newSpanID(), Parent: t.Spans[0].ID, Kind: SpanInternal, Name: "function " + x.function.Name(), Start: x.server.config.Now(),
		})
		t.open = true
	}
}

// returned ends it with what the call took, or with what kept it from an answer.
func (x *exchange) returned(used function.Usage, err error) {
	t := x.trace
	if t == nil || !t.open {
		return
	}
	t.attribute(slog.Int64("guardyn.function.memory", used.Memory), slog.Int("guardyn.function.output", used.Output))
	var failed *function.Error
	if left := errors.As(err, &failed) && failed.Kind == function.Left; err != nil && !left {
		x.tryFailed(err)
		return
	}
	t.endTry(x.server.config.Now())
}

// describe appends which server a target is.
func (t *target) describe(attributes []slog.Attr) []slog.Attr {
	address := t.host
	if address == "" && len(t.addresses) > 0 {
		address = t.addresses[0].String()
	}
	if host, port, err := net.SplitHostPort(address); err == nil {
		attributes = append(attributes, slog.String("server.address", host))
		if n, err := strconv.Atoi(port); err == nil {
			attributes = append(attributes, slog.Int("server.port", n))
		}
	}
	if t.origin != nil {
		attributes = append(attributes, slog.String("guardyn.pool", t.origin.Pool), slog.String("guardyn.origin", t.origin.Name))
	}
	return attributes
}

// tryConnected tells over which connection the try goes.
func (x *exchange) tryConnected(remote net.Addr, version string, reused bool) {
	if x.trace == nil {
		return
	}
	x.trace.event(x.server.config.Now(), "guardyn.connected", slog.Bool("guardyn.connection.reused", reused))
	x.trace.attribute(slog.String("network.protocol.version", version))
	if a, ok := remote.(*net.TCPAddr); ok {
		x.trace.attribute(slog.String("network.peer.address", a.IP.String()), slog.Int("network.peer.port", a.Port))
	}
}

// tryAnswered tells of the answer's head. An error is what the conventions have for one on the client's side.
func (x *exchange) tryAnswered(status int, at time.Time) {
	if x.trace == nil || !x.trace.open {
		return
	}
	x.trace.event(at, "guardyn.first_byte")
	x.trace.attribute(slog.Int("http.response.status_code", status))
	if status >= 400 {
		x.trace.attribute(slog.String("error.type", strconv.Itoa(status)))
		x.trace.current().Failed = true
	}
}

// tryFailed ends the try, if there is one, with what kept it from its end.
func (x *exchange) tryFailed(err error) {
	t := x.trace
	if t == nil || !t.open {
		return
	}
	kind := "_OTHER"
	var refused *net.OpError
	var call *function.Error
	switch {
	case errors.As(err, &call):
		kind = call.Kind.String()
	case timedOut(err):
		kind = "timeout"
	case errors.Is(err, errBrokenOff):
		kind = "broken_off"
	case errors.As(err, &refused) && refused.Op == "dial":
		kind = "connect"
	}
	t.attribute(slog.String("error.type", kind))
	s := t.current()
	s.Failed, s.Error = true, err.Error()
	t.endTry(x.server.config.Now())
}

func (t *requestTrace) endTry(now time.Time) {
	if t.open {
		t.current().End = now
		t.open = false
	}
}

// endTrace ends every span that is open and hands the trace on, once. A client that left before its answer makes no error.
func (x *exchange) endTrace(end time.Time) {
	t := x.trace
	if t == nil || t.told {
		return
	}
	t.told = true
	t.endTry(end)
	if len(t.rules) > 0 {
		t.attribute(slog.Any("guardyn.rules", t.rules))
	}
	if x.cache.outcome != "" {
		t.attribute(slog.String("guardyn.cache", x.cache.outcome))
	}
	if tg := x.target; tg != nil && tg.origin != nil {
		t.attribute(slog.String("guardyn.pool", tg.origin.Pool), slog.String("guardyn.origin", tg.origin.Name))
	}
	server := &t.Spans[0]
	server.End = end
	switch status := x.w.status; {
	case status == statusClientGone || status == 0:
		t.attribute(slog.Bool("guardyn.client_left", true))
	default:
		t.attribute(slog.Int("http.response.status_code", status), slog.Int64("http.response.body.size", x.w.bytes))
		if status >= 500 {
			t.attribute(slog.String("error.type", strconv.Itoa(status)))
			server.Failed = true
		}
		if errors.Is(x.originErr, errBrokenOff) && status < 500 {
			t.attribute(slog.String("error.type", "broken_off"))
			server.Failed = true
		}
	}
	x.server.config.Trace(&t.Trace)
}
