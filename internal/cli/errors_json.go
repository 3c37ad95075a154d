package cli

import (
	"errors"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/guardyn-edge/guardyn/api"
	"github.com/guardyn-edge/guardyn/zone"
)

// jsonError is an error as --json prints it.
type jsonError struct {
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
	// Code and Status are the control plane's, absent when it was not what refused.
	Code   string `json:"code,omitempty"`
	Status int    `json:"status,omitzero"`
	Exit   int    `json:"exit"`
	// Problems are all that is wrong with what was given.
	Problems []jsonProblem `json:"problems,omitempty"`
	// Plan is what would be published, when that is why it was refused.
	Plan *api.Plan `json:"plan,omitempty"`
	// Rollout is the one that is in the way, or that did not come to its good end.
	Rollout *api.Rollout `json:"rollout,omitempty"`
}

// jsonProblem is one problem. Line and Column are those of a file, from 1.
type jsonProblem struct {
	Zone    string `json:"zone,omitempty"`
	Object  string `json:"object,omitempty"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
	Line    int    `json:"line,omitzero"`
	Column  int    `json:"column,omitzero"`
}

// wantsJSON reports whether the command line asks for JSON, also when it was not read to the end for a mistake
// in it.
func (a *app) wantsJSON(err error) bool {
	var usage *usageError
	if a.json || !errors.As(err, &usage) {
		return a.json
	}
	for _, arg := range a.args {
		switch arg {
		case "--":
			return false
		case "--json", "--json=true":
			return true
		}
	}
	return false
}

// printJSONError prints err on one line.
func (a *app) printJSONError(err error, message, next string, exit int) {
	out := jsonError{Error: message, Hint: next, Exit: exit, Problems: problemsOf(err)}
	var problem *api.Error
	if errors.As(err, &problem) {
		out.Code, out.Status, out.Plan, out.Rollout = problem.Code, problem.Status, problem.Plan, problem.Rollout
	}
	var ended *endedError
	if errors.As(err, &ended) {
		out.Code, out.Rollout = ended.code(), ended.rollout
	}
	var served *servedError
	if errors.As(err, &served) {
		out.Code, out.Rollout = served.code, served.rollout
	}
	if out.Problems != nil {
		// They follow; the first line says how many there are.
		out.Error, _, _ = strings.Cut(message, "\n")
	}
	text, err := json.Marshal(out, json.Deterministic(true))
	if err != nil { // text that is no UTF-8, from a file's name perhaps
		text, err = json.Marshal(jsonError{Error: inert(message), Hint: inert(next), Exit: exit})
	}
	if err == nil {
		_, _ = a.Stderr.Write(append(escapeJSON(text), '\n'))
	}
}

// problemsOf returns the problems that err tells of, one by one.
func problemsOf(err error) []jsonProblem {
	var (
		out     []jsonProblem
		problem *api.Error
		bad     zone.LineErrors
		lines   *lineErrors
	)
	switch {
	case errors.As(err, &problem):
		for _, p := range problem.Errors {
			out = append(out, jsonProblem{p.Zone, p.Object, p.Code, strings.TrimSpace(p.Message), p.Line, p.Column})
		}
	case errors.As(err, &bad):
		for _, l := range bad {
			out = append(out, jsonProblem{Message: l.Message, Line: l.Line, Column: l.Column})
		}
	case errors.As(err, &lines):
		for _, line := range lines.lines {
			out = append(out, jsonProblem{Message: strings.TrimSpace(line)})
		}
	}
	return out
}
