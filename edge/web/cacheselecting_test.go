package web

import (
	"testing"
)

// TestCacheVary is which of several answers a request selects.
func TestCacheVary(t *testing.T) {
	const vary = maxAge + " | Vary: "
	same := func(name, field, first, second string) cacheCase {
		return cacheCase{name, nil, []turn{
			{ask: "GET / | " + first, origin: vary + field, want: "uri-miss"}, {ask: "GET / | " + second, want: "hit | body=body 1"},
		}}
	}
	differ := func(name, field, first, second string) cacheCase {
		return cacheCase{name, nil, []turn{
			{ask: "GET / | " + first, origin: vary + field, want: "uri-miss"},
			{ask: "GET / | " + second, origin: vary + field, want: "vary-miss"},
			{ask: "GET / | " + first, want: "hit | body=body 1"},
			{ask: "GET / | " + second, want: "hit | body=body 2"},
		}}
	}
	const a, none = "X-A: 1", "X-None: 1"
	runCacheCases(t, []cacheCase{
		same("RFC 9111 §4.1, the same", "X-A", a, a),
		differ("RFC 9111 §4.1, another", "X-A", a, "X-A: 2"),
		differ("RFC 9111 §4.1, absent", "X-A", a, none),
		same("RFC 9111 §4.1, absent twice", "X-A", none, none),
		differ("RFC 9111 §4.1, empty is not absent", "X-A", "X-A: ", none),
		same("RFC 9111 §4.1, the name in another case", "x-a", a, "x-A: 1"),
		differ("RFC 9111 §4.1, a value in another case", "X-A", "X-A: b", "X-A: B"),
		differ("RFC 9111 §4.1, one of two differs", "X-A, X-B", "X-A: 1 | X-B: 1", "X-A: 1 | X-B: 2"),
		same("RFC 9111 §4.1, another field", "X-A", "X-A: 1 | X-B: 1", "X-A: 1 | X-B: 2"),
		same("RFC 9111 §4.1, over two lines", "X-A", "X-A: 1 | X-A: 2", "X-A: 1,2"),
		same("RFC 9111 §4.1, white space", "X-A", "X-A: 1, 2", "X-A: 1  ,2"),
		differ("RFC 9111 §4.1, another order", "X-A", "X-A: 1, 2", "X-A: 2, 1"),
		differ("RFC 9111 §4.1, Cookie", "Cookie", "Cookie: a=1", "Cookie: a=2"),
		differ("RFC 9110 §12.5.3, other codings", "Accept-Encoding", "Accept-Encoding: gzip", "Accept-Encoding: br"),
		same("RFC 9110 §12.5.3, in another order", "Accept-Encoding", "Accept-Encoding: gzip, br", "Accept-Encoding: br;q=0.8,GZIP"),
		same("RFC 9110 §12.5.3, codings that nobody has", "Accept-Encoding", "Accept-Encoding: gzip, foo", "Accept-Encoding: gzip"),
		same("RFC 9110 §12.4.2, refused is absent", "Accept-Encoding", "Accept-Encoding: gzip, br;q=0", "Accept-Encoding: gzip"),
		same("RFC 9110 §12.5.3, none", "Accept-Encoding", none, "Accept-Encoding: identity"),
		differ("RFC 9110 §12.5.3, identity refused", "Accept-Encoding", "Accept-Encoding: gzip, identity;q=0", "Accept-Encoding: gzip"),
		differ("RFC 9110 §12.5.3, an asterisk", "Accept-Encoding", "Accept-Encoding: *", "Accept-Encoding: gzip"),
		differ("RFC 9111 §4.1, the origin forgot Vary of what it compressed", "X-None | Content-Encoding: gzip", "Accept-Encoding: gzip", "Accept-Encoding: br"),
		{"RFC 9111 §4.1, two lines of Vary", nil, []turn{
			{ask: "GET / | X-A: 1 | X-B: 1", origin: maxAge + " | Vary: X-A | Vary: X-B", want: "uri-miss"}, {ask: "GET / | X-A: 1 | X-B: 2", origin: maxAge, want: "vary-miss"},
		}},
		{"RFC 9111 §4.1, the origin changes what it varies by", nil, []turn{
			{ask: "GET / | X-A: 1", origin: vary + "X-A", want: "uri-miss"},
			{ask: "GET / | X-A: 2 | X-B: 1", origin: vary + "X-B", want: "vary-miss"},
			{ask: "GET / | X-B: 1", want: "hit | body=body 2"},
			{ask: "GET / | X-A: 1", origin: vary + "X-B", want: "vary-miss | body=body 3"},
			{ask: "GET / | X-A: 1", want: "hit | body=body 3"},
		}},
		{"RFC 9111 §4.1, nothing of before the origin varied, though it may be served while it is validated", nil, []turn{
			{origin: "200 | Cache-Control: max-age=60, stale-while-revalidate=30", want: "uri-miss"},
			{wait: 60, ask: "GET / | Cookie: b", origin: vary + "Cookie", want: "hit | body=body 1"},
			{ask: "GET / | Cookie: b", want: "hit | body=body 2"},
			{ask: "GET / | Cookie: a", origin: vary + "Cookie", want: "vary-miss | body=body 3"},
		}},
		{"RFC 9111 §4.1, nor when the origin fails", nil, []turn{
			{origin: "200 | Cache-Control: max-age=60, stale-if-error=30", want: "uri-miss"},
			{wait: 60, ask: "GET / | Cookie: b", origin: vary + "Cookie", want: "stale | body=body 2"},
			{ask: "GET / | Cookie: a", origin: "503", want: "vary-miss | 503"},
		}},
		{"RFC 9111 §4.1, by one field more", nil, []turn{
			{ask: "GET / | X-A: 1 | Cookie: a", origin: vary + "X-A", want: "uri-miss"},
			{ask: "GET / | X-A: 2 | Cookie: b", origin: vary + "X-A, Cookie", want: "vary-miss"},
			{ask: "GET / | X-A: 1 | Cookie: b", origin: vary + "X-A, Cookie", want: "vary-miss | body=body 3"},
		}},
		{"RFC 9111 §4.3.4, a 304 that varies from now on", nil, []turn{
			{origin: maxAge + ` | Etag: "1"`, want: "uri-miss"},
			{wait: 60, ask: "GET / | Cookie: b", origin: "304 | Cache-Control: max-age=60 | Vary: Cookie", want: "stale | body=body 1"},
			{ask: "GET / | Cookie: b", want: "hit | body=body 1"},
			{ask: "GET / | Cookie: a", origin: vary + "Cookie", want: "vary-miss | body=body 3", sent: "-If-None-Match"},
		}},
		{"RFC 9111 §4.3.5, a HEAD that varies from now on", nil, []turn{
			{ask: "GET / | X-A: 2", origin: vary + `X-A | Etag: "2"`, want: "uri-miss"},
			{wait: 30, ask: "GET / | X-A: 1", origin: vary + "X-A", want: "vary-miss"},
			{wait: 30, ask: "HEAD / | X-A: 2 | Cookie: b", origin: vary + `Cookie | Etag: "2"`, want: "stale"},
			{ask: "GET / | X-A: 2 | Cookie: b", want: "hit | body=body 1"},
			{ask: "GET / | X-A: 1", origin: vary + "Cookie", want: "vary-miss | body=body 4"},
		}},
		{"RFC 9111 §4.1, without Vary from now on", nil, []turn{
			{ask: "GET / | X-A: 1", origin: vary + "X-A", want: "uri-miss"}, {ask: "GET / | X-A: 2", origin: maxAge, want: "vary-miss"}, {ask: "GET / | X-A: 3", want: "hit | body=body 2"},
		}},
		{"RFC 9111 §4.3.4, only what was validated is made fresh", nil, []turn{
			{ask: "GET / | X-A: 1", origin: vary + `X-A | Etag: "1"`, want: "uri-miss"},
			{ask: "GET / | X-A: 2", origin: vary + `X-A | Etag: "2"`, want: "vary-miss"},
			{wait: 60, ask: "GET / | X-A: 2", origin: "304", want: "stale | body=body 2", sent: `If-None-Match: "2"`},
			{ask: "GET / | X-A: 2", want: "hit"},
			{ask: "GET / | X-A: 1", origin: "304", want: "stale | body=body 1", sent: `If-None-Match: "1"`},
		}},
	})
}

