package web

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/guardyn-edge/guardyn/zone"
)

// named is an origin that answers with its name, to be kept for a minute.
func named(t testing.TB, name string) *origin {
	return startOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		io.WriteString(w, name)
	})
}

// pools adds a pool for each origin by its name.
func pools(origins map[string]*origin) func(*zone.Zone) {
	return func(z *zone.Zone) {
		for name, o := range origins {
			z.Pools[name] = zone.Pool{Origins: []zone.Origin{{Name: "a", Address: o.address()}}}
		}
	}
}

func routed(expression, pool string) func(*zone.Zone) {
	return rule(zone.PhaseOrigin, expression, zone.ActionRoute, zone.Parameters{Pool: pool})
}

func called(expression, function string) func(*zone.Zone) {
	return rule(zone.PhaseFunction, expression, zone.ActionFunction, zone.Parameters{Function: function})
}

// function gives a zone a function that answers with a text, and no rule that calls it.
func functionOf(t testing.TB, name, text string) func(*zone.Zone) {
	add := with(t, name, answers("Cache-Control: max-age=60\nContent-Type: text/plain\n\n"+text))
	return func(z *zone.Zone) {
		add(z)
		rules := z.Rulesets[zone.PhaseFunction]
		z.Rulesets[zone.PhaseFunction] = rules[:len(rules)-1]
	}
}

