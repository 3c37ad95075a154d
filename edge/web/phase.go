package web

import (
	"net/http"
	"strings"

	"github.com/guardyn-edge/guardyn/edge/cookie"
	"github.com/guardyn-edge/guardyn/edge/rules"
	"github.com/guardyn-edge/guardyn/internal/fieldname"
	"github.com/guardyn-edge/guardyn/zone"
)

// phase is what a node does at one point of a request. Neither function: the node carries the rules of this
// phase and does not run them.
type phase struct {
	name zone.Phase
	// request acts before the origin; true: the request is answered.
	request func(x *exchange, name zone.Phase) bool
	always  bool // without rules, and when they are skipped, too
	// response acts on the header of the origin's answer.
	response func(x *exchange, name zone.Phase, h http.Header)
}

// phaseTable gives each phase, in the order of execution, what runs it. This is the one place that says
// which phases this node implements.
func phaseTable(order []zone.Phase) []phase {
	table := make([]phase, len(order))
	for i, name := range order {
		p := phase{name: name}
		switch name {
		case zone.PhaseRedirect:
			p.request = (*exchange).redirect
		case zone.PhaseTransformRequest:
			p.request = (*exchange).transformRequest
		case zone.PhaseCustom:
			p.request = (*exchange).custom
		case zone.PhaseOrigin:
			p.request = (*exchange).route
		case zone.PhaseTransformResponse:
			p.response = (*exchange).transformResponse
		case zone.PhaseRatelimit:
			p.request = (*exchange).ratelimit
		case zone.PhaseCache:
			p.request, p.always = (*exchange).cachePhase, true
		case zone.PhaseFunction:
			p.request = (*exchange).chooseFunction
		}
		table[i] = p
	}
	return table
}

// common does the actions that every phase has. stop ends the phase.
func (x *exchange) common(rule *rules.Rule) (stop bool) {
	x.server.counters.ruleMatches.Add(1)
	if x.trace != nil {
		x.trace.matched(rule)
	}
	switch rule.Action {
	case zone.ActionLog:
		x.note(rule)
	case zone.ActionAllow:
		return true
	case zone.ActionSkip:
		if len(rule.Parameters.Phases) == 0 {
			return true
		}
		if x.skipped == nil {
			x.skipped = make(map[zone.Phase]bool)
		}
		for _, p := range rule.Parameters.Phases {
			x.skipped[p] = true
		}
		return x.skipped[rule.Phase]
	}
	return false
}

func (x *exchange) redirect(name zone.Phase) bool {
	for rule := range x.zone.Rules.Matching(name, &x.rule) {
		if x.common(rule) {
			return false
		}
		if rule.Action != zone.ActionRedirect {
			continue
		}
		x.note(rule)
		p := rule.Parameters
		status := p.Status
		if status == 0 {
			status = http.StatusFound
		}
		x.redirected(status, Location(p, x.rule.Query))
		return true
	}
	return false
}

// Location is where a rule of action redirect sends a request with that query.
func Location(p zone.Parameters, query string) string {
	if p.PreserveQuery && query != "" {
		return withQuery(p.Location, query)
	}
	return p.Location
}

// withQuery appends a query to a URL, before its fragment.
func withQuery(location, query string) string {
	base, fragment, found := strings.Cut(location, "#")
	sep := "?"
	if strings.Contains(base, "?") {
		sep = "&"
	}
	if base += sep + query; found {
		base += "#" + fragment
	}
	return base
}

func (x *exchange) transformRequest(name zone.Phase) bool {
	for rule := range x.zone.Rules.Matching(name, &x.rule) {
		if x.common(rule) {
			break
		}
		switch rule.Action {
		case zone.ActionRewrite:
			x.rewrite(rule)
		case zone.ActionSetHeader, zone.ActionRemoveHeader:
			if p := &rule.Parameters; ChangeRequest(x.r.Header, rule.Action, p) {
				x.cache.sent = sentWith(x.cache.sent, rule.Action, p)
			}
		}
	}
	return false
}

// ChangeRequest does what a rule of action set_header or remove_header says with a request's header. false: the field is not a rule's to
// change.
func ChangeRequest(h http.Header, action zone.Action, p *zone.Parameters) bool {
	name := http.CanonicalHeaderKey(p.Name)
	if !fieldname.SettableInRequest(name) {
		return false
	}
	delete(h, name)
	if action == zone.ActionSetHeader {
		h[name] = []string{p.Value}
		if name == "Cookie" {
			h[name] = cookie.Normalize(h[name])
		}
	}
	return true
}

// rewrite replaces path and query. What does not normalise is counted as a rule's error and left.
func (x *exchange) rewrite(rule *rules.Rule) {
	path, query, err := Rewritten(rule.Parameters, x.rule.Path, x.rule.Query)
	if err != nil {
		rule.Failed(&x.rule)
		return
	}
	x.rule.Rewrite(path, query)
}

// Rewritten is what a rule of action rewrite makes of a path and query, in normal form.
func Rewritten(p zone.Parameters, path, query string) (newPath, newQuery string, err error) {
	if p.Path != "" {
		if path, err = zone.NormalizePath(p.Path); err != nil {
			return "", "", err
		}
	}
	if p.Query != nil {
		if query, err = zone.NormalizeQuery(*p.Query); err != nil {
			return "", "", err
		}
	}
	return path, query, nil
}

func (x *exchange) custom(name zone.Phase) bool {
	for rule := range x.zone.Rules.Matching(name, &x.rule) {
		if x.common(rule) {
			return false
		}
		if rule.Action != zone.ActionBlock {
			continue
		}
		x.note(rule)
		x.refuse(rule, "This request is not allowed.")
		return true
	}
	return false
}

// refuse answers as a rule of action block or rate_limit says, or else with the zone's error page or text.
func (x *exchange) refuse(rule *rules.Rule, text string) {
	p := rule.Parameters.Effective(rule.Action, rule.Phase)
	if p.Body == "" {
		x.fail(p.Status, text)
		return
	}
	x.answer(p.Status, p.ContentType, p.Body)
}

func (x *exchange) route(name zone.Phase) bool {
	for rule := range x.zone.Rules.Matching(name, &x.rule) {
		if x.common(rule) {
			return false
		}
		if rule.Action == zone.ActionRoute {
			x.note(rule)
			x.pool = rule.Parameters.Pool
			return false
		}
	}
	return false
}

func (x *exchange) transformResponse(name zone.Phase, h http.Header) {
	for rule := range x.zone.Rules.Matching(name, &x.rule) {
		if x.common(rule) {
			return
		}
		field := http.CanonicalHeaderKey(rule.Parameters.Name)
		switch rule.Action {
		case zone.ActionSetHeader:
			if fieldname.SettableInAnswer(field) {
				h[field] = []string{rule.Parameters.Value}
			}
		case zone.ActionRemoveHeader:
			if fieldname.SettableInAnswer(field) {
				delete(h, field)
			}
		}
	}
}
