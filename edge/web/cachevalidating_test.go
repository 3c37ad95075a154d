package web

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/guardyn-edge/guardyn/edge/cache"
	"github.com/guardyn-edge/guardyn/zone"
)

// TestCacheConditions is how what is stored answers conditional requests.
func TestCacheConditions(t *testing.T) {
	const tagged = maxAge + ` | Etag: "a" | Last-Modified: at-1000 | Content-Type: text/css | X-A: 1`
	ask := func(name, condition, want string) cacheCase {
		return cacheCase{name, nil, []turn{{origin: tagged, want: "uri-miss"}, {ask: "GET / | " + condition, want: "hit | " + want}}}
	}
	weak := func(name, condition, want string) cacheCase {
		return cacheCase{name, nil, []turn{{origin: maxAge + ` | Etag: W/"a"`, want: "uri-miss"}, {ask: "GET / | " + condition, want: "hit | " + want}}}
	}
	runCacheCases(t, []cacheCase{
		ask("RFC 9110 §13.1.2, If-None-Match", `If-None-Match: "a"`, `304 | body= | Etag: "a" | -Content-Type | -Content-Length | X-A: 1 | Cache-Control: max-age=60 | Age: 0`),
		ask("RFC 9110 §13.1.2, another", `If-None-Match: "b"`, "200 | body=body 1"),
		ask("RFC 9110 §13.1.2, in a list", `If-None-Match: "x", "y,z" ,"a"`, "304"),
		ask("RFC 9110 §13.1.2, an asterisk", `If-None-Match: *`, "304"),
		ask("RFC 9110 §13.1.2, without quotes", `If-None-Match: a`, "200"),
		ask("RFC 9110 §8.8.3.2, weak against strong", `If-None-Match: W/"a"`, "304"),
		ask("RFC 9110 §8.8.3, case counts", `If-None-Match: "A"`, "200"),
		weak("RFC 9110 §8.8.3.2, strong against weak", `If-None-Match: "a"`, "304"),
		weak("RFC 9110 §8.8.3.2, weak against weak", `If-None-Match: W/"a"`, "304"),
		ask("RFC 9110 §13.1.3, If-Modified-Since the same", "If-Modified-Since: at-1000", "304"),
		ask("RFC 9110 §13.1.3, later", "If-Modified-Since: at-10", "304"),
		ask("RFC 9110 §13.1.3, earlier", "If-Modified-Since: at-1001", "200"),
		ask("RFC 9110 §13.1.3, no date", "If-Modified-Since: yesterday", "200"),
		ask("RFC 9110 §5.6.7, a date of RFC 850", "If-Modified-Since: Friday, 15-Jan-27 09:00:00 GMT", "304"),
		ask("RFC 9110 §13.2.2, If-None-Match comes first", `If-None-Match: "b" | If-Modified-Since: at-10`, "200"),
		{"RFC 9111 §4.3.2, without Last-Modified its Date", nil, []turn{
			{origin: maxAge, want: "uri-miss"}, {ask: "GET / | If-Modified-Since: at0", want: "hit | 304"}, {ask: "GET / | If-Modified-Since: at-1", want: "hit | 200"},
		}},
		{"RFC 9110 §13.2.1, not of another status", nil, []turn{
			{origin: `404 | Cache-Control: max-age=60 | Etag: "a"`, want: "uri-miss"}, {ask: `GET / | If-None-Match: "a"`, want: "hit | 404"},
		}},
		{"RFC 9110 §13.1.1, If-Match is the origin's to judge", nil, []turn{
			{origin: tagged, want: "uri-miss"}, {ask: `GET / | If-Match: "b"`, origin: "412", want: "bypass | 412", sent: `If-Match: "b"`},
		}},
		{"RFC 9110 §13.1.4, If-Unmodified-Since too", nil, []turn{
			{origin: tagged, want: "uri-miss"}, {ask: "GET / | If-Unmodified-Since: at-2000", origin: "412", want: "bypass | 412"},
		}},
		{"RFC 9111 §4.3.1, the whole is asked for, and the client's condition is held against it", nil, []turn{
			{ask: `GET / | If-None-Match: "a"`, origin: tagged, want: "uri-miss | 304 | stored", sent: "-If-None-Match"},
			{want: "hit | 200 | body=body 1"},
			{ask: `GET /2 | If-None-Match: "z"`, origin: tagged, want: "uri-miss | 200", sent: "-If-None-Match"},
		}},
		{"RFC 9111 §4.3.1, what is not stored is conditional the next time", nil, []turn{
			{ask: `GET / | If-None-Match: "a"`, origin: `200 | Etag: "a" | Cache-Control: private`, want: "uri-miss | 200", sent: "-If-None-Match"},
			{ask: `GET / | If-None-Match: "a"`, origin: `304 | Etag: "a"`, want: "uri-miss | 304", sent: `If-None-Match: "a"`},
			{wait: 121, ask: `GET / | If-None-Match: "a"`, origin: tagged, want: "uri-miss | stored | 304", sent: "-If-None-Match"},
		}},
		{"RFC 9110 §9.3.2, HEAD is served from GET", nil, []turn{
			{origin: tagged, want: "uri-miss"},
			{ask: "HEAD /", want: `hit | 200 | body= | Content-Length: 6 | Etag: "a"`},
			{ask: `HEAD / | If-None-Match: "a"`, want: "hit | 304"},
		}},
		{"RFC 9111 §3, HEAD is not stored", nil, []turn{
			{ask: "HEAD /", origin: maxAge, want: "uri-miss | 200 | Content-Length: 6", sent: "HEAD /"}, {origin: maxAge, want: "uri-miss"},
		}},
	})
}