// TestCacheRanges is what of a stored answer a request for a part gets.
func TestCacheRanges(t *testing.T) {
	const digits = maxAge + ` | Etag: "a" | Last-Modified: at-1000 | body=0123456789`
	part := func(name, value, want string) cacheCase {
		return cacheCase{name, nil, []turn{{origin: digits, want: "uri-miss"}, {ask: "GET / | Range: " + value, want: "hit | " + want}}}
	}
	const whole = "200 | body=0123456789 | -Content-Range"
	runCacheCases(t, []cacheCase{
		part("RFC 9110 §14.1.2, the first", "bytes=0-3", `206 | body=0123 | Content-Range: bytes 0-3/10 | Content-Length: 4 | Etag: "a"`),
		part("RFC 9110 §14.1.2, the middle", "bytes=3-5", "206 | body=345 | Content-Range: bytes 3-5/10"),
		part("RFC 9110 §14.1.2, one", "bytes=9-9", "206 | body=9"),
		part("RFC 9110 §14.1.2, to the end", "bytes=7-", "206 | body=789 | Content-Range: bytes 7-9/10"),
		part("RFC 9110 §14.1.2, the last", "bytes=-3", "206 | body=789"),
		part("RFC 9110 §14.1.2, more than there is", "bytes=7-100", "206 | body=789 | Content-Range: bytes 7-9/10"),
		part("RFC 9110 §14.1.2, a suffix longer than it", "bytes=-100", "206 | body=0123456789"),
		part("RFC 9110 §14.1.2, far beyond any integer", "bytes=7-99999999999999999999999", "206 | body=789"),
		part("RFC 9110 §15.5.17, behind the end", "bytes=10-", "416 | Content-Range: bytes */10"),
		part("RFC 9110 §15.5.17, a suffix of none", "bytes=-0", "416"),
		part("RFC 9110 §14.1.1, the wrong way round", "bytes=5-3", whole),
		part("RFC 9110 §14.2, no number", "bytes=a-b", whole),
		part("RFC 9110 §14.2, nothing", "bytes=", whole),
		part("RFC 9110 §14.2, a dash", "bytes=-", whole),
		part("RFC 9110 §14.2, another unit", "lines=0-3", whole),
		part("RFC 9110 §14.2, several: the whole", "bytes=0-1,4-5", whole),
		part("RFC 9110 §14.1, the unit in another case", "Bytes=0-3", "206 | body=0123"),
		{"RFC 9110 §14.2, HEAD has no part", nil, []turn{{origin: digits, want: "uri-miss"}, {ask: "HEAD / | Range: bytes=0-3", want: "hit | 200 | Content-Length: 10"}}},
		part("RFC 9110 §13.1.5, If-Range that matches", `bytes=0-3 | If-Range: "a"`, "206 | body=0123"),
		part("RFC 9110 §13.1.5, another", `bytes=0-3 | If-Range: "b"`, whole),
		part("RFC 9110 §13.1.5, a weak one", `bytes=0-3 | If-Range: W/"a"`, whole),
		part("RFC 9110 §13.1.5, a date", "bytes=0-3 | If-Range: at-1000", "206 | body=0123"),
		part("RFC 9110 §13.1.5, a later date", "bytes=0-3 | If-Range: at-999", whole),
		part("RFC 9110 §13.2.2, a condition comes first", `bytes=0-3 | If-None-Match: "a"`, "304"),
		{"RFC 9110 §8.8.2.2, a date that is not strong", nil, []turn{
			{origin: maxAge + " | Last-Modified: at0 | body=0123456789", want: "uri-miss"}, {ask: "GET / | Range: bytes=0-3 | If-Range: at0", want: "hit | " + whole},
		}},
		{"RFC 9110 §14.2, not of another status", nil, []turn{
			{origin: "404 | Cache-Control: max-age=60 | body=0123456789", want: "uri-miss"}, {ask: "GET / | Range: bytes=0-3", want: "hit | 404 | body=0123456789"},
		}},
		{"RFC 9111 §3.3, the whole is fetched for a part", nil, []turn{
			{ask: "GET / | Range: bytes=0-3", origin: digits, want: "uri-miss | 206 | body=0123 | fwd-status=200", sent: "-Range"}, {want: "hit | body=0123456789"},
		}},
		{"RFC 9111 §3.3, of what has no length too", nil, []turn{
			{ask: "GET / | Range: bytes=0-3", origin: digits + " | Transfer-Encoding: chunked", want: "uri-miss | 206 | body=0123"}, {want: "hit | body=0123456789"},
		}},
		{"RFC 9111 §3.3, what is not stored is asked for as it came", nil, []turn{
			{ask: "GET / | Range: bytes=0-3", origin: "206 | Content-Range: bytes 0-3/10 | body=0123", want: "uri-miss | 206 | body=0123"},
			{ask: "GET / | Range: bytes=0-3", origin: "206 | Content-Range: bytes 0-3/10 | body=0123", want: "uri-miss | 206 | body=0123", sent: "Range: bytes=0-3"},
		}},
		{"RFC 9111 §3.3, what is stale is validated whole", nil, []turn{
			{origin: digits, want: "uri-miss"}, {wait: 60, ask: "GET / | Range: bytes=0-3", origin: "304", want: "stale | 206 | body=0123", sent: `-Range | If-None-Match: "a"`}, {want: "hit | body=0123456789"},
		}},
	})
}