// TestCacheByWhoAnswers: what one pool or function answered is served to no request that another one would answer.
func TestCacheByWhoAnswers(t *testing.T) {
	type ask struct{ line, want, says string } // fields; the body; Cache-Status
	by := `http.headers["x-to"] == "other"`
	for _, tc := range []struct {
		name  string
		rules []func(*zone.Zone)
		asks  []ask
	}{
		{"a field that a rule sets", []func(*zone.Zone){sets(by, "x-beta", "1")}, []ask{
			{"", "main", "uri-miss"}, {"X-To: other", "main", "uri-miss"}, {"", "main", "hit"}, {"X-To: other", "main", "hit"},
		}},
		{"a pool by a field", []func(*zone.Zone){routed(by, "other")}, []ask{
			{"", "main", "uri-miss"}, {"X-To: other", "other", "uri-miss"}, {"", "main", "hit"}, {"X-To: other", "other", "hit"},
		}},
		{"a pool by a cookie", []func(*zone.Zone){routed(`http.cookies["beta"] == "1"`, "other")}, []ask{
			{"Cookie: beta=1", "other", "uri-miss"}, {"", "main", "uri-miss"}, {"Cookie: beta=1; x=2", "other", "hit"}, {"Cookie: beta=2", "main", "hit"},
		}},
		{"a pool by a field that the cache takes away", []func(*zone.Zone){routed(`http.headers["if-none-match"] != ""`, "other")}, []ask{
			{`If-None-Match: "x"`, "other", "uri-miss"}, {"", "main", "uri-miss"}, {`If-None-Match: "x"`, "other", "hit"},
		}},
		{"a pool by a part", []func(*zone.Zone){routed(`http.headers["range"] != ""`, "other")}, []ask{
			{"Range: bytes=1-2", "th", "uri-miss"}, {"", "main", "uri-miss"}, {"Range: bytes=1-2", "th", "hit"}, {"", "main", "hit"},
		}},
		{"a pool by a parameter that the key leaves out", []func(*zone.Zone){routed(`http.query.contains("other")`, "other"), policy(zone.CachePolicy{QueryMode: "none"})}, []ask{
			{"?other", "other", "uri-miss"}, {"?", "main", "uri-miss"}, {"?other", "other", "hit"},
		}},
		{"a function by a field", []func(*zone.Zone){called(by, "f")}, []ask{
			{"", "main", "uri-miss"}, {"X-To: other", "by f", "uri-miss"}, {"", "main", "hit"}, {"X-To: other", "by f", "hit"},
		}},
		{"one of two functions", []func(*zone.Zone){called(by, "f"), called("true", "g")}, []ask{
			{"", "by g", "uri-miss"}, {"X-To: other", "by f", "uri-miss"}, {"", "by g", "hit"}, {"X-To: other", "by f", "hit"},
		}},
		{"a function whatever the pool", []func(*zone.Zone){routed(by, "other"), called("true", "f")}, []ask{
			{"", "by f", "uri-miss"}, {"X-To: other", "by f", "hit"},
		}},
		{"the phase is skipped by a field", []func(*zone.Zone){
			rule(zone.PhaseCustom, by, zone.ActionSkip, zone.Parameters{Phases: []zone.Phase{zone.PhaseOrigin}}), routed("true", "other"),
		}, []ask{{"", "other", "uri-miss"}, {"X-To: other", "main", "uri-miss"}, {"", "other", "hit"}, {"X-To: other", "main", "hit"}}},
		{"the cache's own phase skips it", []func(*zone.Zone){
			rule(zone.PhaseCache, by, zone.ActionSkip, zone.Parameters{Phases: []zone.Phase{zone.PhaseFunction}}), called("true", "f"),
		}, []ask{{"", "by f", "uri-miss"}, {"X-To: other", "main", "uri-miss"}, {"", "by f", "hit"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := startNode(t, withCache(0)...)
			changes := append([]func(*zone.Zone){
				pools(map[string]*origin{"other": named(t, "other")}), functionOf(t, "f", "by f"), functionOf(t, "g", "by g"),
			}, tc.rules...)
			n.publish(site(named(t, "main").address(), changes...))
			for i, a := range tc.asks {
				path, lines := "/", []string{a.line}
				if a.line == "" || strings.HasPrefix(a.line, "?") {
					path, lines = "/"+a.line, nil
				}
				got := n.get(path, lines...)
				n.fetching.Wait()
				if got.body != a.want || ownCacheStatus(got.header) != a.says && !strings.Contains(strings.Join(got.header["Cache-Status"], ""), "collapsed") {
					t.Errorf("request %d, %s: %q, %v; want %q, %s", i+1, a.line, got.body, got.header["Cache-Status"], a.want, a.says)
				}
			}
		})
	}
}

// TestCacheBySwappedChoice: what is stored is not served under rules that would have had another pool or function answer, nor is an
// answer stored that came meanwhile.
func TestCacheBySwappedChoice(t *testing.T) {
	all := func(t testing.TB, text string) []func(*zone.Zone) {
		return []func(*zone.Zone){pools(map[string]*origin{"other": named(t, "other")}), functionOf(t, "f", text)}
	}
	for _, tc := range []struct {
		name          string
		before, after []func(*zone.Zone)
		text          string // of the function, after
		first, second string
		hit           bool
	}{
		{"a pool by path", nil, []func(*zone.Zone){routed(`http.path == "/"`, "other")}, "by f", "main", "other", false},
		{"a pool no more", []func(*zone.Zone){routed(`http.path == "/"`, "other")}, nil, "by f", "other", "main", false},
		{"a function by path", nil, []func(*zone.Zone){called(`http.path == "/"`, "f")}, "by f", "main", "by f", false},
		{"the function's code", []func(*zone.Zone){called("true", "f")}, []func(*zone.Zone){called("true", "f")}, "by F", "by f", "by F", false},
		{"the same", []func(*zone.Zone){called("true", "f")}, []func(*zone.Zone){called("true", "f")}, "by f", "by f", "by f", true},
		{"another way to the same", []func(*zone.Zone){routed("true", "other")}, []func(*zone.Zone){routed(`http.path == "/"`, "other")}, "by f", "other", "other", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := startNode(t, withCache(0)...)
			address := named(t, "main").address()
			n.publish(site(address, append(all(t, "by f"), tc.before...)...))
			if got := n.get("/"); got.body != tc.first {
				t.Fatalf("before: %q", got.body)
			}
			n.publish(site(address, append(all(t, tc.text), tc.after...)...))
			if got := n.get("/"); got.body != tc.second || (ownCacheStatus(got.header) == "hit") != tc.hit {
				t.Errorf("after: %q, %v", got.body, got.header["Cache-Status"])
			}
		})
	}
	t.Run("on its way", func(t *testing.T) {
		entered, release := make(chan struct{}, 2), make(chan struct{})
		slow := startOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
			entered <- struct{}{}
			<-release
			w.Header().Set("Cache-Control", "max-age=60")
			io.WriteString(w, "main")
		})
		n := startNode(t, withCache(0)...)
		other := pools(map[string]*origin{"other": named(t, "other")})
		n.publish(site(slow.address(), other))
		var first *httptest.ResponseRecorder
		var lead sync.WaitGroup
		lead.Go(func() { first = n.serve(t.Context(), "/") })
		<-entered
		n.publish(site(slow.address(), other, routed("true", "other")))
		close(release)
		lead.Wait()
		if got := n.get("/"); first.Body.String() != "main" || got.body != "other" || n.config.Cache.Stats().Stored != 1 {
			t.Errorf("before %q, after %q, %+v", first.Body, got.body, n.config.Cache.Stats())
		}
	})
}

