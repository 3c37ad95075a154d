package web

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/guardyn-edge/guardyn/edge/function"
)

func TestFunctionAnswer(t *testing.T) {
	for _, tc := range []struct {
		name   string
		status int
		header http.Header
		body   string
		want   string
	}{
		{"what it says", 200, http.Header{"A": {"b"}}, "body", "map[A:[b] Content-Length:[4]] body true"},
		{"what ends at the hop", 200, http.Header{"Connection": {"x, Keep-Alive"}, "Keep-Alive": {"a"}, "X": {"a"}, "Trailer": {"a"}, "Transfer-Encoding": {"a"}, "Upgrade": {"a"}}, "", "map[Content-Length:[0]]  true"},
		{"what is the node's", 200, http.Header{"X-Guardyn-Version": {"7"}}, "", "map[Content-Length:[0]]  true"},
		{"204", 204, http.Header{"A": {"b"}}, "body", "map[A:[b]]  false"},
		{"304", 304, http.Header{"Etag": {`"b"`}}, "body", `map[Etag:["b"]]  false`},
		{"205", 205, nil, "body", "map[Content-Length:[0]]  true"},
	} {
		h := make(http.Header)
		resp := &function.Response{Status: tc.status, Header: tc.header, Body: []byte(tc.body)}
		has := FunctionAnswer(h, resp)
		if got := fmt.Sprintf("%v %s %v", h, resp.Body, has); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got, tc.want)
		}
	}
}
