package rules

import (
	"net/http"
	"net/netip"
	"strings"

	"cel.dev/cel-go/cel"

	"github.com/guardyn-edge/guardyn/edge/cookie"
	"github.com/guardyn-edge/guardyn/internal/expr"
)

// Request is what expressions read of one request. The owner fills the exported fields before the first
// evaluation; what changes later goes through Rewrite. It must not be copied.
type Request struct {
	// Host, Path and Query are in the normal form that is forwarded; Query is without "?".
	Host, Method, Path, Query string
	// Scheme is "http" or "https", Version "1.0", "1.1" or "2".
	Scheme, Version string
	// Header is read at each evaluation; Host is added to it.
	Header          http.Header
	Client          netip.Addr
	SNI, TLSVersion string
	// Zone is the apex.
	Zone string
	// Errors counts expressions that erred.
	Errors int

	seen  expr.Request
	ready bool
	// rewrites counts calls of Rewrite, for what was derived from the path.
	rewrites int
	values   [variables]any // boxed once, by variable
}

const (
	varHost = iota
	varMethod
	varPath
	varQuery
	varURI
	varHeaders
	varCookies
	varSource
	varLists // whatever name expr gives it: no expression can spell it
	variables
)

// Rewrite changes path and query.
func (r *Request) Rewrite(path, query string) {
	r.Path, r.Query = path, query
	r.seen.Rewrite(path, query)
	r.values[varPath], r.values[varQuery], r.values[varURI] = nil, nil, nil
	r.rewrites++
}

// lists binds the lists of the zone and, the first time, fills what expressions see.
func (r *Request) lists(l *lists) {
	if r.seen.Lists != expr.Lists(l) {
		r.seen.Lists, r.values[varLists] = l, nil
	}
	if r.ready {
		return
	}
	r.ready = true
	s := &r.seen
	s.Host, s.Method, s.Path, s.Query, s.Scheme, s.Version = r.Host, r.Method, r.Path, r.Query, r.Scheme, r.Version
	s.Source, s.SNI, s.TLSVersion, s.Zone = r.Client, r.SNI, r.TLSVersion, r.Zone
	s.Headers, s.Cookies = (*headerFields)(r), (*cookieFields)(r)
}

// ResolveName implements cel.Activation; it keeps the values that many rules ask for.
func (r *Request) ResolveName(name string) (any, bool) {
	var v int
	switch name {
	case "http.host":
		v = varHost
	case "http.method":
		v = varMethod
	case "http.path":
		v = varPath
	case "http.query":
		v = varQuery
	case "http.uri":
		v = varURI
	case "http.headers":
		v = varHeaders
	case "http.cookies":
		v = varCookies
	case "ip.src":
		v = varSource
	default:
		if name[0] != '@' {
			return r.seen.ResolveName(name)
		}
		v = varLists
	}
	if r.values[v] == nil {
		r.values[v], _ = r.seen.ResolveName(name)
	}
	return r.values[v], true
}

// Parent implements cel.Activation.
func (r *Request) Parent() cel.Activation { return nil }

// headerFields are a request's header fields, names in lower case.
type headerFields Request

// Get implements expr.Fields.
func (f *headerFields) Get(name string) (string, bool) {
	if name == "host" {
		return f.Host, true
	}
	if name != strings.ToLower(name) {
		return "", false
	}
	values, ok := f.Header[http.CanonicalHeaderKey(name)]
	switch {
	case !ok || len(values) == 0:
		return "", false
	case len(values) == 1:
		return values[0], true
	default:
		return strings.Join(values, ", "), true
	}
}

// Names implements expr.Fields.
func (f *headerFields) Names() []string {
	names := make([]string, 0, len(f.Header)+1)
	names = append(names, "host")
	for name, values := range f.Header {
		if len(values) > 0 {
			names = append(names, strings.ToLower(name))
		}
	}
	return names
}

// cookieFields are a request's cookies, values as they are sent.
type cookieFields Request

// Get implements expr.Fields.
func (f *cookieFields) Get(name string) (string, bool) { return cookie.Get(f.Header["Cookie"], name) }

// Names implements expr.Fields.
func (f *cookieFields) Names() []string {
	var names []string
	seen := make(map[string]bool)
	for name := range cookie.All(f.Header["Cookie"]) {
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}
