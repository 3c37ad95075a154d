package zone

import (
	"errors"
	"fmt"
	"mime"
	"slices"
	"strings"

	"github.com/guardyn-edge/guardyn/internal/expr"
)

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
			if p.ContentType = t; p.Body == "" && t != "" && t != defaultContentType {
				bad.addf("content_type is that of a body, and there is none")
			}
		}
	case ActionRewrite:
		if p.Path == "" && p.Query == nil {
			bad.addf("path or query is missing; the action rewrite needs one")
		}
		if p.Path != "" {
			bad.in("path", checkPath(p.Path))
		}
		if p.Query != nil {
			q := strings.TrimPrefix(*p.Query, "?")
			bad.in("query", checkQuery(q))
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
			n, err := parseFieldName(p.Name, phase == PhaseTransformResponse)
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
