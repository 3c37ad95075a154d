package web

import (
	"testing"

	"github.com/guardyn-edge/guardyn/zone"
)

// TestCacheTargeted is CDN-Cache-Control (RFC 9213).
func TestCacheTargeted(t *testing.T) {
	runCacheCases(t, []cacheCase{
		fresh("RFC 9213 §2.2, before Cache-Control", "200 | CDN-Cache-Control: max-age=60 | Cache-Control: max-age=10", 60),
		fresh("RFC 9213 §2.2, before Expires", "200 | CDN-Cache-Control: max-age=60 | Expires: now10", 60),
		fresh("RFC 9213 §2.2, no-store of Cache-Control is for others", "200 | CDN-Cache-Control: max-age=60 | Cache-Control: no-store", 60),
		fresh("RFC 9213 §2.2, private of Cache-Control too", "200 | CDN-Cache-Control: max-age=60 | Cache-Control: private", 60),
		notStored("RFC 9213 §2.2, its no-store", "200 | CDN-Cache-Control: no-store | Cache-Control: max-age=60"),
		notStored("RFC 9213 §2.2, its private", "200 | CDN-Cache-Control: private | Cache-Control: max-age=60"),
		notStored("RFC 9213 §2.2, its private with fields", `200 | CDN-Cache-Control: private="x", max-age=60`),
		fresh("RFC 9213 §2.1, parameters are passed over", "200 | CDN-Cache-Control: max-age=60;a=1", 60),
		fresh("RFC 9213 §2.1, the last of two", "200 | CDN-Cache-Control: max-age=10, max-age=60", 60),
		fresh("RFC 9213 §2.1, over two lines", "200 | CDN-Cache-Control: public | CDN-Cache-Control: max-age=60", 60),
		fresh("RFC 9213 §2.1, s-maxage", "200 | CDN-Cache-Control: max-age=10, s-maxage=60", 60),
		fresh("RFC 9213 §2.1, what is malformed is as if it were not there", "200 | CDN-Cache-Control: max-age=, ; | Cache-Control: max-age=60", 60),
		fresh("RFC 9213 §2.1, a name in capitals is malformed", "200 | CDN-Cache-Control: Max-Age=10 | Cache-Control: max-age=60", 60),
		fresh("RFC 9213 §2.1, nothing is as if it were not there", "200 | CDN-Cache-Control:  | Cache-Control: max-age=60", 60),
		notStored("RFC 9213 §2.1, an age of another type is passed over", `200 | CDN-Cache-Control: max-age="60"`),
		notStored("RFC 9213 §2.1, a fraction", "200 | CDN-Cache-Control: max-age=60.5"),
		fresh("RFC 9651 §3.2, a false member is none", "200 | CDN-Cache-Control: no-store=?0, max-age=60", 60),
		notStored("RFC 9213 §2.2, an age below zero", "200 | CDN-Cache-Control: max-age=-60 | Cache-Control: max-age=60"),
		{"RFC 9213 §2.2, stale windows of Cache-Control do not count", nil, []turn{
			{origin: "200 | CDN-Cache-Control: max-age=60 | Cache-Control: stale-if-error=600", want: "uri-miss"}, {wait: 60, origin: "503", want: "stale | 503"},
		}},
		{"RFC 9213 §2.2, its own do", nil, []turn{
			{origin: "200 | CDN-Cache-Control: max-age=60, stale-if-error=600", want: "uri-miss"}, {wait: 60, origin: "503", want: "stale | 200"},
		}},
		{"RFC 9213 §2.2, it is passed on", nil, []turn{
			{origin: "200 | CDN-Cache-Control: max-age=60", want: "uri-miss | CDN-Cache-Control: max-age=60"}, {want: "hit | CDN-Cache-Control: max-age=60"},
		}},
	})
}

