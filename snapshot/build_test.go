package snapshot_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/snapshot"
	"github.com/guardyn-edge/guardyn/zone"
)

// finding is the part of a problem that a row of a table states.
type finding struct{ zone, object, code, says string }

func find(ps []snapshot.Problem, f finding) bool {
	for _, p := range ps {
		if p.Zone.String() == f.zone && p.Object == f.object && p.Code == f.code && strings.Contains(p.Message, f.says) {
			return true
		}
	}
	return false
}

// cert makes a self-signed certificate for hosts.
func cert(tb testing.TB, from, until time.Time, hosts ...string) string {
	tb.Helper()
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: hosts, NotBefore: from, NotAfter: until}
	der, err := x509.CreateCertificate(rand.Reader, c, c, pub, key)
	if err != nil {
		tb.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// module makes a WASI command with extra sections before its code.
func module(extra string) []byte {
	m := string(startModule)
	const at = "\x03\x02\x01\x00" // after the type section
	return []byte(strings.Replace(m, at, extra+at, 1))
}

func TestBuildProblems(t *testing.T) {
	const n = "example.com"
	apex := zone.MustName(n)
	rec := func(name, typ, content string, proxied bool) zone.Record {
		return record(t, n, name, typ, content, 0, proxied)
	}
	rules := func(phase zone.Phase, rs ...zone.Rule) func(*zone.Zone) {
		return func(z *zone.Zone) { z.Rulesets = map[zone.Phase][]zone.Rule{phase: rs} }
	}
	records := func(rs ...zone.Record) func(*zone.Zone) {
		return func(z *zone.Zone) { z.Records = append(z.Records, rs...) }
	}
	block := func(e string) zone.Rule { return zone.Rule{Expression: e, Action: zone.ActionBlock} }
	off := false
	tls := func(host, chain string) func(*zone.Zone) {
		return func(z *zone.Zone) {
			z.TLSHosts = map[zone.Name]zone.TLSHost{zone.MustName(host): {Certificate: chain, SealedKey: fixture(t, "key.age")}}
		}
	}
	day := 24 * time.Hour
	function := func(f zone.Function, ceilings zone.Ceilings) func(*zone.Zone) {
		return func(z *zone.Zone) {
			z.Functions, z.Ceilings = map[string]zone.Function{"f": f}, ceilings
		}
	}
	poolAt := func(addr string) func(*zone.Zone) {
		return func(z *zone.Zone) {
			z.Pools = map[string]zone.Pool{"p": {Origins: []zone.Origin{{Name: "a", Address: addr}}}}
			z.LoadBalancers = map[zone.Name]zone.LoadBalancer{zone.MustName("lb." + n): {Pools: []string{"p"}}}
		}
	}
	balanced := func(host string, rs ...zone.Record) func(*zone.Zone) {
		return func(z *zone.Zone) {
			z.Pools = map[string]zone.Pool{"p": {Origins: []zone.Origin{{Name: "a", Address: "192.0.2.1:80"}}}}
			z.LoadBalancers = map[zone.Name]zone.LoadBalancer{zone.MustName(host + "." + n): {Pools: []string{"p"}}}
			z.Records = append(z.Records, rs...)
		}
	}
	unreached := finding{n, "load balancer lb", "balancer_unreached", "add one"}
	reached := finding{code: "balancer_unreached"}
	for name, tc := range map[string]struct {
		zone     func(*zone.Zone)
		want     finding
		warning  bool
		none     bool // nothing of want's code may be found
		allowing string
	}{
		"list unknown":                  {zone: rules(zone.PhaseCustom, block(`in_list(ip.src, "office")`)), want: finding{n, "rule 1 of custom", "list_unknown", `"office"`}},
		"list unknown in a key":         {zone: rules(zone.PhaseRatelimit, zone.Rule{Expression: "true", Action: zone.ActionRateLimit, Parameters: zone.Parameters{Key: `in_list(ip.src, "office") ? "a" : "b"`, Period: zone.Duration(time.Second), Limit: 1}}), want: finding{n, "rule 1 of ratelimit", "list_unknown", `key names list "office"`}},
		"rules count as people do":      {zone: rules(zone.PhaseCustom, zone.Rule{Expression: "true", Action: zone.ActionBlock, Enabled: &off}, block(`in_list(ip.src, "x")`)), want: finding{n, "rule 2 of custom", "list_unknown", "create the list"}},
		"a disabled rule is not judged": {zone: rules(zone.PhaseCustom, zone.Rule{Expression: `in_list(ip.src, "x")`, Action: zone.ActionBlock, Enabled: &off}), want: finding{code: "list_unknown"}, none: true},
		"list of the wrong kind for an address": {zone: func(z *zone.Zone) {
			rules(zone.PhaseCustom, block(`in_list(ip.src, "l")`))(z)
			z.Lists = map[string]zone.List{"l": {Kind: zone.ListString, Items: []string{"x"}}}
		}, want: finding{n, "rule 1 of custom", "list_kind", "kind ip"}},
		"list of the wrong kind for a string": {zone: func(z *zone.Zone) {
			rules(zone.PhaseCustom, block(`in_list(http.host, "l")`))(z)
			z.Lists = map[string]zone.List{"l": {Kind: zone.ListIP, Items: []string{"192.0.2.1"}}}
		}, want: finding{n, "rule 1 of custom", "list_kind", "hostname or string"}},
		"pool unknown":                   {zone: rules(zone.PhaseOrigin, zone.Rule{Expression: "true", Action: zone.ActionRoute, Parameters: zone.Parameters{Pool: "nope"}}), want: finding{n, "rule 1 of origin", "pool_unknown", `"nope"`}},
		"function unknown":               {zone: rules(zone.PhaseFunction, zone.Rule{Expression: "true", Action: zone.ActionFunction, Parameters: zone.Parameters{Function: "nope"}}), want: finding{n, "rule 1 of function", "function_unknown", `"nope"`}},
		"expression of the wrong type":   {zone: rules(zone.PhaseCustom, block(`http.path`)), want: finding{n, "rule 1 of custom", "expression_invalid", "type string"}},
		"expression of unknown names":    {zone: rules(zone.PhaseCustom, block(`http.pth == "/"`)), want: finding{n, "rule 1 of custom", "expression_invalid", "pth"}},
		"rewrite that no request may be": {zone: rules(zone.PhaseTransformRequest, zone.Rule{Expression: "true", Action: zone.ActionLog}, zone.Rule{Expression: "true", Action: zone.ActionRewrite, Parameters: zone.Parameters{Path: "/%00", Query: new("a=%zz")}}), want: finding{n, "rule 2 of transform_request", "zone_malformed", "%zz"}},
		"rule that never matches":        {zone: rules(zone.PhaseCustom, block(`1 > 2`)), want: finding{n, "rule 1 of custom", "rule_never_matches", "false"}, warning: true},

		"pool without origin": {zone: func(z *zone.Zone) { z.Pools = map[string]zone.Pool{"p": {}} }, want: finding{n, "pool p", "pool_without_origin", "add one"}},
		"pool with a disabled origin": {zone: func(z *zone.Zone) {
			z.Pools = map[string]zone.Pool{"p": {Origins: []zone.Origin{{Name: "a", Address: "192.0.2.1:80", Enabled: &off}}}}
		}, want: finding{n, "pool p", "pool_without_origin", "enable one"}},
		"pool that nothing uses": {zone: func(z *zone.Zone) {
			z.Pools = map[string]zone.Pool{"p": {Origins: []zone.Origin{{Name: "a", Address: "192.0.2.1:80"}}}}
		}, want: finding{n, "pool p", "pool_unused", ""}, warning: true},
		"list that nothing uses":                   {zone: func(z *zone.Zone) { z.Lists = map[string]zone.List{"l": {Kind: zone.ListString}} }, want: finding{n, "list l", "list_unused", ""}, warning: true},
		"balancer without a record":                {zone: balanced("lb"), want: unreached, warning: true},
		"balancer with a record that is DNS only":  {zone: balanced("lb", rec("lb", "A", "192.0.2.1", false)), want: unreached, warning: true},
		"balancer with a record of another name":   {zone: balanced("lb", rec("www", "A", "192.0.2.1", true)), want: unreached, warning: true},
		"balancer with a proxied record":           {zone: balanced("lb", rec("lb", "A", "192.0.2.1", true)), want: reached, none: true},
		"balancer with a proxied wildcard":         {zone: balanced("lb", rec("*", "A", "192.0.2.1", true)), want: reached, none: true},
		"balancer with an alias of a proxied name": {zone: balanced("lb", rec("lb", "CNAME", "a.example.com.", false), rec("a", "A", "192.0.2.1", true)), want: reached, none: true},
		"balancer with an alias of a name that is DNS only": {
			zone: balanced("lb", rec("lb", "CNAME", "a.example.com.", false), rec("a", "A", "192.0.2.1", false)), want: unreached, warning: true,
		},
		"balancer with an alias of elsewhere": {zone: balanced("lb", rec("lb", "CNAME", "a.example.net.", false)), want: reached, none: true},
		"balancer of what is delegated":       {zone: balanced("lb.sub", rec("sub", "NS", "ns.example.net.", false)), want: reached, none: true},
		"balancer below a DNAME":              {zone: balanced("lb.sub", rec("sub", "DNAME", "example.net.", false)), want: reached, none: true},
		"wild balancer without a record":      {zone: balanced("*.lb", rec("lb", "A", "192.0.2.1", true)), want: finding{n, "load balancer *.lb", "balancer_unreached", ""}, warning: true},
		"wild balancer with a proxied name":   {zone: balanced("*.lb", rec("a.b.lb", "A", "192.0.2.1", true)), want: reached, none: true},

		"balancer of an unknown pool": {zone: func(z *zone.Zone) { z.LoadBalancers = map[zone.Name]zone.LoadBalancer{apex: {Pools: []string{"nope"}}} }, want: finding{n, "load balancer @", "pool_unknown", `"nope"`}},
		"balancer of no such fallback": {zone: func(z *zone.Zone) {
			poolAt("192.0.2.1:80")(z)
			lb := z.LoadBalancers[zone.MustName("lb."+n)]
			lb.Fallback = "gone"
			z.LoadBalancers[zone.MustName("lb."+n)] = lb
		}, want: finding{n, "load balancer lb", "pool_unknown", `"gone"`}},

		"CNAME beside other data":    {zone: records(rec("www", "CNAME", "a.example.net.", false), rec("www", "TXT", "x", false)), want: finding{n, "record www CNAME", "cname_conflict", "beside"}},
		"CNAME at the apex":          {zone: records(rec("@", "CNAME", "a.example.net.", false)), want: finding{n, "record @ CNAME", "cname_apex", "apex"}},
		"proxied CNAME at the apex":  {zone: records(rec("@", "CNAME", "a.example.net.", true)), want: finding{n, "record @ CNAME", "cname_apex", "apex"}},
		"two CNAMEs":                 {zone: records(rec("www", "CNAME", "a.example.net.", false), rec("www", "CNAME", "b.example.net.", false)), want: finding{n, "record www CNAME", "cname_multiple", "2 CNAME"}},
		"NS target is a CNAME":       {zone: records(rec("@", "NS", "ns.example.com.", false), rec("ns", "CNAME", "a.example.net.", false)), want: finding{n, "record @ NS", "ns_target_cname", "ns.example.com"}},
		"NS target is a wild CNAME":  {zone: records(rec("@", "NS", "ns.x.example.com.", false), rec("*.x", "CNAME", "a.example.net.", false)), want: finding{n, "record @ NS", "ns_target_cname", "ns.x.example.com"}},
		"NS target is no CNAME":      {zone: records(rec("@", "NS", "ns.example.com.", false), rec("ns", "A", "192.0.2.1", false), rec("*", "CNAME", "a.example.net.", false)), want: finding{code: "ns_target_cname"}, none: true},
		"MX target is a CNAME":       {zone: records(rec("@", "MX", "10 mail.example.com.", false), rec("mail", "CNAME", "a.example.net.", false)), want: finding{n, "record @ MX", "target_cname", "10.3"}, warning: true},
		"SRV target is a CNAME":      {zone: records(rec("_x._tcp", "SRV", "0 0 1 mail.example.com.", false), rec("mail", "CNAME", "a.example.net.", false)), want: finding{n, "record _x._tcp SRV", "target_cname", ""}, warning: true},
		"several TTLs":               {zone: records(record(t, n, "a", "A", "192.0.2.1", 60, false), record(t, n, "a", "A", "192.0.2.2", 30, false)), want: finding{n, "record a A", "ttl_differs", "lowest, 30"}, warning: true},
		"TTL 300 written out is one": {zone: records(record(t, n, "a", "A", "192.0.2.1", 300, false), record(t, n, "a", "A", "192.0.2.2", 0, false)), want: finding{code: "ttl_differs"}, none: true},

		"proxied CNAME to nothing":      {zone: records(rec("www", "CNAME", "gone.example.com.", true)), want: finding{n, "record www CNAME", "origin_missing", "gone.example.com has no address"}},
		"proxied CNAME to TXT alone":    {zone: records(rec("www", "CNAME", "t.example.com.", true), rec("t", "TXT", "x", false)), want: finding{n, "record www CNAME", "origin_missing", "t.example.com"}},
		"proxied CNAME in a loop":       {zone: records(rec("a", "CNAME", "b.example.com.", true), rec("b", "CNAME", "a.example.com.", false)), want: finding{n, "record a CNAME", "origin_missing", "loop"}},
		"proxied CNAME through a chain": {zone: records(rec("a", "CNAME", "b.example.com.", true), rec("b", "CNAME", "c.example.com.", false), rec("c", "A", "192.0.2.1", false)), want: finding{code: "origin_missing"}, none: true},
		"proxied CNAME to a wildcard":   {zone: records(rec("a", "CNAME", "b.c.example.com.", true), rec("*.c", "A", "192.0.2.1", false)), want: finding{code: "origin_missing"}, none: true},
		"proxied CNAME past a wildcard": {zone: records(rec("a", "CNAME", "b.c.example.com.", true), rec("*", "A", "192.0.2.1", false), rec("x.c", "A", "192.0.2.1", false)), want: finding{n, "record a CNAME", "origin_missing", ""}},
		"proxied CNAME below a cut":     {zone: records(rec("a", "CNAME", "b.sub.example.com.", true), rec("sub", "NS", "ns.example.net.", false)), want: finding{code: "origin_missing"}, none: true},
		"proxied CNAME elsewhere":       {zone: records(rec("a", "CNAME", "b.example.net.", true)), want: finding{code: "origin_missing"}, none: true},
		"proxied CNAME with a route": {zone: func(z *zone.Zone) {
			records(rec("a", "CNAME", "gone.example.com.", true))(z)
			poolAt("192.0.2.1:80")(z)
			rules(zone.PhaseOrigin, zone.Rule{Expression: "true", Action: zone.ActionRoute, Parameters: zone.Parameters{Pool: "p"}})(z)
		}, want: finding{code: "origin_missing"}, none: true},
		"proxied CNAME with a balancer": {zone: func(z *zone.Zone) {
			records(rec("lb", "CNAME", "gone.example.com.", true))(z)
			poolAt("192.0.2.1:80")(z)
		}, want: finding{code: "origin_missing"}, none: true},
		"proxied at loopback":                      {zone: records(rec("a", "A", "127.0.0.1", true)), want: finding{n, "record a A", "origin_refused", "loopback"}},
		"proxied at loopback, allowed":             {zone: records(rec("a", "A", "127.0.0.1", true)), want: finding{code: "origin_refused"}, none: true, allowing: "127.0.0.0/8"},
		"not proxied at loopback":                  {zone: records(rec("a", "A", "127.0.0.1", false)), want: finding{code: "origin_refused"}, none: true},
		"proxied at loopback, with a balancer":     {zone: func(z *zone.Zone) { records(rec("lb", "A", "127.0.0.1", true))(z); poolAt("192.0.2.1:80")(z) }, want: finding{code: "origin_refused"}, none: true},
		"proxied at a mapped address":              {zone: records(rec("a", "AAAA", "::ffff:8.8.8.8", true)), want: finding{n, "record a AAAA", "origin_refused", "mapped"}},
		"pool at link-local":                       {zone: poolAt("[fe80::1]:80"), want: finding{n, "pool p", "origin_refused", "link-local"}},
		"pool at a metadata service":               {zone: poolAt("169.254.169.254:80"), want: finding{n, "pool p", "origin_refused", "metadata"}},
		"pool at multicast":                        {zone: poolAt("224.0.0.1:80"), want: finding{n, "pool p", "origin_refused", "multicast"}},
		"pool unspecified":                         {zone: poolAt("0.0.0.0:80"), want: finding{n, "pool p", "origin_refused", "unspecified"}},
		"pool at CGNAT":                            {zone: poolAt("100.64.0.1:80"), want: finding{n, "pool p", "origin_refused", "CGNAT"}},
		"pool at a private address":                {zone: poolAt("10.1.2.3:80"), want: finding{n, "pool p", "origin_refused", "private"}},
		"pool at a private address, allowed":       {zone: poolAt("10.1.2.3:80"), want: finding{code: "origin_refused"}, none: true, allowing: "10.0.0.0/8"},
		"pool at a translated address":             {zone: poolAt("[64:ff9b::7f00:1]:80"), want: finding{n, "pool p", "origin_refused", "NAT64"}},
		"pool at a host name is left to the nodes": {zone: poolAt("localhost.example:80"), want: finding{code: "origin_refused"}, none: true},

		"certificate expired":        {zone: tls("www."+n, cert(t, at.Add(-9*day), at.Add(-day), "www."+n)), want: finding{n, "TLS host www", "tls_expired", "2026-02-28"}},
		"certificate of the future":  {zone: tls("www."+n, cert(t, at.Add(day), at.Add(9*day), "www."+n)), want: finding{n, "TLS host www", "tls_not_yet_valid", "2026-03-02"}},
		"certificate expires soon":   {zone: tls("www."+n, cert(t, at.Add(-day), at.Add(14*day), "www."+n)), want: finding{n, "TLS host www", "tls_expires_soon", "2026-03-15"}, warning: true},
		"certificate lasts":          {zone: tls("www."+n, cert(t, at.Add(-day), at.Add(15*day), "www."+n)), want: finding{code: "tls_expires_soon"}, none: true},
		"certificate of another":     {zone: tls("www."+n, cert(t, at.Add(-day), at.Add(99*day), "other."+n)), want: finding{n, "TLS host www", "tls_name", "www.example.com"}},
		"certificate of a wildcard":  {zone: tls("*."+n, cert(t, at.Add(-day), at.Add(99*day), "*."+n)), want: finding{code: "tls_name"}, none: true},
		"host under a wildcard":      {zone: tls("www."+n, cert(t, at.Add(-day), at.Add(99*day), "*."+n)), want: finding{code: "tls_name"}, none: true},
		"wildcard without one":       {zone: tls("*."+n, cert(t, at.Add(-day), at.Add(99*day), "www."+n)), want: finding{n, "TLS host *", "tls_name", "*.example.com"}},
		"certificate does not parse": {zone: tls("www."+n, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("junk")}))), want: finding{n, "TLS host www", "tls_chain", "certificate 1"}},
		"intermediate does not parse": {
			zone: tls("www."+n, cert(t, at.Add(-day), at.Add(99*day), "www."+n)+string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("junk")}))),
			want: finding{n, "TLS host www", "tls_chain", "certificate 2"},
		},

		"function does not compile": {zone: function(zone.Function{Module: append([]byte("\x00asm\x01\x00\x00\x00"), 0xff, 0xff)}, zone.Ceilings{}), want: finding{n, "function f", "function_invalid", ""}},
		"function is too large":     {zone: function(zone.Function{Module: startModule}, zone.Ceilings{FunctionSize: 10}), want: finding{n, "function f", "function_too_large", "10B"}},
		"function without _start":   {zone: function(zone.Function{Module: []byte("\x00asm\x01\x00\x00\x00")}, zone.Ceilings{}), want: finding{n, "function f", "function_invalid", "_start"}},
		"function imports from env": {zone: function(zone.Function{Module: module("\x02\x09\x01\x03env\x01f\x00\x00")}, zone.Ceilings{}), want: finding{n, "function f", "function_invalid", `"env"`}},
		"function asks much memory": {zone: function(zone.Function{Module: startModule, Memory: 128 << 20}, zone.Ceilings{}), want: finding{n, "function f", "ceiling_exceeded", "memory is 128MiB"}},
		"function asks much time":   {zone: function(zone.Function{Module: startModule, Timeout: zone.Duration(time.Minute)}, zone.Ceilings{}), want: finding{n, "function f", "ceiling_exceeded", "timeout is 1m"}},
		"function asks much output": {zone: function(zone.Function{Module: startModule, Output: 5 << 20}, zone.Ceilings{}), want: finding{n, "function f", "ceiling_exceeded", "output is 5MiB"}},
		"function is fine":          {zone: function(zone.Function{Module: startModule}, zone.Ceilings{}), want: finding{code: "function_invalid"}, none: true},
		"too many records": {zone: func(z *zone.Zone) {
			records(rec("a", "A", "192.0.2.1", false), rec("b", "A", "192.0.2.1", false))(z)
			z.Ceilings.Records = 2
		}, want: finding{n, "", "ceiling_exceeded", "allows 2 records and the zone has 3"}},
		"too many rules": {zone: func(z *zone.Zone) { rules(zone.PhaseCustom, block("true"), block("true"))(z); z.Ceilings.Rules = 1 }, want: finding{n, "", "ceiling_exceeded", "1 rules and the zone has 2"}},
		"too many lists": {zone: func(z *zone.Zone) {
			z.Lists = map[string]zone.List{"a": {Kind: zone.ListIP}, "b": {Kind: zone.ListIP}}
			z.Ceilings.Lists = 1
		}, want: finding{n, "", "ceiling_exceeded", "1 lists and the zone has 2"}},
		"too many list items": {zone: func(z *zone.Zone) {
			z.Lists = map[string]zone.List{"a": {Kind: zone.ListString, Items: []string{"a", "b"}}}
			z.Ceilings.ListItems = 1
		}, want: finding{n, "", "ceiling_exceeded", "1 list items and the zone has 2"}},
		"too many pools":   {zone: func(z *zone.Zone) { poolAt("192.0.2.1:80")(z); z.Pools["q"] = z.Pools["p"]; z.Ceilings.Pools = 1 }, want: finding{n, "", "ceiling_exceeded", "1 pools and the zone has 2"}},
		"too many origins": {zone: func(z *zone.Zone) { poolAt("192.0.2.1:80")(z); z.Pools["q"] = z.Pools["p"]; z.Ceilings.Origins = 1 }, want: finding{n, "", "ceiling_exceeded", "1 origins and the zone has 2"}},
		"too many load balancers": {zone: func(z *zone.Zone) {
			poolAt("192.0.2.1:80")(z)
			z.LoadBalancers[apex] = zone.LoadBalancer{Pools: []string{"p"}}
			z.Ceilings.LoadBalancers = 1
		}, want: finding{n, "", "ceiling_exceeded", "1 load balancers and the zone has 2"}},
		"too many functions": {zone: func(z *zone.Zone) {
			function(zone.Function{Module: startModule}, zone.Ceilings{Functions: 1})(z)
			z.Functions["g"] = z.Functions["f"]
		}, want: finding{n, "", "ceiling_exceeded", "1 functions and the zone has 2"}},
		"too many TLS hosts": {zone: func(z *zone.Zone) {
			tls("a."+n, cert(t, at.Add(-day), at.Add(99*day), "*."+n))(z)
			z.TLSHosts[zone.MustName("b."+n)] = z.TLSHosts[zone.MustName("a."+n)]
			z.Ceilings.TLSHosts = 1
		}, want: finding{n, "", "ceiling_exceeded", "1 TLS hosts and the zone has 2"}},
		"malformed by itself":         {zone: func(z *zone.Zone) { z.Records[0].Content = "nonsense" }, want: finding{n, "record @ A", "zone_malformed", "nonsense"}},
		"text that is no UTF-8":       {zone: func(z *zone.Zone) { z.Settings.ErrorPages = map[string]string{"503": "\xff"} }, want: finding{n, "settings", "zone_malformed", "UTF-8"}},
		"an id that is no UUID":       {zone: func(z *zone.Zone) { z.ID = "7" }, want: finding{n, "zone", "zone_malformed", "UUID"}},
		"an id in upper case is read": {zone: func(z *zone.Zone) { z.ID = zone.ID(strings.ToUpper(string(z.ID))) }, want: finding{code: "zone_malformed"}, none: true},
	} {
		t.Run(name, func(t *testing.T) {
			z := &zone.Zone{ID: id1, Name: apex, Records: []zone.Record{rec("@", "A", "192.0.2.1", false)}}
			tc.zone(z)
			in := snapshot.Input{Zones: inputs(z), Now: at}
			if tc.allowing != "" {
				in.AllowedOrigins = []netip.Prefix{netip.MustParsePrefix(tc.allowing)}
			}
			s, warnings, err := snapshot.Build(in, meta42)
			var problems snapshot.Problems
			errors.As(err, &problems)
			all := append(append([]snapshot.Problem{}, problems...), warnings...)
			for _, p := range all {
				if !strings.HasSuffix(p.Message, ".") || strings.Contains(p.Message, "\n") || p.ID == "" {
					t.Errorf("not a sentence in one line, or without its zone: %+v", p)
				}
				if tc.none && p.Code == tc.want.code {
					t.Errorf("found %v", p)
				}
			}
			switch {
			case tc.none:
			case tc.warning:
				if err != nil || s == nil {
					t.Errorf("a warning stopped the build: %v", err)
				}
				if !find(warnings, tc.want) {
					t.Errorf("no warning %+v in %v", tc.want, warnings)
				}
			default:
				if s != nil || err == nil {
					t.Error("the build went through")
				}
				if !find(problems, tc.want) {
					t.Errorf("no problem %+v in %v", tc.want, problems)
				}
			}
		})
	}
}

