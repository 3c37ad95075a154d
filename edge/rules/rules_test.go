package rules

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/guardyn-edge/guardyn/internal/expr"
	"github.com/guardyn-edge/guardyn/zone"
)

func compile(t testing.TB, z *zone.Zone) *Set {
	t.Helper()
	s, err := Compile(z, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func request() *Request {
	return &Request{
		Host: "www.example.com", Method: "GET", Path: "/wp-login.php", Query: "a=1&b=2", Scheme: "http", Version: "1.1",
		Client: netip.MustParseAddr("192.0.2.77"), Zone: "example.com",
		Header: http.Header{
			"User-Agent": {"curl/8"}, "X-Many": {"one", "two"}, "X-Empty": {""},
			"Cookie": {"sid=abc; theme=dark", "sid=second; flag"},
		},
	}
}

func custom(expressions ...string) *zone.Zone {
	z := &zone.Zone{
		Rulesets: map[zone.Phase][]zone.Rule{},
		Lists: map[string]zone.List{
			"office": {Kind: zone.ListIP, Items: []string{"192.0.2.64/26", "2001:db8::/32", "198.51.100.7/32"}},
			"hosts":  {Kind: zone.ListHostname, Items: []string{"www.example.com", "*.shop.example.com", "xn--bcher-kva.example"}},
			"agents": {Kind: zone.ListString, Items: []string{"curl/8", "Bot"}},
		},
	}
	for _, e := range expressions {
		z.Rulesets[zone.PhaseCustom] = append(z.Rulesets[zone.PhaseCustom], zone.Rule{Expression: e, Action: zone.ActionBlock})
	}
	return z
}

func matched(s *Set, r *Request) (indexes []int) {
	for rule := range s.Matching(zone.PhaseCustom, r) {
		indexes = append(indexes, rule.Index)
	}
	return indexes
}

func TestExpressions(t *testing.T) {
	for _, tc := range []struct {
		expression string
		want       bool
	}{
		{`true`, true},
		{`false`, false},
		{`http.host == "www.example.com"`, true},
		{`http.method in ["GET", "HEAD"]`, true},
		{`http.path.startsWith("/wp-")`, true},
		{`starts_with(http.path, "/wp-")`, true},
		{`glob(http.path, "*.php")`, true},
		{`http.query == "a=1&b=2"`, true},
		{`http.uri == "/wp-login.php?a=1&b=2"`, true},
		{`http.scheme == "https"`, false},
		{`http.version == "1.1"`, true},
		{`zone.name == "example.com"`, true},
		{`tls.sni == "" && tls.version == ""`, true},
		{`http.headers["user-agent"] == "curl/8"`, true},
		{`http.headers["User-Agent"] == "curl/8"`, false},
		{`http.headers["x-many"] == "one, two"`, true},
		{`http.headers["absent"] == ""`, true},
		{`"absent" in http.headers`, false},
		{`"x-empty" in http.headers`, true},
		{`http.headers["host"] == "www.example.com"`, true},
		{`http.headers.exists(h, h == "x-many")`, true},
		{`http.cookies["sid"] == "abc"`, true},
		{`http.cookies["theme"] == "dark"`, true},
		{`"flag" in http.cookies`, false},
		{`size(http.cookies) == 2`, true},
		{`ip.src == ip("192.0.2.77")`, true},
		{`cidr("192.0.2.0/24").contains(ip.src)`, true},
		{`in_list(ip.src, "office")`, true},
		{`in_list(ip("192.0.2.1"), "office")`, false},
		{`in_list(ip("2001:db8::5"), "office")`, true},
		{`in_list(http.host, "hosts")`, true},
		{`in_list("WWW.Example.com.", "hosts")`, true},
		{`in_list("a.shop.example.com", "hosts")`, true},
		{`in_list("a.b.Shop.example.com", "hosts")`, true},
		{`in_list("shop.example.com", "hosts")`, false},
		{`in_list("bücher.example", "hosts")`, true},
		{`in_list("not a host", "hosts")`, false},
		{`in_list(http.headers["user-agent"], "agents")`, true},
		{`in_list("bot", "agents")`, false},
		{`!in_list(ip.src, "office") || http.path == "/x"`, false},
	} {
		t.Run(tc.expression, func(t *testing.T) {
			r := request()
			if got := len(matched(compile(t, custom(tc.expression)), r)) == 1; got != tc.want || r.Errors != 0 {
				t.Errorf("got %v with %d errors, want %v", got, r.Errors, tc.want)
			}
		})
	}
}

func TestRulesRunInOrderOverWhatEarlierOnesChanged(t *testing.T) {
	s := compile(t, custom(`http.path == "/wp-login.php"`, `http.path == "/new"`, `http.uri == "/new?q=1"`, `http.path == "/wp-login.php"`))
	r := request()
	var got []int
	for rule := range s.Matching(zone.PhaseCustom, r) {
		if got = append(got, rule.Index); rule.Index == 0 {
			r.Rewrite("/new", "q=1")
		}
	}
	if fmt.Sprint(got) != "[0 1 2]" {
		t.Errorf("got rules %v, want [0 1 2]", got)
	}
}

func TestMatchingStopsWhenTheCallerDoes(t *testing.T) {
	s := compile(t, custom(`true`, `http.headers["n"] == string(1/int(http.headers["zero"]))`))
	r := request()
	r.Header.Set("Zero", "0")
	for range s.Matching(zone.PhaseCustom, r) {
		break
	}
	if r.Errors != 0 {
		t.Error("a rule after the last one asked for was evaluated")
	}
	if got := matched(s, r); len(got) != 1 || r.Errors != 1 {
		t.Errorf("got rules %v and %d errors, want the rule that errs not to match and one error", got, r.Errors)
	}
}

func TestCompileReportsEverything(t *testing.T) {
	z := custom(`http.path ==`, `true`, `in_list(ip.src, "nowhere")`, `in_list(ip.src, "hosts")`, `http.path`, `in_list(http.host, "office")`)
	z.Lists["broken"] = zone.List{Kind: zone.ListIP, Items: []string{"300.1.1.1", "192.0.2.1"}}
	z.Lists["odd"] = zone.List{Kind: "country"}
	s, err := Compile(z, Options{})
	if s != nil || err == nil {
		t.Fatal("compiled what cannot be")
	}
	for _, want := range []string{
		"rule 1 of custom", "rule 3 of custom", `"nowhere"`, "rule 4 of custom", "rule 5 of custom", "rule 6 of custom", "list broken", "list odd",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "rule 2 ") {
		t.Errorf("the error blames a good rule:\n%v", err)
	}
}

func TestWhatCannotMatchIsLeftOut(t *testing.T) {
	no := false
	z := custom(`false`, `true`, `1 == 2`)
	z.Rulesets[zone.PhaseCustom] = append(z.Rulesets[zone.PhaseCustom], zone.Rule{Expression: `true`, Action: zone.ActionBlock, Enabled: &no})
	s := compile(t, z)
	if s.Len(zone.PhaseCustom) != 1 || fmt.Sprint(matched(s, request())) != "[1]" {
		t.Errorf("%d rules, matching %v; want only the second", s.Len(zone.PhaseCustom), matched(s, request()))
	}
	empty, err := Compile(&zone.Zone{}, Options{})
	if empty != nil || err != nil || empty.Len(zone.PhaseCustom) != 0 || matched(empty, request()) != nil {
		t.Error("a zone without rules has some")
	}
}

func TestProgramsAreSharedAndBounded(t *testing.T) {
	programs := NewPrograms(3)
	for i := range 10 {
		z := custom(`http.path == "/shared"`, fmt.Sprintf(`http.path == "/%d"`, i), `in_list(ip.src, "office")`)
		if _, err := Compile(z, Options{Programs: programs}); err != nil {
			t.Fatal(err)
		}
		if len(programs.byText) > 3 || len(programs.oldest) > 3 {
			t.Fatalf("the cache holds %d programs, its bound is 3", len(programs.byText))
		}
	}
	t.Run("one program answers from the lists of the zone that asks", func(t *testing.T) {
		one, two := custom(`in_list(ip.src, "office")`), custom(`in_list(ip.src, "office")`)
		two.Lists = map[string]zone.List{"office": {Kind: zone.ListIP, Items: []string{"203.0.113.0/24"}}}
		programs := NewPrograms(0)
		a, _ := Compile(one, Options{Programs: programs})
		b, _ := Compile(two, Options{Programs: programs})
		if len(programs.byText) != 1 {
			t.Fatalf("%d programs for one expression", len(programs.byText))
		}
		r := request()
		if len(matched(a, r)) != 1 || len(matched(b, r)) != 0 || len(matched(a, r)) != 1 {
			t.Error("a zone was answered from another's list")
		}
	})
}

func TestSetIsSafeForConcurrentUse(t *testing.T) {
	s := compile(t, custom(`in_list(ip.src, "office")`, `http.headers["user-agent"].matches("^curl/[0-9]+$")`))
	programs := NewPrograms(2)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 200 {
				if got := matched(s, request()); len(got) != 2 {
					t.Errorf("got rules %v", got)
					return
				}
				if _, err := programs.compile(fmt.Sprintf(`http.path == "/%d"`, (i+j)%5), expr.Bool); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkRule(b *testing.B) {
	for _, expression := range []string{
		`http.path == "/x"`,
		`http.path.startsWith("/admin") && http.method == "POST"`,
		`in_list(ip.src, "office")`,
		`http.headers["user-agent"] == "x"`,
	} {
		b.Run(expression, func(b *testing.B) {
			var many []string
			for range 10 {
				many = append(many, expression)
			}
			s := compile(b, custom(many...))
			r := request()
			b.ReportAllocs()
			for b.Loop() {
				for range s.Matching(zone.PhaseCustom, r) {
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/10, "ns/rule")
		})
	}
}

func BenchmarkListLookup(b *testing.B) {
	for _, n := range []int{10, 100_000} {
		var z zone.Zone
		var ips, hosts []string
		for i := range n {
			ips = append(ips, fmt.Sprintf("10.%d.%d.%d/32", i>>16, i>>8&255, i&255))
			hosts = append(hosts, fmt.Sprintf("h%d.example.com", i))
		}
		z.Lists = map[string]zone.List{
			"ip": {Kind: zone.ListIP, Items: ips}, "host": {Kind: zone.ListHostname, Items: hosts},
			"string": {Kind: zone.ListString, Items: hosts},
		}
		s := compile(b, &z)
		in, out := netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("192.0.2.1")
		b.Run(fmt.Sprintf("ip/%d", n), func(b *testing.B) {
			for b.Loop() {
				s.lists.ContainsAddr("ip", in)
				s.lists.ContainsAddr("ip", out)
			}
		})
		for _, kind := range []string{"host", "string"} {
			b.Run(fmt.Sprintf("%s/%d", kind, n), func(b *testing.B) {
				for b.Loop() {
					s.lists.ContainsString(kind, "h7.example.com")
					s.lists.ContainsString(kind, "nowhere.example.net")
				}
			})
		}
	}
}
