package expr

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"cel.dev/cel-go/common/types"
	"pgregory.net/rapid"
)

// What rules mostly are is evaluated directly.
func TestDirectKnows(t *testing.T) {
	for _, src := range []string{
		`http.path.startsWith("/wp-")`, `starts_with(http.path, "/wp-")`, `http.path.endsWith(".bak")`, `ends_with(http.path, ".bak")`,
		`http.query.contains("token=")`, `contains(http.query, "x")`, `http.path.contains(http.host)`, `glob(http.path, "/a/*.php")`,
		`http.path.matches("^/a[0-9]+$")`, `http.host == "example.com"`, `"example.com" == http.host`, `http.method != "GET"`,
		`http.host == tls.sni`, `http.method in ["GET", "HEAD"]`, `http.uri == "/a?b"`, `http.scheme == "http" && http.version == "1.1"`,
		`zone.name == "example.com" || tls.version == "1.3"`, `!(http.path == "/")`, `http.headers["user-agent"].contains("curl")`,
		`http.headers.accept == ""`, `http.cookies["session"] != ""`, `has(http.headers.accept)`, `"accept" in http.headers`,
		`in_list(ip.src, "office")`, `in_list(http.headers["user-agent"], "agents")`, `in_list(lower(http.host), "agents")`,
		`ip.src == ip("192.0.2.1")`, `ip("192.0.2.1") != ip.src`, `cidr("192.0.2.0/24").contains(ip.src)`,
		`lower(http.path) == "/a"`, `upper(http.method) == "GET"`, `size(http.path) > 100`, `http.query.size() <= 5`, `size(http.path) == size(http.query)`,
		`http.method in ["A", "B", "C", "D", "E", "F", "G", "H", "I"]`,
	} {
		c, err := Check(src, Bool)
		if err != nil {
			t.Errorf("%s: %v", src, err)
		} else if c.Direct() == nil {
			t.Errorf("%s is left to the program", src)
		}
	}
}

// texts are drawn from, so that comparisons are true often enough.
var someTexts = []string{"", "/", "/a", "/A", "/a/b.php", "a", "GET", "x=1", "curl", "office", "1.1", "\xff", "é", "É", "accept", "user-agent", "192.0.2.7"}

// genText, genBool and genInt print expressions of the language.
func genText(t *rapid.T, depth int) string {
	if n := rapid.IntRange(0, 9).Draw(t, "text"); depth > 0 && n < 4 {
		return [...]func() string{
			func() string { return "lower(" + genText(t, depth-1) + ")" },
			func() string { return "upper(" + genText(t, depth-1) + ")" },
			func() string { return "http.headers[" + genText(t, depth-1) + "]" },
			func() string { return "http.cookies[" + genText(t, depth-1) + "]" },
		}[n]()
	}
	return rapid.SampledFrom([]string{
		"http.host", "http.method", "http.path", "http.query", "http.uri", "http.scheme", "http.version", "tls.sni", "tls.version", "zone.name",
		"http.headers.accept", "http.cookies.a", `string(ip.src)`, `(http.path + http.query)`,
		`"` + strings.Map(ascii, rapid.SampledFrom(someTexts).Draw(t, "literal")) + `"`, `"/a"`, `"a"`,
	}).Draw(t, "leaf")
}

func ascii(r rune) rune {
	if r == '\uFFFD' {
		return -1
	}
	return r
}

func genInt(t *rapid.T, depth int) string {
	if rapid.Bool().Draw(t, "size") {
		return "size(" + genText(t, depth-1) + ")"
	}
	return fmt.Sprint(rapid.IntRange(-1, 4).Draw(t, "number"))
}

