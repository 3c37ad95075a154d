package rules

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/guardyn-edge/guardyn/zone"
)

// without returns s with every rule evaluated.
func without(s *Set) *Set {
	plain := *s
	plain.phases = make(map[zone.Phase]ruleset)
	for phase, of := range s.phases {
		plain.phases[phase] = ruleset{rules: of.rules}
	}
	return &plain
}

func expressions(depth int) *rapid.Generator[string] {
	hosts, methods := []string{"a.example", "b.example", "c.example"}, []string{"GET", "POST"}
	paths := []string{"/", "/a", "/a/", "/a/b", "/ab", "/b", "/b/c"}
	return rapid.Custom(func(t *rapid.T) string {
		most := 10
		if depth == 0 {
			most = 8
		}
		path := rapid.SampledFrom(paths).Draw(t, "path")
		switch rapid.IntRange(0, most).Draw(t, "kind") {
		case 0:
			return fmt.Sprintf("http.host == %q", rapid.SampledFrom(hosts).Draw(t, "host"))
		case 1:
			return fmt.Sprintf("http.host in [%q, %q]", hosts[0], rapid.SampledFrom(hosts).Draw(t, "host"))
		case 2:
			return fmt.Sprintf("%q == http.method", rapid.SampledFrom(methods).Draw(t, "method"))
		case 3:
			return fmt.Sprintf("http.path == %q", path)
		case 4:
			return fmt.Sprintf("starts_with(http.path, %q)", path)
		case 5:
			return fmt.Sprintf("glob(http.path, %q)", path+"*")
		case 6:
			return fmt.Sprintf("http.path in [%q]", path)
		case 7:
			return `http.headers["x"] == "1"`
		case 8:
			return `int(http.headers["x"]) == 1` // errs without the header
		case 9:
			return "!(" + expressions(depth-1).Draw(t, "inner") + ")"
		}
		op := rapid.SampledFrom([]string{" && ", " || "}).Draw(t, "op")
		return "(" + expressions(depth-1).Draw(t, "left") + op + expressions(depth-1).Draw(t, "right") + ")"
	})
}

func TestIndexSkipsNothingThatMatches(t *testing.T) {
	programs := NewPrograms(0)
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOfN(expressions(2), 1, 150).Draw(t, "rules")
		s, err := Compile(custom(texts...), Options{Programs: programs})
		if err != nil {
			t.Fatal(err)
		}
		ask := func() *Request {
			r := request()
			r.Header.Del("X")
			return r
		}
		host := rapid.SampledFrom([]string{"a.example", "b.example", "z.example"}).Draw(t, "asked host")
		path := rapid.SampledFrom([]string{"/", "/a", "/a/", "/a/b/c", "/abc", "/b", "/c"}).Draw(t, "asked path")
		method := rapid.SampledFrom([]string{"GET", "POST", "PUT"}).Draw(t, "asked method")
		after := rapid.IntRange(0, 20).Draw(t, "rewritten after")
		run := func(s *Set) (out []int, errs int) {
			r := ask()
			r.Host, r.Path, r.Method = host, path, method
			for rule := range s.Matching(zone.PhaseCustom, r) {
				if out = append(out, rule.Index); len(out) == after {
					r.Rewrite("/b/c", "")
				}
			}
			return out, r.Errors
		}
		got, gotErrors := run(s)
		want, wantErrors := run(without(s))
		if !slices.Equal(got, want) || gotErrors != wantErrors {
			t.Fatalf("with the index rules %v and %d errors, without it %v and %d", got, gotErrors, want, wantErrors)
		}
	})
}

