package cli

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/guardyn-edge/guardyn/edge/cache"
	"github.com/guardyn-edge/guardyn/edge/rules"
	"github.com/guardyn-edge/guardyn/edge/web"
	"github.com/guardyn-edge/guardyn/internal/fieldname"
	"github.com/guardyn-edge/guardyn/zone"
)

// ruleOutcome is what became of one rule: "matched", "not matched", "erred", "disabled", "skipped" or "not reached".
type ruleOutcome struct {
	Phase  zone.Phase  `json:"phase"`
	Rule   int         `json:"rule"` // from 1
	Action zone.Action `json:"action"`
	State  string      `json:"state"`
	Why    []string    `json:"why,omitempty"`
	Does   string      `json:"does,omitempty"`
}

// testOutcome is what the rules make of a request. Status is 0 when it goes to the origin.
type testOutcome struct {
	Rules []ruleOutcome `json:"rules"`
	// Client is who asks. Proxy is the trusted proxy that told, empty when nobody did.
	Client   string      `json:"client"`
	Proxy    string      `json:"proxy,omitempty"`
	Status   int         `json:"status,omitzero"`
	Location string      `json:"location,omitempty"`
	Method   string      `json:"method"`
	Host     string      `json:"host"`
	Path     string      `json:"path"`
	Query    string      `json:"query,omitempty"`
	Headers  http.Header `json:"headers,omitempty"`
	Pool     string      `json:"pool,omitempty"`
	Function string      `json:"function,omitempty"`
	// Cache is nil when rules answer the request.
	Cache *cacheOutcome `json:"cache,omitempty"`

	response bool     // the phase is that of the answer
	changed  []string // fields of the request, by rules
}

// runRules does with r what a node does, phase by phase.
func runRules(z *zone.Zone, set *rules.Set, r *rules.Request) *testOutcome {
	out := &testOutcome{Rules: []ruleOutcome{}, Client: r.Client.String()}
	out.Status, out.Location = web.ToHTTPS(&z.Settings, r.Scheme, r.Host, r.Path, r.Query)
	var skipped []zone.Phase
	policy := cache.NewPolicy(z.CachePolicy)
	for _, phase := range zone.Phases() {
		ended := false
		out.response = phase == zone.PhaseTransformResponse
		for i, rule := range z.Rulesets[phase] {
			o := ruleOutcome{Phase: phase, Rule: i + 1, Action: rule.Action}
			switch {
			case rule.Enabled != nil && !*rule.Enabled:
				o.State = "disabled"
			case out.Status != 0 || ended:
				o.State = "not reached"
			case slices.Contains(skipped, phase):
				o.State = "skipped"
			default:
				matches, why, err := set.Why(r, rule.Expression)
				switch {
				case err != nil:
					o.State, o.Why = "erred", []string{err.Error()}
				case !matches:
					o.State, o.Why = "not matched", why
				default:
					o.State = "matched"
					p := rule.Parameters.Effective(rule.Action, phase)
					if rule.Action == zone.ActionSkip {
						skipped = append(skipped, p.Phases...)
					}
					if rule.Action == zone.ActionCache && policy != nil {
						policy.Apply(&p)
					}
					if o.Does = out.act(rule.Action, p, r); endsPhase(rule.Action) {
						ended = true
					}
				}
			}
			out.Rules = append(out.Rules, o)
		}
	}
	out.Cache = out.cachePart(z, policy, r)
	out.Method, out.Host, out.Path, out.Query, out.Headers = r.Method, r.Host, r.Path, r.Query, r.Header
	return out
}

// endsPhase reports whether no rule after one of that action runs in its phase; a skip ends it by its phases.
func endsPhase(a zone.Action) bool {
	return slices.Contains([]zone.Action{zone.ActionRedirect, zone.ActionBlock, zone.ActionAllow, zone.ActionRoute, zone.ActionFunction}, a)
}

// act does what a rule that matched says and tells it.
func (o *testOutcome) act(action zone.Action, p zone.Parameters, r *rules.Request) string {
	name := http.CanonicalHeaderKey(p.Name)
	switch action {
	case zone.ActionRedirect:
		o.Status, o.Location = p.Status, web.Location(p, r.Query)
		return fmt.Sprintf("answers %d to %s", o.Status, o.Location)
	case zone.ActionBlock:
		o.Status = p.Status
		return fmt.Sprintf("answers %d", o.Status)
	case zone.ActionAllow:
		return "ends the phase"
	case zone.ActionSkip:
		words := make([]string, len(p.Phases))
		for i, phase := range p.Phases {
			words[i] = string(phase)
		}
		return "skips " + join(words)
	case zone.ActionLog:
		return "is named in the access log"
	case zone.ActionRewrite:
		path, query, err := web.Rewritten(p, r.Path, r.Query)
		if err != nil {
			return "does nothing: " + err.Error()
		}
		r.Rewrite(path, query)
		return "rewrites to " + target(path, query)
	case zone.ActionRateLimit:
		return fmt.Sprintf("counts by %s; answers %d beyond %d in %s", p.Key, p.Status, p.Limit, p.Period)
	case zone.ActionRoute:
		o.Pool = p.Pool
		return "goes to pool " + p.Pool
	case zone.ActionFunction:
		o.Function = p.Function
		return "calls function " + p.Function
	case zone.ActionCache:
		return cacheRule(p)
	case zone.ActionSetHeader, zone.ActionRemoveHeader:
		settable := o.response && fieldname.SettableInAnswer(name) || !o.response && web.ChangeRequest(r.Header, action, &p)
		if !settable {
			return "does nothing: " + name + " is the node's"
		}
		if !o.response && !slices.Contains(o.changed, name) {
			o.changed = append(o.changed, name)
		}
		verb := "removes " + name
		if action == zone.ActionSetHeader {
			verb = "sets " + name + ": " + p.Value
		}
		if o.response {
			return verb + " of the answer"
		}
		return verb
	}
	return ""
}

func target(path, query string) string {
	if query != "" {
		return path + "?" + query
	}
	return path
}

func (a *app) printRuleTest(o *testOutcome) error {
	if o.Proxy != "" {
		a.printf("asked by %s, as trusted proxy %s tells\n", o.Client, o.Proxy)
	}
	var phase zone.Phase
	for _, rule := range o.Rules {
		if rule.Phase != phase {
			phase = rule.Phase
			a.printf("%s\n", string(phase))
		}
		a.printf("  %d  %s  %s", rule.Rule, string(rule.Action), rule.State)
		if rule.Does != "" {
			a.printf(": %s", rule.Does)
		}
		a.printf("\n")
		for _, why := range rule.Why {
			a.printf("       %s\n", why)
		}
	}
	switch {
	case o.Location != "":
		a.printf("answered %d to %s\n", o.Status, o.Location)
	case o.Status != 0:
		a.printf("answered %d\n", o.Status)
	default:
		a.printf("%s\n", o.Cache.String())
		where := "the host's origin"
		switch {
		case o.Function != "":
			where = "function " + o.Function
		case o.Pool != "":
			where = "pool " + o.Pool
		}
		a.printf("goes to %s: %s %s, host %s\n", where, o.Method, target(o.Path, o.Query), o.Host)
		for _, name := range slices.Sorted(maps.Keys(o.Headers)) {
			a.printf("  %s: %s\n", name, strings.Join(o.Headers[name], ", "))
		}
	}
	return nil
}
