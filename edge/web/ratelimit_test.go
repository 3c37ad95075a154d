package web

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/zone"
)

// clock is a time that a test moves.
type clock struct{ atomic.Int64 }

func (c *clock) now() time.Time { return time.Unix(1_800_000_000, c.Load()) }

func TestRateLimit(t *testing.T) {
	const second = zone.Duration(time.Second)
	limit := func(expression string, p zone.Parameters) func(*zone.Zone) {
		return rule(zone.PhaseRatelimit, expression, zone.ActionRateLimit, p)
	}
	type ask struct {
		path, retry, body, contentType string
		after                          time.Duration
		status                         int
	}
	for _, tc := range []struct {
		name  string
		rules []func(*zone.Zone)
		asks  []ask
	}{
		{
			"exactly the limit, Retry-After rounded up",
			[]func(*zone.Zone){limit(`true`, zone.Parameters{Period: 3 * second, Limit: 2})},
			[]ask{
				{path: "/", status: 200},
				{path: "/", status: 200},
				{path: "/", status: 429, retry: "2", body: "429 Too Many Requests\nThere are too many requests.\n"},
				{path: "/", after: time.Second, status: 429, retry: "1"},
				{path: "/", after: time.Second, status: 200},
			},
		},
		{
			"status, body and content type of the rule",
			[]func(*zone.Zone){limit(`http.path == "/api"`, zone.Parameters{Period: 60 * second, Limit: 1, Status: 503, Body: "{}", ContentType: "application/json"})},
			[]ask{
				{path: "/api", status: 200},
				{path: "/api", status: 503, retry: "60", body: "{}", contentType: "application/json"},
				{path: "/", status: 200},
				{path: "/", status: 200},
			},
		},
		{
			"the zone's error page",
			[]func(*zone.Zone){
				limit(`true`, zone.Parameters{Period: second, Limit: 1}),
				func(z *zone.Zone) { z.Settings.ErrorPages = map[string]string{"429": "<h1>Slow</h1>"} },
			},
			[]ask{{path: "/", status: 200}, {path: "/", status: 429, retry: "1", body: "<h1>Slow</h1>", contentType: "text/html; charset=utf-8"}},
		},
		{
			"a key of its own",
			[]func(*zone.Zone){limit(`true`, zone.Parameters{Key: "http.path", Period: second, Limit: 1})},
			[]ask{{path: "/a", status: 200}, {path: "/b", status: 200}, {path: "/a", status: 429, retry: "1"}},
		},
		{
			"a key that errs limits nothing",
			[]func(*zone.Zone){limit(`true`, zone.Parameters{Key: `string(int(http.headers["none"]))`, Period: second, Limit: 1})},
			[]ask{{path: "/a", status: 200}, {path: "/a", status: 200}},
		},
		{
			"skip before it",
			[]func(*zone.Zone){
				rule(zone.PhaseRatelimit, `http.path == "/free"`, zone.ActionSkip, zone.Parameters{}),
				limit(`true`, zone.Parameters{Period: second, Limit: 1}),
			},
			[]ask{{path: "/free", status: 200}, {path: "/free", status: 200}, {path: "/", status: 200}, {path: "/free", status: 200}, {path: "/", status: 429, retry: "1"}},
		},
		{
			"skipped by the firewall, log goes on",
			[]func(*zone.Zone){
				rule(zone.PhaseCustom, `http.path == "/free"`, zone.ActionSkip, zone.Parameters{Phases: []zone.Phase{zone.PhaseRatelimit}}),
				rule(zone.PhaseRatelimit, `true`, zone.ActionLog, zone.Parameters{}),
				limit(`true`, zone.Parameters{Period: second, Limit: 1}),
			},
			[]ask{{path: "/", status: 200}, {path: "/free", status: 200}, {path: "/", status: 429, retry: "1"}},
		},
		{
			"two equal rules count by themselves",
			[]func(*zone.Zone){
				limit(`true`, zone.Parameters{Period: second, Limit: 2}),
				limit(`true`, zone.Parameters{Period: second, Limit: 2}),
			},
			[]ask{{path: "/", status: 200}, {path: "/", status: 200}, {path: "/", status: 429, retry: "1"}},
		},
		{
			"the plan's rate",
			[]func(*zone.Zone){func(z *zone.Zone) { z.Ceilings.RequestRate = 2 }},
			[]ask{
				{path: "/", status: 200},
				{path: "/", status: 200},
				{path: "/", status: 503, retry: "1"},
				{path: "/", after: time.Second / 2, status: 200},
				{path: "/", status: 503, retry: "1"},
			},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var c clock
			o := startOrigin(t)
			n := startNode(t, func(cfg *Config) { cfg.Now = c.now })
			n.publish(site(o.address(), tc.rules...))
			for i, ask := range tc.asks {
				c.Add(int64(ask.after))
				got := n.get(ask.path)
				if got.status != ask.status || got.header.Get("Retry-After") != ask.retry ||
					ask.body != "" && got.body != ask.body || ask.contentType != "" && got.header.Get("Content-Type") != ask.contentType {
					t.Errorf("request %d, %s: got %+v, want %+v", i+1, ask.path, got, ask)
				}
				if got.status != 200 && got.header.Get("Cache-Control") != "no-store" {
					t.Errorf("request %d: Cache-Control: %q", i+1, got.header.Get("Cache-Control"))
				}
			}
		})
	}
}

func TestCountsOutliveSwapsOfOtherThings(t *testing.T) {
	var c clock
	o := startOrigin(t)
	n := startNode(t, func(cfg *Config) { cfg.Now = c.now })
	p := zone.Parameters{Period: zone.Duration(time.Minute), Limit: 1}
	at := func(change ...func(*zone.Zone)) *zone.Zone {
		z := site(o.address(), change...)
		z.Ceilings.RequestRate = 4
		return z
	}
	limit := func(p zone.Parameters) func(*zone.Zone) {
		return rule(zone.PhaseRatelimit, `http.path == "/a"`, zone.ActionRateLimit, p)
	}
	n.publish(at(limit(p)))
	if got := n.get("/a"); got.status != 200 {
		t.Fatalf("the first: %+v", got)
	}
	answered := p
	answered.Body = "no"
	for _, tc := range []struct {
		name   string
		zone   *zone.Zone
		status int
	}{
		{"another answer, another place", at(rule(zone.PhaseRatelimit, `false`, zone.ActionLog, zone.Parameters{}), limit(answered)), 429},
		{"the rule gone and back", at(), 200},
		{"back", at(limit(p)), 429},
		{"the plan's rate is used up, over all of them", at(), 503},
	} {
		n.publish(tc.zone)
		if got := n.get("/a"); got.status != tc.status {
			t.Errorf("%s: got %d, want %d", tc.name, got.status, tc.status)
		}
	}
	c.Add(int64(time.Second))
	p.Limit = 2
	n.publish(at(limit(p)))
	if got := n.get("/a"); got.status != 200 {
		t.Errorf("with another limit: got %d, want a new count", got.status)
	}
}
