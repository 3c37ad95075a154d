package web

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestCacheKeyByProtocol: by which protocol something is asked for is no part of the key; by which scheme is. What a client says by
// HTTP/2 in another form selects as the one form does.
func TestCacheKeyByProtocol(t *testing.T) {
	type ask struct {
		protocol string // h2, h1 over TLS, or plain
		line     string // method, host, target and fields, parted by " | "
	}
	const get = "GET www.example.com/a?x=1"
	for _, tc := range []struct {
		name          string
		first, second ask
		vary          string
		want          string
	}{
		{"HTTP/2, then HTTP/1.1", ask{"h2", get}, ask{"h1", get}, "", "hit"},
		{"HTTP/1.1, then HTTP/2", ask{"h1", get}, ask{"h2", get}, "", "hit"},
		{"twice by HTTP/2", ask{"h2", get}, ask{"h2", get}, "", "hit"},
		{"http is another scheme", ask{"plain", get}, ask{"h2", get}, "", "uri-miss"},
		{"https is another scheme", ask{"h2", get}, ask{"plain", get}, "", "uri-miss"},
		{"another query", ask{"h2", get}, ask{"h2", "GET www.example.com/a?x=2"}, "", "uri-miss"},
		{"another path", ask{"h2", get}, ask{"h2", "GET www.example.com/b?x=1"}, "", "uri-miss"},
		{"another form of the path", ask{"h2", get}, ask{"h2", "GET www.example.com/b/../a?x=1"}, "", "hit"},
		{"another host", ask{"h2", "GET a.wild.example.com/a"}, ask{"h2", "GET b.wild.example.com/a"}, "", "uri-miss"},
		{"a host in capitals", ask{"h2", get}, ask{"h2", "GET WWW.example.com/a?x=1"}, "", "hit"},
		{"HEAD", ask{"h2", get}, ask{"h2", "HEAD www.example.com/a?x=1"}, "", "hit"},
		{"a part", ask{"h2", get}, ask{"h2", get + " | Range: bytes=0-1"}, "", "hit"},
		{"a condition", ask{"h2", get}, ask{"h2", get + ` | If-None-Match: "a"`}, "", "hit"},
		{"Vary, the same", ask{"h1", get + " | X-A: 1"}, ask{"h2", get + " | X-A: 1"}, "X-A", "hit"},
		{"Vary, another", ask{"h1", get + " | X-A: 1"}, ask{"h2", get + " | X-A: 2"}, "X-A", "vary-miss"},
		{"Vary by cookies", ask{"h1", get + " | Cookie: a=1; b=2"}, ask{"h2", get + " | Cookie: a=1; b=2"}, "Cookie", "hit"},
		{"codings in another order", ask{"h1", get + " | Accept-Encoding: gzip, br"}, ask{"h2", get + " | Accept-Encoding: br, gzip"}, "Accept-Encoding", "hit"},
		{"other codings", ask{"h1", get + " | Accept-Encoding: gzip"}, ask{"h2", get + " | Accept-Encoding: br"}, "Accept-Encoding", "vary-miss"},
		{"Authorization", ask{"h1", get}, ask{"h2", get + " | Authorization: Basic eA=="}, "", "request"},
		{"another method by a field", ask{"h1", get}, ask{"h2", get + " | X-HTTP-Method-Override: DELETE"}, "", "bypass"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := startOrigin(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Cache-Control", "max-age=60")
				w.Header().Set("Etag", `"a"`)
				if tc.vary != "" {
					w.Header().Set("Vary", tc.vary)
				}
				io.WriteString(w, "body")
			})
			a := newAuthority(t)
			n := startNode(t, append(withCache(0), withTLS)...)
			n.publish(site(o.address(), tlsHost("www.example.com", a.issue(false, "www.example.com", "*.wild.example.com")), tlsHost("*.wild.example.com", a.issue(false, "*.wild.example.com"))))
			do := func(q ask) string {
				parts := strings.Split(q.line, " | ")
				method, where, _ := strings.Cut(parts[0], " ")
				url := "https://" + where
				if q.protocol == "plain" {
					url = "http://" + where
				}
				req, err := http.NewRequest(method, url, nil)
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range parts[1:] {
					name, value, _ := strings.Cut(f, ": ")
					req.Header.Set(name, value)
				}
				if req.Header.Get("Accept-Encoding") == "" {
					req.Header.Set("Accept-Encoding", "identity") // the client's own would differ
				}
				res, err := n.client(a, q.protocol == "h2").Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				if _, err := io.ReadAll(res.Body); err != nil || (res.ProtoMajor == 2) != (q.protocol == "h2") {
					t.Fatalf("%s, %v", res.Proto, err)
				}
				return ownCacheStatus(res.Header)
			}
			if got := do(tc.first); got != "uri-miss" {
				t.Fatalf("the first: %s", got)
			}
			if got := do(tc.second); got != tc.want {
				t.Errorf("the second: %s, want %s", got, tc.want)
			}
		})
	}
}
