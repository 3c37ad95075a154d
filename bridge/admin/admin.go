// Package admin is the control surface of a bridge's member over HTTP: its document, its health and its metrics.
//
//	GET  /healthz              200 while the process lives
//	GET  /readyz               200 while it runs a document and takes messages in, else 503 with the reason
//	GET  /deephealth           host.Status
//	GET  /metrics              for Prometheus
//	GET  /v1/bridge/config     the document as the source holds it, with its version as the ETag; ?of=running: what runs, in normal form
//	PUT  /v1/bridge/config     saves another one; If-Match: "version", or If-None-Match: * where there is none, as RFC 9110 §13.1 has them.
//	                           ?for=replacement saves what this bridge does not take over while it runs
//	POST /v1/bridge/plan       tells what saving a document would do: host.Plan
//
// What is below /v1 needs the token. Errors are problem documents (RFC 9457).
package admin

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/barrier/metrics"
	"github.com/guardyn-edge/guardyn/bridge/document"
	"github.com/guardyn-edge/guardyn/bridge/host"
	"github.com/guardyn-edge/guardyn/bridge/source"
)

// MaxWait is how long a PUT waits to tell what became of the document.
const MaxWait = 10 * time.Second

// Options are what a Server needs beside its host.
type Options struct {
	Token string // "": what is below /v1 is refused
	// Rollouts reads the cohort's row for metrics; nil: there is none.
	Rollouts   barrier.Reader
	Collectors []prometheus.Collector
	Logger     *slog.Logger
	Now        func() time.Time // nil: time.Now
}

// api is the handler's state.
type api struct {
	h     *host.Host
	token [sha256.Size]byte
	open  bool // there is a token
}

// NewServer returns a server for h, which the caller serves and shuts down. Bounds: bodies of document.MaxBytes, heads of
// 16 KiB, 10 s for a request to arrive.
func NewServer(h *host.Host, o Options) (*http.Server, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	own := &collector{h: h, now: o.Now}
	if o.Rollouts != nil {
		own.row = metrics.NewRow(o.Rollouts, o.Now)
	}
	reg := prometheus.NewRegistry()
	all := append([]prometheus.Collector{
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), own,
	}, o.Collectors...)
	for _, c := range all {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	a := &api{h: h, token: sha256.Sum256([]byte(o.Token)), open: o.Token != ""}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", a.ready)
	mux.HandleFunc("GET /deephealth", func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, h.Status()) })
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /v1/bridge/config", a.authorized(a.get))
	mux.HandleFunc("PUT /v1/bridge/config", a.authorized(a.put))
	mux.HandleFunc("POST /v1/bridge/plan", a.authorized(a.plan))
	s := &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
	}
	if o.Logger != nil {
		s.ErrorLog = slog.NewLogLogger(o.Logger.Handler(), slog.LevelWarn)
	}
	return s, nil
}

func plain(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text+"\n")
}

func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.MarshalWrite(w, v, jsontext.WithIndent("  "), json.Deterministic(true))
}

func (a *api) ready(w http.ResponseWriter, _ *http.Request) {
	s := a.h.Status()
	if s.Ready {
		plain(w, http.StatusOK, "ok")
		return
	}
	plain(w, http.StatusServiceUnavailable, strings.Join(append([]string{string(s.Phase)}, s.Degraded...), "\n"))
}

// authorized lets requests through that have the token.
func (a *api) authorized(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if !a.open {
			problem(w, Problem{Status: http.StatusForbidden, Code: "no_token", Detail: "this bridge was started without a token, so nobody may: start it with --token-file"})
			return
		}
		given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		sum := sha256.Sum256([]byte(given))
		if !ok || subtle.ConstantTimeCompare(sum[:], a.token[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			problem(w, Problem{Status: http.StatusUnauthorized, Code: "unauthorized", Detail: "it needs the token that this bridge was started with"})
			return
		}
		next(w, r)
	}
}

// body reads the document of a request; false when that was answered already.
func body(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, document.MaxBytes))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		problem(w, Problem{Status: http.StatusRequestEntityTooLarge, Code: "too_large", Detail: "the document has more than " + strconv.Itoa(document.MaxBytes) + " bytes"})
	case err != nil:
		problem(w, Problem{Status: http.StatusBadRequest, Code: "bad_request", Detail: "the document did not arrive"})
	}
	return b, err == nil
}

func etag(version uint64) string { return `"` + strconv.FormatUint(version, 10) + `"` }

