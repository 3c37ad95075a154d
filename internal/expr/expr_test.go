package expr

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cel.dev/cel-go/common/types"
)

type fields map[string]string

func (f fields) Get(name string) (string, bool) { s, ok := f[name]; return s, ok }

func (f fields) Names() []string {
	var names []string
	for n := range f {
		names = append(names, n)
	}
	return names
}

type office struct{}

func (office) ContainsAddr(name string, a netip.Addr) (bool, bool) {
	return netip.MustParsePrefix("192.0.2.0/24").Contains(a), name == "office"
}

func (office) ContainsString(name, s string) (bool, bool) { return s == "curl", name == "agents" }

func request() *Request {
	return &Request{
		Host: "www.example.com", Method: "GET", Path: "/wp-login.php", Query: "a=1",
		Scheme: "https", Version: "2", Headers: fields{"user-agent": "curl", "accept": "*/*"},
		Cookies: fields{"session": "s"}, Source: netip.MustParseAddr("::ffff:198.51.100.7"),
		SNI: "www.example.com", TLSVersion: "1.3", Zone: "example.com", Lists: office{},
	}
}

func TestEvaluate(t *testing.T) {
	for _, tc := range []struct {
		src  string
		want bool
	}{
		{`http.path.startsWith("/wp-") && !in_list(ip.src, "office")`, true},
		{`in_list(http.headers["user-agent"], "agents")`, true},
		{`in_list(http.headers.accept, "agents")`, false},
		{`http.headers["x-missing"] == ""`, true},
		{`has(http.headers.accept) && !has(http.headers.missing)`, true},
		{`"accept" in http.headers && !("missing" in http.headers)`, true},
		{`http.headers.exists(k, http.headers[k] == "curl")`, true},
		{`size(http.headers) == 2 && http.cookies.session == "s"`, true},
		{`ip.src == ip("198.51.100.7")`, true},
		{`cidr("198.51.100.0/24").contains(ip.src)`, true},
		{`cidr("2001:db8::/32").contains(ip.src)`, false},
		{`string(ip.src) == "198.51.100.7"`, true},
		{`glob(http.path, "/wp-*.php") && !glob(http.path, "/wp-?.php")`, true},
		{`lower("ÀBC") == "Àbc" && upper(http.method) == http.method`, true},
		{`starts_with(http.host, "www.") && ends_with(http.host, ".com") && contains(http.host, "exam")`, true},
		{`http.path.matches("^/wp-[a-z]+") && http.uri == http.path + "?" + http.query`, true},
		{`http.host == tls.sni && tls.version == "1.3" && zone.name == "example.com"`, true},
		{`http.scheme == "https" && http.version == "2"`, true},
		{`http.headers == {"user-agent": "curl", "accept": "*/*"}`, true},
	} {
		t.Run(tc.src, func(t *testing.T) {
			c, err := Check(tc.src, Bool)
			if err != nil {
				t.Fatal(err)
			}
			if c.Constant != nil {
				t.Fatal("said to be constant")
			}
			p, err := c.Program()
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := p.Eval(request())
			if err != nil || got != types.Bool(tc.want) {
				t.Fatalf("%v, %v; want %v", got, err, tc.want)
			}
		})
	}
}

func TestNormalize(t *testing.T) {
	for _, tc := range []struct{ name, src, want string }{
		{"white space and comments", "http.path  ==\n '/a' // word\n && true", `http.path == "/a" && true`},
		{"parentheses that say nothing", `((http.path) == ("/a"))`, `http.path == "/a"`},
		{"parentheses that say something", `(a || b) && !(c && d)`, `(a || b) && !(c && d)`},
		{"macros as written", `http.headers.exists( h , h == "x")`, `http.headers.exists(h, h == "x")`},
		{"in_list as written", `in_list( ip.src,'office' )`, `in_list(ip.src, "office")`},
		{"raw strings", `http.path.matches(r"\.php$")`, `http.path.matches("\\.php$")`},
		{"long", strings.Repeat(`http.path == "/abcdefgh" && `, 20) + "true", strings.Repeat(`http.path == "/abcdefgh" && `, 20) + "true"},
		{"nested macros", `has(http.headers.a) && in_list(lower(http.headers.a), "x")`, `has(http.headers.a) && in_list(lower(http.headers.a), "x")`},
		{"control characters in literals", `http.path == "\x1b\n"`, `http.path == "\x1b\n"`},
		{"in and lists", `http.method in ['GET',"HEAD"]`, `http.method in ["GET", "HEAD"]`},
		{"ternary", `true?http.host:string(ip.src)`, `true ? http.host : string(ip.src)`},
		{"negative", `size(http.path) > - 1`, `size(http.path) > -1`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Normalize(tc.src)
			if err != nil || got != tc.want {
				t.Fatalf("%q, %v; want %q", got, err, tc.want)
			}
			if again, err := Normalize(got); err != nil || again != got {
				t.Fatalf("a second time %q, %v", again, err)
			}
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	for _, tc := range []struct {
		name, src string
		want      Kind
		says      []string
	}{
		{"empty", " ", Bool, []string{"empty"}},
		{"syntax", "http.path ==", Bool, []string{"line 1, column 13"}},
		{"unknown variable", "http.pth == '/'", Bool, []string{"undeclared reference", "line 1, column"}},
		{"hidden variable", "@lists == @lists", Bool, []string{"Syntax error"}},
		{"not bool", "http.path", Bool, []string{"must be bool"}},
		{"not string", "true", String, []string{"must be string"}},
		{"address as string", `ip.src == "192.0.2.1"`, Bool, []string{"no matching overload"}},
		{"bad address", `ip.src == ip("192.0.2.300")`, Bool, []string{`"192.0.2.300" is not an IP address`, "line 1, column 14"}},
		{
			"all literals together", "cidr('10.0.0.0/33').contains(ip.src) ||\n http.path.matches('(') || ip('x') == ip.src", Bool,
			[]string{"10.0.0.0/33", "line 2, column 20", `"x" is not`},
		},
		{"bad pattern by another name", `matches(http.path, "a{2000}")`, Bool, []string{"invalid"}},
		{"pattern of the request", `http.path.matches(http.query)`, Bool, []string{"in quotes"}},
		{"list name is no literal", `in_list(ip.src, http.host)`, Bool, []string{"in quotes"}},
		{"list of a number", `in_list(1, "a")`, Bool, []string{"no matching overload"}},
		{"dear", `http.headers.all(a, http.headers.all(b, http.headers.all(c, http.headers[a] + http.headers[b] != c)))`, Bool, []string{"may cost"}},
		{"long", strings.Repeat("true || ", 2000) + "true", Bool, []string{"exceeds"}},
		{"deep", strings.Repeat("!(", 200) + "true" + strings.Repeat(")", 200), Bool, []string{"recursion limit"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Check(tc.src, tc.want)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, s := range tc.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%q does not say %q", err, s)
				}
			}
		})
	}
}

