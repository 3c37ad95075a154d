package zone

import (
	"net/textproto"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"github.com/guardyn-edge/guardyn/internal/fieldname"
)

const testID = ID("0198c0de-0000-7000-8000-000000000001")

const (
	testPEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
	// "age-encryption.org/v1\n" and more, which is all that is looked at here.
	testAge = "-----BEGIN AGE ENCRYPTED FILE-----\nYWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IFgyNTUxOQo=\n-----END AGE ENCRYPTED FILE-----\n"
)

var cmpNames = cmp.AllowUnexported(Name{}, Mailbox{})

func decode(t *testing.T, s string) *Zone {
	t.Helper()
	z := new(Zone)
	if err := json.Unmarshal([]byte(s), z, json.RejectUnknownMembers(true)); err != nil {
		t.Fatal(err)
	}
	return z
}

// Two zones that say the same, one with everything written out, one as short as can be.
const longZone = `{
  "id": "0198C0DE-0000-7000-8000-000000000001", "name": "Example.COM.",
  "records": [
    {"name": "WWW.example.com", "type": "a", "content": "192.0.2.1", "ttl": 300, "proxied": true},
    {"name": "example.com", "type": "TYPE15", "content": "010 Mail.Example.com.", "ttl": 60, "proxied": false},
    {"name": "www.example.com", "type": "A", "content": "192.0.2.1", "proxied": true}
  ],
  "rulesets": {
    "custom": [{"description": "", "expression": "http.path.startsWith('/wp-') // scanners", "action": "block",
      "parameters": {"status": 403, "body": "", "content_type": "text/plain; charset=UTF-8", "phases": []}, "enabled": true}],
    "redirect": [],
    "ratelimit": [{"expression": "( true )", "action": "rate_limit", "parameters": {"period": "60s", "limit": 10, "key": "string( ip.src )", "status": 429}}],
    "transform_request": [{"expression": "true", "action": "rewrite", "parameters": {"query": ""}}]
  },
  "lists": {"office": {"kind": "ip", "items": ["2001:DB8::/32", "192.0.2.0/24", "192.0.2.7/32", "192.0.2.9/24"]}},
  "pools": {"main": {"origins": [
      {"name": "b", "address": "Origin.example.NET", "scheme": "https", "weight": 1, "enabled": true},
      {"name": "a", "address": "[2001:DB8::1]:080", "scheme": "http", "enabled": false},
      {"name": "c", "address": "192.0.2.3", "scheme": "h2c"}],
    "health": {"type": "http", "path": "/", "interval": "10s", "timeout": "5s", "healthy_threshold": 2, "unhealthy_threshold": 3, "expected_status": []},
    "outlier_detection": {"enabled": true, "consecutive_failures": 5, "failure_status": [504, 502, 504], "base_ejection_time": "30s", "max_ejection_percent": 50},
    "policy": "round_robin"}},
  "load_balancers": {"WWW.example.com": {"pools": ["main"], "sticky": {"cookie": "guardyn_origin", "ttl": "60m"}}},
  "cache_policy": {"query_mode": "all", "query_parameters": []},
  "settings": {"trace_sampling": "1%", "log_sampling": "100%", "tls_min_version": "1.2", "error_pages": {},
    "hsts": "365d", "trusted_proxies": ["10.0.0.1/8"], "soa": {"refresh": 7200, "ttl": 3600}},
  "ceilings": {"records": 10000, "function_size": "4096KiB", "function_time": "1000ms"}
}`

