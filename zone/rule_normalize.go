package zone

import (
	"fmt"
	"slices"
	"strings"

	"github.com/guardyn-edge/guardyn/internal/expr"
)

// Bounds of a rule.
const (
	maxDescription = 1024
	maxBody        = 64 << 10
	maxFieldValue  = 8 << 10
	// clientKey is what rate_limit counts by when it has no key.
	clientKey          = "string(ip.src)"
	defaultContentType = "text/plain; charset=utf-8"
)

var phases = [...]Phase{
	PhaseRedirect, PhaseTransformRequest, PhaseCustom, PhaseRatelimit, PhaseCache, PhaseOrigin, PhaseFunction,
	PhaseTransformResponse,
}

// Phases lists the phases in the order of execution.
func Phases() []Phase { return slices.Clone(phases[:]) }

// ParsePhase reads the name of a phase.
func ParsePhase(s string) (Phase, error) {
	if slices.Contains(phases[:], Phase(s)) {
		return Phase(s), nil
	}
	return "", fmt.Errorf("phase %s: use %s", quote(s), joinWords(phases[:]))
}

// Actions returns the actions that a phase allows: see [Rule.Normalize].
func (p Phase) Actions() []Action {
	switch p {
	case PhaseRedirect:
		return []Action{ActionRedirect, ActionSkip}
	case PhaseTransformRequest:
		return []Action{ActionRewrite, ActionSetHeader, ActionRemoveHeader, ActionSkip, ActionLog}
	case PhaseCustom:
		return []Action{ActionBlock, ActionAllow, ActionSkip, ActionLog}
	case PhaseRatelimit:
		return []Action{ActionRateLimit, ActionSkip, ActionLog}
	case PhaseCache:
		return []Action{ActionCache, ActionSkip}
	case PhaseOrigin:
		return []Action{ActionRoute, ActionSkip}
	case PhaseFunction:
		return []Action{ActionFunction, ActionSkip}
	case PhaseTransformResponse:
		return []Action{ActionSetHeader, ActionRemoveHeader, ActionSkip, ActionLog}
	}
	return nil
}

// Normalize returns r, a rule of phase, in normal form (expression printed from its syntax tree, defaults
// zero), or all that is malformed by itself, joined. Whether the expression type-checks and what it names
// exists is the build's to judge.
//
//	phase               actions
//	redirect            redirect, skip
//	transform_request   rewrite, set_header, remove_header, skip, log
//	custom              block, allow, skip, log
//	ratelimit           rate_limit, skip, log
//	cache               cache, skip
//	origin              route, skip
//	function            function, skip
//	transform_response  set_header, remove_header, skip, log
//
//	action         needs             may have
//	redirect       location          status, preserve_query
//	rewrite        path or query     both
//	set_header     name, value
//	remove_header  name
//	block                            status, body, content_type
//	allow, log
//	skip                             phases (this one or later ones)
//	rate_limit     period, limit     key, status, body, content_type
//	cache          ttl, stale_while_revalidate, stale_if_error (one or more), or bypass alone
//	route          pool
//	function       function
func (r Rule) Normalize(phase Phase) (Rule, error) {
	var bad problems
	bad.add(checkText(r.Description, "description", maxDescription))
	var err error
	r.Expression, err = expr.Normalize(r.Expression)
	bad.in("expression", err)
	if _, err := ParsePhase(string(phase)); err != nil {
		bad.add(err)
	} else if !slices.Contains(phase.Actions(), r.Action) {
		bad.addf("action %s is not for the %s phase: use %s", quote(string(r.Action)), phase, joinWords(phase.Actions()))
	}
	r.Parameters, err = r.Parameters.normalize(r.Action, phase)
	bad.in("parameters", err)
	r.Enabled = zeroTrue(r.Enabled)
	if err := bad.err(); err != nil {
		return Rule{}, err
	}
	return r, nil
}

// Render prints a rule in one line, without its description: what rulesets are compared by. r is in normal
// form; defaults do not show.
func (r Rule) Render() string {
	var b strings.Builder
	if r.Enabled != nil && !*r.Enabled {
		b.WriteString("disabled: ")
	}
	b.WriteString(string(r.Action))
	p := r.Parameters
	for i, name := range p.present() {
		if i == 0 {
			b.WriteString(" (")
		} else {
			b.WriteString(", ")
		}
		b.WriteString(name)
		switch name {
		case "status":
			fmt.Fprintf(&b, " %d", p.Status)
		case "body":
			b.WriteString(" " + quoteAll(p.Body))
		case "content_type":
			b.WriteString(" " + quoteAll(p.ContentType))
		case "location":
			b.WriteString(" " + quoteAll(p.Location))
		case "path":
			b.WriteString(" " + quoteAll(p.Path))
		case "query":
			b.WriteString(" " + quoteAll(*p.Query))
		case "name":
			b.WriteString(" " + p.Name)
		case "value":
			b.WriteString(" " + quoteAll(p.Value))
		case "phases":
			for _, ph := range p.Phases {
				b.WriteString(" " + string(ph))
			}
		case "key":
			b.WriteString(" " + p.Key)
		case "period":
			b.WriteString(" " + p.Period.String())
		case "limit":
			fmt.Fprintf(&b, " %d", p.Limit)
		case "ttl":
			b.WriteString(" " + p.TTL.String())
		case "stale_while_revalidate":
			b.WriteString(" " + p.StaleWhileRevalidate.String())
		case "stale_if_error":
			b.WriteString(" " + p.StaleIfError.String())
		case "pool":
			b.WriteString(" " + p.Pool)
		case "function":
			b.WriteString(" " + p.Function)
		}
	}
	if len(p.present()) > 0 {
		b.WriteByte(')')
	}
	b.WriteString(" when " + r.Expression)
	return b.String()
}