// TestCacheValidation is how what is stale is validated.
func TestCacheValidation(t *testing.T) {
	const tagged = maxAge + ` | Etag: "a" | Last-Modified: at-1000 | X-A: 1 | X-B: 1`
	validated := func(name, not string, turns ...turn) cacheCase {
		return cacheCase{name, nil, append([]turn{
			{origin: tagged, want: "uri-miss"},
			{wait: 60, origin: not, want: "stale | fwd-status=304 | 200 | body=body 1", sent: `If-None-Match: "a" | If-Modified-Since: ` + date(-1000)},
		}, turns...)}
	}
	runCacheCases(t, []cacheCase{
		validated("RFC 9111 §4.3.3, a 304 makes it fresh", `304 | Cache-Control: max-age=60 | Etag: "a"`, turn{wait: 59, want: "hit | Age: 59 | body=body 1"}),
		validated("RFC 9111 §4.3.4, its fields replace those stored", `304 | Cache-Control: max-age=600 | X-B: 2 | X-C: 3`,
			turn{wait: 599, want: `hit | X-A: 1 | X-B: 2 | X-C: 3 | Cache-Control: max-age=600 | Etag: "a"`}),
		validated("RFC 9111 §3.2, but for those of the body", `304 | Cache-Control: max-age=60 | Content-Encoding: gzip | Content-Type: x/y`,
			turn{want: "hit | -Content-Encoding | Content-Length: 6"}),
		validated("RFC 9111 §4.3.4, a weak one of the same", `304 | Cache-Control: max-age=60 | Etag: "a" | Last-Modified: at-1000`, turn{want: "hit"}),
		validated("RFC 9111 §4.3.4, it says nothing new: as long as before", "304", turn{wait: 59, want: "hit | Age: 59"}, turn{wait: 1, origin: "304", want: "stale"}),
		validated("RFC 9111 §4.2.3, its own Age counts", "304 | Cache-Control: max-age=60 | Age: 50", turn{wait: 9, want: "hit | Age: 59"}, turn{wait: 1, origin: "304", want: "stale"}),
		validated("RFC 9111 §7.3, its Set-Cookie is nobody's", "304 | Cache-Control: max-age=60 | Set-Cookie: a=b", turn{want: "hit | -Set-Cookie"}),
		validated("RFC 9111 §4.3.4, it may not be stored any longer", "304 | Cache-Control: no-store", turn{origin: maxAge, want: "uri-miss"}),
		validated("RFC 9111 §4.3.4, it is private from now on", "304 | Cache-Control: private", turn{origin: maxAge, want: "uri-miss"}),
		{"RFC 9111 §4.3.3, another answer replaces it", nil, []turn{
			{origin: tagged, want: "uri-miss"}, {wait: 60, origin: maxAge + ` | Etag: "b"`, want: `stale | 200 | body=body 2 | Etag: "b" | stored | -X-A`}, {want: "hit | body=body 2"},
		}},
		{"RFC 9111 §4.3.3, another answer that is not stored takes it away", nil, []turn{
			{origin: tagged, want: "uri-miss"}, {wait: 60, origin: "200 | Cache-Control: no-store", want: "stale | body=body 2"}, {origin: maxAge, want: "uri-miss"},
		}},
		{"RFC 9111 §4.3.3, not found", nil, []turn{
			{origin: tagged, want: "uri-miss"}, {wait: 60, origin: "404", want: "stale | 404"}, {origin: maxAge, want: "uri-miss"},
		}},
		{"RFC 9111 §4.3.3, an error of the server is passed on, and it stays", nil, []turn{
			{origin: tagged, want: "uri-miss"}, {wait: 60, origin: "503", want: "stale | 503"}, {origin: "304", want: "stale | fwd-status=304 | body=body 1"},
		}},
		{"RFC 9111 §4.3.4, a 304 of another answer is asked anew", nil, []turn{
			{origin: tagged, want: "uri-miss"}, {wait: 60, origin: `304 | Etag: "b"`, want: "stale", sent: `If-None-Match: "a"`},
		}},
		{"RFC 9111 §4.3.1, by Last-Modified alone", nil, []turn{
			{origin: maxAge + " | Last-Modified: at-1000", want: "uri-miss"},
			{wait: 60, origin: "304", want: "stale | fwd-status=304 | 200", sent: "-If-None-Match | If-Modified-Since: " + date(-1000)},
			{want: "hit"},
		}},
		{"RFC 9111 §4.3.1, by a weak ETag", nil, []turn{
			{origin: maxAge + ` | Etag: W/"a"`, want: "uri-miss"}, {wait: 60, origin: `304 | Etag: W/"a"`, want: "stale | 200", sent: `If-None-Match: W/"a"`}, {want: "hit"},
		}},
		{"RFC 9111 §4.3, without a validator it is asked for anew", nil, []turn{
			{origin: maxAge, want: "uri-miss"}, {wait: 60, origin: maxAge, want: "stale | body=body 2", sent: "-If-None-Match | -If-Modified-Since"}, {want: "hit | body=body 2"},
		}},
		{"RFC 9111 §4.3.1, the client's condition is not the origin's question", nil, []turn{
			{origin: tagged, want: "uri-miss"},
			{wait: 60, ask: `GET / | If-None-Match: "a"`, origin: "304", want: "stale | 304", sent: `If-None-Match: "a"`},
			{wait: 60, ask: `GET / | If-None-Match: "x"`, origin: "304", want: "stale | 200 | body=body 1", sent: `If-None-Match: "a"`},
		}},
		{"RFC 9111 §5.2.2.4, no-cache is validated each time", nil, []turn{
			{origin: `200 | Cache-Control: no-cache, max-age=60 | Etag: "a"`, want: "uri-miss | stored"},
			{origin: `304 | Cache-Control: no-cache`, want: "stale | body=body 1", sent: `If-None-Match: "a"`},
			{origin: "304", want: "stale | body=body 1"},
		}},
		{"RFC 9111 §5.2.2.4, no-cache with fields counts as without", nil, []turn{
			{origin: `200 | Cache-Control: no-cache="X-A", max-age=60 | Etag: "a"`, want: "uri-miss"}, {origin: "304", want: "stale"},
		}},
		{"RFC 9111 §4, max-age=0 with a validator", nil, []turn{
			{origin: `200 | Cache-Control: max-age=0 | Etag: "a"`, want: "uri-miss | stored"}, {origin: "304", want: "stale | body=body 1"},
		}},
		{"RFC 9111 §4.3.5, HEAD brings what is stale up to date", nil, []turn{
			{origin: tagged, want: "uri-miss"},
			{wait: 60, ask: "HEAD /", origin: maxAge + ` | Etag: "a" | X-B: 2`, want: "stale | 200", sent: "HEAD /"},
			{wait: 59, want: "hit | body=body 1 | X-B: 2 | Age: 59"},
		}},
		{"RFC 9111 §4.3.5, HEAD of another answer takes it away", nil, []turn{
			{origin: tagged, want: "uri-miss"}, {wait: 60, ask: "HEAD /", origin: maxAge + ` | Etag: "b"`, want: "stale"}, {origin: maxAge, want: "uri-miss"},
		}},
		{"RFC 9111 §4.3.5, HEAD of another length takes it away", nil, []turn{
			{origin: maxAge, want: "uri-miss"},
			{wait: 60, ask: "HEAD /", origin: maxAge + " | body=longer", want: "stale"},
			{wait: 1, ask: "HEAD /", want: "hit | Content-Length: 6"},
			{wait: 60, ask: "HEAD /", origin: maxAge + " | body=longer than before", want: "stale"},
			{origin: maxAge, want: "uri-miss"},
		}},
	})
}

