// Package expr is the language of rules: CEL over one environment of a request, parsed to one printed
// form, type-checked, bounded in cost, and bound to requests and lists when it runs.
//
// # Variables
//
//	http.host     string               host asked for, a zone.Name's text: no port, no trailing dot
//	http.method   string               upper-case as sent
//	http.path     string               as forwarded, decoded no further, begins with "/"
//	http.query    string               as forwarded, without "?"
//	http.uri      string               path, and "?" with the query when there is one
//	http.scheme   string               "http" or "https"
//	http.version  string               "1.0", "1.1", "2"
//	http.headers  map(string, string)  names in lower case, several values joined by ", "
//	http.cookies  map(string, string)  the first value of each name
//	ip.src        ip                   the client's address, a mapped one as IPv4
//	tls.sni       string               "" without TLS
//	tls.version   string               "1.2", "1.3", "" without TLS
//	zone.name     string               apex of the zone
//
// A header or cookie that the request lacks reads as "" by http.headers["x"] and http.headers.x; whether
// it is there is told by "x" in http.headers and has(http.headers.x).
//
// # Functions
//
//	ip(string) ip                          address; a mapped one becomes IPv4
//	cidr(string) cidr                      address or prefix; bits beyond the length are dropped
//	cidr.contains(ip) bool
//	in_list(ip, "name") bool               a list of the zone, of kind ip
//	in_list(string, "name") bool           a list of the zone, of kind hostname or string
//	lower(string), upper(string) string    ASCII letters
//	glob(string, string) bool              whole string; * any octets, ? one octet, \ takes the next as itself
//	starts_with, ends_with, contains(string, string) bool
//	string(ip) string                      RFC 5952
//
// and CEL's own: operators, size, startsWith, endsWith, contains, matches (RE2), has, all, exists,
// exists_one, map, filter and the conversions. The second argument of in_list and the pattern of matches
// are string literals. A pattern, and an address or prefix that is a literal, is judged by [Check].
//
// # Running
//
// Zones share programs: nothing of a zone is compiled in. [Checked.Program] makes a cel.Program that is
// stateless and safe for concurrent use; it is evaluated with a *[Request], which resolves the variables
// above and gives in_list the zone's [Lists]. The result is types.Bool or types.String. An error (a number
// out of range, a list that the Lists does not know) leaves the choice to the caller; a rule that errs
// should not match.
package expr
