package web

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/guardyn-edge/guardyn/zone"
)

// TestCacheOverSwaps: what is stored is served under a new view as long as that would have stored it the same way.
func TestCacheOverSwaps(t *testing.T) {
	ttl := func(n int) func(*zone.Zone) {
		return cacheRule(`http.path == "/"`, zone.Parameters{TTL: zone.Duration(n) * seconds})
	}
	for _, tc := range []struct {
		name          string
		before, after []func(*zone.Zone)
		hit           bool
	}{
		{"nothing changed", nil, nil, true},
		{"a record changed", nil, []func(*zone.Zone){func(z *zone.Zone) { z.Records = append(z.Records, record("x.example.com", "192.0.2.9")) }}, true},
		{"a rule of another phase", nil, []func(*zone.Zone){rule(zone.PhaseCustom, `http.path == "/x"`, zone.ActionBlock, zone.Parameters{})}, true},
		{"a rule that does not match", nil, []func(*zone.Zone){cacheRule(`http.path == "/x"`, zone.Parameters{Bypass: true})}, true},
		{"a rule in another place", []func(*zone.Zone){ttl(60)}, []func(*zone.Zone){cacheRule(`http.path == "/x"`, zone.Parameters{Bypass: true}), ttl(60)}, true},
		{"a rule that bypasses", nil, []func(*zone.Zone){cacheRule(`true`, zone.Parameters{Bypass: true})}, false},
		{"a rule with another ttl", []func(*zone.Zone){ttl(60)}, []func(*zone.Zone){ttl(61)}, false},
		{"a rule is gone", []func(*zone.Zone){ttl(60)}, nil, false},
		{"a rule has come", nil, []func(*zone.Zone){ttl(60)}, false},
		{"the policy's ttl", nil, []func(*zone.Zone){policy(zone.CachePolicy{MaxTTL: 3600 * seconds})}, false},
		{"the policy's stale window", nil, []func(*zone.Zone){policy(zone.CachePolicy{StaleIfError: seconds})}, false},
		{"the policy's parameters of the key", nil, []func(*zone.Zone){policy(zone.CachePolicy{QueryMode: "none"})}, false},
		{"the cache is turned off", nil, []func(*zone.Zone){policy(zone.CachePolicy{Disabled: true})}, false},
		{"another zone of the name", nil, []func(*zone.Zone){func(z *zone.Zone) { z.ID = "0190c1d2-0000-7000-8000-00000000000f" }}, false},
		{"a field that the origin gets", nil, []func(*zone.Zone){sets("true", "x-beta", "1")}, false},
		{"a field with another value", []func(*zone.Zone){sets("true", "x-beta", "1")}, []func(*zone.Zone){sets("true", "x-beta", "2")}, false},
		{"a field that the origin got", []func(*zone.Zone){sets("true", "x-beta", "1")}, nil, false},
		{"a field that is taken away", nil, []func(*zone.Zone){rule(zone.PhaseTransformRequest, "true", zone.ActionRemoveHeader, zone.Parameters{Name: "x-beta"})}, false},
		{"the same field by another rule", []func(*zone.Zone){sets("true", "x-beta", "1")}, []func(*zone.Zone){sets(`http.path == "/"`, "X-Beta", "1")}, true},
		{"a field of other requests", nil, []func(*zone.Zone){sets(`http.path == "/x"`, "x-beta", "1")}, true},
		{"a field of answers", nil, []func(*zone.Zone){rule(zone.PhaseTransformResponse, "true", zone.ActionSetHeader, zone.Parameters{Name: "x-beta", Value: "1"})}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n, o, _ := cachingNode(t, tc.before...)
			o.next(maxAge)
			n.get("/")
			n.publish(site(o.address, tc.after...))
			o.next(maxAge)
			got := n.get("/")
			if hit := ownCacheStatus(got.header) == "hit"; hit != tc.hit || len(o.next("")) == 0 != tc.hit {
				t.Errorf("Cache-Status: %v", got.header["Cache-Status"])
			}
		})
	}
}

// sets has a rule set a field of requests.
func sets(expression, name, value string) func(*zone.Zone) {
	return rule(zone.PhaseTransformRequest, expression, zone.ActionSetHeader, zone.Parameters{Name: name, Value: value})
}

