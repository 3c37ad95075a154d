package api

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/remote"
	"github.com/guardyn-edge/guardyn/control"
)

// Bounds of the server. Together with a limit on connections (set where it listens) they bound what any number
// of clients can hold.
const (
	maxHeaderBytes = 64 << 10
	// readHeaderTimeout bounds the head of a request, readTimeout the whole of one with an ordinary body,
	// writeTimeout an ordinary answer, idleTimeout the wait for the next request of a connection.
	readHeaderTimeout = 10 * time.Second
	readTimeout       = 30 * time.Second
	writeTimeout      = 60 * time.Second
	idleTimeout       = 2 * time.Minute
	// slowTimeout is for routes that build the whole configuration, or print a whole zone.
	slowTimeout = 5 * time.Minute
	// transferRate in bytes/s is the slowest at which large bodies and payloads are given time for.
	transferRate = 64 << 10
	// maxStreams bounds requests under way on one connection by HTTP/2.
	maxStreams = 64
	// maxToken is the length of the longest credential that is looked at.
	maxToken = 256
)

// Options of a Handler. The zero value works.
type Options struct {
	Logger *slog.Logger // discards when nil
	// Registry is where the handler's metrics are registered and what /metrics prints; one of its own when
	// nil. Two handlers cannot share one.
	Registry *prometheus.Registry
	// Now is time.Now when nil.
	Now func() time.Time
	// Ready says why /readyz should not succeed, as one problem per reason, beside an answering store.
	Ready func(context.Context) []Problem
	// Draining, when it ends, ends every long poll with its 204 at once and lets no new one wait.
	Draining context.Context
	// Rollouts is where nodes vote, as the control.Service has it: members of the cohort find it behind /v1/node/rollout/. Nil:
	// there is nothing there. The handler does not close it.
	Rollouts barrier.Store
	// SecretRecipient is the age recipient that members seal private keys to; empty: there is none.
	SecretRecipient string
}

// Handler serves the API. It is safe for concurrent use; with Options.Rollouts it is closed when nobody is served any more.
//
// What a path that does not exist is answered is also the answer to whatever the caller may not know of:
// authentication comes first, and every path but the public ones needs it.
type Handler struct {
	svc      *control.Service
	log      *slog.Logger
	now      func() time.Time
	ready    func(context.Context) []Problem
	draining context.Context
	routes   *router
	metrics  *metrics
	fleet    headerCache
	large    largeBodies
	barrier  *remote.Handler // nil without Options.Rollouts
	undrain  func() bool     // lets go of draining
	// recipient is Options.SecretRecipient.
	recipient string
	// The OpenAPI document, for whom operator routes do not exist and for operators.
	document, operatorDocument []byte
}

// NewHandler returns the API of svc.
func NewHandler(svc *control.Service, o Options) (*Handler, error) {
	h := &Handler{
		svc: svc, log: o.Logger, now: o.Now, ready: o.Ready, draining: o.Draining,
		routes: newRouter(), recipient: o.SecretRecipient,
	}
	if h.log == nil {
		h.log = slog.New(slog.DiscardHandler)
	}
	if h.now == nil {
		h.now = time.Now
	}
	if h.draining == nil {
		h.draining = context.Background()
	}
	if o.Rollouts != nil {
		h.barrier = newBarrier(o.Rollouts, o)
		h.undrain = context.AfterFunc(h.draining, h.barrier.Close)
	}
	reg := o.Registry
	if reg == nil {
		reg = prometheus.NewRegistry()
	}
	var err error
	if h.metrics, err = newMetrics(reg, svc, h.now); err != nil {
		return nil, err
	}
	all := h.allRoutes()
	for _, rt := range all {
		h.routes.add(rt)
	}
	if h.document, err = describe(all, false); err != nil {
		return nil, err
	}
	if h.operatorDocument, err = describe(all, true); err != nil {
		return nil, err
	}
	return h, nil
}

func (h *Handler) allRoutes() []*route {
	var all []*route
	for _, group := range [][]*route{
		h.publicRoutes(), h.nodeRoutes(), h.configRoutes(), h.zoneRoutes(), h.objectRoutes(), h.directoryRoutes(),
		h.rolloutRoutes(), h.selfRoutes(), h.memberRoutes(),
	} {
		all = append(all, group...)
	}
	return all
}