const shortZone = `{
  "id": "0198c0de-0000-7000-8000-000000000001", "name": "example.com",
  "records": [
    {"name": "example.com", "type": "MX", "content": "10 mail.example.com", "ttl": 60},
    {"name": "www.example.com", "type": "A", "content": "192.0.2.1", "proxied": true}
  ],
  "rulesets": {
    "custom": [{"expression": "http.path.startsWith(\"/wp-\")", "action": "block"}],
    "ratelimit": [{"expression": "true", "action": "rate_limit", "parameters": {"period": "1m", "limit": 10}}],
    "transform_request": [{"expression": "true", "action": "rewrite", "parameters": {"query": ""}}]
  },
  "lists": {"office": {"kind": "ip", "items": ["192.0.2.0/24", "192.0.2.7", "2001:db8::/32"]}},
  "pools": {"main": {"origins": [
      {"name": "a", "address": "[2001:db8::1]:80", "enabled": false},
      {"name": "b", "address": "origin.example.net:443", "scheme": "https"},
      {"name": "c", "address": "192.0.2.3:80", "scheme": "h2c"}],
    "health": {}}},
  "load_balancers": {"www.example.com": {"pools": ["main"], "sticky": {}}},
  "settings": {"hsts": "8760h", "trusted_proxies": ["10.0.0.0/8"]}
}`

