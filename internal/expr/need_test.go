package expr

import (
	"fmt"
	"strings"
	"testing"
)

func TestNeed(t *testing.T) {
	var many []string
	for i := range MaxNeed + 1 {
		many = append(many, fmt.Sprintf("%q", fmt.Sprint("/", i)))
	}
	for _, tc := range []struct{ expression, want string }{
		{`http.host == "a"`, `host=a`},
		{`"a" == http.host`, `host=a`},
		{`http.host != "a"`, ``},
		{`http.host in ["b", "a", "b"]`, `host=a,b`},
		{`http.host in ["b", http.path]`, ``},
		{`http.method == "POST" && http.path.startsWith("/a")`, `method=POST path=/a*`},
		{`starts_with(http.path, "/a") && http.path == "/ab"`, `path=/ab`},
		{`starts_with("/a", http.path)`, ``},
		{`glob(http.path, "/img/*.png")`, `path=/img/*`},
		{`glob(http.path, "/img")`, `path=/img`},
		{`glob(http.path, "*.png")`, ``},
		{`glob(http.path, "*.png") && http.path.startsWith("/i")`, `path=/i*`},
		{`http.path.startsWith("")`, ``},
		{`http.path == "/a" || http.path.startsWith("/b")`, `path=/a,/b*`},
		{`http.path == "/a" || http.host == "a"`, ``},
		{`(http.host == "a" || http.host == "b") && ip.src == ip("192.0.2.1")`, `host=a,b`},
		{`!(http.host == "a")`, ``},
		{`http.host == "a" ? true : http.path == "/"`, ``},
		{`lower(http.path) == "/a"`, ``},
		{`http.headers["host"] == "a"`, ``},
		{`["a"].exists(h, h == http.host)`, ``},
		{`http.path in [` + strings.Join(many, ",") + `]`, ``},
	} {
		t.Run(tc.expression, func(t *testing.T) {
			c, err := Check(tc.expression, Bool)
			if err != nil {
				t.Fatal(err)
			}
			var parts []string
			n := c.Need()
			for name, v := range map[string]Values{"host": n.Host, "method": n.Method, "path": n.Path} {
				values := append([]string(nil), v.Exact...)
				for _, p := range v.Prefixes {
					values = append(values, p+"*")
				}
				if v.Some {
					parts = append(parts, name+"="+strings.Join(values, ","))
				}
			}
			if len(parts) == 2 && parts[0] > parts[1] {
				parts[0], parts[1] = parts[1], parts[0]
			}
			if got := strings.Join(parts, " "); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