// NewHTTPServer returns a server of h with every time limit set. The caller serves and shuts it down.
func NewHTTPServer(h http.Handler, logger *slog.Logger) *http.Server {
	s := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		// Of a connection by HTTP/2, which TLS brings: a node has a poll, a watch and a few calls under way.
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		// OPTIONS * is answered like every other path that does not exist.
		DisableGeneralOptionsHandler: true,
	}
	if logger != nil {
		s.ErrorLog = slog.NewLogLogger(logger.Handler(), slog.LevelDebug)
	}
	return s
}

// ServeHTTP authenticates, then routes, then serves.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The one path of every node of the fleet, every few seconds: past the router and the log.
	if r.URL.Path == pollPath && r.Method == http.MethodGet && r.URL.RawPath == "" {
		h.servePoll(w, r)
		return
	}
	c := &call{h: h, w: w, r: r, start: h.now()}
	defer h.finish(c)
	h.serve(c)
}

func (h *Handler) serve(c *call) {
	rt, params := h.routes.match(c.r.Method, c.r.URL)
	if rt != nil && rt.access == public {
		c.route = rt
		h.run(c)
		return
	}
	p, err := h.authenticate(c.r)
	if err != nil {
		c.fail(err)
		return
	}
	c.principal = p
	if rt == nil || !rt.access.admits(p) {
		c.fail(control.ErrNoRoute)
		return
	}
	c.route, c.params = rt, params
	h.run(c)
}

// run checks what is common to all routes, then calls the route's own function.
func (h *Handler) run(c *call) {
	if c.route.foreign {
		if err := c.route.serve(c); err != nil {
			c.fail(err)
		}
		return
	}
	if err := c.readQuery(); err != nil {
		c.fail(err)
		return
	}
	if err := c.checkConditions(); err != nil {
		c.fail(err)
		return
	}
	if c.route.slow {
		// Deadlines are the connection's own clock, whatever the handler's is.
		_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(slowTimeout))
	}
	defer func() {
		if c.large {
			h.large.leave(c.principal.UserID)
		}
	}()
	if err := c.route.serve(c); err != nil {
		c.fail(err)
	}
}

// authenticate tells whom the one Authorization header of r speaks for.
func (h *Handler) authenticate(r *http.Request) (control.Principal, error) {
	token, ok := bearer(r.Header)
	if !ok {
		return control.Principal{}, control.ErrUnauthenticated
	}
	p, err := h.svc.Authenticate(r.Context(), token)
	if err != nil {
		return control.Principal{}, err
	}
	p.From = remoteHost(r.RemoteAddr)
	return p, nil
}

// bearer returns the token of the only Authorization header (RFC 6750 §2.1).
func bearer(hd http.Header) (string, bool) {
	v := hd["Authorization"]
	if len(v) != 1 || len(v[0]) > maxToken {
		return "", false
	}
	scheme, token, ok := strings.Cut(v[0], " ")
	if !ok || token == "" || !strings.EqualFold(scheme, "Bearer") {
		return "", false
	}
	return token, true
}

// remoteHost is the address of a host:port, which is logged and audited without the port.
func remoteHost(addr string) string {
	i := strings.LastIndexByte(addr, ':')
	if i < 0 {
		return addr
	}
	return strings.Trim(addr[:i], "[]")
}

// finish recovers a panic, counts, and writes the one line of the access log.
func (h *Handler) finish(c *call) {
	if v := recover(); v != nil {
		if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			panic(v)
		}
		h.log.Error("panic while serving a request", "panic", v, "stack", string(debug.Stack()))
		if c.status != 0 {
			// Part of the answer is out: cutting the connection is what tells the client.
			panic(http.ErrAbortHandler)
		}
		c.fail(errors.New("panic"))
	}
	pattern := "none"
	if c.route != nil {
		pattern = c.route.pattern
	}
	took := h.now().Sub(c.start)
	h.metrics.request(c.r.Method, pattern, c.status, took)
	actor := c.principal.Email
	if c.principal.NodeID != "" {
		actor = "node " + c.principal.NodeName
	}
	level := slog.LevelInfo
	if c.route != nil && (c.route.access == public || c.route.access == forNodes && c.status < http.StatusBadRequest) {
		// What a node reports is told by the list of nodes, and what it refuses by a line of its own.
		level = slog.LevelDebug
	}
	h.log.LogAttrs(c.r.Context(), level, "request",
		slog.String("method", inert(clip(c.r.Method))), slog.String("path", inert(c.r.URL.Path)), slog.String("route", pattern),
		slog.Int("status", c.status), slog.Int64("bytes", c.bytes), slog.Duration("took", took),
		slog.String("actor", inert(actor)), slog.String("from", remoteHost(c.r.RemoteAddr)))
}
