package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/guardyn-edge/guardyn/control"
	"github.com/guardyn-edge/guardyn/seal"
	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

// challenge asks for a token (RFC 6750 §3).
const challenge = `Bearer realm="guardyn"`

// statusClientGone is what the log says of an answer that nobody waits for; it is never sent.
const statusClientGone = 499

// nothingHere is the answer for what does not exist, and for what does not exist for the token that asked.
const nothingHere = "There is nothing at this path."

// sentinels is the table from errors to answers for those that say nothing more; the first match counts. With
// an empty detail the error's own text is given.
var sentinels = []struct {
	err    error
	status int
	code   string
	detail string
}{
	{control.ErrUnauthenticated, http.StatusUnauthorized, "unauthenticated", "A valid token is needed: Authorization: Bearer gdn_…"},
	{control.ErrNoRoute, http.StatusNotFound, "not_found", nothingHere},
	{control.ErrNotFound, http.StatusNotFound, "not_found", ""},
	{control.ErrForbidden, http.StatusForbidden, "forbidden", ""},
	{control.ErrExists, http.StatusConflict, "exists", ""},
	{control.ErrNodeAhead, http.StatusConflict, "node_ahead", "This node is ahead of the control plane, which may have been restored from an old backup. It keeps serving."},
	{control.ErrConflict, http.StatusConflict, "conflict", ""},
	{control.ErrKeyMismatch, http.StatusInternalServerError, "key_mismatch", "The signing key does not match the public keys that nodes trust; nothing was published. Check GUARDYN_CONFIG_SIGNING_KEY."},
	{control.ErrKeyReused, http.StatusUnprocessableEntity, "idempotency_key_reused", "This Idempotency-Key was sent with another request; nothing was changed."},
	{control.ErrBusy, http.StatusServiceUnavailable, "busy", "The control plane has all that it can do; try again."},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, "timeout", "The request took too long; try again."},
}

// failure turns any error into its answer. Errors that are not in the table are 500 internal, whose text is
// for the log alone.
func (c *call) failure(err error) *Error {
	e := &Error{Type: "about:blank"}
	set := func(status int, code, detail string) {
		e.Status, e.Code, e.Detail = status, code, inert(detail)
	}
	var (
		own        *Error
		problems   *control.ProblemsError
		build      snapshot.Problems
		lines      zone.LineErrors
		disruptive *control.DisruptiveError
		changed    *control.PlanChangedError
		stale      *control.StaleError
		target     *control.TargetError
		ahead      *control.AheadNodeError
		open       *control.RolloutOpenError
		state      *control.RolloutStateError
		refusal    *seal.Refusal
		rate       *control.PurgeRateError
		large      *errTooLarge
		media      *errMediaType
		broken     *errBody
		semantic   *json.SemanticError
		syntactic  *jsontext.SyntacticError
	)
	switch {
	case errors.As(err, &own):
		e = own
	case errors.As(err, &problems):
		set(http.StatusUnprocessableEntity, "problems", "")
		for _, p := range problems.Problems {
			e.Errors = append(e.Errors, Problem(p))
		}
	case errors.As(err, &build):
		set(http.StatusUnprocessableEntity, "problems", "")
		for _, p := range build {
			e.Errors = append(e.Errors, Problem{Zone: p.Zone.String(), Object: p.Object, Code: p.Code, Message: p.Message})
		}
	case errors.As(err, &lines):
		set(http.StatusUnprocessableEntity, "problems", "")
		for _, l := range lines {
			e.Errors = append(e.Errors, Problem{Code: "malformed", Message: l.Message, Line: l.Line, Column: l.Column})
		}
	case errors.As(err, &disruptive):
		set(http.StatusConflict, "disruptive", "The plan can interrupt traffic. Send accept_disruption to go through with it.")
		e.Plan = planOf(disruptive.Plan, nil)
	case errors.As(err, &changed):
		set(http.StatusConflict, "plan_changed", "The configuration changed since the plan was made. Review the new plan.")
		e.Plan = planOf(changed.Plan, nil)
	case errors.As(err, &stale):
		set(http.StatusConflict, "conflict", "Something else was published meanwhile. Review the new plan.")
		e.Plan = planOf(stale.Plan, nil)
	case errors.As(err, &target):
		set(http.StatusConflict, target.Code, upper(target.Error()))
	case errors.As(err, &ahead):
		set(http.StatusConflict, "ahead_node", upper(ahead.Error()))
	case errors.As(err, &open):
		set(http.StatusConflict, "rollout_open", upper(open.Error()))
		e.Rollout = rolloutPointer(&control.Rollout{Rollout: open.Rollout})
	case errors.As(err, &state):
		set(http.StatusConflict, "rollout_state", upper(state.Error()))
		e.Rollout = rolloutPointer(&control.Rollout{Rollout: state.Rollout})
	case c.condition.given() && (errors.Is(err, control.ErrConflict) || errors.Is(err, control.ErrExists)):
		set(http.StatusPreconditionFailed, "precondition_failed", "The object is not at the revision that the condition names; read it again.")
	case errors.As(err, &rate):
		set(http.StatusTooManyRequests, "purge_rate", upper(rate.Error()))
	case errors.As(err, &large):
		set(http.StatusRequestEntityTooLarge, "too_large", upper(large.Error()))
	case errors.As(err, &media):
		set(http.StatusUnsupportedMediaType, "unsupported_media_type", upper(media.Error()))
	case errors.As(err, &broken):
		set(http.StatusBadRequest, "body_broken_off", "The body ended before it was whole.")
	case errors.As(err, &syntactic):
		set(http.StatusBadRequest, "malformed_json", "The body is not one JSON value.")
		e.Errors = []Problem{{Object: pointer(syntactic.JSONPointer), Code: "malformed_json", Message: says(syntactic.Err, syntactic.ByteOffset)}}
	case errors.As(err, &semantic):
		set(http.StatusUnprocessableEntity, "problems", "")
		e.Errors = []Problem{semanticProblem(semantic)}
	case errors.Is(err, context.Canceled) && c.r.Context().Err() != nil:
		set(statusClientGone, "client_gone", "")
	case errors.As(err, &refusal):
		// What was sealed here does not open: a fault of the control plane, told to the operator in words.
		set(http.StatusInternalServerError, "artefact_refused", refusal.Message)
	default:
		set(http.StatusInternalServerError, "internal", "The control plane failed; its log says why.")
		for _, s := range sentinels {
			if errors.Is(err, s.err) {
				detail := s.detail
				if detail == "" {
					detail = upper(err.Error())
				}
				set(s.status, s.code, detail)
				break
			}
		}
	}
	if e.Title == "" {
		e.Title = http.StatusText(e.Status)
	}
	if e.Status == http.StatusUnprocessableEntity && e.Detail == "" {
		e.Detail = fmt.Sprintf("%d problems; nothing was changed.", len(e.Errors))
		if len(e.Errors) == 1 {
			e.Detail = "One problem; nothing was changed."
		}
	}
	for i := range e.Errors {
		p := &e.Errors[i]
		p.Zone, p.Object, p.Message = inert(p.Zone), inert(p.Object), inert(p.Message)
	}
	return e
}

