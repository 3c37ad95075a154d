package host

import (
	"log/slog"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

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

const (
	// maxAdminConns bounds connections to the admin address; one beyond it waits to be accepted.
	maxAdminConns = 64
	// adminWriteTimeout bounds an answer, a profile over time included.
	adminWriteTimeout = 2 * time.Minute
	// maxScrapes bounds answers of /metrics under way; others are 503.
	maxScrapes = 4
)

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
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes}))
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: adminWriteTimeout,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10, ErrorLog: slog.NewLogLogger(e.cfg.Logger.Handler(), slog.LevelWarn),
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
