package remote

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/guardyn-edge/guardyn/barrier"
)

// statuses holds the HTTP status of each error of barrier's ports, by its code. A client takes a named error
// only from an answer with the error's own status.
var statuses = map[string]int{
	"invalid":            http.StatusBadRequest,
	"open":               http.StatusConflict,
	"roster_changed":     http.StatusPreconditionFailed,
	"stale":              http.StatusPreconditionFailed,
	"no_baseline":        http.StatusConflict,
	"unknown_rollout":    http.StatusConflict,
	"decided":            http.StatusConflict,
	"fenced":             http.StatusPreconditionFailed,
	"stranger":           http.StatusConflict,
	"superseded":         http.StatusPreconditionFailed,
	"joined_late":        http.StatusConflict,
	"voted":              http.StatusConflict,
	"barrier_incomplete": http.StatusConflict,
	"not_converged":      http.StatusConflict,
	"withdrawn":          http.StatusConflict,
	"no_window":          http.StatusConflict,
	"late":               http.StatusConflict,
	"early":              http.StatusConflict,
	"lease_held":         http.StatusConflict,
	"lease_lost":         http.StatusPreconditionFailed,
	"no_artefact":        http.StatusNotFound,
}

// The codes of what the handler itself refuses, before anything is done.
const (
	codeUnauthenticated = "unauthenticated"
	codeForbidden       = "forbidden"
	codeNotFound        = "no_such_path"
	codeMethod          = "method_not_allowed"
	codeUnavailable     = "unavailable"
	// codeOutcome is of a call that may have taken effect, or not.
	codeOutcome = "outcome_unknown"
)

// problem is an error as it travels: RFC 9457, with a code and what rebuilds the error.
type problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail,omitzero"`

	Rollout *barrier.Rollout `json:"rollout,omitzero"` // of open
	Decided *decided         `json:"decided,omitzero"` // of decided
	Holder  *string          `json:"holder,omitzero"`  // of lease_held
}

// decided is a barrier.DecidedError.
type decided struct {
	Ref    barrier.Ref   `json:"rollout"`
	State  barrier.State `json:"state"`
	Reason string        `json:"reason"`
}

// refusal is what the handler itself says no to.
type refusal struct {
	status int
	code   string
	detail string
}

func (r *refusal) Error() string { return r.detail }

func forbidden(detail string) error {
	return &refusal{http.StatusForbidden, codeForbidden, detail}
}

func unavailable(detail string) error {
	return &refusal{http.StatusServiceUnavailable, codeUnavailable, detail}
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", barrier.ErrInvalid, fmt.Errorf(format, args...))
}

// problemOf returns how err travels. named is false when err is neither a port's nor a refusal, and so its
// text is for the log alone.
func problemOf(err error) (p problem, named bool) {
	var r *refusal
	code := barrier.Code(err)
	status, mapped := statuses[code]
	switch {
	case errors.As(err, &r):
		p = problem{Status: r.status, Code: r.code, Detail: r.detail}
	case mapped:
		p = problem{Status: status, Code: code, Detail: clip(err.Error(), maxDetail)}
		p.describe(err)
	default:
		p = problem{
			Status: http.StatusInternalServerError, Code: codeOutcome,
			Detail: "the store did not say what became of the call: read the row again",
		}
	}
	p.Title = http.StatusText(p.Status)
	return p, mapped || r != nil
}

// describe adds what rebuilds err, if its text alone cannot.
func (p *problem) describe(err error) {
	var (
		open *barrier.OpenError
		done *barrier.DecidedError
		held *barrier.HeldError
	)
	switch {
	case errors.As(err, &open):
		p.Rollout = &open.Rollout
	case errors.As(err, &done):
		p.Decided = &decided{done.Ref, done.State, clip(done.Reason, barrier.MaxReasonBytes)}
	case errors.As(err, &held):
		holder := clip(held.Holder, barrier.MaxNameBytes)
		p.Holder = &holder
	}
}

// Error is an answer that is not a success. It wraps the port's error that the handler named, with its details
// (barrier.OpenError, DecidedError, HeldError), or ErrUnauthenticated, ErrForbidden, ErrUnavailable; with none of
// them the outcome of the call is not known.
type Error struct {
	Status int    // of HTTP
	Code   string // as the package comment lists them; "" when the answer was not the handler's
	Detail string // for people

	// RetryAfter is when the handler asks to come again, whole seconds; 0: it did not say.
	RetryAfter time.Duration

	err error
}

func (e *Error) Error() string {
	switch {
	case e.Detail != "":
		return e.Detail
	case e.err != nil:
		return e.err.Error()
	default:
		return fmt.Sprintf("answer of status %d", e.Status)
	}
}

// Unwrap returns the error that the handler named, or nil.
func (e *Error) Unwrap() error { return e.err }

// rebuild returns the error that p names, or nil when its status does not belong to its code.
func (p problem) rebuild() error {
	switch {
	case p.Code == codeForbidden && p.Status == http.StatusForbidden:
		return ErrForbidden
	case p.Code == codeUnavailable && p.Status == http.StatusServiceUnavailable:
		return ErrUnavailable
	}
	if s, ok := statuses[p.Code]; !ok || s != p.Status {
		return nil
	}
	err := barrier.FromCode(p.Code)
	switch {
	case errors.Is(err, barrier.ErrOpen) && p.Rollout != nil:
		return &barrier.OpenError{Rollout: *p.Rollout}
	case errors.Is(err, barrier.ErrDecided) && p.Decided != nil:
		return &barrier.DecidedError{Ref: p.Decided.Ref, State: p.Decided.State, Reason: p.Decided.Reason}
	case errors.Is(err, barrier.ErrHeld) && p.Holder != nil:
		return &barrier.HeldError{Holder: *p.Holder}
	}
	return err
}