// TestCacheInvalidation is what makes stored answers invalid.
func TestCacheInvalidation(t *testing.T) {
	after := func(name, ask, origin string, gone bool) cacheCase {
		tc := cacheCase{name, nil, []turn{{ask: "GET /a?x=1", origin: maxAge, want: "uri-miss"}, {ask: ask, origin: origin, want: "method"}}}
		if gone {
			tc.turns = append(tc.turns, turn{ask: "GET /a?x=1", origin: maxAge, want: "uri-miss"})
		} else {
			tc.turns = append(tc.turns, turn{ask: "GET /a?x=1", want: "hit"})
		}
		return tc
	}
	runCacheCases(t, []cacheCase{
		after("RFC 9111 §4.4, POST", "POST /a?x=1", "200", true),
		after("RFC 9111 §4.4, PUT", "PUT /a?x=1", "204", true),
		after("RFC 9111 §4.4, DELETE", "DELETE /a?x=1", "200", true),
		after("RFC 9111 §4.4, PATCH", "PATCH /a?x=1", "200", true),
		after("RFC 9111 §4.4, a method that nobody knows", "FOO /a?x=1", "200", true),
		after("RFC 9111 §4.4, a redirect", "POST /a?x=1", "303", true),
		after("RFC 9111 §4.4, not when it failed", "POST /a?x=1", "500", false),
		after("RFC 9111 §4.4, not when it was refused", "POST /a?x=1", "403", false),
		after("RFC 9111 §4.4, not OPTIONS", "OPTIONS /a?x=1", "200", false),
		after("RFC 9111 §4.4, not another query", "POST /a?x=2", "200", false),
		after("RFC 9111 §4.4, Location", "POST /b", "201 | Location: /a?x=1", true),
		after("RFC 9111 §4.4, Location that is absolute", "POST /b", "201 | Location: http://www.example.com/a?x=1", true),
		after("RFC 9111 §4.4, Location that is relative", "POST /c", "201 | Location: a?x=1", true),
		after("RFC 9111 §4.4, Content-Location", "POST /b", "200 | Content-Location: /a?x=1", true),
		after("RFC 9111 §4.4, not of another host", "POST /b", "201 | Location: http://other.example.com/a?x=1", false),
		after("RFC 9111 §4.4, not when that failed", "POST /b", "500 | Location: /a?x=1", false),
	})
}