// TestCacheStale is when what is stale is served.
func TestCacheStale(t *testing.T) {
	swr := "200 | Cache-Control: max-age=60, stale-while-revalidate=30"
	sie := "200 | Cache-Control: max-age=60, stale-if-error=30"
	failing := func(name, status string) cacheCase {
		return cacheCase{name, nil, []turn{
			{origin: sie, want: "uri-miss"},
			{wait: 60, origin: status, want: "stale | 200 | body=body 1 | Age: 60 | detail=stale-if-error"},
			{wait: 4, want: "hit | 200 | Age: 64"},
			{wait: 1, origin: maxAge, want: "stale | 200 | body=body " + map[bool]string{true: "4", false: "3"}[status == "fail"]},
		}}
	}
	neverStale := func(name, directives string) cacheCase {
		return cacheCase{name, []func(*zone.Zone){policy(zone.CachePolicy{StaleIfError: 600 * seconds, StaleWhileRevalidate: 600 * seconds})}, []turn{
			{origin: "200 | Cache-Control: " + directives, want: "uri-miss"}, {wait: 60, origin: "503", want: "stale | 503"}, {origin: "fail", want: "stale | 502"},
		}}
	}
	runCacheCases(t, []cacheCase{
		{"RFC 5861 §3, stale while it is validated", nil, []turn{
			{origin: swr + ` | Etag: "a"`, want: "uri-miss"},
			{wait: 60, origin: "304", want: "hit | 200 | body=body 1 | Age: 60 | ttl=0", sent: `If-None-Match: "a"`},
			{wait: 1, want: "hit | Age: 1"},
		}},
		{"RFC 9111 §4.3.3, what has no validator is overruled while it is served stale", nil, []turn{
			{origin: swr, want: "uri-miss"},
			{wait: 60, origin: "404 | Cache-Control: no-store", want: "hit | 200 | body=body 1"},
			{origin: "404 | Cache-Control: no-store", want: "uri-miss | 404"},
		}},
		{"RFC 9111 §4.3.3, what was overruled does not come back when the origin fails", nil, []turn{
			{origin: sie, want: "uri-miss"},
			{wait: 60, origin: "200 | Cache-Control: private", want: "stale | 200 | body=body 2"},
			{origin: "503", want: "uri-miss | 503"},
		}},
		{"RFC 5861 §4, HEAD of what the origin answers with an error", nil, []turn{
			{origin: sie, want: "uri-miss"},
			{wait: 60, ask: "HEAD /", origin: "503", want: "stale | 200 | body= | Age: 60 | detail=stale-if-error"},
			{origin: "503", want: "stale | 200 | body=body 1"},
		}},
		{"RFC 5861 §3, until the window ends", nil, []turn{
			{origin: swr, want: "uri-miss"},
			{wait: 89, origin: swr, want: "hit | body=body 1 | ttl=-29"},
			{want: "hit | body=body 2 | Age: 0"},
			{wait: 90, origin: swr, want: "stale | body=body 3"},
		}},
		{"RFC 5861 §3, the origin fails meanwhile: it is left alone for a while", nil, []turn{
			{origin: swr, want: "uri-miss"},
			{wait: 60, origin: "fail", want: "hit | body=body 1"},
			{wait: 4, want: "hit | body=body 1"},
			{wait: 1, origin: "503", want: "hit | body=body 1"},
			{wait: 4, want: "hit"},
			{wait: 1, origin: "500", want: "hit | body=body 1"},
			{wait: 4, want: "hit"},
			{wait: 1, origin: "501", want: "hit | body=body 1"},
			{wait: 4, want: "hit"},
			{wait: 1, origin: maxAge, want: "hit | body=body 1"},
			{want: "hit | body=body 7"},
		}},
		{"RFC 5861 §3, but for no longer than it may be served", nil, []turn{
			{origin: swr, want: "uri-miss"}, {wait: 88, origin: "fail", want: "hit | body=body 1"}, {wait: 1, want: "hit"}, {wait: 1, origin: "503", want: "stale | 503"},
		}},
		{"RFC 5861 §3, an answer that breaks off is a failure", nil, []turn{
			{origin: swr, want: "uri-miss"},
			{wait: 60, origin: "200 | Cache-Control: max-age=60 | Transfer-Encoding: chunked | broken", want: "hit | body=body 1"},
			{wait: 4, want: "hit | body=body 1"},
			{wait: 1, origin: maxAge, want: "hit | body=body 1"},
			{want: "hit | body=body 3"},
		}},
		{"RFC 5861 §3, HEAD too", nil, []turn{
			{origin: swr, want: "uri-miss"}, {wait: 60, ask: "HEAD /", origin: swr, want: "hit", sent: "GET /"}, {want: "hit | body=body 2"},
		}},
		{"RFC 5861 §3, the conditions of a client are not those of the validation", nil, []turn{
			{origin: swr + ` | Etag: "a"`, want: "uri-miss"}, {wait: 60, ask: `GET / | If-None-Match: "z" | Range: bytes=0-1`, origin: "304", want: "hit | 206", sent: `If-None-Match: "a" | -Range`}, {want: "hit | Age: 0"},
		}},
		{"RFC 5861 §3, as the zone's policy says", []func(*zone.Zone){policy(zone.CachePolicy{StaleWhileRevalidate: 30 * seconds})}, []turn{
			{origin: maxAge, want: "uri-miss"}, {wait: 89, origin: maxAge, want: "hit | body=body 1"}, {want: "hit | body=body 2"},
		}},
		{"RFC 5861 §3, the answer's word is before the zone's", []func(*zone.Zone){policy(zone.CachePolicy{StaleWhileRevalidate: 300 * seconds})}, []turn{
			{origin: swr, want: "uri-miss"}, {wait: 90, origin: maxAge, want: "stale"},
		}},
		{"RFC 5861 §3, a rule's word is before the answer's", []func(*zone.Zone){cacheRule(`true`, zone.Parameters{StaleWhileRevalidate: 300 * seconds})}, []turn{
			{origin: swr, want: "uri-miss"}, {wait: 90, origin: maxAge, want: "hit"}, {want: "hit | body=body 2"},
		}},
		failing("RFC 5861 §4, 500", "500"), failing("RFC 5861 §4, 502", "502"), failing("RFC 5861 §4, 503", "503"), failing("RFC 5861 §4, 504", "504"),
		failing("RFC 5861 §4, no answer", "fail"),
		{"RFC 5861 §4, until the window ends", nil, []turn{
			{origin: sie, want: "uri-miss"}, {wait: 89, origin: "503", want: "stale | 200"}, {wait: 1, origin: "503", want: "stale | 503"},
		}},
		{"RFC 5861 §4, not 501", nil, []turn{{origin: sie, want: "uri-miss"}, {wait: 60, origin: "501", want: "stale | 501"}}},
		{"RFC 5861 §4, not 404", nil, []turn{{origin: sie, want: "uri-miss"}, {wait: 60, origin: "404", want: "stale | 404"}}},
		{"RFC 5861 §4, an error that says how long it is fresh does not replace it", nil, []turn{
			{origin: sie, want: "uri-miss"}, {wait: 60, origin: "503 | Cache-Control: max-age=600", want: "stale | 200 | body=body 1"}, {wait: 5, origin: maxAge, want: "stale | body=body 3"},
		}},
		{"RFC 5861 §4, HEAD too", nil, []turn{
			{origin: sie, want: "uri-miss"}, {wait: 60, ask: "HEAD /", origin: "fail", want: "stale | 200 | Content-Length: 6"},
		}},
		{"RFC 5861 §4, a client's condition", nil, []turn{
			{origin: sie + ` | Etag: "a"`, want: "uri-miss"}, {wait: 60, ask: `GET / | If-None-Match: "a"`, origin: "503", want: "stale | 304"},
		}},
		{"RFC 5861 §4, as the zone's policy says", []func(*zone.Zone){policy(zone.CachePolicy{StaleIfError: 30 * seconds})}, []turn{
			{origin: maxAge, want: "uri-miss"}, {wait: 60, origin: "503", want: "stale | 200"},
		}},
		{"RFC 5861 §4, as a rule says", []func(*zone.Zone){cacheRule(`true`, zone.Parameters{StaleIfError: 30 * seconds})}, []turn{
			{origin: maxAge + ", stale-if-error=0", want: "uri-miss"}, {wait: 60, origin: "503", want: "stale | 200"},
		}},
		{"RFC 5861 §4, what is fresh for no time lasts for it", nil, []turn{
			{origin: "200 | Cache-Control: max-age=0, stale-if-error=30", want: "uri-miss | stored"}, {origin: "503", want: "stale | 200 | body=body 1"},
		}},
		neverStale("RFC 9111 §5.2.2.2, must-revalidate", "max-age=60, must-revalidate"),
		neverStale("RFC 9111 §5.2.2.8, proxy-revalidate", "max-age=60, proxy-revalidate"),
		neverStale("RFC 9111 §4.2.4, must-revalidate with both windows", "max-age=60, must-revalidate, stale-while-revalidate=60, stale-if-error=60"),
		{"RFC 9111 §5.2.2.4, no-cache is not served stale", nil, []turn{
			{origin: `200 | Cache-Control: no-cache, stale-if-error=60 | Etag: "a"`, want: "uri-miss"}, {origin: "503", want: "stale | 503"},
		}},
		{"RFC 9111 §4.2.4, s-maxage with a window of its own", nil, []turn{
			{origin: "200 | Cache-Control: s-maxage=60, stale-while-revalidate=30", want: "uri-miss"}, {wait: 60, origin: maxAge, want: "hit"}, {want: "hit | body=body 2"},
		}},
		{"RFC 9111 §4.2.4, nobody allows it", nil, []turn{{origin: maxAge, want: "uri-miss"}, {wait: 60, origin: "503", want: "stale | 503"}, {origin: "fail", want: "stale | 502"}}},
	})
}

// TestCacheTellsTheLength: who makes the cache fetch is told the length that the origin told, though the body is still on its way.
func TestCacheTellsTheLength(t *testing.T) {
	const long = 300_000
	o := startOrigin(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=60")
		w.Header().Set("Content-Length", strconv.Itoa(long))
		w.Write([]byte("begins")) //nolint:errcheck // the client's answer tells
		w.(http.Flusher).Flush()
		w.Write(make([]byte, long-len("begins"))) //nolint:errcheck // likewise
	})
	n := startNode(t, func(c *Config) { c.Cache = cache.New(cache.MinMemory) })
	n.publish(site(o.address()))
	for _, what := range []string{"miss", "hit"} {
		got := n.get("/long")
		if got.status != 200 || len(got.body) != long || got.header.Get("Content-Length") != strconv.Itoa(long) {
			t.Errorf("%s: %d, %d bytes, Content-Length %q, %s", what, got.status, len(got.body), got.header.Get("Content-Length"), got.header.Get("Cache-Status"))
		}
	}
}