// TestUnsafeMethodsReachEveryChoice: a POST makes invalid what every pool answered, whichever it goes to itself; so does a purge.
func TestUnsafeMethodsReachEveryChoice(t *testing.T) {
	n := startNode(t, withCache(0)...)
	n.publish(site(named(t, "main").address(), pools(map[string]*origin{"other": named(t, "other")}), routed(`http.headers["x-to"] == "other"`, "other")))
	for _, act := range []struct {
		name string
		do   func()
	}{
		{"a POST", func() { n.ask("POST", "www.example.com", "/", "Content-Length: 0") }},
		{"a purge", func() {
			n.config.Cache.Purge([]zone.Purge{{Sequence: 1, Zone: zone.MustName("example.com"), Kind: zone.PurgeURL, Values: []string{"http://www.example.com/"}}})
		}},
	} {
		for _, want := range []string{"uri-miss", "hit"} {
			for _, line := range []string{"X-To: main", "X-To: other"} {
				if got := n.get("/", line); ownCacheStatus(got.header) != want {
					t.Errorf("before %s, %s: %v, want %s", act.name, line, got.header["Cache-Status"], want)
				}
			}
		}
		act.do()
	}
	if got := n.get("/", "X-To: other"); ownCacheStatus(got.header) != "uri-miss" {
		t.Errorf("after the purge: %v", got.header["Cache-Status"])
	}
}

// TestCollapsedByWhoAnswers: of many requests at once for one URL, one asks each pool.
func TestCollapsedByWhoAnswers(t *testing.T) {
	gate := make(chan struct{})
	release := sync.OnceFunc(func() { close(gate) })
	gated := func(name string) *origin {
		return startOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
			<-gate
			w.Header().Set("Cache-Control", "max-age=60")
			io.WriteString(w, name)
		})
	}
	main, other := gated("main"), gated("other")
	n := startNode(t, withCache(0)...)
	t.Cleanup(release) // before the node ends
	n.publish(site(main.address(), pools(map[string]*origin{"other": other}), routed(`http.headers["x-to"] == "other"`, "other")))
	var all sync.WaitGroup
	for i := range 40 {
		want := []string{"main", "other"}[i%2]
		all.Go(func() {
			if got := n.serve(t.Context(), "/", "X-To", want); got.Body.String() != want {
				t.Errorf("%q, want %q", got.Body, want)
			}
		})
	}
	waitFor(t, "the others", func() bool { return n.config.Cache.Stats().Collapsed == 38 })
	release()
	all.Wait()
	if m, o := len(main.take()), len(other.take()); m != 1 || o != 1 {
		t.Errorf("the origins were asked %d and %d times", m, o)
	}
}