// TestCacheStatus is Cache-Status (RFC 9211).
func TestCacheStatus(t *testing.T) {
	runCacheCases(t, []cacheCase{
		{"RFC 9211 §2, a miss that is stored", nil, []turn{{origin: maxAge, want: "uri-miss | Cache-Status: guardyn; fwd=uri-miss; stored; ttl=60"}}},
		{"RFC 9211 §2, a miss that is not", nil, []turn{{origin: "200 | Cache-Control: private", want: "uri-miss | Cache-Status: guardyn; fwd=uri-miss; detail=private"}}},
		{"RFC 9211 §2.1, a hit", nil, []turn{{origin: maxAge, want: "uri-miss"}, {wait: 7, want: "hit | Cache-Status: guardyn; hit; ttl=53"}}},
		{"RFC 9211 §2, behind another cache's", nil, []turn{
			{origin: maxAge + ` | Cache-Status: origin; hit | Cache-Status: other; fwd=miss`, want: "uri-miss | Cache-Status: origin; hit, other; fwd=miss, guardyn; fwd=uri-miss; stored; ttl=60"},
			{want: "hit | Cache-Status: origin; hit, other; fwd=miss, guardyn; hit; ttl=60"},
			{want: "hit | Cache-Status: origin; hit, other; fwd=miss, guardyn; hit; ttl=60"},
		}},
		{"RFC 9211 §2.3, a validation", nil, []turn{
			{origin: maxAge + ` | Etag: "a"`, want: "uri-miss"}, {wait: 60, origin: "304", want: "stale | Cache-Status: guardyn; fwd=stale; fwd-status=304; stored; ttl=60"},
		}},
		{"RFC 9211 §2.3, an error", nil, []turn{
			{origin: maxAge + ", stale-if-error=60", want: "uri-miss"}, {wait: 65, origin: "503", want: "stale | Cache-Status: guardyn; fwd=stale; fwd-status=503; ttl=-5; detail=stale-if-error"},
		}},
		{"RFC 9211 §2.2, a request that is not the cache's", nil, []turn{{ask: "GET / | X-Original-URL: /admin", origin: maxAge, want: "bypass | Cache-Status: guardyn; fwd=bypass; detail=override"}}},
		{"RFC 9211 §2, the node's own errors", nil, []turn{{origin: "fail", want: "uri-miss | 502 | Cache-Status: guardyn; fwd=uri-miss"}}},
		{"RFC 9211 §2.2, a method", nil, []turn{{ask: "POST /", origin: maxAge, want: "method | Cache-Status: guardyn; fwd=method"}}},
		{"RFC 9211 §2.2, HEAD goes forward as GET does", nil, []turn{{ask: "HEAD /", origin: maxAge, want: "uri-miss | Cache-Status: guardyn; fwd=uri-miss"}}},
		{"RFC 9211 §2.2, neither hit nor forward", nil, []turn{{ask: "GET / | Cache-Control: only-if-cached", want: "guardyn; detail=only-if-cached | 504"}}},
		{"RFC 9211 §2.2, a rule", []func(*zone.Zone){cacheRule("true", zone.Parameters{Bypass: true})}, []turn{{origin: maxAge, want: "bypass | Cache-Status: guardyn; fwd=bypass; detail=rule"}}},
		{"RFC 9211 §2.1, a part of what is stored is a hit", nil, []turn{
			{origin: maxAge + " | body=0123456789", want: "uri-miss"},
			{ask: "GET / | Range: bytes=0-3", want: "hit | 206 | Cache-Status: guardyn; hit; ttl=60"},
			{ask: "GET / | Range: bytes=20-", want: "hit | 416 | Cache-Status: guardyn; hit; ttl=60"},
		}},
		{"RFC 9211 §2.1, so is that the client has it", nil, []turn{
			{origin: maxAge + ` | Etag: "a"`, want: "uri-miss"}, {ask: `GET / | If-None-Match: "a"`, want: "hit | 304 | Cache-Status: guardyn; hit; ttl=60"},
		}},
		{"RFC 9211 §2.1, and what is stale and goes without a question", nil, []turn{
			{origin: maxAge + ", stale-while-revalidate=60", want: "uri-miss"}, {wait: 65, origin: maxAge, want: "hit | Cache-Status: guardyn; hit; ttl=-5"},
		}},
		{"RFC 9211 §2.3, the origin sent what the client has", nil, []turn{
			{ask: `GET / | If-None-Match: "a"`, origin: maxAge + ` | Etag: "a"`, want: "uri-miss | 304 | Cache-Status: guardyn; fwd=uri-miss; fwd-status=200; stored; ttl=60"},
		}},
		{"RFC 9211 §2.3, a part of what the origin sent", nil, []turn{
			{ask: "GET / | Range: bytes=0-3", origin: maxAge + " | body=0123456789", want: "uri-miss | 206 | Cache-Status: guardyn; fwd=uri-miss; fwd-status=200; ttl=60"}, {want: "hit"},
		}},
		{"RFC 9211 §2.3, a part that is none of what the origin sent", nil, []turn{
			{ask: "GET / | Range: bytes=20-", origin: maxAge + " | body=0123456789", want: "uri-miss | 416 | Cache-Status: guardyn; fwd=uri-miss; fwd-status=200; ttl=60"}, {want: "hit"},
		}},
		{"RFC 9211 §2.3, one status for all", nil, []turn{{ask: `GET / | If-None-Match: "b"`, origin: maxAge + ` | Etag: "a"`, want: "uri-miss | 200 | Cache-Status: guardyn; fwd=uri-miss; stored; ttl=60"}}},
		{"RFC 9211 §2.3, a validation of what the client has", nil, []turn{
			{origin: maxAge + ` | Etag: "a"`, want: "uri-miss"},
			{wait: 60, ask: `GET / | If-None-Match: "a"`, origin: "304", want: "stale | 304 | Cache-Status: guardyn; fwd=stale; fwd-status=304; stored; ttl=60"},
		}},
		{"RFC 9211 §2.4, no lifetime of what a validation forbids to keep", nil, []turn{
			{origin: maxAge + ` | Etag: "a"`, want: "uri-miss"},
			{wait: 60, origin: "304 | Cache-Control: no-store", want: "stale | 200 | Cache-Status: guardyn; fwd=stale; fwd-status=304; detail=no-store"},
		}},
		{"RFC 9211 §2.4, of a heuristic", nil, []turn{{origin: "200 | Last-Modified: now-1000", want: "uri-miss | Cache-Status: guardyn; fwd=uri-miss; stored; ttl=100"}}},
		{"RFC 9211 §2.4, less the age that it came with", nil, []turn{{origin: maxAge + " | Age: 20", want: "uri-miss | Cache-Status: guardyn; fwd=uri-miss; stored; ttl=40"}}},
		{"RFC 9211 §2.4, what must be validated has none", nil, []turn{{origin: `200 | Cache-Control: no-cache | Etag: "a"`, want: "uri-miss | Cache-Status: guardyn; fwd=uri-miss; stored; ttl=0"}}},
		{"RFC 9111 §5.2.1.7, only-if-cached", nil, []turn{
			{ask: "GET / | Cache-Control: only-if-cached", want: "guardyn; detail=only-if-cached | 504"},
			{origin: maxAge, want: "uri-miss"},
			{ask: "GET / | Cache-Control: only-if-cached", want: "hit"},
			{wait: 60, ask: "GET / | Cache-Control: only-if-cached", want: "guardyn; detail=only-if-cached | 504"},
		}},
		ignored("no-cache"), ignored("no-store"), ignored("max-age=0"), ignored("min-fresh=100"),
		{"RFC 9111 §5.2.1.2, max-stale is the origin's to allow", nil, []turn{
			{origin: maxAge, want: "uri-miss"}, {wait: 60, ask: "GET / | Cache-Control: max-stale", origin: maxAge, want: "stale"},
		}},
		{"RFC 9111 §5.2.1.5, no-store of a request stores", nil, []turn{
			{ask: "GET / | Cache-Control: no-store", origin: maxAge, want: "uri-miss | stored"}, {want: "hit"},
		}},
		{"RFC 9111 §5.4, Pragma of a request", nil, []turn{{origin: maxAge, want: "uri-miss"}, {ask: "GET / | Pragma: no-cache", want: "hit"}}},
	})
}