func TestCheckTells(t *testing.T) {
	c, err := Check(`in_list(ip.src, "office") || in_list(http.host, "hosts") && in_list(ip.src, "office")`, Bool)
	if err != nil {
		t.Fatal(err)
	}
	want := []ListRef{{"office", true}, {"hosts", false}}
	if !slices.Equal(c.Lists, want) {
		t.Errorf("lists %v, want %v", c.Lists, want)
	}
	if !c.Lists[0].Accepts("ip") || c.Lists[0].Accepts("string") || !c.Lists[1].Accepts("hostname") || !c.Lists[1].Accepts("string") {
		t.Error("kinds of lists")
	}
	for src, want := range map[string]string{
		"true": "true", "1 > 2": "false", `false && http.path == "/"`: "false", `http.path == "/" || true`: "true",
		`ip("::1") == ip("0:0::1")`: "true", `http.path == "/"`: "varies", `in_list(ip.src, "x")`: "varies",
	} {
		c, err := Check(src, Bool)
		if err != nil {
			t.Fatal(err)
		}
		got := "varies"
		if c.Constant != nil {
			got = strconv.FormatBool(*c.Constant)
		}
		if got != want {
			t.Errorf("%s is %s, want %s", src, got, want)
		}
	}
	if c, err := Check(`string(ip.src) + http.headers["authorization"]`, String); err != nil || c.Constant != nil {
		t.Errorf("string key: %v, %v", c, err)
	}
}

func TestUnknownListErrs(t *testing.T) {
	for _, src := range []string{`in_list(ip.src, "none")`, `in_list(ip.src, "agents")`} {
		c, err := Check(src, Bool)
		if err != nil {
			t.Fatal(err)
		}
		p, err := c.Program()
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := p.Eval(request()); err == nil {
			t.Errorf("%s is %v", src, got)
		}
	}
}

func TestGlob(t *testing.T) {
	for _, tc := range []struct {
		s, pattern string
		want       bool
	}{
		{"", "", true},
		{"", "*", true},
		{"a", "", false},
		{"abc", "a*c", true},
		{"abcbc", "a*bc", true},
		{"abcb", "a*bc", false},
		{"a*c", `a\*c`, true},
		{"abc", `a\*c`, false},
		{`a\`, `a\`, true},
		{"a", "?", true},
		{"ab", "?", false},
		{"/a/b/c", "/a/*", true},
		{strings.Repeat("a", 5000), strings.Repeat("a*", 50) + "b", false},
	} {
		if got := globMatch(tc.s, tc.pattern); got != tc.want {
			t.Errorf("glob(%.20q, %q) = %v", tc.s, tc.pattern, got)
		}
	}
}

func FuzzNormalize(f *testing.F) {
	for _, s := range []string{
		`http.path.startsWith("/wp-") && !in_list(ip.src, "office")`, `a.b[c] ? -1 : - -1`, `has(a.b) || [1,2u,3.0].all(x, x > 0)`,
		`"\x00\u1234" + b"\xff" != r'\'`, `!(!a) && -(-1) > 1e100`, `{"a": 1}.a`, `a.map(x, x > 1, x * 2)`, `T{f: 1}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, src string) {
		once, err := Normalize(src)
		if err != nil {
			return
		}
		if twice, err := Normalize(once); err != nil || twice != once {
			t.Fatalf("%q prints %q, then %q, %v", src, once, twice, err)
		}
	})
}

func BenchmarkEvaluate(b *testing.B) {
	c, err := Check(`http.path.startsWith("/wp-") && !in_list(ip.src, "office")`, Bool)
	if err != nil {
		b.Fatal(err)
	}
	p, err := c.Program()
	if err != nil {
		b.Fatal(err)
	}
	r := request()
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := p.Eval(r); err != nil {
			b.Fatal(err)
		}
	}
}
