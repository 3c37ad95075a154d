package api

import (
	"fmt"
	"net/http"
	"strings"
)

// Problem is one entry of the errors of a problem document.
type Problem struct {
	Zone    string `json:"zone,omitempty"`
	Object  string `json:"object,omitempty"` // "rule 3 of custom", "pool main"
	Code    string `json:"code"`             // snake_case, stable
	Message string `json:"message"`
	// Line and Column of the body that was sent, from 1; 0 where there is none.
	Line   int `json:"line,omitzero"`
	Column int `json:"column,omitzero"`
}

// Error is a problem document (RFC 9457), the form of every answer that is not a success. As an error of
// [Client] it also stands for an answer that is no problem document; Code is then unexpected_answer.
type Error struct {
	Type   string    `json:"type"`
	Title  string    `json:"title"`
	Status int       `json:"status"`
	Detail string    `json:"detail,omitempty"`
	Code   string    `json:"code"`
	Errors []Problem `json:"errors,omitempty"`
	// Plan is what an apply would publish, when it was refused for that (409).
	Plan *Plan `json:"plan,omitempty"`
	// Rollout is the one that is in the way (rollout_open), or as it is by now (rollout_state).
	Rollout *Rollout `json:"rollout,omitempty"`
}

// NothingHere reports that the path itself does not exist for whom the token speaks for, rather than something that was named.
func (e *Error) NothingHere() bool { return e.Code == "not_found" && e.Detail == nothingHere }

// Error prints the problem and what is in it, one line each, control characters escaped.
func (e *Error) Error() string {
	var b strings.Builder
	switch {
	case e.Detail != "":
		b.WriteString(inert(e.Detail))
	case e.Title != "":
		b.WriteString(inert(e.Title))
	default:
		b.WriteString(strings.ToLower(http.StatusText(e.Status)))
	}
	for _, p := range e.Errors {
		b.WriteString("\n  ")
		b.WriteString(p.String())
	}
	return b.String()
}

// String prints "zone: object: line 3: message" with what there is, control characters escaped.
func (p Problem) String() string {
	var b strings.Builder
	for _, s := range []string{p.Zone, p.Object} {
		if s != "" {
			b.WriteString(inert(s))
			b.WriteString(": ")
		}
	}
	if p.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", p.Line)
	}
	b.WriteString(inert(p.Message))
	return b.String()
}

// inert escapes what a terminal or a log would act on: C0, DEL, C1, and the Unicode controls of direction
// and line breaking.
func inert(s string) string {
	act := func(r rune) bool {
		return r < 0x20 || 0x7f <= r && r <= 0x9f || r == 0xfffd ||
			0x200b <= r && r <= 0x200f || 0x2028 <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069 || r == 0xfeff
	}
	if strings.IndexFunc(s, act) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if act(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
