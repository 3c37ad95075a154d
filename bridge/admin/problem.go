package admin

import (
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/guardyn-edge/guardyn/barrier"
	"github.com/guardyn-edge/guardyn/bridge/document"
)

// Problem is a problem document (RFC 9457).
type Problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   string `json:"code"` // snake_case, stable

	Errors  []document.Problem `json:"errors,omitzero"`  // of invalid_document
	Change  *document.Change   `json:"change,omitzero"`  // of refused
	Rollout *barrier.Ref       `json:"rollout,omitzero"` // of rollout_open
	Version *uint64            `json:"version,omitzero"` // of version_changed: the one that stands
}

func (p *Problem) Error() string {
	lines := []string{p.Detail}
	for _, e := range p.Errors {
		lines = append(lines, "  "+e.String())
	}
	return strings.Join(lines, "\n")
}

func problem(w http.ResponseWriter, p Problem) {
	p.Title = strings.ToLower(http.StatusText(p.Status))
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.MarshalWrite(w, p, json.Deterministic(true))
}