// realistic are 100 rules as a large site has them: most for one path, host or method, some for all.
func realistic() *zone.Zone {
	var texts []string
	for i := range 40 {
		texts = append(texts, fmt.Sprintf(`http.path.startsWith("/app%d/") && http.method == "POST"`, i))
	}
	for i := range 30 {
		texts = append(texts, fmt.Sprintf(`http.host == "s%d.example.com" && !in_list(ip.src, "large")`, i))
	}
	for i := range 20 {
		texts = append(texts, fmt.Sprintf(`http.path == "/old/%d" || glob(http.path, "/legacy%d/*.php")`, i, i))
	}
	for i := range 6 {
		texts = append(texts, fmt.Sprintf(`http.headers["user-agent"].contains("bot%d")`, i))
	}
	texts = append(texts, `in_list(ip.src, "large")`, `cidr("198.51.100.0/24").contains(ip.src)`,
		`in_list(http.headers["user-agent"], "agents")`, `http.query.contains("union select")`)
	z := custom(texts...)
	var large []string
	for i := range 100_000 {
		large = append(large, fmt.Sprintf("10.%d.%d.%d/32", i>>16, i>>8&255, i&255))
	}
	z.Lists["large"] = zone.List{Kind: zone.ListIP, Items: large}
	return z
}

func BenchmarkRules(b *testing.B) {
	s := compile(b, realistic())
	for _, tc := range []struct {
		name string
		set  *Set
	}{{"100 rules", s}, {"100 rules, all evaluated", without(s)}} {
		b.Run(tc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := request()
				for range tc.set.Matching(zone.PhaseCustom, r) {
				}
			}
		})
	}
	b.Run("request alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = request()
		}
	})
}

func TestListsThatDidNotChangeAreShared(t *testing.T) {
	first := compile(t, custom(`in_list(ip.src, "office")`))
	z := custom(`true`)
	z.Lists["agents"] = zone.List{Kind: zone.ListString, Items: []string{"other"}}
	z.Lists["office"] = zone.List{Kind: zone.ListIP, Items: slices.Clone(z.Lists["office"].Items)}
	second, err := Compile(z, Options{Old: first})
	if err != nil {
		t.Fatal(err)
	}
	if first.lists.addresses["office"] != second.lists.addresses["office"] || first.lists.hosts["hosts"] != second.lists.hosts["hosts"] {
		t.Error("lists that did not change were compiled again")
	}
	if in, _ := second.lists.ContainsString("agents", "other"); !in {
		t.Error("a list that changed is as it was")
	}
	if in, _ := first.lists.ContainsString("agents", "other"); in {
		t.Error("the old set changed")
	}
}

func TestErrorsAreCountedOverSets(t *testing.T) {
	z := custom(`int(http.headers["none"]) == 1`)
	first := compile(t, z)
	matched(first, request())
	second, err := Compile(z, Options{Old: first})
	if err != nil {
		t.Fatal(err)
	}
	matched(second, request())
	if second.Errors() != 2 || (*Set)(nil).Errors() != 0 {
		t.Errorf("%d errors, want 2", second.Errors())
	}
}

func TestKeyOfARateLimit(t *testing.T) {
	v6 := netip.MustParseAddr("2001:db8::1:2:3:4")
	for _, tc := range []struct {
		name, key string
		client    netip.Addr
		want      string
		ok        bool
	}{
		{"default", "", netip.MustParseAddr("192.0.2.77"), "192.0.2.77", true},
		{"default of IPv6", "", v6, "2001:db8::/64", true},
		{"written out, it is the default", "string(ip.src)", v6, "2001:db8::/64", true},
		{"expression", `http.host + http.headers["user-agent"]`, v6, "www.example.comcurl/8", true},
		{"one that errs", `string(int(http.headers["x-empty"]))`, v6, "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			z := &zone.Zone{Rulesets: map[zone.Phase][]zone.Rule{zone.PhaseRatelimit: {{
				Expression: "true", Action: zone.ActionRateLimit, Parameters: zone.Parameters{Key: tc.key, Period: zone.Duration(1e9), Limit: 1},
			}}}}
			r := request()
			r.Client = tc.client
			for rule := range compile(t, z).Matching(zone.PhaseRatelimit, r) {
				if key, ok := rule.Key(r); key != tc.want || ok != tc.ok {
					t.Errorf("got %q, %v; want %q, %v", key, ok, tc.want, tc.ok)
				}
			}
		})
	}
	z := custom()
	z.Rulesets[zone.PhaseRatelimit] = []zone.Rule{{Expression: "true", Action: zone.ActionRateLimit, Parameters: zone.Parameters{Key: "true"}}}
	if _, err := Compile(z, Options{}); err == nil || !strings.Contains(err.Error(), "rule 1 of ratelimit: key: ") {
		t.Errorf("a key that is no string: %v", err)
	}
}