func genBool(t *rapid.T, depth int) string {
	text := func() string { return genText(t, depth-1) }
	if depth > 0 {
		switch rapid.IntRange(0, 5).Draw(t, "joined") {
		case 0:
			return "(" + genBool(t, depth-1) + " && " + genBool(t, depth-1) + ")"
		case 1:
			return "(" + genBool(t, depth-1) + " || " + genBool(t, depth-1) + ")"
		case 2:
			return "!" + genBool(t, depth-1)
		}
	}
	return [...]func() string{
		func() string { return "(" + text() + " == " + text() + ")" },
		func() string { return "(" + text() + " != " + text() + ")" },
		func() string { return "starts_with(" + text() + ", " + text() + ")" },
		func() string { return text() + ".endsWith(" + text() + ")" },
		func() string { return text() + ".contains(" + text() + ")" },
		func() string { return "glob(" + text() + `, "/*")` },
		func() string { return text() + `.matches("^/[a-z]")` },
		func() string { return "(" + text() + ` in ["/a", "GET", "", "x"])` },
		func() string { return "(" + text() + " in http.headers)" },
		func() string { return "has(http.cookies.a)" },
		func() string {
			return `in_list(ip.src, "` + rapid.SampledFrom([]string{"office", "nobody"}).Draw(t, "list") + `")`
		},
		func() string {
			return "in_list(" + text() + `, "` + rapid.SampledFrom([]string{"agents", "nobody"}).Draw(t, "list") + `")`
		},
		func() string { return `(ip.src == ip("192.0.2.7"))` },
		func() string { return `cidr("192.0.2.0/24").contains(ip.src)` },
		func() string { return "(ip(" + text() + ") == ip.src)" },
		func() string {
			return "(" + genInt(t, depth) + rapid.SampledFrom([]string{" < ", " <= ", " > ", " >= ", " == ", " != "}).Draw(t, "order") + genInt(t, depth) + ")"
		},
		func() string { return "true" },
		func() string { return "http.headers.exists(k, k == " + text() + ")" },
	}[rapid.IntRange(0, 17).Draw(t, "bool")]()
}

// Whatever the expression and the request, what is evaluated directly is what the program says, without an error.
func TestDirectIsTheProgram(t *testing.T) {
	known, unknown, left := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		for range 30 {
			k, u, l := compareDirect(t, genBool(t, 3))
			known, unknown, left = known+k, unknown+u, left+l
		}
	})
	if known < 1000 || unknown == 0 || left == 0 {
		t.Errorf("%d evaluations were known, %d not, %d expressions left to the program: what is drawn tells nothing", known, unknown, left)
	}
}

// compareDirect evaluates an expression both ways, for a few requests, and counts how often it was known directly, how often
// not, and whether it is left to the program.
func compareDirect(t *rapid.T, src string) (known, unknown, left int) {
	c, err := Check(src, Bool)
	if err != nil {
		return 0, 0, 0 // it does not type-check
	}
	direct := c.Direct()
	if direct == nil {
		return 0, 0, 1
	}
	p, err := c.Program()
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		draw := func(label string) string { return rapid.SampledFrom(someTexts).Draw(t, label) }
		r := &Request{
			Host: draw("host"), Method: draw("method"), Path: draw("path"), Query: draw("query"), Scheme: draw("scheme"),
			Version: draw("version"), SNI: draw("sni"), TLSVersion: draw("tls"), Zone: draw("zone"),
			Source: netip.MustParseAddr(rapid.SampledFrom([]string{"192.0.2.7", "::ffff:192.0.2.7", "2001:db8::1"}).Draw(t, "source")),
		}
		if rapid.IntRange(0, 3).Draw(t, "fields") > 0 {
			r.Headers = fields{"accept": draw("accept"), draw("name"): draw("value")}
			r.Cookies = fields{"a": draw("cookie")}
		}
		if rapid.IntRange(0, 3).Draw(t, "lists") > 0 {
			r.Lists = office{}
		}
		got, ok := direct(r)
		want, _, err := p.Eval(r)
		switch {
		case !ok:
			unknown++
		case err != nil:
			t.Fatalf("%s: %v directly, the program errs: %v (%+v)", c.Text, got, err, r)
		case want != types.Bool(got):
			t.Fatalf("%s: %v directly, %v by the program (%+v)", c.Text, got, want, r)
		default:
			known++
		}
	}
	return known, unknown, 0
}

func BenchmarkDirect(b *testing.B) {
	for _, src := range []string{`http.path.endsWith(".bak")`, `http.path.startsWith("/wp-") && !in_list(ip.src, "office")`} {
		c, err := Check(src, Bool)
		if err != nil {
			b.Fatal(err)
		}
		p, err := c.Program()
		if err != nil {
			b.Fatal(err)
		}
		r := request()
		b.Run("direct/"+src, func(b *testing.B) {
			direct := c.Direct()
			for b.Loop() {
				direct(r)
			}
		})
		b.Run("program/"+src, func(b *testing.B) {
			for b.Loop() {
				p.Eval(r) //nolint:errcheck // it is measured
			}
		})
	}
}
