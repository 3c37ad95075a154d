package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/guardyn-edge/guardyn/zone"
)

const seconds = zone.Duration(time.Second)

const maxAge = "200 | Cache-Control: max-age=60"

// TestCacheStoring is what is stored, and for how long it is fresh.
func TestCacheStoring(t *testing.T) {
	cases := []cacheCase{
		// What may be stored.
		stored("RFC 9111 §3, explicit freshness", maxAge),
		stored("RFC 9111 §3, public alone has a heuristic", "200 | Cache-Control: public | Last-Modified: now-1000"),
		notStored("RFC 9111 §3, nothing is said", "200"),
		notStored("RFC 9111 §3, public alone without anything to guess from", "200 | Cache-Control: public"),
		notStored("RFC 9111 §5.2.2.5, no-store", "200 | Cache-Control: no-store, max-age=60"),
		notStored("RFC 9111 §5.2.2.5, no-store in any case", "200 | Cache-Control: max-age=60, No-Store"),
		notStored("RFC 9111 §5.2.2.5, no-store on a line of its own", "200 | Cache-Control: max-age=60 | Cache-Control: no-store"),
		notStored("RFC 9111 §5.2.2.7, private", "200 | Cache-Control: private, max-age=60"),
		notStored("RFC 9111 §5.2.2.7, private with fields", `200 | Cache-Control: private="X-A", max-age=60`),
		stored("RFC 9111 §5.2.2.3, must-understand of a status that is known", "200 | Cache-Control: must-understand, no-store, max-age=60"),
		notStored("RFC 9110 §15.5.22, what is said of this connection", "426 | Cache-Control: max-age=60 | Connection: upgrade | Upgrade: websocket"),
		notStored("RFC 9111 §5.2.2.3, must-understand of another", "299 | Cache-Control: must-understand, no-store, max-age=60"),
		notStored("RFC 9111 §3.3, a part", "206 | Cache-Control: max-age=60 | Content-Range: bytes 0-5/100"),
		notStored("RFC 9110 §15.3.7, Content-Range with another status", "200 | Cache-Control: max-age=60 | Content-Range: bytes 0-5/100"),
		notStored("RFC 9110 §6.6.2, trailers", "200 | Cache-Control: max-age=60 | Transfer-Encoding: chunked | Trailer: X-Sum"),
		{"RFC 9112 §7.1, chunks", nil, []turn{
			{origin: "200 | Cache-Control: max-age=60 | Transfer-Encoding: chunked", want: "uri-miss | Cache-Status: guardyn; fwd=uri-miss; ttl=60"}, {want: "hit"},
		}},
		notStored("RFC 9110 §7.6.1, Cache-Control for this hop alone", "200 | Connection: cache-control | Cache-Control: no-store | Expires: now60"),
		notStored("RFC 9110 §7.6.1, among others", "200 | Connection: x-a, Vary | X-A: 1 | Vary: X-B | Cache-Control: max-age=60"),
		notStored("RFC 9110 §7.6.1, Set-Cookie", "200 | Connection: Set-Cookie | Set-Cookie: a=b | Cache-Control: max-age=60"),
		notStored("RFC 9110 §7.6.1, what purges go by", "200 | Connection: cache-tag | Cache-Tag: a | Cache-Control: max-age=60"),
		notStored("RFC 9110 §7.6.1, a rule's ttl does not help", "200 | Connection: cache-control | Cache-Control: private", cacheRule(`true`, zone.Parameters{TTL: 60 * seconds})),
		{"RFC 9110 §7.6.1, a 304", nil, []turn{
			{origin: maxAge + ` | Etag: "a"`, want: "uri-miss"},
			{wait: 60, origin: `304 | Connection: cache-control | Cache-Control: no-store`, want: "stale | 200 | detail=connection"},
			{origin: maxAge, want: "uri-miss"},
		}},
		{"RFC 9110 §7.6.1, an answer to HEAD", nil, []turn{
			{origin: maxAge + ` | Etag: "a" | body=12345`, want: "uri-miss"},
			{wait: 60, ask: "HEAD /", origin: `200 | Connection: cache-control | Cache-Control: no-store | Etag: "a" | body=12345`, want: "stale"},
			{origin: maxAge, want: "uri-miss"},
		}},
		stored("RFC 9110 §7.6.1, a field that says nothing of storing", "200 | Connection: x-a | X-A: 1 | Cache-Control: max-age=60"),
		stored("RFC 9110 §15.3.5, no content", "204 | Cache-Control: max-age=60"),
		notStored("RFC 9110 §15.4.5, a 304 that nobody asked for", "304 | Cache-Control: max-age=60"),
		notStored("RFC 9111 §4.1, Vary: *", "200 | Cache-Control: max-age=60 | Vary: *"),
		notStored("RFC 9111 §4.1, Vary: * among others", "200 | Cache-Control: max-age=60 | Vary: Accept, *"),
		notStored("RFC 9111 §4.1, Vary by what the node says of each client", "200 | Cache-Control: max-age=60 | Vary: X-Forwarded-For"),
		stored("RFC 9111 §4.1, Vary by what is of the key", "200 | Cache-Control: max-age=60 | Vary: Host, X-Forwarded-Proto"),
		notStored("RFC 9111 §7.3, Set-Cookie", "200 | Cache-Control: max-age=60 | Set-Cookie: a=b"),
		notStored("RFC 9111 §7.3, Set-Cookie with public", "200 | Cache-Control: public, s-maxage=60 | Set-Cookie: a=b"),
		notStored("RFC 9111 §4, stale when it comes, no validator", "200 | Cache-Control: max-age=0"),
		notStored("RFC 9111 §4.2.3, older than it is fresh", "200 | Cache-Control: max-age=60 | Age: 60"),

		// Freshness.
		fresh("RFC 9111 §4.2.1, max-age", maxAge, 60),
		fresh("RFC 9111 §4.2.1, s-maxage before max-age", "200 | Cache-Control: max-age=10, s-maxage=60", 60),
		fresh("RFC 9111 §4.2.1, s-maxage before max-age, the other way", "200 | Cache-Control: s-maxage=10, max-age=60", 10),
		fresh("RFC 9111 §4.2.1, max-age before Expires", "200 | Cache-Control: max-age=60 | Expires: now10", 60),
		fresh("RFC 9111 §4.2.1, Expires", "200 | Expires: now60", 60),
		fresh("RFC 9111 §4.2.1, Expires against the origin's Date", "200 | Date: now-3600 | Expires: now-3540 | Cache-Control: max-age=3660", 60),
		fresh("RFC 9111 §5.2, an argument in quotes", `200 | Cache-Control: max-age="60"`, 60),
		fresh("RFC 9111 §5.2, white space", "200 | Cache-Control:   public ,  max-age=60  ", 60),
		fresh("RFC 9111 §5.2, a name in any case", "200 | Cache-Control: MaX-aGe=60", 60),
		fresh("RFC 9111 §5.2, a comma in quotes", `200 | Cache-Control: x="a, no-store", max-age=60`, 60),
		notStored("RFC 9111 §5.2, a quotation without an end", `200 | Cache-Control: max-age=60, x="a`),
		notStored("RFC 9111 §5.2, one that ends in a quote of its own", `200 | Cache-Control: max-age=60, x="a\", no-store`),
		notStored("RFC 9111 §5.2, one that ends in a backslash", `200 | Cache-Control: max-age=60, x="a\`),
		notStored("RFC 9111 §5.2, one without an end that need only be understood", `200 | Cache-Control: max-age=60, must-understand, x="a`),
		notStored("RFC 9111 §5.2, no comma behind one", `200 | Cache-Control: max-age=60, x="a" no-store`),
		notStored("RFC 9111 §5.2, no comma between names", `200 | Cache-Control: max-age=60, no-store; private`),
		fresh("RFC 9111 §5.2, a quote in quotes", `200 | Cache-Control: x="a\", no-store", max-age=60`, 60),
		fresh("RFC 9111 §5.2.3, extensions are passed over", "200 | Cache-Control: foo, bar=1, max-age=60, baz", 60),
		fresh("RFC 9111 §5.2, empty members", "200 | Cache-Control: ,, max-age=60,,", 60),
		fresh("RFC 9111 §5.2, over two lines", "200 | Cache-Control: public | Cache-Control: max-age=60", 60),
		fresh("RFC 9111 §4.2.1, the same twice", "200 | Cache-Control: max-age=60, max-age=60", 60),
		notStored("RFC 9111 §4.2.1, two that differ", "200 | Cache-Control: max-age=60, max-age=3600"),
		notStored("RFC 9111 §4.2.1, no number", "200 | Cache-Control: max-age=abc"),
		notStored("RFC 9111 §4.2.1, a number with a letter", "200 | Cache-Control: max-age=60a"),
		notStored("RFC 9111 §4.2.1, a fraction", "200 | Cache-Control: max-age=60.0"),
		notStored("RFC 9111 §4.2.1, below zero", "200 | Cache-Control: max-age=-1"),
		notStored("RFC 9111 §4.2.1, no argument", "200 | Cache-Control: max-age"),
		stored("RFC 9111 §1.2.2, more than an integer holds", "200 | Cache-Control: max-age=99999999999999999999999"),
		notStored("RFC 9111 §5.3, Expires: 0", "200 | Expires: 0"),
		notStored("RFC 9111 §5.3, Expires that is no date", "200 | Expires: tomorrow"),
		notStored("RFC 9111 §5.3, Expires in the past", "200 | Expires: now-60"),
		notStored("RFC 9111 §5.3, Expires twice", "200 | Expires: now60 | Expires: now120"),
		notStored("RFC 9111 §5.3, Expires now", "200 | Expires: now0"),
		fresh("RFC 9111 §5.4, Pragma of an answer means nothing", "200 | Pragma: no-cache | Cache-Control: max-age=60", 60),

		// Age.
		fresh("RFC 9111 §4.2.3, Age", "200 | Cache-Control: max-age=60 | Age: 20", 40),
		fresh("RFC 9111 §4.2.3, apparent age", "200 | Cache-Control: max-age=60 | Date: now-20", 40),
		fresh("RFC 9111 §4.2.3, the greater of both", "200 | Cache-Control: max-age=60 | Date: now-20 | Age: 30", 30),
		fresh("RFC 9111 §4.2.3, a Date to come", "200 | Cache-Control: max-age=60 | Date: now20", 60),
		fresh("RFC 9111 §4.2.3, no Date", "200 | Cache-Control: max-age=60 | -Date", 60),
		fresh("RFC 9111 §5.1, Age as a list: the first", "200 | Cache-Control: max-age=60 | Age: 20, 50", 40),
		fresh("RFC 9111 §5.1, Age twice: the first", "200 | Cache-Control: max-age=60 | Age: 20 | Age: 50", 40),
		fresh("RFC 9111 §5.1, Age that is no number", "200 | Cache-Control: max-age=60 | Age: abc", 60),
		fresh("RFC 9111 §5.1, Age below zero", "200 | Cache-Control: max-age=60 | Age: -7", 60),
		notStored("RFC 9111 §1.2.2, an Age beyond all", "200 | Cache-Control: max-age=60 | Age: 99999999999999"),
		{"RFC 9111 §5.1, a hit has an Age", nil, []turn{
			{origin: maxAge, want: "uri-miss | -Age"}, {want: "hit | Age: 0"}, {wait: 7, want: "hit | Age: 7 | ttl=53"},
		}},
		{"RFC 9111 §5.1, on top of the origin's", nil, []turn{
			{origin: maxAge + " | Age: 5", want: "uri-miss | Age: 5"}, {wait: 7, want: "hit | Age: 12 | ttl=48"},
		}},
		{"RFC 9111 §5.1, one Age", nil, []turn{
			{origin: maxAge + " | Age: 5 | Age: 6", want: "uri-miss | Age: 5"}, {want: "hit | Age: 5"},
		}},
		{"RFC 9110 §6.6.1, Date is the origin's", nil, []turn{
			{origin: maxAge + " | Date: at-3", want: "uri-miss"}, {wait: 9, want: "hit | Date: " + date(-3) + " | Age: 12"},
		}},

		// Heuristics.
		fresh("RFC 9111 §4.2.2, a tenth of the time since Last-Modified", "200 | Last-Modified: now-1000", 100),
		fresh("RFC 9111 §4.2.2, a day at most", "200 | Last-Modified: now-100000000", 86400),
		notStored("RFC 9111 §4.2.2, Last-Modified to come", "302 | Last-Modified: now1000"),
		notStored("RFC 9111 §4.2.2, not with a status that says nothing of it", "302 | Last-Modified: now-1000"),
		fresh("RFC 9111 §4.2.2, with public such a status too", "302 | Cache-Control: public | Last-Modified: now-1000", 100),
		fresh("RFC 9111 §4.2.2, with a query too", "200 | Last-Modified: now-1000", 100),
		{"RFC 9111 §4.2.2, not for an answer to cookies", nil, []turn{
			{ask: "GET / | Cookie: a=b", origin: "404 | Last-Modified: now-1000", want: "uri-miss"},
			{origin: "404 | Last-Modified: now-1000", want: "uri-miss | stored"},
			{want: "hit"},
		}},
		{"RFC 9111 §7.3, an explicit answer to cookies is everybody's", nil, []turn{
			{ask: "GET / | Cookie: a=b", origin: maxAge, want: "uri-miss"}, {want: "hit"}, {ask: "GET / | Cookie: c=d", want: "hit"},
		}},

		// Authorization.
		{"RFC 9111 §3.5, an answer to Authorization is not stored", nil, []turn{
			{ask: "GET / | Authorization: Basic eA==", origin: maxAge, want: "uri-miss | detail=authorization", sent: "Authorization: Basic eA=="},
			{origin: maxAge, want: "uri-miss"},
		}},
		{"RFC 9111 §3.5, nor is what is stored served to it", nil, []turn{
			{origin: maxAge, want: "uri-miss"}, {ask: "GET / | Authorization: Basic eA==", origin: maxAge, want: "request | Cache-Status: guardyn; fwd=request; detail=authorization"}, {want: "hit"},
		}},
		permitted("public", "public, max-age=60"),
		permitted("s-maxage", "s-maxage=60"),
		permitted("must-revalidate", "must-revalidate, max-age=60"),
	}
	for _, s := range []int{200, 203, 300, 301, 308, 404, 405, 410, 414, 501} {
		cases = append(cases, fresh(fmt.Sprintf("RFC 9110 §15.1, %d by heuristic", s), fmt.Sprintf("%d | Last-Modified: now-1000", s), 100))
	}
	for _, s := range []int{200, 201, 203, 299, 300, 302, 303, 307, 308, 400, 403, 404, 410, 418, 499, 500, 502, 503, 504, 599} {
		cases = append(cases, stored(fmt.Sprintf("RFC 9111 §3, %d with explicit freshness", s), fmt.Sprintf("%d | Cache-Control: max-age=60", s)))
	}
	runCacheCases(t, cases)
}

func date(offset int) string {
	return new(clock).now().Add(time.Duration(offset) * time.Second).UTC().Format(http.TimeFormat)
}

// permitted: an answer to Authorization that says so is everybody's.
func permitted(what, directives string) cacheCase {
	answer := "200 | Cache-Control: " + directives
	return cacheCase{"RFC 9111 §3.5, " + what + " permits it", nil, []turn{
		{ask: "GET / | Authorization: Basic eA==", origin: answer, want: "uri-miss | stored"},
		{want: "hit"},
		{ask: "GET / | Authorization: Basic eQ==", want: "hit"},
	}}
}

// TestCachePolicy is what a zone's policy and rules make of answers.
func TestCachePolicy(t *testing.T) {
	runCacheCases(t, []cacheCase{
		{"disabled", []func(*zone.Zone){policy(zone.CachePolicy{Disabled: true})}, []turn{
			{origin: maxAge + " | Cache-Tag: a", want: " | 200 | -Age | Cache-Tag: a"}, {origin: maxAge, want: ""},
		}},
		{"bypass", []func(*zone.Zone){cacheRule(`http.path == "/"`, zone.Parameters{Bypass: true})}, []turn{
			{origin: maxAge, want: "bypass | detail=rule"},
			{origin: maxAge, want: "bypass"},
			{ask: "GET /other", origin: maxAge, want: "uri-miss"},
			{ask: "GET /other", want: "hit"},
		}},
		{"the last word counts", []func(*zone.Zone){
			cacheRule(`true`, zone.Parameters{Bypass: true}), cacheRule(`http.path == "/"`, zone.Parameters{TTL: 30 * seconds}),
		}, []turn{
			{origin: maxAge, want: "uri-miss | ttl=30"},
			{want: "hit"},
			{ask: "GET /other", origin: maxAge, want: "bypass"},
		}},
		{"skip ends the phase", []func(*zone.Zone){
			rule(zone.PhaseCache, `http.path == "/"`, zone.ActionSkip, zone.Parameters{}), cacheRule(`true`, zone.Parameters{Bypass: true}),
		}, []turn{{origin: maxAge, want: "uri-miss"}, {want: "hit"}}},
		{"skipped by an earlier phase: the zone's policy is left", []func(*zone.Zone){
			rule(zone.PhaseCustom, `true`, zone.ActionSkip, zone.Parameters{Phases: []zone.Phase{zone.PhaseCache}}), cacheRule(`true`, zone.Parameters{Bypass: true}),
		}, []turn{{origin: maxAge, want: "uri-miss"}, {want: "hit"}}},
		fresh("a rule's ttl is longer than the origin's", "200 | Cache-Control: max-age=5", 60, cacheRule(`true`, zone.Parameters{TTL: 60 * seconds})),
		fresh("a rule's ttl is shorter", "200 | Cache-Control: max-age=600", 60, cacheRule(`true`, zone.Parameters{TTL: 60 * seconds})),
		fresh("a rule's ttl, the origin says nothing", "200", 60, cacheRule(`true`, zone.Parameters{TTL: 60 * seconds})),
		fresh("a rule's ttl counts from when the answer came", "200 | Age: 50", 60, cacheRule(`true`, zone.Parameters{TTL: 60 * seconds})),
		notStored("a rule's ttl is not for no-store", "200 | Cache-Control: no-store", cacheRule(`true`, zone.Parameters{TTL: 60 * seconds})),
		notStored("a rule's ttl is not for private", "200 | Cache-Control: private", cacheRule(`true`, zone.Parameters{TTL: 60 * seconds})),
		notStored("a rule's ttl is not for no-cache without a validator", "200 | Cache-Control: no-cache", cacheRule(`true`, zone.Parameters{TTL: 60 * seconds})),
		notStored("a rule's ttl is not for Set-Cookie", "200 | Set-Cookie: a=b", cacheRule(`true`, zone.Parameters{TTL: 60 * seconds})),
		notStored("a rule's ttl is not for errors", "503", cacheRule(`true`, zone.Parameters{TTL: 60 * seconds})),
		notStored("a rule's ttl is not for what is not found", "404", cacheRule(`true`, zone.Parameters{TTL: 60 * seconds})),
		fresh("default_ttl where the origin says nothing", "200", 60, policy(zone.CachePolicy{DefaultTTL: 60 * seconds})),
		fresh("default_ttl before a heuristic", "200 | Last-Modified: now-1000", 60, policy(zone.CachePolicy{DefaultTTL: 60 * seconds})),
		fresh("default_ttl not where it says something", "200 | Cache-Control: max-age=10", 10, policy(zone.CachePolicy{DefaultTTL: 60 * seconds})),
		notStored("default_ttl is not for errors", "500", policy(zone.CachePolicy{DefaultTTL: 60 * seconds})),
		fresh("max_ttl", "200 | Cache-Control: max-age=600", 60, policy(zone.CachePolicy{MaxTTL: 60 * seconds})),
		fresh("max_ttl over a rule's ttl", "200", 60, policy(zone.CachePolicy{MaxTTL: 60 * seconds}), cacheRule(`true`, zone.Parameters{TTL: 600 * seconds})),
		{"store_set_cookie", []func(*zone.Zone){policy(zone.CachePolicy{StoreSetCookie: true})}, []turn{
			{origin: maxAge + " | Set-Cookie: a=b", want: "uri-miss | Set-Cookie: a=b"}, {want: "hit | -Set-Cookie | body=body 1"},
		}},
		{"Cache-Tag is not for clients", nil, []turn{
			{origin: maxAge + " | Cache-Tag: a, b", want: "uri-miss | -Cache-Tag"},
			{want: "hit | -Cache-Tag"},
			{ask: "GET /n", origin: "200 | Cache-Tag: a", want: "uri-miss | -Cache-Tag"},
			{ask: "POST /n", origin: "200 | Cache-Tag: a", want: "method | -Cache-Tag"},
		}},
		notStored("a tag that is too long", maxAge+" | Cache-Tag: "+strings.Repeat("a", 257)),
		notStored("too many tags", maxAge+" | Cache-Tag: "+strings.Repeat("a,", 128)+"b"),
		notStored("too many fields in Vary", maxAge+" | Vary: a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q"),
		{"rules of the response run on hits", []func(*zone.Zone){
			rule(zone.PhaseTransformResponse, `http.headers["x-a"] == "1"`, zone.ActionSetHeader, zone.Parameters{Name: "X-B", Value: "2"}),
			rule(zone.PhaseTransformResponse, `true`, zone.ActionRemoveHeader, zone.Parameters{Name: "X-C"}),
		}, []turn{
			{origin: maxAge + " | X-C: 3", want: "uri-miss | -X-B | -X-C"},
			{ask: "GET / | X-A: 1", want: "hit | X-B: 2 | -X-C"},
			{want: "hit | -X-B"},
		}},
		{"query_mode none", []func(*zone.Zone){policy(zone.CachePolicy{QueryMode: "none"})}, []turn{
			{ask: "GET /?a=1", origin: maxAge, want: "uri-miss", sent: "GET /?a=1"}, {ask: "GET /?b=2", want: "hit"}, {want: "hit"},
		}},
		{"query_mode include", []func(*zone.Zone){policy(zone.CachePolicy{QueryMode: "include", QueryParameters: []string{"a", "b c"}})}, []turn{
			{ask: "GET /?a=1&x=1", origin: maxAge, want: "uri-miss"},
			{ask: "GET /?x=2&a=1", want: "hit"},
			{ask: "GET /?a=2", origin: maxAge, want: "uri-miss"},
			{ask: "GET /?b%20c=1", origin: maxAge, want: "uri-miss"},
			{ask: "GET /?b+c=1", origin: maxAge, want: "uri-miss"},
			{ask: "GET /?b+c=1&z", want: "hit"},
			{ask: "GET /?%61=1", want: "hit"},
		}},
		{"query_mode exclude", []func(*zone.Zone){policy(zone.CachePolicy{QueryMode: "exclude", QueryParameters: []string{"utm_source"}})}, []turn{
			{ask: "GET /?utm_source=x&a=1", origin: maxAge, want: "uri-miss"},
			{ask: "GET /?a=1&utm%5Fsource=y", want: "hit"},
			{ask: "GET /?a=2", origin: maxAge, want: "uri-miss"},
		}},
		{"query_mode all: order and repetition matter", nil, []turn{
			{ask: "GET /?a=1&b=2", origin: maxAge, want: "uri-miss"},
			{ask: "GET /?b=2&a=1", origin: maxAge, want: "uri-miss"},
			{ask: "GET /?a=1&a=1&b=2", origin: maxAge, want: "uri-miss"},
			{ask: "GET /?a=1&b=2", want: "hit"},
			{ask: "GET /?%61=1&b=2", want: "hit"},
		}},
	})
}