func TestBuildTogether(t *testing.T) {
	mk := func(id zone.ID, name string, rs ...zone.Record) *zone.Zone {
		return &zone.Zone{ID: id, Name: zone.MustName(name), Records: rs}
	}
	proxied := func(z, name string) zone.Record { return record(t, z, name, "A", "192.0.2.1", 0, true) }
	for name, tc := range map[string]struct {
		zones []snapshot.ZoneInput
		want  []finding
	}{
		"one name twice, by the greater id": {
			zones: []snapshot.ZoneInput{{Workspace: "b", Zone: mk(id2, "example.com", proxied("example.com", "www"))}, {Workspace: "a", Zone: mk(id1, "example.com", proxied("example.com", "www"))}},
			want:  []finding{{"example.com", "", "host_duplicate", "Another zone of this name"}},
		},
		"one host in nested zones": {
			zones: []snapshot.ZoneInput{{Workspace: "a", Zone: mk(id1, "example.com", proxied("example.com", "www.sub"))}, {Workspace: "a", Zone: mk(id2, "sub.example.com", proxied("sub.example.com", "www"))}},
			want:  []finding{{"sub.example.com", "host www.sub.example.com", "host_duplicate", "zone example.com"}},
		},
		"one host in nested zones, the parent later": {
			zones: []snapshot.ZoneInput{{Workspace: "a", Zone: mk(id2, "example.com", proxied("example.com", "www.sub"))}, {Workspace: "a", Zone: mk(id1, "sub.example.com", proxied("sub.example.com", "www"))}},
			want:  []finding{{"example.com", "host www.sub.example.com", "host_duplicate", "zone sub.example.com"}},
		},
		"nested zones of one workspace": {
			zones: []snapshot.ZoneInput{{Workspace: "a", Zone: mk(id1, "example.com")}, {Workspace: "a", Zone: mk(id2, "sub.example.com")}},
		},
		"below another workspace's zone": {
			zones: []snapshot.ZoneInput{{Workspace: "a", Zone: mk(id1, "example.com")}, {Workspace: "b", Zone: mk(id2, "a.sub.example.com")}},
			want:  []finding{{"a.sub.example.com", "", "zone_not_delegated", "zone example.com"}},
		},
		"above another workspace's zone": {
			zones: []snapshot.ZoneInput{{Workspace: "a", Zone: mk(id2, "example.com")}, {Workspace: "b", Zone: mk(id1, "sub.example.com")}},
			want:  []finding{{"example.com", "", "zone_not_delegated", "sub.example.com"}},
		},
		"delegated": {
			zones: []snapshot.ZoneInput{{Workspace: "a", Zone: mk(id1, "example.com", record(t, "example.com", "sub", "NS", "ns.example.net.", 0, false))}, {Workspace: "b", Zone: mk(id2, "sub.example.com")}},
		},
		"delegated above": {
			zones: []snapshot.ZoneInput{{Workspace: "a", Zone: mk(id1, "example.com", record(t, "example.com", "sub", "NS", "ns.example.net.", 0, false))}, {Workspace: "b", Zone: mk(id2, "x.sub.example.com")}},
		},
		"one id twice": {
			zones: []snapshot.ZoneInput{{Workspace: "a", Zone: mk(id1, "example.com")}, {Workspace: "a", Zone: mk(id1, "example.net")}},
			want:  []finding{{"example.net", "", "zone_id_duplicate", ""}},
		},
		"no zone": {
			zones: []snapshot.ZoneInput{{Workspace: "a"}},
			want:  []finding{{"", "", "zone_malformed", "missing"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := snapshot.Build(snapshot.Input{Zones: tc.zones, Now: at}, meta42)
			var problems snapshot.Problems
			errors.As(err, &problems)
			if len(problems) != len(tc.want) {
				t.Fatalf("got %v, want %v", problems, tc.want)
			}
			for _, w := range tc.want {
				if !find(problems, w) {
					t.Errorf("no %+v in %v", w, problems)
				}
			}
		})
	}
}

func TestBuildReportsAllTogether(t *testing.T) {
	bad := func(id zone.ID, name string) *zone.Zone {
		return &zone.Zone{
			ID: id, Name: zone.MustName(name),
			Pools:    map[string]zone.Pool{"p": {}},
			Rulesets: map[zone.Phase][]zone.Rule{zone.PhaseCustom: {{Expression: `in_list(ip.src, "gone")`, Action: zone.ActionBlock}}},
			Records:  []zone.Record{record(t, name, "@", "CNAME", "x.example.net.", 0, false)},
		}
	}
	malformed := &zone.Zone{ID: id3, Name: zone.MustName("m.example"), Pools: map[string]zone.Pool{"Bad Name": {}, "p": {Policy: "none"}}}
	_, warnings, err := snapshot.Build(snapshot.Input{Zones: inputs(malformed, bad(id2, "b.example"), bad(id1, "a.example")), Now: at}, meta42)
	var problems snapshot.Problems
	if !errors.As(err, &problems) {
		t.Fatal(err)
	}
	var got []string
	for _, p := range problems {
		got = append(got, p.Zone.String()+"|"+p.Object+"|"+p.Code)
	}
	want := []string{
		"a.example|pool p|pool_without_origin", "a.example|record @ CNAME|cname_apex", "a.example|rule 1 of custom|list_unknown",
		"b.example|pool p|pool_without_origin", "b.example|record @ CNAME|cname_apex", "b.example|rule 1 of custom|list_unknown",
		`m.example|pool "Bad Name"|zone_malformed`, "m.example|pool p|zone_malformed",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if len(warnings) != 2 {
		t.Errorf("warnings do not come with problems: %v", warnings)
	}
	if text := err.Error(); !strings.HasPrefix(text, "the configuration has 8 problems\n  a.example: pool p: The pool has no enabled origin") {
		t.Errorf("text %q", text)
	}
}

// The dates of a certificate that is live stop nothing; a new or changed one is refused.
func TestBuildLiveCertificates(t *testing.T) {
	host := zone.MustName("www.example.com")
	with := func(chain string) *zone.Zone {
		return &zone.Zone{ID: id1, Name: zone.MustName("example.com"), TLSHosts: map[zone.Name]zone.TLSHost{host: {Certificate: chain, SealedKey: fixture(t, "key.age")}}}
	}
	old := cert(t, at.AddDate(0, -3, 0), at.AddDate(0, 0, 30), host.String())
	live := mustBuild(t, meta42, with(old))
	later := at.AddDate(0, 2, 0)
	_, warnings, err := snapshot.Build(snapshot.Input{Zones: inputs(with(old)), Now: later, Live: live}, meta42)
	if err != nil || !find(warnings, finding{"example.com", "TLS host www", "tls_expired", "2026-03-31"}) {
		t.Errorf("live certificate: %v, warnings %v", err, warnings)
	}
	other := cert(t, at.AddDate(0, -3, 0), at.AddDate(0, 0, 30), host.String())
	for what, in := range map[string]snapshot.Input{
		"changed":       {Zones: inputs(with(other)), Now: later, Live: live},
		"nothing live":  {Zones: inputs(with(old)), Now: later},
		"another host":  {Zones: inputs(with(old)), Now: later, Live: mustBuild(t, meta42, lab(t))},
		"covers no one": {Zones: inputs(with(cert(t, at, at.AddDate(9, 0, 0), "x.example"))), Now: later, Live: live},
	} {
		if _, _, err := snapshot.Build(in, meta42); err == nil {
			t.Errorf("%s: built", what)
		}
	}
}

// TestBuildDefaultPool: the pool called default is the origin of proxied names, whose own content then does not
// matter; without a proxied name nothing uses it.
func TestBuildDefaultPool(t *testing.T) {
	const n = "example.com"
	build := func(records ...zone.Record) ([]snapshot.Problem, error) {
		z := &zone.Zone{ID: id1, Name: zone.MustName(n), Records: records, Pools: map[string]zone.Pool{
			zone.DefaultPool: {Origins: []zone.Origin{{Name: "a", Address: "198.51.100.1:80"}}},
		}}
		_, warnings, err := snapshot.Build(snapshot.Input{Zones: []snapshot.ZoneInput{{Workspace: "w", Zone: z}}}, snapshot.Meta{})
		return warnings, err
	}
	if warnings, err := build(record(t, n, "www", "A", "127.0.0.1", 0, true)); err != nil || len(warnings) > 0 {
		t.Errorf("with a proxied name: %v, %v", warnings, err)
	}
	if warnings, err := build(record(t, n, "www", "A", "127.0.0.1", 0, false)); err != nil || len(warnings) != 1 || warnings[0].Code != "pool_unused" {
		t.Errorf("without a proxied name: %v, %v", warnings, err)
	}
}

// TestBuildOccluded: what a delegation or a DNAME takes out of service deserves a word, glue does not.
func TestBuildOccluded(t *testing.T) {
	const n = "example.com"
	r := func(name, typ, content string, proxied bool) zone.Record {
		return record(t, n, name, typ, content, 0, proxied)
	}
	cut := []zone.Record{r("sub", "NS", "ns.sub.example.com.", false), r("ns.sub", "A", "192.0.2.1", false)}
	for name, row := range map[string]struct {
		records        []zone.Record
		code, object   string
		warning, clean bool
	}{
		"delegation with glue":          {records: cut, clean: true},
		"DS at the cut":                 {records: append(cut[:2:2], r("sub", "DS", "1 8 2 "+strings.Repeat("ab", 32), false)), clean: true},
		"text at the cut":               {records: append(cut[:2:2], r("sub", "TXT", "x", false)), code: "record_occluded", object: "record sub TXT", warning: true},
		"address below that is no glue": {records: append(cut[:2:2], r("www.sub", "A", "192.0.2.2", false)), code: "record_occluded", object: "record www.sub A", warning: true},
		"wildcard below":                {records: append(cut[:2:2], r("*.sub", "TXT", "x", false)), code: "record_occluded", object: "record *.sub TXT", warning: true},
		"proxied below":                 {records: append(cut[:2:2], r("www.sub", "A", "198.51.100.2", true)), code: "origin_missing", object: "record www.sub A"},
		"below a DNAME":                 {records: []zone.Record{r("d", "DNAME", "e.example.net.", false), r("x.d", "A", "192.0.2.3", false)}, code: "record_occluded", object: "record x.d A", warning: true},
		"beside a DNAME":                {records: []zone.Record{r("d", "DNAME", "e.example.net.", false), r("d", "TXT", "x", false)}, clean: true},
		"DS without NS":                 {records: []zone.Record{r("q", "DS", "1 8 2 "+strings.Repeat("ab", 32), false)}, code: "ds_without_ns", object: "record q DS", warning: true},
	} {
		t.Run(name, func(t *testing.T) {
			z := &zone.Zone{ID: id1, Name: zone.MustName(n), Records: row.records}
			_, found, err := snapshot.Build(snapshot.Input{Zones: []snapshot.ZoneInput{{Workspace: "w", Zone: z}}}, snapshot.Meta{})
			var problems snapshot.Problems
			errors.As(err, &problems)
			if !row.warning {
				found = append(found, problems...)
			} else if err != nil {
				t.Fatalf("problems: %v", err)
			}
			if row.clean {
				if len(found) > 0 {
					t.Errorf("found %v", found)
				}
				return
			}
			if len(found) != 1 || found[0].Code != row.code || found[0].Object != row.object {
				t.Errorf("found %v, want %s of %s", found, row.code, row.object)
			}
		})
	}
}
