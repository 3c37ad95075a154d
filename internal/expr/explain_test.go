package expr

import (
	"net/netip"
	"strings"
	"testing"
)

func TestExplain(t *testing.T) {
	r := &Request{Host: "www.example.com", Path: "/a", Method: "GET", Source: netip.MustParseAddr("192.0.2.1")}
	for _, tc := range []struct {
		expression, why string
		value, errs     bool
	}{
		{`http.path == "/a"`, "", true, false},
		{`http.path == "/b"`, `http.path == "/b" is false: http.path is "/a"`, false, false},
		{`http.path == "/a" && http.method == "POST"`, `http.method == "POST" is false: http.method is "GET"`, false, false},
		{`http.path == "/b" || http.path == "/c"`, `http.path == "/b" is false: http.path is "/a"; http.path == "/c" is false: http.path is "/a"`, false, false},
		{`!(http.host == "www.example.com")`, `!(http.host == "www.example.com") is false: http.host is "www.example.com"`, false, false},
		{`ip.src == ip("192.0.2.9")`, `ip.src == ip("192.0.2.9") is false: ip.src is 192.0.2.1`, false, false},
		{`http.headers["x"] == "1"`, `http.headers["x"] == "1" is false: http.headers["x"] is ""`, false, false},
		{`int(http.path) == 1`, "", false, true},
	} {
		t.Run(tc.expression, func(t *testing.T) {
			c, err := Check(tc.expression, Bool)
			if err != nil {
				t.Fatal(err)
			}
			value, why, err := c.Explain(r)
			if value != tc.value || (err != nil) != tc.errs || strings.Join(why, "; ") != tc.why {
				t.Errorf("got %v, %q, %v", value, why, err)
			}
		})
	}
}
