package api

import (
	"context"
	"net/http"
	"time"
)

// readyTimeout bounds the checks behind /readyz.
const readyTimeout = 5 * time.Second

// publicRoutes need no token. What they tell is fit for anyone who can reach the listener.
func (h *Handler) publicRoutes() []*route {
	return []*route{
		{
			method: http.MethodGet, pattern: "/openapi.json", access: public, outType: "application/json", status: http.StatusOK,
			summary: "Return this document; an operator's token adds the operators' routes",
			serve:   h.serveDocument,
		},
		{
			method: http.MethodGet, pattern: "/healthz", access: public, outType: "text/plain", status: http.StatusOK,
			summary: "Tell that the process runs",
			serve: func(c *call) error {
				c.answer(http.StatusOK, "text/plain; charset=utf-8", []byte("ok\n"))
				return nil
			},
		},
		{
			method: http.MethodGet, pattern: "/readyz", access: public, outType: "text/plain", status: http.StatusOK,
			summary: "Tell that the process can do its work", serve: h.serveReady,
		},
		{
			method: http.MethodGet, pattern: "/metrics", access: public, outType: "text/plain", status: http.StatusOK,
			summary: "Return metrics in the Prometheus text format",
			serve: func(c *call) error {
				secure(c.w.Header())
				c.status = http.StatusOK
				h.metrics.handler.ServeHTTP(c.w, c.r)
				return nil
			},
		},
	}
}

// serveDocument tells operators of all routes, and everybody else of those that exist for them. A token that
// does not stand is 401 rather than a shorter document.
func (h *Handler) serveDocument(c *call) error {
	doc := h.document
	if len(c.r.Header["Authorization"]) > 0 {
		p, err := h.authenticate(c.r)
		if err != nil {
			return err
		}
		if forOperators.admits(p) {
			doc = h.operatorDocument
		}
	}
	c.w.Header()["Vary"] = []string{"Authorization"}
	c.answer(http.StatusOK, "application/json", doc)
	return nil
}

func (h *Handler) serveReady(c *call) error {
	ctx, cancel := context.WithTimeout(c.r.Context(), readyTimeout)
	defer cancel()
	var problems []Problem
	if err := h.svc.Ready(ctx); err != nil {
		// The text of a database's error is for the log: this route needs no token.
		h.log.Warn("not ready", "error", err)
		problems = append(problems, Problem{Object: "database", Code: "database_unavailable", Message: "the database does not answer"})
	} else if h.ready != nil {
		problems = h.ready(ctx)
	}
	if len(problems) > 0 {
		return &Error{
			Type: "about:blank", Status: http.StatusServiceUnavailable, Code: "not_ready",
			Detail: "The control plane cannot do its work yet.", Errors: problems,
		}
	}
	c.answer(http.StatusOK, "text/plain; charset=utf-8", []byte("ready\n"))
	return nil
}