// TestAnswerOverASwap: an answer that was asked for under one view and comes under the next is stored as that would have it.
func TestAnswerOverASwap(t *testing.T) {
	for _, tc := range []struct {
		name   string
		after  []func(*zone.Zone)
		stored bool
		ttl    string
	}{
		{"nothing changed", nil, true, "ttl=60"},
		{"a record changed", []func(*zone.Zone){func(z *zone.Zone) { z.Records = append(z.Records, record("x.example.com", "192.0.2.9")) }}, true, "ttl=60"},
		{"a rule that bypasses", []func(*zone.Zone){cacheRule(`true`, zone.Parameters{Bypass: true})}, false, ""},
		{"a rule's ttl", []func(*zone.Zone){cacheRule(`true`, zone.Parameters{TTL: 30 * seconds})}, true, "ttl=30"},
		{"a field that the origin gets", []func(*zone.Zone){sets("http.query == \"q=2\"", "x-beta", "1")}, true, "ttl=60"},
		{"the key's parameters", []func(*zone.Zone){policy(zone.CachePolicy{QueryMode: "none"})}, true, "ttl=60"},
		{"the cache is turned off", []func(*zone.Zone){policy(zone.CachePolicy{Disabled: true})}, false, ""},
		{"another zone of the name", []func(*zone.Zone){func(z *zone.Zone) { z.ID = "0190c1d2-0000-7000-8000-00000000000f" }}, false, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var c clock
			entered, release := make(chan struct{}, 1), make(chan struct{})
			o, asked := gatedOrigin(t, func(n int64, w http.ResponseWriter, _ *http.Request) {
				w.Header()["Date"] = nil
				w.Header().Set("Cache-Control", "max-age=60")
				if n == 1 {
					entered <- struct{}{}
					<-release
				}
				io.WriteString(w, "body")
			})
			n := startNode(t, withCache(0, func(cfg *Config) { cfg.Now = c.now })...)
			n.publish(site(o.address()))
			var first *httptest.ResponseRecorder
			var lead sync.WaitGroup
			lead.Go(func() { first = n.serve(t.Context(), "/?q=1") })
			<-entered
			n.publish(site(o.address(), tc.after...))
			close(release)
			lead.Wait()
			if first.Body.String() != "body" {
				t.Errorf("who asked got %q", first.Body)
			}
			if says := first.Header().Get("Cache-Status"); !tc.stored && says != "guardyn; fwd=uri-miss; detail=overtaken" || tc.stored && says != "guardyn; fwd=uri-miss; stored; ttl=60" {
				t.Errorf("who asked was told %q", says)
			}
			if stored := n.config.Cache.Stats().Stored == 1; stored != tc.stored {
				t.Errorf("it was stored: %v", stored)
			}
			got := n.serve(t.Context(), "/?q=1")
			if hit := asked.Load() == 1; hit != tc.stored {
				t.Errorf("it is served: %v", hit)
			}
			if want := "guardyn; hit; " + tc.ttl; tc.stored && got.Header().Get("Cache-Status") != want {
				t.Errorf("Cache-Status: %s, want %s", got.Header().Get("Cache-Status"), want)
			}
		})
	}
}

// TestPurgeOfWhatIsServed: a purge names a zone by its name, whatever id it has in the view that is served, and in those to come.
func TestPurgeOfWhatIsServed(t *testing.T) {
	n, o, _ := cachingNode(t)
	other := func(z *zone.Zone) { z.ID = "0190c1d2-0000-7000-8000-00000000000f" }
	says := func(want string) {
		t.Helper()
		o.next(maxAge)
		if got := n.get("/"); ownCacheStatus(got.header) != want {
			t.Errorf("Cache-Status: %v, want %s", got.header["Cache-Status"], want)
		}
	}
	says("uri-miss")
	n.publish(site(o.address, other)) // deleted and made again
	says("uri-miss")
	says("hit")
	n.config.Cache.Purge([]zone.Purge{{Sequence: 1, Zone: zone.MustName("example.com"), Kind: zone.PurgeAll}})
	says("uri-miss")
	n.publish(site(o.address)) // rolled back
	says("uri-miss")
	says("hit")
	n.config.Cache.Purge([]zone.Purge{{Sequence: 2, Zone: zone.MustName("www.example.com"), Kind: zone.PurgeAll}})
	says("hit")
}

// TestPurgedAnswers: what a purge names is asked for again, by everybody who asks after it.
func TestPurgedAnswers(t *testing.T) {
	n, o, c := cachingNode(t)
	sequence := uint64(0)
	for _, tc := range []struct {
		kind  zone.PurgeKind
		value string
		gone  bool
	}{
		{zone.PurgeURL, "http://www.example.com/a?x=1", true},
		{zone.PurgeURL, "https://www.example.com/a?x=1", false},
		{zone.PurgePrefix, "www.example.com/a", true},
		{zone.PurgePrefix, "www.example.com/b", false},
		{zone.PurgeTag, "two", true},
		{zone.PurgeTag, "three", false},
		{zone.PurgeAll, "", true},
	} {
		runTurn(t, 1, turn{ask: "GET /a?x=1", origin: "200 | Cache-Control: max-age=60, stale-if-error=600 | Cache-Tag: one, two", want: "uri-miss"}, n, o, c)
		sequence++
		p := zone.Purge{Sequence: sequence, Zone: zone.MustName("example.com"), Kind: tc.kind}
		if tc.value != "" {
			p.Values = []string{tc.value}
		}
		n.config.Cache.Purge([]zone.Purge{p})
		if tc.gone {
			runTurn(t, 2, turn{ask: "GET /a?x=1", origin: "503", want: "uri-miss | 503"}, n, o, c)
		} else {
			runTurn(t, 2, turn{ask: "GET /a?x=1", want: "hit"}, n, o, c)
		}
		n.config.Cache.Floor(sequence)
	}
}
