package web

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/edge/cache"
	"github.com/guardyn-edge/guardyn/zone"
)

// acting is an action in a phase that allows it.
type acting struct {
	phase  zone.Phase
	action zone.Action
}

// actionRow says what two requests that match see on the wire, the client and the origin. Of a skip or an allow the rules behind it
// are those of which nothing is to be seen.
type actionRow struct {
	rules []zone.Rule
	same  bool // both requests are for one path
	want  [2]string
	// logged is what the access log names of the first.
	logged string
}

// TestEveryActionInEveryPhase: each action does what it says in each phase that allows it; one that gets a new phase, and a new one, fail
// here until they have a row.
func TestEveryActionInEveryPhase(t *testing.T) {
	const passes = "200 by main, /p in=1 own=1"
	act := func(action zone.Action, p zone.Parameters) zone.Rule {
		return zone.Rule{Expression: `http.path.startsWith("/p")`, Action: action, Parameters: p}
	}
	skip, log := act(zone.ActionSkip, zone.Parameters{}), act(zone.ActionLog, zone.Parameters{})
	redirect := act(zone.ActionRedirect, zone.Parameters{Location: "https://elsewhere.example/"})
	block := act(zone.ActionBlock, zone.Parameters{})
	limit := act(zone.ActionRateLimit, zone.Parameters{Period: zone.Duration(time.Minute), Limit: 1})
	keep := act(zone.ActionCache, zone.Parameters{TTL: zone.Duration(time.Minute)})
	route := act(zone.ActionRoute, zone.Parameters{Pool: "other"})
	call := act(zone.ActionFunction, zone.Parameters{Function: "f"})
	setIn, removeIn := act(zone.ActionSetHeader, zone.Parameters{Name: "X-New", Value: "1"}), act(zone.ActionRemoveHeader, zone.Parameters{Name: "X-In"})
	setOut, removeOwn := act(zone.ActionSetHeader, zone.Parameters{Name: "X-Out", Value: "1"}), act(zone.ActionRemoveHeader, zone.Parameters{Name: "X-Own"})
	both := func(s string) [2]string { return [2]string{s, s} }
	rows := map[acting]actionRow{
		{zone.PhaseRedirect, zone.ActionRedirect}: {rules: []zone.Rule{redirect}, want: both("302 to https://elsewhere.example/"), logged: "redirect/1/redirect"},
		{zone.PhaseRedirect, zone.ActionSkip}:     {rules: []zone.Rule{skip, redirect}, want: both(passes)},

		{zone.PhaseTransformRequest, zone.ActionRewrite}:      {rules: []zone.Rule{act(zone.ActionRewrite, zone.Parameters{Path: "/new"})}, want: both("200 by main, /new in=1 own=1")},
		{zone.PhaseTransformRequest, zone.ActionSetHeader}:    {rules: []zone.Rule{setIn}, want: both("200 by main, /p in=1 new=1 own=1")},
		{zone.PhaseTransformRequest, zone.ActionRemoveHeader}: {rules: []zone.Rule{removeIn}, want: both("200 by main, /p own=1")},
		{zone.PhaseTransformRequest, zone.ActionSkip}:         {rules: []zone.Rule{skip, setIn}, want: both(passes)},
		{zone.PhaseTransformRequest, zone.ActionLog}:          {rules: []zone.Rule{log, setIn}, want: both("200 by main, /p in=1 new=1 own=1"), logged: "transform_request/1/log"},

		{zone.PhaseCustom, zone.ActionBlock}: {rules: []zone.Rule{block}, want: both("403"), logged: "custom/1/block"},
		{zone.PhaseCustom, zone.ActionAllow}: {rules: []zone.Rule{act(zone.ActionAllow, zone.Parameters{}), block}, want: both(passes)},
		{zone.PhaseCustom, zone.ActionSkip}:  {rules: []zone.Rule{skip, block}, want: both(passes)},
		{zone.PhaseCustom, zone.ActionLog}:   {rules: []zone.Rule{log, block}, want: both("403"), logged: "custom/1/log custom/2/block"},

		{zone.PhaseRatelimit, zone.ActionRateLimit}: {rules: []zone.Rule{limit}, want: [2]string{passes, "429 again in 60"}},
		{zone.PhaseRatelimit, zone.ActionSkip}:      {rules: []zone.Rule{skip, limit}, want: both(passes)},
		{zone.PhaseRatelimit, zone.ActionLog}:       {rules: []zone.Rule{log, limit}, want: [2]string{passes, "429 again in 60"}, logged: "ratelimit/1/log"},

		{zone.PhaseCache, zone.ActionCache}: {rules: []zone.Rule{keep}, same: true, want: [2]string{passes, "200 own=1"}},
		{zone.PhaseCache, zone.ActionSkip}:  {rules: []zone.Rule{skip, keep}, same: true, want: both(passes)},

		{zone.PhaseOrigin, zone.ActionRoute}: {rules: []zone.Rule{route}, want: both("200 by other, /p in=1 own=1"), logged: "origin/1/route"},
		{zone.PhaseOrigin, zone.ActionSkip}:  {rules: []zone.Rule{skip, route}, want: both(passes)},

		{zone.PhaseFunction, zone.ActionFunction}: {rules: []zone.Rule{call}, want: both("200 saying f"), logged: "function/1/function"},
		{zone.PhaseFunction, zone.ActionSkip}:     {rules: []zone.Rule{skip, call}, want: both(passes)},

		{zone.PhaseTransformResponse, zone.ActionSetHeader}:    {rules: []zone.Rule{setOut}, want: both(passes + " out=1")},
		{zone.PhaseTransformResponse, zone.ActionRemoveHeader}: {rules: []zone.Rule{removeOwn}, want: both("200 by main, /p in=1")},
		{zone.PhaseTransformResponse, zone.ActionSkip}:         {rules: []zone.Rule{skip, setOut}, want: both(passes)},
		{zone.PhaseTransformResponse, zone.ActionLog}:          {rules: []zone.Rule{log, setOut}, want: both(passes + " out=1"), logged: "transform_response/1/log"},
	}
	for _, phase := range zone.Phases() {
		for _, action := range phase.Actions() {
			row, ok := rows[acting{phase, action}]
			if !ok {
				t.Errorf("%s in %s has no row", action, phase)
				continue
			}
			delete(rows, acting{phase, action})
			t.Run(string(phase)+" "+string(action), func(t *testing.T) { row.run(t, phase) })
		}
	}
	for a := range rows {
		t.Errorf("%s is not for %s, and has a row", a.action, a.phase)
	}
}

