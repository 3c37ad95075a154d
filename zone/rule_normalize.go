package zone

import (
	"errors"
	"fmt"
	"mime"
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

// taken lists, for each action, the parameters that it needs and then, after the bar, may have.
var taken = map[Action]string{
	ActionRedirect:     "location|status preserve_query",
	ActionRewrite:      "|path query",
	ActionSetHeader:    "name value|",
	ActionRemoveHeader: "name|",
	ActionBlock:        "|status body content_type",
	ActionAllow:        "|",
	ActionSkip:         "|phases",
	ActionLog:          "|",
	ActionRateLimit:    "period limit|key status body content_type",
	ActionCache:        "|ttl stale_while_revalidate stale_if_error bypass",
	ActionRoute:        "pool|",
	ActionFunction:     "function|",
}

// present lists the parameters that are set, by their JSON names in the order of the struct.
func (p Parameters) present() []string {
	var names []string
	for _, m := range []struct {
		name string
		set  bool
	}{
		{"status", p.Status != 0},
		{"body", p.Body != ""},
		{"content_type", p.ContentType != ""},
		{"location", p.Location != ""},
		{"preserve_query", p.PreserveQuery},
		{"path", p.Path != ""},
		{"query", p.Query != nil},
		{"name", p.Name != ""},
		{"value", p.Value != ""},
		{"phases", len(p.Phases) > 0},
		{"key", p.Key != ""},
		{"period", p.Period != 0},
		{"limit", p.Limit != 0},
		{"ttl", p.TTL != 0},
		{"stale_while_revalidate", p.StaleWhileRevalidate != 0},
		{"stale_if_error", p.StaleIfError != 0},
		{"bypass", p.Bypass},
		{"pool", p.Pool != ""},
		{"function", p.Function != ""},
	} {
		if m.set {
			names = append(names, m.name)
		}
	}
	return names
}

func (p Parameters) normalize(action Action, phase Phase) (Parameters, error) {
	takes, known := taken[action]
	if !known {
		return p, nil // the action is the problem
	}
	var bad problems
	needed, optional, _ := strings.Cut(takes, "|")
	needs, may := strings.Fields(needed), strings.Fields(optional)
	present := p.present()
	for _, name := range present {
		if !slices.Contains(needs, name) && !slices.Contains(may, name) {
			bad.addf("%s is not for the action %s", name, action)
		}
	}
	for _, name := range needs {
		if !slices.Contains(present, name) {
			bad.addf("%s is missing; the action %s needs it", name, action)
		}
	}
	p.judge(&bad, action, phase)
	p.fold(action, phase)
	return p, bad.err()
}

// judge tells what is wrong with the values of p, those of the wrong action too.
func (p *Parameters) judge(bad *problems, action Action, phase Phase) {
	switch action {
	case ActionRedirect:
		if p.Status != 0 && !slices.Contains([]int{301, 302, 303, 307, 308}, p.Status) {
			bad.addf("status %d: a redirect is 301, 302, 303, 307 or 308", p.Status)
		}
		if p.Location != "" {
			bad.in("location", checkLocation(p.Location))
		}
	case ActionBlock, ActionRateLimit:
		inRange(bad, "status", p.Status, 400, 599, decimal)
		bad.add(checkText(p.Body, "body", maxBody))
		if p.ContentType != "" {
			t, err := parseContentType(p.ContentType)
			bad.in("content_type", err)
			p.ContentType = t
		}
	case ActionRewrite:
		if p.Path == "" && p.Query == nil {
			bad.addf("path or query is missing; the action rewrite needs one")
		}
		if p.Path != "" {
			bad.in("path", checkTarget(p.Path, false))
		}
		if p.Query != nil {
			q := strings.TrimPrefix(*p.Query, "?")
			if strings.IndexByte(q, '#') >= 0 {
				bad.addf("query: # must be written as %%23")
			}
			bad.in("query", checkURLText(q))
			p.Query = &q
		}
	case ActionSkip:
		for _, skipped := range p.Phases {
			if _, err := ParsePhase(string(skipped)); err != nil {
				bad.add(err)
			} else if slices.Index(phases[:], skipped) < slices.Index(phases[:], phase) {
				bad.addf("phases: %s has run before %s and cannot be skipped", skipped, phase)
			}
		}
	case ActionCache:
		if p.Bypass && (p.TTL != 0 || p.StaleWhileRevalidate != 0 || p.StaleIfError != 0) {
			bad.addf("bypass stands alone: what is not cached has no ttl")
		}
		if !p.Bypass && p.TTL == 0 && p.StaleWhileRevalidate == 0 && p.StaleIfError == 0 {
			bad.addf("ttl, stale_while_revalidate, stale_if_error or bypass is missing; the action cache needs one")
		}
		checkAge(bad, "ttl", p.TTL)
		checkAge(bad, "stale_while_revalidate", p.StaleWhileRevalidate)
		checkAge(bad, "stale_if_error", p.StaleIfError)
	}
	if action == ActionSetHeader || action == ActionRemoveHeader {
		if p.Name != "" {
			n, err := parseFieldName(p.Name, action == ActionSetHeader)
			bad.in("name", err)
			p.Name = n
		}
		v := strings.Trim(p.Value, " \t")
		if v == "" && p.Value != "" {
			bad.addf("value is blank; to take a header away use remove_header")
		}
		bad.in("value", checkFieldValue(v, maxFieldValue))
		bad.add(checkText(v, "value", maxFieldValue))
		p.Value = v
	}
	if action == ActionRateLimit {
		inRange(bad, "period", p.Period, second, day, Duration.String)
		if p.Period%second != 0 {
			bad.addf("period %s is not whole seconds", p.Period)
		}
		if p.Key != "" {
			k, err := expr.Normalize(p.Key)
			bad.in("key", err)
			p.Key = k
		}
	}
	if p.Pool != "" {
		_, err := ParseObjectName(p.Pool)
		bad.in("pool", err)
	}
	if p.Function != "" {
		_, err := ParseObjectName(p.Function)
		bad.in("function", err)
	}
}

// fold makes defaults zero.
func (p *Parameters) fold(action Action, phase Phase) {
	switch action {
	case ActionRedirect:
		zeroDefault(&p.Status, 302)
	case ActionBlock:
		zeroDefault(&p.Status, 403)
	case ActionRateLimit:
		zeroDefault(&p.Status, 429)
		zeroDefault(&p.Key, clientKey)
	}
	if p.ContentType == defaultContentType {
		p.ContentType = ""
	}
	p.Phases = slices.Clone(p.Phases)
	slices.SortFunc(p.Phases, func(a, b Phase) int { return slices.Index(phases[:], a) - slices.Index(phases[:], b) })
	p.Phases = slices.Compact(p.Phases)
	if len(p.Phases) == 0 || len(p.Phases) == 1 && p.Phases[0] == phase {
		p.Phases = nil
	}
}

// Effective returns p with what the action defaults to: status and content type, the key of rate_limit,
// and the phases of skip (phase itself).
func (p Parameters) Effective(action Action, phase Phase) Parameters {
	switch action {
	case ActionRedirect:
		or(&p.Status, 302)
	case ActionBlock:
		or(&p.Status, 403)
		or(&p.ContentType, defaultContentType)
	case ActionRateLimit:
		or(&p.Status, 429)
		or(&p.ContentType, defaultContentType)
		or(&p.Key, clientKey)
	case ActionSkip:
		if len(p.Phases) == 0 {
			p.Phases = []Phase{phase}
		}
	}
	return p
}

// checkAge judges a time that answers may be kept.
func checkAge(bad *problems, what string, d Duration) {
	inRange(bad, what, d, second, 366*day, Duration.String)
	if d%second != 0 {
		bad.addf("%s %s is not whole seconds", what, d)
	}
}

func parseContentType(s string) (string, error) {
	t, parameters, err := mime.ParseMediaType(s)
	if err != nil || !strings.Contains(t, "/") {
		return "", fmt.Errorf("%s is not a media type such as text/html; charset=utf-8", quote(s))
	}
	if c, ok := parameters["charset"]; ok {
		parameters["charset"] = strings.ToLower(c) // RFC 9110 §8.3.2
	}
	out := mime.FormatMediaType(t, parameters)
	if out == "" || len(out) > 256 {
		return "", errors.New("it does not print as a header")
	}
	return out, checkFieldValue(out, 256)
}

func joinWords[T ~string](words []T) string {
	var b strings.Builder
	for i, w := range words {
		switch {
		case i == 0:
		case i == len(words)-1:
			b.WriteString(" or ")
		default:
			b.WriteString(", ")
		}
		b.WriteString(string(w))
	}
	return b.String()
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