// ignored: a directive by which a client would make the node ask the origin is advisory (RFC 9111 §5.2.1), and not followed.
func ignored(directive string) cacheCase {
	return cacheCase{"RFC 9111 §5.2.1, " + directive + " of a request", nil, []turn{
		{origin: maxAge, want: "uri-miss"}, {wait: 5, ask: "GET / | Cache-Control: " + directive, want: "hit"},
	}}
}

// TestCacheDeception: nothing is shared that is one client's, or that a client could choose for others.
func TestCacheDeception(t *testing.T) {
	bypass := func(name, ask string) cacheCase {
		return cacheCase{name, nil, []turn{
			{ask: ask, origin: maxAge, want: "bypass"}, {origin: maxAge, want: "uri-miss"}, {ask: ask, origin: maxAge, want: "bypass"}, {want: "hit | body=body 2"},
		}}
	}
	unkeyed := func(name, field string) cacheCase {
		return cacheCase{name, nil, []turn{
			{ask: "GET / | " + field + ": evil.example", origin: maxAge, want: "uri-miss", sent: map[bool]string{true: "X-Forwarded-Host: www.example.com", false: "-" + field}[field == "X-Forwarded-Host"]},
			{want: "hit"},
		}}
	}
	apart := func(name, first, second string) cacheCase {
		return cacheCase{name, nil, []turn{
			{ask: "GET " + first, origin: maxAge, want: "uri-miss"},
			{ask: "GET " + second, origin: maxAge, want: "uri-miss"},
			{ask: "GET " + first, want: "hit | body=body 1"},
			{ask: "GET " + second, want: "hit | body=body 2"},
		}}
	}
	runCacheCases(t, []cacheCase{
		bypass("X-HTTP-Method-Override", "GET / | X-HTTP-Method-Override: DELETE"),
		bypass("X-HTTP-Method", "GET / | X-HTTP-Method: DELETE"),
		bypass("X-Method-Override", "GET / | X-Method-Override: POST"),
		bypass("X-Original-Method", "GET / | X-Original-Method: POST"),
		bypass("X-Rewrite-URI", "GET / | X-Rewrite-URI: /admin"),
		bypass("Front-End-Https", "GET / | Front-End-Https: off"),
		bypass("X-Nextjs-Data", "GET / | X-Nextjs-Data: 1"),
		bypass("X-Invoke-Status", "GET / | X-Invoke-Status: 500"),
		bypass("X-Invoke-Query", "GET / | X-Invoke-Query: x"),
		bypass("X-Now-Route-Matches", "GET / | X-Now-Route-Matches: 1"),
		bypass("X-ARR-SSL", "GET / | X-ARR-SSL: 1"),
		bypass("X-Scheme", "GET / | X-Scheme: http"),
		bypass("X-Script-Name", "GET / | X-Script-Name: /evil"),
		bypass("X-Host-Override", "GET / | X-Host-Override: evil.example"),
		bypass("X-Original-Path", "GET / | X-Original-Path: /admin"),
		bypass("X-Middleware-Rewrite", "GET / | X-Middleware-Rewrite: /admin"),
		bypass("X-Backend-Host", "GET / | X-Backend-Host: evil.example"),
		bypass("X-Rewrite-Path", "GET / | X-Rewrite-Path: /admin"),
		bypass("X-Middleware-Rewrite with underscores", "GET / | X_Middleware_Rewrite: /admin"),
		bypass("Rsc", "GET / | RSC: 1"),
		bypass("X-Original-URL", "GET / | X-Original-URL: /admin"),
		bypass("X-Rewrite-URL", "GET / | X-Rewrite-URL: /admin"),
		bypass("X-Original-URL with underscores", "GET / | X_Original_URL: /admin"),
		bypass("X-Host", "GET / | X-Host: evil.example"),
		bypass("X-HTTP-Host-Override", "GET / | X-HTTP-Host-Override: evil.example"),
		bypass("a GET with a body", "GET / | body: x=1"),
		unkeyed("X-Forwarded-Host is the node's", "X-Forwarded-Host"),
		unkeyed("X-Forwarded-Server does not reach the origin", "X-Forwarded-Server"),
		unkeyed("X-Forwarded-Scheme does not reach the origin", "X-Forwarded-Scheme"),
		unkeyed("X-Forwarded-Prefix does not reach the origin", "X-Forwarded-Prefix"),
		{"a path that looks static is not", nil, []turn{
			{ask: "GET /account/x.css | Cookie: sid=1", origin: "200 | Content-Type: text/html", want: "uri-miss"},
			{ask: "GET /account/x.css", origin: "200 | Content-Type: text/html", want: "uri-miss | body=body 2"},
		}},
		{"a path that looks static, with cookies and Last-Modified", nil, []turn{
			{ask: "GET /account/x.css | Cookie: sid=1", origin: "200 | Last-Modified: now-1000", want: "uri-miss"}, {ask: "GET /account/x.css", origin: "200", want: "uri-miss"},
		}},
		{"Set-Cookie is not shared", nil, []turn{
			{origin: maxAge + " | Set-Cookie: sid=1", want: "uri-miss | Set-Cookie: sid=1"}, {origin: maxAge, want: "uri-miss | -Set-Cookie"}, {want: "hit | -Set-Cookie"},
		}},
		apart("an escaped slash is not a slash", "/a%2Fb", "/a/b"),
		apart("a semicolon", "/a;b", "/a"),
		apart("case counts", "/A", "/a"),
		apart("a question mark alone is none, an escaped one is", "/a%3Fb", "/a?b"),
		apart("a repeated parameter", "/?a=1&a=2", "/?a=2&a=1"),
		apart("an ampersand that is escaped", "/?a=1%26b=2", "/?a=1&b=2"),
		apart("a semicolon in a query", "/?a=1;b=2", "/?a=1&b=2"),
		apart("a backslash", "/a%5Cb", "/a/b"),
		{"forms of one path", nil, []turn{
			{ask: "GET /a/b?x", origin: maxAge, want: "uri-miss", sent: "GET /a/b?x"},
			{ask: "GET /a//b?x", want: "hit"},
			{ask: "GET /a/./b?x", want: "hit"},
			{ask: "GET /c/../a/b?x", want: "hit"},
			{ask: "GET /%61/b?x", want: "hit"},
			{ask: "GET http://www.example.com/a/b?x", want: "hit"},
		}},
	})
	t.Run("a key that is too long", func(t *testing.T) {
		n, o, _ := cachingNode(t)
		long := "/" + string(make([]byte, 0))
		for len(long) < 9000 {
			long += "aaaaaaaaaaaaaaaa"
		}
		for range 2 {
			o.next(maxAge)
			if got := n.get(long); ownCacheStatus(got.header) != "bypass" {
				t.Errorf("Cache-Status: %v", got.header["Cache-Status"])
			}
		}
		if n := n.config.Cache.Stats().Objects; n != 0 {
			t.Errorf("%d objects are stored", n)
		}
	})
	t.Run("hosts and schemes", func(t *testing.T) {
		n, o, _ := cachingNode(t)
		o.next(maxAge)
		for i, host := range []string{"www.example.com", "a.wild.example.com", "b.wild.example.com", "WWW.example.com.:80"} {
			got := n.ask("GET", host, "/")
			if want := map[bool]string{true: "hit", false: "uri-miss"}[i == 3]; ownCacheStatus(got.header) != want {
				t.Errorf("%s: %v, want %s", host, got.header["Cache-Status"], want)
			}
		}
	})
}