func (row actionRow) run(t *testing.T, phase zone.Phase) {
	named := func(name string) *origin {
		return startOrigin(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Own", "1") })
	}
	main, other := named("main"), named("other")
	var records logBuffer
	n := startNode(t, func(c *Config) {
		c.Cache, c.AccessLog = cache.New(cache.MinMemory), slog.New(slog.NewJSONHandler(&records, nil))
	})
	z := site(main.address(), with(t, "f", answers("Status: 200\n\nf")))
	z.Rulesets = map[zone.Phase][]zone.Rule{phase: row.rules}
	z.Pools["other"] = zone.Pool{Origins: []zone.Origin{{Name: "o", Address: other.address()}}}
	n.publish(z)

	// see asks, and prints what of it was seen on either side.
	see := func(path string) string {
		got := n.get(path, "X-In: 1")
		seen := fmt.Sprint(got.status)
		if to := got.header.Get("Location"); to != "" {
			seen += " to " + to
		}
		if wait := got.header.Get("Retry-After"); wait != "" {
			seen += " again in " + wait
		}
		for name, o := range map[string]*origin{"main": main, "other": other} {
			for _, r := range o.take() {
				seen += " by " + name + ", " + strings.TrimSuffix(strings.TrimSuffix(r.uri, "1"), "2")
				for _, f := range []string{"In", "New"} {
					if v := r.header.Get("X-" + f); v != "" {
						seen += " " + strings.ToLower(f) + "=" + v
					}
				}
			}
		}
		if got.body == "f" {
			seen += " saying f"
		}
		for _, f := range []string{"Own", "Out"} {
			if v := got.header.Get("X-" + f); v != "" {
				seen += " " + strings.ToLower(f) + "=" + v
			}
		}
		return seen
	}
	paths := [2]string{"/p1", "/p2"}
	if row.same {
		paths[1] = paths[0]
	}
	for i, path := range paths {
		if got := see(path); got != row.want[i] {
			t.Errorf("request %d: %s, want %s", i+1, got, row.want[i])
		}
	}
	for range 2 {
		if got := see("/q"); got != "200 by main, /q in=1 own=1" {
			t.Errorf("a request that does not match: %s", got)
		}
	}
	n.end()
	var logged []string
	for _, line := range records.lines() {
		var r struct {
			Path  string
			Rules []string
		}
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if r.Path == "/q" && len(r.Rules) > 0 {
			t.Errorf("of a request that does not match: %v", r.Rules)
		}
		if len(logged) == 0 && (r.Path == paths[0] || r.Path == "/new") {
			logged = r.Rules
		}
	}
	if got := strings.Join(slices.Clone(logged), " "); got != row.logged {
		t.Errorf("the access log names %q, want %q", got, row.logged)
	}
}
