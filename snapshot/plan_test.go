package snapshot_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

func blocks(n int) []zone.Rule {
	rs := make([]zone.Rule, n)
	for i := range rs {
		rs[i] = zone.Rule{Expression: fmt.Sprintf(`http.path == "/%d"`, i), Action: zone.ActionBlock}
	}
	return rs
}

// The example of the specification, to the letter.
func TestPlanOfTheSpecification(t *testing.T) {
	old := &zone.Zone{ID: id1, Name: zone.MustName("amthalgroup.com"), Rulesets: map[zone.Phase][]zone.Rule{zone.PhaseCustom: blocks(4)}}
	full := zone.Percent(10_000)
	edited := &zone.Zone{
		ID: id1, Name: old.Name,
		Records:  []zone.Record{record(t, "amthalgroup.com", "_dmarc", "TXT", "v=DMARC1; p=none", 0, false)},
		Rulesets: map[zone.Phase][]zone.Rule{zone.PhaseCustom: blocks(5)},
		Settings: zone.Settings{TraceSampling: &full},
	}
	fresh := &zone.Zone{ID: id2, Name: zone.MustName("lab.amthalgroup.com")}
	before, after := mustBuild(t, meta42, old), mustBuild(t, meta42, edited, fresh)
	const want = `  + lab.amthalgroup.com
  ~ amthalgroup.com
       dns        + TXT    _dmarc.amthalgroup.com → v=DMARC1; p=none  ttl 300
     ! rules      4 → 5 rules in the custom phase
       settings   trace sampling 1.00% → 100.00%

4 changes. Lines marked ! can interrupt traffic.
Pass --accept-disruption to apply this.
`
	p := snapshot.Diff(before, after)
	if diff := cmp.Diff(want, p.Text(true)); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(strings.TrimSuffix(want, "Pass --accept-disruption to apply this.\n"), p.Text(false)); diff != "" {
		t.Errorf("without the hint (-want +got):\n%s", diff)
	}
	if !p.Disruptive || p.Changes != 4 || p.LiveVersion != 42 || p.ContentHash != after.ContentHash() {
		t.Errorf("plan %+v", p)
	}

	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var again snapshot.Plan
	if err := json.Unmarshal(b, &again); err != nil {
		t.Fatal(err)
	}
	if again.Text(true) != want {
		t.Errorf("as data and back:\n%s", again.Text(true))
	}

	const settingsOnly = `  ~ amthalgroup.com
       settings   trace sampling 1.00% → 100.00%

1 change
`
	traced := *old
	traced.Settings.TraceSampling = &full
	p = snapshot.Diff(before, mustBuild(t, meta42, &traced))
	if diff := cmp.Diff(settingsOnly, p.Text(true)); diff != "" || p.Disruptive {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}

func TestPlanWithoutChanges(t *testing.T) {
	s := mustBuild(t, meta42, amthal(t))
	if got := snapshot.Diff(s, mustBuild(t, snapshot.Meta{Version: 43}, amthal(t))).Text(true); got != "No changes. Version 42 is live.\n" {
		t.Errorf("got %q", got)
	}
	if got := snapshot.Diff(nil, mustBuild(t, snapshot.Meta{})).Text(true); got != "No changes. Nothing is published yet.\n" {
		t.Errorf("got %q", got)
	}
}

func TestPlanFirst(t *testing.T) {
	const want = "  + amthalgroup.com\n  + lab.example.org\n\n2 changes\n"
	if got := snapshot.Diff(nil, mustBuild(t, meta42, lab(t), amthal(t))).Text(true); got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestPlanOrderAndRemoval(t *testing.T) {
	mk := func(id, name, addr string) *zone.Zone {
		return &zone.Zone{ID: zone.ID("01890a5d-ac96-774b-bcce-b30209900" + id), Name: zone.MustName(name), Records: []zone.Record{record(t, name, "@", "A", addr, 0, false)}}
	}
	old := mustBuild(t, meta42, mk("001", "z.example", "192.0.2.1"), mk("002", "y.example", "192.0.2.1"), mk("003", "c.example", "192.0.2.1"), mk("004", "d.example", "192.0.2.1"))
	next := mustBuild(t, meta42, mk("003", "c.example", "192.0.2.9"), mk("004", "d.example", "192.0.2.9"), mk("005", "n.example", "192.0.2.1"), mk("006", "m.example", "192.0.2.1"))
	const want = `  + m.example
  + n.example
  ~ c.example
     ! dns        - A      c.example → 192.0.2.1  ttl 300
       dns        + A      c.example → 192.0.2.9  ttl 300
  ~ d.example
     ! dns        - A      d.example → 192.0.2.1  ttl 300
       dns        + A      d.example → 192.0.2.9  ttl 300
  - y.example  ! 1 record
  - z.example  ! 1 record

8 changes. Lines marked ! can interrupt traffic.
`
	if diff := cmp.Diff(want, snapshot.Diff(old, next).Text(false)); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}

// Every kind of change, its line and its mark: "! " before a line that is disruptive.
func TestPlanLines(t *testing.T) {
	const n = "example.com"
	rec := func(name, typ, content string, ttl uint32, proxied bool) zone.Record {
		return record(t, n, name, typ, content, ttl, proxied)
	}
	rules := func(phase zone.Phase, rs ...zone.Rule) func(*zone.Zone) {
		return func(z *zone.Zone) { z.Rulesets = map[zone.Phase][]zone.Rule{phase: rs} }
	}
	rule := func(a zone.Action, p zone.Parameters, e string) zone.Rule {
		return zone.Rule{Expression: e, Action: a, Parameters: p}
	}
	records := func(rs ...zone.Record) func(*zone.Zone) { return func(z *zone.Zone) { z.Records = rs } }
	pool := func(p zone.Pool) func(*zone.Zone) {
		return func(z *zone.Zone) { z.Pools = map[string]zone.Pool{"main": p} }
	}
	originA := zone.Origin{Name: "a", Address: "192.0.2.1:80"}
	balanced := func(lb zone.LoadBalancer, rs ...zone.Record) func(*zone.Zone) {
		return func(z *zone.Zone) {
			z.Records = rs
			z.Pools = map[string]zone.Pool{"main": {Origins: []zone.Origin{originA}}, "spare": {Origins: []zone.Origin{originA}}}
			if lb.Pools != nil {
				z.LoadBalancers = map[zone.Name]zone.LoadBalancer{zone.MustName("lb." + n): lb}
			}
		}
	}
	tls := func(until time.Time) func(*zone.Zone) {
		return func(z *zone.Zone) {
			z.TLSHosts = map[zone.Name]zone.TLSHost{zone.MustName("www." + n): {Certificate: cert(t, at.AddDate(-1, 0, 0), until, "www."+n), SealedKey: fixture(t, "key.age")}}
		}
	}
	chain := cert(t, at.AddDate(-1, 0, 0), at.AddDate(1, 0, 0), "www."+n)
	keyed := func(key string) func(*zone.Zone) {
		return func(z *zone.Zone) {
			z.TLSHosts = map[zone.Name]zone.TLSHost{zone.MustName("www." + n): {Certificate: chain, SealedKey: fixture(t, key)}}
		}
	}
	fn := func(f zone.Function) func(*zone.Zone) {
		return func(z *zone.Zone) { z.Functions = map[string]zone.Function{"hello": f} }
	}
	list := func(k zone.ListKind, items ...string) func(*zone.Zone) {
		return func(z *zone.Zone) { z.Lists = map[string]zone.List{"office": {Kind: k, Items: items}} }
	}
	nothing := func(*zone.Zone) {}
	blockA, blockB := rule(zone.ActionBlock, zone.Parameters{}, `http.path == "/a"`), rule(zone.ActionBlock, zone.Parameters{}, `http.path == "/b"`)
	allow := rule(zone.ActionAllow, zone.Parameters{}, `http.path == "/c"`)
	logA, logB := rule(zone.ActionLog, zone.Parameters{}, `http.path == "/a"`), rule(zone.ActionLog, zone.Parameters{}, `http.path == "/b"`)
	redirect := rule(zone.ActionRedirect, zone.Parameters{Location: "/n"}, `http.path == "/a"`)
	redirectB := rule(zone.ActionRedirect, zone.Parameters{Location: "/m"}, `http.path == "/b"`)
	skip := rule(zone.ActionSkip, zone.Parameters{}, `http.path == "/s"`)
	route := rule(zone.ActionRoute, zone.Parameters{Pool: "main"}, "true")
	call := rule(zone.ActionFunction, zone.Parameters{Function: "hello"}, "true")
	routed := func(rs ...zone.Rule) func(*zone.Zone) {
		return func(z *zone.Zone) {
			pool(zone.Pool{Origins: []zone.Origin{originA}})(z)
			rules(zone.PhaseOrigin, rs...)(z)
		}
	}
	called := func(rs ...zone.Rule) func(*zone.Zone) {
		return func(z *zone.Zone) {
			fn(zone.Function{Module: startModule})(z)
			rules(zone.PhaseFunction, rs...)(z)
		}
	}
	limit := rule(zone.ActionRateLimit, zone.Parameters{Period: zone.Duration(time.Second), Limit: 5}, "true")
	header := rule(zone.ActionSetHeader, zone.Parameters{Name: "x-a", Value: "1"}, "true")
	for name, tc := range map[string]struct {
		old, new func(*zone.Zone)
		want     string // lines by kind, "" for no plan at all
	}{
		"A added":          {nothing, records(rec("a", "A", "192.0.2.1", 0, false)), "dns + A      a.example.com → 192.0.2.1  ttl 300"},
		"A added, proxied": {nothing, records(rec("a", "A", "192.0.2.1", 60, true)), "dns + A      a.example.com → 192.0.2.1  ttl 60  proxied"},
		"A removed":        {records(rec("a", "A", "192.0.2.1", 0, false)), nothing, "! dns - A      a.example.com → 192.0.2.1  ttl 300"},
		"AAAA removed":     {records(rec("a", "AAAA", "2001:db8::1", 0, false)), nothing, "! dns - AAAA   a.example.com → 2001:db8::1  ttl 300"},
		"CNAME removed":    {records(rec("a", "CNAME", "b.example.net.", 0, false)), nothing, "! dns - CNAME  a.example.com → b.example.net  ttl 300"},
		"CNAME changed":    {records(rec("a", "CNAME", "b.example.net.", 0, false)), records(rec("a", "CNAME", "c.example.net.", 0, false)), "! dns - CNAME  a.example.com → b.example.net  ttl 300\ndns + CNAME  a.example.com → c.example.net  ttl 300"},
		"DNAME removed":    {records(rec("a", "DNAME", "b.example.net.", 0, false)), nothing, "! dns - DNAME  a.example.com → b.example.net  ttl 300"},
		"MX removed":       {records(rec("a", "MX", "10 b.example.net.", 0, false)), nothing, "! dns - MX     a.example.com → 10 b.example.net  ttl 300"},
		"NS removed":       {records(rec("a", "NS", "b.example.net.", 0, false)), nothing, "! dns - NS     a.example.com → b.example.net  ttl 300"},
		"NS added":         {nothing, records(rec("a", "NS", "b.example.net.", 0, false)), "dns + NS     a.example.com → b.example.net  ttl 300"},
		"NS added over":    {records(rec("x.a", "TXT", "x", 0, false)), records(rec("x.a", "TXT", "x", 0, false), rec("a", "NS", "b.example.net.", 0, false)), "! dns + NS     a.example.com → b.example.net  ttl 300"},
		"NS added beside":  {records(rec("x.a", "TXT", "x", 0, false), rec("a", "NS", "b.example.net.", 0, false)), records(rec("x.a", "TXT", "x", 0, false), rec("a", "NS", "b.example.net.", 0, false), rec("a", "NS", "c.example.net.", 0, false)), "dns + NS     a.example.com → c.example.net  ttl 300"},
		"NS at the apex":   {records(rec("x", "TXT", "x", 0, false)), records(rec("x", "TXT", "x", 0, false), rec("@", "NS", "b.example.net.", 0, false)), "dns + NS     example.com → b.example.net  ttl 300"},
		"TXT removed":      {records(rec("a", "TXT", "x", 0, false)), nothing, "dns - TXT    a.example.com → x  ttl 300"},
		"CAA removed":      {records(rec("a", "CAA", `0 issue "ca.example"`, 0, false)), nothing, `dns - CAA    a.example.com → 0 issue "ca.example"  ttl 300`},
		"SRV removed":      {records(rec("a", "SRV", "1 2 3 b.example.net.", 0, false)), nothing, "dns - SRV    a.example.com → 1 2 3 b.example.net  ttl 300"},
		"ttl changed":      {records(rec("a", "A", "192.0.2.1", 0, false)), records(rec("a", "A", "192.0.2.1", 60, false)), "dns ~ A      a.example.com → 192.0.2.1  ttl 300 → 60"},
		"ttl written out":  {records(rec("a", "A", "192.0.2.1", 0, false)), records(rec("a", "A", "192.0.2.1", 300, false)), ""},
		"proxied":          {records(rec("a", "A", "192.0.2.1", 0, false)), records(rec("a", "A", "192.0.2.1", 0, true)), "! dns ~ A      a.example.com → 192.0.2.1  not proxied → proxied"},
		"both":             {records(rec("a", "A", "192.0.2.1", 60, true)), records(rec("a", "A", "192.0.2.1", 0, false)), "! dns ~ A      a.example.com → 192.0.2.1  ttl 60 → 300  proxied → not proxied"},
		"address spelt":    {records(rec("a", "AAAA", "2001:DB8:0::1", 0, false)), records(rec("a", "AAAA", "2001:db8::1", 0, false)), ""},

		"block added":       {nothing, rules(zone.PhaseCustom, blockA), "! rules 0 → 1 rule in the custom phase"},
		"block removed":     {rules(zone.PhaseCustom, blockA, logB), rules(zone.PhaseCustom, logB), "! rules 2 → 1 rule in the custom phase"},
		"blocks swapped":    {rules(zone.PhaseCustom, blockA, blockB), rules(zone.PhaseCustom, blockB, blockA), "! rules 2 rules in the custom phase, reordered"},
		"block edited":      {rules(zone.PhaseCustom, blockA, logB), rules(zone.PhaseCustom, blockB, logB), "! rules 2 rules in the custom phase, 1 changed"},
		"one edited, added": {rules(zone.PhaseCustom, logA), rules(zone.PhaseCustom, logB, blockA), "! rules 1 → 2 rules in the custom phase, 1 changed"},
		"redirect added":    {nothing, rules(zone.PhaseRedirect, redirect), "! rules 0 → 1 rule in the redirect phase"},
		"rate limit added":  {nothing, rules(zone.PhaseRatelimit, limit), "! rules 0 → 1 rule in the ratelimit phase"},
		"log added":         {nothing, rules(zone.PhaseCustom, logA), "rules 0 → 1 rule in the custom phase"},
		"logs swapped":      {rules(zone.PhaseCustom, logA, logB), rules(zone.PhaseCustom, logB, logA), "rules 2 rules in the custom phase, reordered"},
		"header set":        {nothing, rules(zone.PhaseTransformResponse, header), "rules 0 → 1 rule in the transform_response phase"},
		"allow added":       {nothing, rules(zone.PhaseCustom, allow), "rules 0 → 1 rule in the custom phase"},
		"allow removed":     {rules(zone.PhaseCustom, allow), nothing, "! rules 1 → 0 rules in the custom phase"},
		"allow moved":       {rules(zone.PhaseCustom, allow, logA), rules(zone.PhaseCustom, logA, allow), "! rules 2 rules in the custom phase, reordered"},
		"redirect removed":  {rules(zone.PhaseRedirect, redirect), nothing, "! rules 1 → 0 rules in the redirect phase"},
		"redirects swapped": {rules(zone.PhaseRedirect, redirect, redirectB), rules(zone.PhaseRedirect, redirectB, redirect), "! rules 2 rules in the redirect phase, reordered"},
		"limit removed":     {rules(zone.PhaseRatelimit, limit), nothing, "! rules 1 → 0 rules in the ratelimit phase"},
		"limit moved":       {rules(zone.PhaseRatelimit, limit, logA), rules(zone.PhaseRatelimit, logA, limit), "! rules 2 rules in the ratelimit phase, reordered"},
		"route added":       {routed(), routed(route), "! rules 0 → 1 rule in the origin phase"},
		"route removed":     {routed(route), routed(), "! rules 1 → 0 rules in the origin phase"},
		"route moved":       {routed(route, skip), routed(skip, route), "! rules 2 rules in the origin phase, reordered"},
		"call added":        {called(), called(call), "! rules 0 → 1 rule in the function phase"},
		"call removed":      {called(call), called(), "! rules 1 → 0 rules in the function phase"},
		"call moved":        {called(call, skip), called(skip, call), "! rules 2 rules in the function phase, reordered"},
		"skip added":        {nothing, rules(zone.PhaseCustom, skip), "rules 0 → 1 rule in the custom phase"},
		"skip removed":      {rules(zone.PhaseCustom, skip), nothing, "! rules 1 → 0 rules in the custom phase"},
		"skip moved":        {rules(zone.PhaseCustom, skip, logA), rules(zone.PhaseCustom, logA, skip), "! rules 2 rules in the custom phase, reordered"},
		"log removed":       {rules(zone.PhaseCustom, logA), nothing, "rules 1 → 0 rules in the custom phase"},
		"rule spelt":        {rules(zone.PhaseCustom, rule(zone.ActionBlock, zone.Parameters{Status: 403}, `http.path   ==  "/a" // x`)), rules(zone.PhaseCustom, blockA), ""},

		"list added":        {nothing, list(zone.ListIP, "192.0.2.1"), "lists + office  1 item"},
		"list removed":      {list(zone.ListIP, "192.0.2.1", "192.0.2.2"), nothing, "lists - office  2 items"},
		"list grown":        {list(zone.ListIP, "192.0.2.1"), list(zone.ListIP, "192.0.2.1", "192.0.2.2", "192.0.2.3"), "lists ~ office  2 items added"},
		"list exchanged":    {list(zone.ListIP, "192.0.2.1"), list(zone.ListIP, "192.0.2.2"), "lists ~ office  1 item added, 1 removed"},
		"list shrunk":       {list(zone.ListIP, "192.0.2.1", "10.0.0.0/8"), list(zone.ListIP, "192.0.2.1"), "lists ~ office  1 item removed"},
		"list kind changed": {list(zone.ListHostname, "a.example"), list(zone.ListString, "a.example"), "lists ~ office  kind hostname → string"},

		"pool added":      {nothing, pool(zone.Pool{Origins: []zone.Origin{originA}}), "pools + main  1 origin"},
		"pool removed":    {pool(zone.Pool{Origins: []zone.Origin{originA}}), nothing, "! pools - main  1 origin"},
		"pool policy":     {pool(zone.Pool{Origins: []zone.Origin{originA}}), pool(zone.Pool{Origins: []zone.Origin{originA}, Policy: zone.PolicyClientIP}), "! pools ~ main  policy round_robin → client_ip_hash"},
		"pool slow start": {pool(zone.Pool{Origins: []zone.Origin{originA}}), pool(zone.Pool{Origins: []zone.Origin{originA}, SlowStart: zone.Duration(30 * time.Second)}), "! pools ~ main  slow start none → 30s"},
		"pool ejection": {
			pool(zone.Pool{Origins: []zone.Origin{originA}, OutlierDetection: &zone.OutlierDetection{ConsecutiveFailures: 9}}),
			pool(zone.Pool{Origins: []zone.Origin{originA}, OutlierDetection: &zone.OutlierDetection{Enabled: new(bool)}}), "! pools ~ main  outlier detection 9 failures, 30s, 50% → off",
		},
		"pool ejection by status": {
			pool(zone.Pool{Origins: []zone.Origin{originA}, OutlierDetection: &zone.OutlierDetection{FailureStatus: []int{}}}),
			pool(zone.Pool{Origins: []zone.Origin{originA}, OutlierDetection: &zone.OutlierDetection{FailureStatus: []int{503, 500}}}),
			"! pools ~ main  outlier detection 5 failures, 30s, 50%, no status → 5 failures, 30s, 50%, status 500 503",
		},
		"pool ejection by the statuses of the default": {
			pool(zone.Pool{Origins: []zone.Origin{originA}, OutlierDetection: &zone.OutlierDetection{FailureStatus: []int{504, 502}}}),
			pool(zone.Pool{Origins: []zone.Origin{originA}}), "",
		},
		"pool health":         {pool(zone.Pool{Origins: []zone.Origin{originA}}), pool(zone.Pool{Origins: []zone.Origin{originA}, Health: &zone.HealthCheck{}}), "! pools ~ main  health check added"},
		"pool health changed": {pool(zone.Pool{Origins: []zone.Origin{originA}, Health: &zone.HealthCheck{ExpectedStatus: []int{200}}}), pool(zone.Pool{Origins: []zone.Origin{originA}, Health: &zone.HealthCheck{ExpectedStatus: []int{204}}}), "! pools ~ main  health check changed"},
		"origins": {
			pool(zone.Pool{Origins: []zone.Origin{originA, {Name: "b", Address: "192.0.2.2:80"}}}),
			pool(zone.Pool{Origins: []zone.Origin{{Name: "a", Address: "192.0.2.9:443", Scheme: zone.SchemeHTTPS, Weight: 5, HostHeader: "h.example", SNI: "s.example"}, {Name: "c", Address: "192.0.2.3:80"}}}),
			"! pools ~ main  origin a address 192.0.2.1:80 → 192.0.2.9:443; origin a scheme http → https; origin a weight 1 → 5; origin a host header none → h.example; origin a sni none → s.example; - origin b at 192.0.2.2:80; + origin c at 192.0.2.3:80",
		},
		"balancer added":         {balanced(zone.LoadBalancer{}), balanced(zone.LoadBalancer{Pools: []string{"main"}}), "balancers + lb.example.com  to main"},
		"balancer over a served": {balanced(zone.LoadBalancer{}, rec("lb", "A", "192.0.2.1", 0, true)), balanced(zone.LoadBalancer{Pools: []string{"main"}}, rec("lb", "A", "192.0.2.1", 0, true)), "! balancers + lb.example.com  to main"},
		"balancer removed":       {balanced(zone.LoadBalancer{Pools: []string{"main"}}), balanced(zone.LoadBalancer{}), "! balancers - lb.example.com  to main"},
		"balancer changed":       {balanced(zone.LoadBalancer{Pools: []string{"main"}}), balanced(zone.LoadBalancer{Pools: []string{"main", "spare"}, Fallback: "spare", Sticky: &zone.Sticky{}}), "! balancers ~ lb.example.com  pools main → main, spare; fallback none → spare; sticky sessions added"},

		"cache": {
			nothing, func(z *zone.Zone) {
				z.CachePolicy = zone.CachePolicy{Disabled: true, DefaultTTL: zone.Duration(time.Minute), QueryMode: "include", QueryParameters: []string{"a", "b"}}
			},
			"cache disabled false → true\ncache default ttl none → 1m\ncache query mode all → include\ncache query parameters none → a, b",
		},

		"certificate added":         {nothing, tls(at.AddDate(0, 6, 0)), "tls + www.example.com  certificate until 2026-09-01"},
		"certificate removed":       {tls(at.AddDate(0, 6, 0)), nothing, "! tls - www.example.com  certificate until 2026-09-01"},
		"certificate renewed":       {tls(at.AddDate(0, 1, 0)), tls(at.AddDate(0, 6, 0)), "! tls ~ www.example.com  certificate until 2026-04-01 → until 2026-09-01"},
		"certificate of equal date": {tls(at.AddDate(0, 6, 0)), tls(at.AddDate(0, 6, 0)), "! tls ~ www.example.com  another certificate until 2026-09-01"},
		"key exchanged":             {keyed("key.age"), keyed("key2.age"), "! tls ~ www.example.com  another private key"},

		"function added":   {nothing, fn(zone.Function{Module: startModule}), "functions + hello  36B"},
		"function removed": {fn(zone.Function{Module: startModule}), nothing, "! functions - hello  36B"},
		"function changed": {fn(zone.Function{Module: startModule, Environment: map[string]string{"TOKEN": "s3cret"}}), fn(zone.Function{Module: module("\x00\x02\x01x"), Memory: 1 << 20, Timeout: zone.Duration(time.Second / 2), Output: 1 << 10}), "! functions ~ hello  module 36B → 40B; memory the plan's → 1MiB; output the plan's → 1KiB; timeout the plan's → 500ms; environment changed"},

		"setting":       {nothing, func(z *zone.Zone) { z.Settings.AlwaysHTTPS = true }, "settings always https off → on"},
		"ceiling lower": {nothing, func(z *zone.Zone) { z.Ceilings.Records = 5 }, "! ceilings records 10000 → 5"},
		"ceiling higher": {nothing, func(z *zone.Zone) {
			z.Ceilings.RequestRate = 20_000
			z.Ceilings.FunctionMemory = 128 << 20
			z.Ceilings.FunctionTime = zone.Duration(2 * time.Second)
		}, "ceilings function memory 64MiB → 128MiB\nceilings function time 1s → 2s\nceilings request rate 10000 → 20000"},
		"ceiling written out": {nothing, func(z *zone.Zone) { z.Ceilings.Records = 10_000 }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			side := func(f func(*zone.Zone)) *snapshot.Snapshot {
				z := &zone.Zone{ID: id1, Name: zone.MustName(n)}
				f(z)
				return mustBuild(t, meta42, z)
			}
			old, next := side(tc.old), side(tc.new)
			p := snapshot.Diff(old, next)
			var got []string
			mark := false
			for _, z := range p.Zones {
				for _, l := range z.Lines {
					line := l.Kind + " " + l.Text
					if l.Disruptive {
						line, mark = "! "+line, true
					}
					got = append(got, line)
				}
				if z.Disruptive != mark {
					t.Errorf("the zone's mark is %v", z.Disruptive)
				}
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, "\n")); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
			if p.Disruptive != mark || p.Changes != len(got) {
				t.Errorf("disruptive %v, %d changes, %d lines", p.Disruptive, p.Changes, len(got))
			}
			if text := p.Text(false); strings.Contains(text, "s3cret") || strings.Contains(text, "AGE ENCRYPTED") {
				t.Errorf("a secret shows:\n%s", text)
			}
			if (tc.want == "") != (old.ContentHash() == next.ContentHash()) {
				t.Error("the plan and the hash disagree on whether there is a change")
			}
		})
	}
}

