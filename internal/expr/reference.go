package expr

import (
	"fmt"
	"io"
	"strings"
)

// referenceEntry is a line of the reference, with an expression that uses it.
type referenceEntry struct{ name, kind, text, example string }

var (
	referenceVariables = []referenceEntry{
		{"http.host", "string", "host asked for: no port, no trailing dot, lower case, A-labels", `http.host == "www.example.com"`},
		{"http.method", "string", "upper case as sent", `http.method in ["GET", "HEAD"]`},
		{"http.path", "string", `as forwarded, begins with "/"`, `http.path == "/login"`},
		{"http.query", "string", `as forwarded, without "?"`, `http.query.contains("debug=1")`},
		{"http.uri", "string", `path, and "?" with the query when there is one`, `http.uri == "/search?q=a"`},
		{"http.scheme", "string", `"http" or "https"`, `http.scheme == "http"`},
		{"http.version", "string", `"1.0", "1.1" or "2"`, `http.version == "1.0"`},
		{"http.headers", "map(string, string)", "names in lower case, several values joined by a comma and a space", `http.headers["user-agent"].startsWith("curl/")`},
		{"http.cookies", "map(string, string)", "the first value of each name", `"session" in http.cookies`},
		{"ip.src", "ip", "the client's address, a mapped one as IPv4", `ip.src == ip("192.0.2.1")`},
		{"tls.sni", "string", "empty without TLS", `tls.sni != ""`},
		{"tls.version", "string", `"1.2" or "1.3", empty without TLS`, `tls.version == "1.2"`},
		{"zone.name", "string", "apex of the zone", `http.host == zone.name`},
	}
	referenceFunctions = []referenceEntry{
		{"ip(string)", "ip", "an address; a mapped one becomes IPv4", `ip.src != ip("2001:db8::1")`},
		{"cidr(string)", "cidr", "an address or prefix", `cidr("192.0.2.0/24").contains(ip.src)`},
		{"cidr.contains(ip)", "bool", "whether the address is in the prefix", `!cidr("2001:db8::/32").contains(ip.src)`},
		{"in_list(ip, name)", "bool", "whether a list of kind ip holds the address", `in_list(ip.src, "office")`},
		{"in_list(string, name)", "bool", "whether a list of kind hostname or string holds the string", `in_list(http.host, "sites")`},
		{"lower(string)", "string", "ASCII letters", `lower(http.path) == "/admin"`},
		{"upper(string)", "string", "ASCII letters", `upper(http.query) == "A"`},
		{"glob(string, pattern)", "bool", "the whole string: * any octets, ? one octet, a backslash takes the next as itself", `glob(http.path, "/img/*.png")`},
		{"starts_with(string, string)", "bool", "as the method startsWith", `starts_with(http.path, "/api/")`},
		{"ends_with(string, string)", "bool", "as the method endsWith", `ends_with(http.path, ".php")`},
		{"contains(string, string)", "bool", "as the method contains", `contains(http.query, "union")`},
		{"string(ip)", "string", "RFC 5952", `string(ip.src) == "192.0.2.1"`},
	}
)

// WriteReference writes the page of the language as Markdown.
func WriteReference(w io.Writer) error {
	var b strings.Builder
	b.WriteString("# Expressions\n\nWritten by `make docs` from the language itself. An expression is [CEL](https://cel.dev) and, as a rule's, true or false; the key of a\n" +
		"rate limit is a string. Syntax is checked when a rule is set; types, names and the cost by the build. An expression that errs on a\n" +
		"request does not match it and is counted for its zone. What an expression does with a request is told by `gdn rules test`.\n")
	table := func(title, head, text string, entries []referenceEntry) {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| %s | Type | What it is | Example |\n| --- | --- | --- | --- |\n", title, text, head)
		for _, e := range entries {
			fmt.Fprintf(&b, "| `%s` | %s | %s | `%s` |\n", e.name, e.kind, e.text, e.example)
		}
	}
	table("Variables", "Variable", "A header or cookie that the request lacks reads as empty; `\"x\" in http.headers` tells whether it is there.\nThe client's country is not offered.", referenceVariables)
	table("Functions", "Function", "Beside these there are CEL's own: operators, `size`, `matches` (RE2), `has`, `all`, `exists`, `exists_one`, `map`, `filter` and\nconversions. The name of a list and the pattern of `matches` are written in quotes.", referenceFunctions)
	fmt.Fprintf(&b, "\n## Bounds and cost\n\nAn expression has at most %d characters, %d nodes and %d levels. Its cost is estimated at the build for the largest request, by steps and\n"+
		"by ten octets of a string looked at; more than %d is refused. Nothing is measured while it runs.\n\n"+
		"Rules that a request's host, method or path rule out cost nothing: those whose expression compares `http.host`, `http.method` or\n"+
		"`http.path` with values in quotes by `==`, `in`, `starts_with` or `glob`, joined by `&&`, or by `||` of the same variable, up to %d values\n"+
		"of a variable.\n", MaxSource, MaxNodes, MaxDepth, MaxCost, MaxNeed)
	_, err := io.WriteString(w, b.String())
	return err
}