// fail answers with err as a problem document.
func (c *call) fail(err error) {
	e := c.failure(err)
	if e.Status >= http.StatusInternalServerError && e.Code != "busy" {
		c.h.log.Error("request failed", "method", inert(clip(c.r.Method)), "path", inert(c.r.URL.Path), "error", err)
	}
	if e.Status == statusClientGone || c.status != 0 {
		if c.status != 0 {
			c.h.log.Warn("answer broke off", "path", inert(c.r.URL.Path), "error", err)
			panic(http.ErrAbortHandler)
		}
		c.status = e.Status
		return
	}
	hd := c.w.Header()
	switch e.Status {
	case http.StatusUnauthorized:
		hd["Www-Authenticate"] = []string{challenge}
	case http.StatusServiceUnavailable:
		hd["Retry-After"] = []string{"1"}
	case http.StatusTooManyRequests:
		hd["Retry-After"] = []string{"10"}
	}
	body, merr := json.Marshal(e, json.Deterministic(true))
	if merr != nil {
		c.h.log.Error("problem document", "error", merr)
		body = []byte(`{"type":"about:blank","title":"Internal Server Error","status":500,"code":"internal"}`)
		e.Status = http.StatusInternalServerError
	}
	c.answer(e.Status, "application/problem+json", append(body, '\n'))
}

// semanticProblem names the member that does not fit, by its path in the body.
func semanticProblem(e *json.SemanticError) Problem {
	p := Problem{Object: pointer(e.JSONPointer), Code: "malformed"}
	switch {
	case errors.Is(e.Err, json.ErrUnknownName):
		p.Code = "unknown_member"
		p.Message = fmt.Sprintf("there is no member %q here; check its spelling", clip(e.JSONPointer.LastToken()))
	case e.Err != nil:
		p.Message = e.Err.Error()
	case e.JSONKind != 0 && e.GoType != nil:
		p.Message = fmt.Sprintf("a JSON %s does not fit here", e.JSONKind)
	default:
		p.Message = "the value does not fit here"
	}
	return p
}

func says(err error, offset int64) string {
	if err == nil {
		return fmt.Sprintf("unreadable at byte %d", offset)
	}
	return fmt.Sprintf("%s, at byte %d", strings.TrimPrefix(err.Error(), "jsontext: "), offset)
}

// pointer is a JSON pointer (RFC 6901) as an object's name; the whole body has none.
func pointer(p jsontext.Pointer) string {
	if p == "" {
		return ""
	}
	return "body " + clip(string(p))
}

// upper makes an error's text a sentence's start.
func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