func TestNormalForm(t *testing.T) {
	long, short := decode(t, longZone), decode(t, shortZone)
	for name, z := range map[string]*Zone{"long": long, "short": short} {
		if err := z.Normalize(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if d := cmp.Diff(short, long, cmpNames); d != "" {
		t.Errorf("values differ: %s", d)
	}
	b, err := json.Marshal(long, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	want := jsontext.Value(shortZone)
	got := jsontext.Value(b)
	if err := want.Canonicalize(); err != nil {
		t.Fatal(err)
	}
	if err := got.Canonicalize(); err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("bytes\n%s\nwant\n%s", got, want)
	}
	back := decode(t, string(got))
	if d := cmp.Diff(long, back, cmpNames); d != "" {
		t.Errorf("what was printed reads back as another value, without Normalize: %s", d)
	}
}

func TestNormalizeReportsAll(t *testing.T) {
	z := decode(t, `{
	  "id": "x", "name": "example.com",
	  "records": [
	    {"name": "www.example.com", "type": "A", "content": "192.0.2.300"},
	    {"name": "other.org", "type": "TXT", "content": "\\03 \\256", "proxied": true, "ttl": 2147483648},
	    {"name": "example.com", "type": "SOA", "content": "x"}
	  ],
	  "rulesets": {"custom": [{"expression": "true &&", "action": "redirect", "parameters": {"status": 302}}], "nope": []},
	  "lists": {"Bad Name": {"kind": "ip", "items": ["x", "y"]}, "k": {"kind": "set"}},
	  "pools": {"p": {"origins": [{"name": "a", "address": "h:0", "weight": 1001}, {"name": "a", "address": "h:1"}],
	    "health": {"interval": "2h", "timeout": "1ms"}, "policy": "best",
	    "slow_start": "1ms", "outlier_detection": {"consecutive_failures": 1001, "failure_status": [499, 502, 600], "base_ejection_time": "2h", "max_ejection_percent": 101}}},
	  "load_balancers": {"other.org": {"pools": []}},
	  "tls_hosts": {"www.example.com": {"certificate": "", "sealed_key": ""}},
	  "functions": {"f": {"module": "AAAA"}},
	  "cache_policy": {"query_mode": "include"},
	  "settings": {"tls_min_version": "1.1", "tls_ciphers": ["TLS_RSA_WITH_RC4_128_SHA"], "soa": {"retry": 4000000000}, "error_pages": {"200": "x"}},
	  "ceilings": {"records": -1}
	}`)
	err := z.Normalize()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		`zone: zone id "x"`,
		`record www A: A content "192.0.2.300": not an IPv4`,
		`record other.org. TXT: name "other.org" is outside`,
		`\03 is not three digits`, `\256 is over`, `TXT record cannot be proxied`, `ttl 2147483648`,
		`record @ SOA: the SOA record is made by the server`,
		`rule 1 of custom: expression: line 1, column`, `rule 1 of custom: action "redirect" is not for the custom phase`,
		`ruleset: phase "nope"`,
		`list "Bad Name": name "Bad Name"`, `list "Bad Name": item 1: "x"`, `list "Bad Name": item 2: "y"`, `list k: kind "set"`,
		`pool p: origin a: address: port "0"`, `pool p: origin a: weight 1001`, `two of this name`, `health: interval 2h`,
		`health: timeout 1ms`, `policy "best"`, `pool p: slow_start 1ms`,
		`outlier_detection: consecutive_failures 1001`, `outlier_detection: failure_status 499`, `outlier_detection: failure_status 600`, `outlier_detection: base_ejection_time 2h`, `outlier_detection: max_ejection_percent 101`,
		`load balancer other.org: name "other.org" is outside`, `names no pool`,
		`tls host www.example.com: certificate`, `tls host www.example.com: sealed_key`,
		`function f: module is not`, `cache policy: query_parameters are missing`,
		`settings: tls_min_version "1.1"`, `RC4`, `soa: retry`, `error_pages: status "200"`, `ceilings: records -1`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
	for _, one := range err.(interface{ Unwrap() []error }).Unwrap() {
		if _, ok := one.(*ObjectError); !ok {
			t.Errorf("%v is a %T", one, one)
		}
	}
}

func TestRecordTwiceWithAnotherTTL(t *testing.T) {
	z := decode(t, `{"id": "`+string(testID)+`", "name": "example.com", "records": [
	  {"name": "example.com", "type": "A", "content": "192.0.2.1"},
	  {"name": "example.com", "type": "A", "content": "192.0.2.1", "proxied": true}]}`)
	if err := z.Normalize(); err == nil || !strings.Contains(err.Error(), "there twice") {
		t.Fatal(err)
	}
}

func TestRuleRefuses(t *testing.T) {
	text := func(s string) *string { return &s }
	for _, tc := range []struct {
		name  string
		phase Phase
		rule  Rule
		want  string
	}{
		{"no expression", PhaseCustom, Rule{Action: ActionBlock}, "empty"},
		{"action of another phase", PhaseCustom, Rule{Action: ActionRoute}, "use block, allow, skip or log"},
		{"no such action", PhaseCustom, Rule{Action: "x\x1b"}, `"x\x1b"`},
		{"needs location", PhaseRedirect, Rule{Action: ActionRedirect}, "location is missing"},
		{"location of another host", PhaseRedirect, Rule{Action: ActionRedirect, Parameters: Parameters{Location: "//evil.example"}}, "two slashes"},
		{"location with a scheme that runs", PhaseRedirect, Rule{Action: ActionRedirect, Parameters: Parameters{Location: "javascript:1"}}, "http or https"},
		{"location with CRLF", PhaseRedirect, Rule{Action: ActionRedirect, Parameters: Parameters{Location: "/a\r\nx: y"}}, "percent-encode"},
		{"status", PhaseRedirect, Rule{Action: ActionRedirect, Parameters: Parameters{Location: "/", Status: 200}}, "status 200"},
		{"block takes no pool", PhaseCustom, Rule{Action: ActionBlock, Parameters: Parameters{Pool: "a"}}, "pool is not for the action block"},
		{"block status", PhaseCustom, Rule{Action: ActionBlock, Parameters: Parameters{Status: 200}}, "from 400 to 599"},
		{"block body", PhaseCustom, Rule{Action: ActionBlock, Parameters: Parameters{Body: strings.Repeat("x", 65537)}}, "65536"},
		{"content type", PhaseCustom, Rule{Action: ActionBlock, Parameters: Parameters{ContentType: "html"}}, "media type"},
		{"rewrite needs one", PhaseTransformRequest, Rule{Action: ActionRewrite}, "path or query is missing"},
		{"rewrite path", PhaseTransformRequest, Rule{Action: ActionRewrite, Parameters: Parameters{Path: "a"}}, "begin with /"},
		{"rewrite path with query", PhaseTransformRequest, Rule{Action: ActionRewrite, Parameters: Parameters{Path: "/a?b"}}, "%3F"},
		{"rewrite query", PhaseTransformRequest, Rule{Action: ActionRewrite, Parameters: Parameters{Query: text("a#b")}}, "%23"},
		{"rewrite query with a bad escape", PhaseTransformRequest, Rule{Action: ActionRewrite, Parameters: Parameters{Query: text("?a=100%")}}, "query: \"a=100%\" has a % that two"},
		{"rewrite query with NUL", PhaseTransformRequest, Rule{Action: ActionRewrite, Parameters: Parameters{Query: text("a=%00")}}, "or %00"},
		{"rewrite path with NUL", PhaseTransformRequest, Rule{Action: ActionRewrite, Parameters: Parameters{Path: "/a%00"}}, "path: \"/a%00\" holds %00"},
		{"rewrite path that climbs", PhaseTransformRequest, Rule{Action: ActionRewrite, Parameters: Parameters{Path: "/a/..;x/b"}}, "dot segment with parameters"},
		{"rewrite path with a bad escape", PhaseTransformRequest, Rule{Action: ActionRewrite, Parameters: Parameters{Path: "/%zz"}}, "bad percent-encoding"},
		{"both of a rewrite", PhaseTransformRequest, Rule{Action: ActionRewrite, Parameters: Parameters{Path: "/%00", Query: text("%")}}, "query: \"%\" has a %"},
		{"location with no port", PhaseRedirect, Rule{Action: ActionRedirect, Parameters: Parameters{Location: "https://h.example:65536/"}}, "over 65535"},
		{"location with no host", PhaseRedirect, Rule{Action: ActionRedirect, Parameters: Parameters{Location: "https://*.example/"}}, "is not a host"},
		{"type of no body", PhaseCustom, Rule{Action: ActionBlock, Parameters: Parameters{ContentType: "application/json"}}, "content_type is that of a body"},
		{"type of no body of a limit", PhaseRatelimit, Rule{Action: ActionRateLimit, Parameters: Parameters{Limit: 1, Period: second, ContentType: "text/html"}}, "content_type is that of a body"},
		{"alias of a header that the node sets", PhaseTransformRequest, Rule{Action: ActionSetHeader, Parameters: Parameters{Name: "X_Forwarded_For", Value: "x"}}, "read it as x-forwarded-for"},
		{"alias of what frames", PhaseTransformRequest, Rule{Action: ActionSetHeader, Parameters: Parameters{Name: "Content_Length", Value: "x"}}, "read it as content-length"},
		{"removing what the node sets", PhaseTransformRequest, Rule{Action: ActionRemoveHeader, Parameters: Parameters{Name: "Forwarded"}}, "set by the node itself"},
		{"removing the node's own", PhaseTransformResponse, Rule{Action: ActionRemoveHeader, Parameters: Parameters{Name: "X-Guardyn-Version"}}, "node's own"},
		{"removing what frames", PhaseTransformResponse, Rule{Action: ActionRemoveHeader, Parameters: Parameters{Name: "content-length"}}, "no rule changes it"},
		{"header of the connection", PhaseTransformRequest, Rule{Action: ActionSetHeader, Parameters: Parameters{Name: "Transfer-Encoding", Value: "x"}}, "connection"},
		{"header that no node sends", PhaseTransformRequest, Rule{Action: ActionSetHeader, Parameters: Parameters{Name: "Proxy", Value: "x"}}, "no rule changes it"},
		{"header that the node sets", PhaseTransformRequest, Rule{Action: ActionSetHeader, Parameters: Parameters{Name: "X-Real-IP", Value: "x"}}, "set by the node itself"},
		{"header of the node", PhaseTransformResponse, Rule{Action: ActionSetHeader, Parameters: Parameters{Name: "X-Guardyn-Version", Value: "x"}}, "node's own"},
		{"header name", PhaseTransformResponse, Rule{Action: ActionSetHeader, Parameters: Parameters{Name: "a b", Value: "x"}}, "not the name"},
		{"header value", PhaseTransformResponse, Rule{Action: ActionSetHeader, Parameters: Parameters{Name: "a", Value: "x\r\ny: z"}}, "control character"},
		{"header without value", PhaseTransformResponse, Rule{Action: ActionSetHeader, Parameters: Parameters{Name: "a"}}, "value is missing"},
		{"remove takes no value", PhaseTransformResponse, Rule{Action: ActionRemoveHeader, Parameters: Parameters{Name: "a", Value: "b"}}, "value is not for"},
		{"rate limit needs", PhaseRatelimit, Rule{Action: ActionRateLimit}, "period is missing"},
		{"rate limit period", PhaseRatelimit, Rule{Action: ActionRateLimit, Parameters: Parameters{Limit: 1, Period: 1500 * second / 1000}}, "whole seconds"},
		{"rate limit key", PhaseRatelimit, Rule{Action: ActionRateLimit, Parameters: Parameters{Limit: 1, Period: second, Key: "a ||"}}, "key: line 1"},
		{"cache needs one", PhaseCache, Rule{Action: ActionCache}, "needs one"},
		{"bypass alone", PhaseCache, Rule{Action: ActionCache, Parameters: Parameters{Bypass: true, TTL: second}}, "bypass stands alone"},
		{"skip what ran", PhaseCache, Rule{Action: ActionSkip, Parameters: Parameters{Phases: []Phase{PhaseCustom}}}, "has run before"},
		{"route needs a pool", PhaseOrigin, Rule{Action: ActionRoute}, "pool is missing"},
		{"function name", PhaseFunction, Rule{Action: ActionFunction, Parameters: Parameters{Function: "A"}}, "function: name"},
		{"phase", "x", Rule{Action: ActionBlock}, `phase "x"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.name != "no expression" {
				tc.rule.Expression = "true"
			}
			if _, err := tc.rule.Normalize(tc.phase); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("%v; want %q", err, tc.want)
			}
		})
	}
}

func TestRuleAccepts(t *testing.T) {
	off, query := false, "a=1%25&b[]=;"
	for _, tc := range []struct {
		phase Phase
		rule  Rule
		want  string
	}{
		{
			PhaseRedirect,
			Rule{Expression: "true", Action: ActionRedirect, Parameters: Parameters{Status: 302, Location: "https://example.com/é"[:20], PreserveQuery: true}},
			`redirect (location "https://example.com/", preserve_query) when true`,
		},
		{
			PhaseCustom,
			Rule{Description: "x", Expression: "( http.path=='/a' )", Action: ActionBlock, Parameters: Parameters{Status: 451, Body: "no\n"}, Enabled: &off},
			`disabled: block (status 451, body "no\n") when http.path == "/a"`,
		},
		{
			PhaseTransformRequest,
			Rule{Expression: "true", Action: ActionSetHeader, Parameters: Parameters{Name: "X-A", Value: " b "}},
			`set_header (name x-a, value "b") when true`,
		},
		{
			PhaseRatelimit,
			Rule{Expression: "true", Action: ActionRateLimit, Parameters: Parameters{Period: 60 * second, Limit: 5, Key: "http.host+http.path"}},
			`rate_limit (key http.host + http.path, period 1m, limit 5) when true`,
		},
		{
			PhaseCustom,
			Rule{Expression: "true", Action: ActionSkip, Parameters: Parameters{Phases: []Phase{PhaseCache, PhaseCustom, PhaseCache}}},
			`skip (phases custom cache) when true`,
		},
		{PhaseCustom, Rule{Expression: "true", Action: ActionSkip, Parameters: Parameters{Phases: []Phase{PhaseCustom}}}, `skip when true`},
		{
			PhaseTransformResponse,
			Rule{Expression: "true", Action: ActionRemoveHeader, Parameters: Parameters{Name: "X-Real-IP"}},
			`remove_header (name x-real-ip) when true`,
		},
		{
			PhaseTransformRequest,
			Rule{Expression: "true", Action: ActionRewrite, Parameters: Parameters{Path: "/a//%C3%BC/../b", Query: &query}},
			`rewrite (path "/a//%C3%BC/../b", query "a=1%25&b[]=;") when true`,
		},
		{PhaseOrigin, Rule{Expression: "true", Action: ActionRoute, Parameters: Parameters{Pool: "a"}}, `route (pool a) when true`},
	} {
		r, err := tc.rule.Normalize(tc.phase)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := r.Render(); got != tc.want {
			t.Errorf("%s; want %s", got, tc.want)
		}
		again, err := r.Normalize(tc.phase)
		if err != nil || again.Render() != tc.want {
			t.Errorf("a second time: %s, %v", again.Render(), err)
		}
	}
}

// What is taken when it is written is done when it runs: by the same functions, of which a node counts a failure.
func FuzzRuleThatIsTakenIsDone(f *testing.F) {
	for _, s := range []string{"/a", "/%00", "/..;/x", "a=%", "x-app", "x_forwarded_for", "te", "/a?b", "?a#b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rewrite := Rule{Expression: "true", Action: ActionRewrite, Parameters: Parameters{Path: text}}
		if r, err := rewrite.Normalize(PhaseTransformRequest); err == nil && text != "" {
			if _, err := NormalizePath(r.Parameters.Path); err != nil {
				t.Errorf("path %q: %v", text, err)
			}
		}
		rewrite.Parameters = Parameters{Query: &text}
		if r, err := rewrite.Normalize(PhaseTransformRequest); err == nil {
			if _, err := NormalizeQuery(*r.Parameters.Query); err != nil {
				t.Errorf("query %q: %v", text, err)
			}
		}
		remove := Rule{Expression: "true", Action: ActionRemoveHeader, Parameters: Parameters{Name: text}}
		for phase, settable := range map[Phase]func(string) bool{PhaseTransformRequest: fieldname.SettableInRequest, PhaseTransformResponse: fieldname.SettableInAnswer} {
			if r, err := remove.Normalize(phase); err == nil && !settable(textproto.CanonicalMIMEHeaderKey(r.Parameters.Name)) {
				t.Errorf("header %q in %s", text, phase)
			}
		}
	})
}

func TestServed(t *testing.T) {
	z := decode(t, shortZone)
	off := false
	z.Rulesets[PhaseCustom] = append(z.Rulesets[PhaseCustom], Rule{Expression: "true", Action: ActionLog, Enabled: &off})
	z.Rulesets[PhaseCustom][0].Description = "words"
	if err := z.Normalize(); err != nil {
		t.Fatal(err)
	}
	s := z.Served()
	if rules := s.Rulesets[PhaseCustom]; len(rules) != 1 || rules[0].Description != "" {
		t.Errorf("rules %v", rules)
	}
	if o := s.Pools["main"].Origins; len(o) != 2 || o[0].Name != "b" || o[1].Scheme != SchemeH2C {
		t.Errorf("origins %v", o)
	}
	if len(z.Rulesets[PhaseCustom]) != 2 || z.Rulesets[PhaseCustom][0].Description != "words" || len(z.Pools["main"].Origins) != 3 {
		t.Error("the zone itself changed")
	}
}

func TestTLSHost(t *testing.T) {
	h, err := TLSHost{Certificate: "subject=x\n" + testPEM + "\n" + testPEM, SealedKey: strings.ReplaceAll(testAge, "\n", "\r\n")}.Normalize()
	if err != nil || h.Certificate != testPEM+testPEM || h.SealedKey != testAge {
		t.Fatalf("%q, %v", h, err)
	}
	secret := "-----BEGIN PRIVATE KEY-----\nc2VjcmV0c2VjcmV0\n-----END PRIVATE KEY-----\n"
	_, err = TLSHost{Certificate: testPEM + secret, SealedKey: secret}.Normalize()
	if err == nil || strings.Count(err.Error(), "exposed") != 2 || strings.Contains(err.Error(), "c2Vjc") {
		t.Fatal(err)
	}
}

func TestErrorPagesOfOneStatusAreNotTwo(t *testing.T) {
	for _, status := range []string{"0503", "503 ", " 503", "+503", "5_03", "503.", "５０３", "", "399", "600"} {
		got, err := Settings{ErrorPages: map[string]string{"503": "a", status: "b"}}.Normalize()
		if err == nil || !strings.Contains(err.Error(), "is not three digits from 400 to 599") {
			t.Errorf("%q: %v, %v", status, got.ErrorPages, err)
		}
	}
	pages := map[string]string{"400": "a", "503": "b", "599": "c"}
	if got, err := (Settings{ErrorPages: pages}).Normalize(); err != nil || cmp.Diff(pages, got.ErrorPages) != "" {
		t.Errorf("%v, %v", got.ErrorPages, err)
	}
}

func TestSettings(t *testing.T) {
	var s Settings
	for _, kv := range [][2]string{
		{"trace_sampling", "100%"},
		{"soa.refresh", "900"},
		{"soa.mname", "NS1.example.com."},
		{"soa.rname", `John\.Doe.example.com.`},
		{"always_https", "on"},
		{"trusted_proxies", "10.0.0.0/8, 192.0.2.1"},
		{"error_pages.503", "<p>"},
		{"hsts", "30d"},
		{"tls_min_version", "1.3"},
	} {
		if err := s.Set(kv[0], kv[1]); err != nil {
			t.Fatal(err)
		}
	}
	want := []SettingChange{
		{"trace sampling", "1.00%", "100.00%"},
		{"always https", "off", "on"},
		{"hsts", "off", "720h"},
		{"tls min version", "1.2", "1.3"},
		{"trusted proxies", "default", "10.0.0.0/8,192.0.2.1"},
		{"error page 503", "default", "3 bytes"},
		{"soa mname", "default", "ns1.example.com"},
		{"soa rname", "default", `john\.doe.example.com`},
		{"soa refresh", "7200", "900"},
	}
	if d := cmp.Diff(want, SettingsDiff(Settings{}, s)); d != "" {
		t.Error(d)
	}
	before := s
	for _, kv := range [][2]string{{"trace_sampling", "101%"}, {"nope", "1"}, {"soa.refresh", "0"}, {"soa.rname", "j@example.com"}, {"tls_min_version", "1.1"}, {"error_pages.99", "x"}, {"error_pages.0503", "x"}, {"error_pages.0503", ""}} {
		if err := s.Set(kv[0], kv[1]); err == nil || !strings.Contains(err.Error(), kv[0]) {
			t.Errorf("%v: %v", kv, err)
		}
	}
	if d := cmp.Diff(before, s, cmpNames); d != "" {
		t.Errorf("a refused setting changed something: %s", d)
	}
	for _, key := range SettingKeys() {
		if err := s.Set(key, ""); err != nil {
			t.Errorf("%s to its default: %v", key, err)
		}
	}
	if d := cmp.Diff(Settings{}, s, cmpNames); d != "" {
		t.Errorf("defaults restored: %s", d)
	}
}

// No status is another thing than the default ones, however often it is written and read.
func TestNoStatusIsAFailure(t *testing.T) {
	p := Pool{Origins: []Origin{{Name: "a", Address: "192.0.2.1"}}, OutlierDetection: &OutlierDetection{FailureStatus: []int{}}}
	for range 2 {
		n, err := p.Normalize()
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(n)
		if err != nil {
			t.Fatal(err)
		}
		p = Pool{}
		if err := json.Unmarshal(text, &p); err != nil || p.OutlierDetection == nil || p.OutlierDetection.Effective().FailureStatus == nil || len(p.OutlierDetection.Effective().FailureStatus) != 0 {
			t.Fatalf("%s is read as %+v (%v)", text, p.OutlierDetection, err)
		}
	}
}
