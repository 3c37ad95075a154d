package api_test

import (
	"net/http"
	"strings"
	"testing"
)

// Every malformed request is refused with words that name what is wrong.
func TestMalformedRequests(t *testing.T) {
	p := newPlane(t)
	_, err := p.client("editor").CreateZone(t.Context(), apiNewZone("example.com"))
	p.must(err)
	records := "/v1/zones/example.com/records"
	big := strings.Repeat(" ", 1<<20)
	for _, row := range []struct {
		name, method, target, body string
		headers                    []string
		status                     int
		says                       string
	}{
		{name: "empty body", method: "POST", target: records, status: 400, says: "malformed_json"},
		{name: "not JSON", method: "POST", target: records, body: "name=www", status: 400, says: "malformed_json"},
		{name: "cut short", method: "POST", target: records, body: `{"name":"www"`, status: 400, says: "malformed_json"},
		{name: "two values", method: "POST", target: records, body: `{"name":"a","type":"A","content":"192.0.2.1"}{}`, status: 400, says: "malformed_json"},
		{name: "trailing text", method: "POST", target: records, body: `{"name":"a","type":"A","content":"192.0.2.1"} x`, status: 400, says: "malformed_json"},
		{name: "repeated member", method: "POST", target: records, body: `{"name":"a","name":"b"}`, status: 400, says: "name"},
		{name: "bad UTF-8", method: "POST", target: records, body: "{\"name\":\"\xff\"}", status: 400, says: "UTF-8"},
		{name: "lone surrogate", method: "POST", target: records, body: `{"name":"\ud800"}`, status: 400, says: "malformed_json"},
		{name: "deep", method: "POST", target: records, body: strings.Repeat(`{"name":`, 20_000), status: 400, says: "malformed_json"},
		{name: "unknown member", method: "POST", target: records, body: `{"nam":"www"}`, status: 422, says: `\"nam\"`},
		{name: "other case", method: "POST", target: records, body: `{"Name":"www"}`, status: 422, says: `\"Name\"`},
		{name: "wrong type", method: "POST", target: records, body: `{"name":7}`, status: 422, says: "/name"},
		{name: "fraction", method: "POST", target: records, body: `{"name":"a","type":"A","content":"192.0.2.1","ttl":1.5}`, status: 422, says: "/ttl"},
		{name: "negative", method: "POST", target: records, body: `{"name":"a","type":"A","content":"192.0.2.1","ttl":-1}`, status: 422, says: "/ttl"},
		{name: "over 32 bits", method: "POST", target: records, body: `{"name":"a","type":"A","content":"192.0.2.1","ttl":4294967296}`, status: 422, says: "/ttl"},
		{name: "array", method: "POST", target: records, body: `[]`, status: 422, says: "problems"},
		{name: "unknown member deep", method: "PUT", target: "/v1/zones/example.com/pools/main", body: `{"origins":[{"name":"a","adress":"x"}]}`, status: 422, says: "adress"},
		{name: "too large", method: "POST", target: records, body: `{"name":"` + big + `"}`, status: 413, says: "too_large"},
		{name: "too large, chunked", method: "POST", target: records, headers: []string{"Transfer-Encoding: chunked"}, body: "", status: 413, says: "too_large"},
		{name: "import said to be too large", method: "POST", target: "/v1/zones/example.com/import", headers: []string{"Content-Length: 67108865"}, status: 413, says: "67108864"},
		{name: "form", method: "POST", target: records, body: "{}", headers: []string{"Content-Type: application/x-www-form-urlencoded"}, status: 415, says: "application/json"},
		{name: "compressed", method: "POST", target: records, body: "{}", headers: []string{"Content-Encoding: gzip"}, status: 415, says: "Content-Encoding"},
		{name: "import of JSON", method: "POST", target: "/v1/zones/example.com/import", body: "{}", headers: []string{"Content-Type: application/json"}, status: 415, says: "text/dns"},
		{name: "unknown parameter", method: "GET", target: records + "?nmae=www", status: 400, says: "nmae"},
		{name: "two unknown parameters", method: "GET", target: records + "?b=1&a=1", status: 400, says: "parameter a"},
		{name: "repeated parameter", method: "GET", target: records + "?name=a&name=b", status: 400, says: "more than once"},
		{name: "bad escape", method: "GET", target: records + "?name=%zz", status: 400, says: "bad_query"},
		{name: "limit", method: "GET", target: records + "?limit=1001", status: 400, says: "1001"},
		{name: "limit zero", method: "GET", target: "/v1/zones?limit=0", status: 400, says: "limit"},
		{name: "limit spelled oddly", method: "GET", target: "/v1/zones?limit=+5", status: 400, says: "limit"},
		{name: "cursor", method: "GET", target: "/v1/zones?cursor=!!", status: 400, says: "cursor"},
		{name: "flag", method: "POST", target: "/v1/zones/example.com/import?replace=yes", body: "x", status: 400, says: "replace"},
		{name: "condition where none is honoured", method: "DELETE", target: "/v1/zones/example.com", headers: []string{`If-Match: "1"`}, status: 400, says: "bad_condition"},
		{name: "two conditions", method: "DELETE", target: "/v1/zones/example.com/pools/x", headers: []string{`If-Match: "1"`, `If-None-Match: *`}, status: 400, says: "bad_condition"},
		{name: "weak tag", method: "PUT", target: "/v1/zones/example.com/lists/x", body: `{"kind":"ip"}`, headers: []string{`If-Match: W/"1"`}, status: 412, says: "precondition_failed"},
		{name: "tag of nobody", method: "PUT", target: "/v1/zones/example.com/lists/x", body: `{"kind":"ip"}`, headers: []string{`If-Match: "abc"`}, status: 412, says: "precondition_failed"},
	} {
		t.Run(row.name, func(t *testing.T) {
			as := "editor"
			body := row.body
			var a answer
			if row.name == "too large, chunked" {
				a = p.raw("POST " + records + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer " + p.tokens[as] +
					"\r\nTransfer-Encoding: chunked\r\n\r\n100001\r\n" + strings.Repeat(" ", 0x100001) + "\r\n0\r\n\r\n")
			} else {
				a = p.request(as, row.method, row.target, body, row.headers...)
			}
			if a.status != row.status || !strings.Contains(a.body, row.says) {
				t.Errorf("%d %s\nwant %d with %q", a.status, a.body, row.status, row.says)
			}
			if ct := a.header.Get("Content-Type"); ct != "application/problem+json" {
				t.Errorf("type %q", ct)
			}
			if a.header.Get("Cache-Control") != "no-store" || a.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("headers %v", a.header)
			}
		})
	}
	z, err := p.client("viewer").Zone(t.Context(), "example.com")
	p.must(err)
	if z.Records != 0 {
		t.Errorf("malformed requests added %d records", z.Records)
	}
	if a := p.request("viewer", http.MethodGet, "/v1/zones/example.com", ""); a.header.Get("ETag") == "" || a.header.Get("Cache-Control") != "no-store" {
		t.Errorf("headers of a good answer: %v", a.header)
	}
}

// What users name things is inert in answers.
func TestControlCharactersAreInert(t *testing.T) {
	p := newPlane(t)
	a := p.request("editor", "POST", "/v1/zones", `{"name":"\u001b[31m\u009b\u202e.example"}`)
	if a.status != http.StatusUnprocessableEntity {
		t.Fatal(a.wire)
	}
	for _, r := range []string{"\x1b", "\u009b", "\u202e"} {
		if strings.Contains(a.body, r) {
			t.Errorf("%q in %s", r, a.body)
		}
	}
}