func (a *api) get(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Query().Get("of") {
	case "running":
		d := a.h.Running()
		if d == nil {
			problem(w, Problem{Status: http.StatusNotFound, Code: "not_found", Detail: "nothing runs"})
			return
		}
		w.Header().Set("ETag", `"`+string(d.Digest())+`"`)
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(d.Canonical())
	case "":
		stored, err := a.h.Source().Read(r.Context())
		if err != nil {
			fail(w, err)
			return
		}
		w.Header().Set("ETag", etag(stored.Version))
		w.Header().Set("Content-Type", "application/yaml")
		_, _ = w.Write(stored.Body)
	default:
		problem(w, Problem{Status: http.StatusBadRequest, Code: "bad_request", Detail: `of: the only value is "running"`})
	}
}

func (a *api) plan(w http.ResponseWriter, r *http.Request) {
	b, ok := body(w, r)
	if !ok {
		return
	}
	p, err := a.h.Plan(b)
	if err != nil {
		fail(w, err)
		return
	}
	write(w, http.StatusOK, p)
}

// maxOvertaken is how often a PUT whose condition leaves the version open ("*", several tags) is tried while others write.
const maxOvertaken = 4

func (a *api) put(w http.ResponseWriter, r *http.Request) {
	var o host.PutOptions
	switch r.URL.Query().Get("for") {
	case "":
	case "replacement":
		o.ForReplacement = true
	default:
		problem(w, Problem{Status: http.StatusBadRequest, Code: "bad_request", Detail: `for: the only value is "replacement"`})
		return
	}
	c, err := conditionsOf(r.Header)
	switch {
	case err != nil:
		problem(w, Problem{Status: http.StatusBadRequest, Code: "bad_request", Detail: err.Error()})
		return
	case c.none():
		problem(w, Problem{
			Status: http.StatusPreconditionRequired, Code: "precondition_required",
			Detail: "say what is replaced: If-Match with the ETag that GET /v1/bridge/config gave, or If-None-Match: * where there is no document",
		})
		return
	}
	b, ok := body(w, r)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), MaxWait)
	defer cancel()
	out, refused, err := a.save(ctx, b, c, o)
	switch {
	case refused != nil:
		problem(w, *refused)
		return
	case err != nil:
		fail(w, err)
		return
	}
	w.Header().Set("ETag", etag(out.Version))
	status := http.StatusAccepted
	if out.Reason == "" {
		status = http.StatusOK // it runs, and there is nothing to wait for
	}
	write(w, status, out)
}

// save holds the conditions against the document that stands and puts b in its place, in one step with the comparison of its version.
func (a *api) save(ctx context.Context, b []byte, c conditions, o host.PutOptions) (out host.Outcome, refused *Problem, err error) {
	for range maxOvertaken {
		var standing *source.Stored
		switch stored, err := a.h.Source().Read(ctx); {
		case err == nil:
			standing = &stored
		case !errors.Is(err, source.ErrMissing):
			return out, nil, err
		}
		if refused := c.fault(standing); refused != nil {
			return out, refused, nil
		}
		if out, err = a.h.Put(ctx, b, over(o, standing)); err == nil || !overtaken(err) {
			return out, nil, err
		}
	}
	return out, nil, err
}

// fail answers with the problem that err is.
func fail(w http.ResponseWriter, err error) {
	var (
		invalid *document.Error
		refused *host.RefusedError
		open    *barrier.OpenError
		version *source.VersionError
	)
	p := Problem{Status: http.StatusServiceUnavailable, Code: "unavailable", Detail: err.Error()}
	switch {
	case errors.As(err, &invalid):
		p.Status, p.Code, p.Detail, p.Errors = http.StatusUnprocessableEntity, "invalid_document", "the document is not valid; nothing was changed", invalid.Problems
	case errors.As(err, &refused):
		p.Status, p.Code, p.Change = http.StatusConflict, "refused", &refused.Change
	case errors.As(err, &open):
		p.Status, p.Code, p.Rollout = http.StatusConflict, "rollout_open", &open.Rollout.Ref
	case errors.As(err, &version):
		p.Status, p.Code, p.Version = http.StatusPreconditionFailed, "version_changed", &version.Have
	case errors.Is(err, source.ErrExists):
		p.Status, p.Code = http.StatusPreconditionFailed, "exists"
	case errors.Is(err, source.ErrMissing):
		p.Status, p.Code = http.StatusNotFound, "not_found"
	}
	problem(w, p)
}