func TestPlanMassLoss(t *testing.T) {
	const n = "example.com"
	with := func(count int) *snapshot.Snapshot {
		z := &zone.Zone{ID: id1, Name: zone.MustName(n)}
		for i := range count {
			z.Records = append(z.Records, record(t, n, fmt.Sprintf("r%03d", i), "TXT", "x", 0, false))
		}
		return mustBuild(t, meta42, z)
	}
	for _, tc := range []struct {
		before, after int
		want          string
	}{
		{100, 69, "     ! warning    loses 31 of 100 records; check that this is not a failed import\n"},
		{100, 70, ""},
		{36, 25, "     ! warning    loses 11 of 36 records; check that this is not a failed import\n"},
		{10, 0, ""},
		{11, 0, "     ! warning    loses 11 of 11 records; check that this is not a failed import\n"},
	} {
		p := snapshot.Diff(with(tc.before), with(tc.after))
		text := p.Text(false)
		if tc.want == "" && strings.Contains(text, "warning") || !strings.Contains(text, tc.want) {
			t.Errorf("%d → %d records:\n%s", tc.before, tc.after, text)
		}
		if p.Changes != tc.before-tc.after {
			t.Errorf("the warning counts as a change: %d", p.Changes)
		}
	}
}

func TestPlanTextIsInertAndShort(t *testing.T) {
	const n = "example.com"
	long := strings.Repeat("abcdefghij", 40)
	p := snapshot.Plan{
		LiveVersion: 1, Changes: 2, Zones: []snapshot.ZoneChange{{Name: zone.MustName(n), Action: snapshot.ActionChange, Lines: []snapshot.Line{
			{Kind: "dns", Text: "+ TXT    a.example.com → \x1b[31mred\r\n\u202e  ttl 300"},
			{Kind: "dns", Text: "+ TXT    b.example.com → " + long + "  ttl 300"},
		}}},
		Warnings: []snapshot.Problem{{Zone: zone.MustName(n), Object: "list \x07", Code: "list_unused", Message: "No rule uses this list."}},
	}
	want := `  ~ example.com
       dns        + TXT    a.example.com → \x1b[31mred\r\n\u202e  ttl 300
       dns        ` + ("+ TXT    b.example.com → " + long)[:121] + "…" + (long + "  ttl 300")[len(long)+9-40:] + `

2 changes

warning: example.com: list \a: No rule uses this list.
`
	if diff := cmp.Diff(want, p.Text(true)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	z := &zone.Zone{ID: id1, Name: zone.MustName(n), Records: []zone.Record{record(t, n, "a", "TXT", long, 0, false)}}
	full := snapshot.Diff(mustBuild(t, meta42), mustBuild(t, meta42))
	if full.Changes != 0 {
		t.Fatal(full)
	}
	d := snapshot.Diff(mustBuild(t, meta42, &zone.Zone{ID: id1, Name: zone.MustName(n)}), mustBuild(t, meta42, z))
	if !strings.Contains(d.Zones[0].Lines[0].Text, long) {
		t.Error("the plan as data is cut")
	}
}

// TestPlanZoneMadeAgain: a plan without changes means that the content is the same, so a zone that was deleted and
// made again is a change although it serves alike.
func TestPlanZoneMadeAgain(t *testing.T) {
	build := func(id zone.ID) *snapshot.Snapshot {
		z := &zone.Zone{ID: id, Name: zone.MustName("example.com"), Records: []zone.Record{record(t, "example.com", "a", "A", "192.0.2.1", 0, false)}}
		s, _, err := snapshot.Build(snapshot.Input{Zones: []snapshot.ZoneInput{{Workspace: "w", Zone: z}}}, snapshot.Meta{Version: 1})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	p := snapshot.Diff(build(id1), build(id2))
	want := "  ~ example.com\n       zone       made again: its id is " + string(id2) + " now, was " + string(id1) + "\n\n1 change\n"
	if got := p.Text(true); got != want || p.Disruptive {
		t.Errorf("plan:\n%s\nwant:\n%s", got, want)
	}
}
