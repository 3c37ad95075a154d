package api

import (
	"net/url"
	"strings"
)

// maxParams is the largest number of parameters in a pattern.
const maxParams = 4

// params are the values of a pattern's parameters, in its order.
type params [maxParams]string

// router finds a route by method and exact path. There is no cleaning, no redirect and no answer for another
// method: a path with "//", a trailing slash or another method is simply not there.
type router struct{ root *place }

// place is a node of the tree of path segments. Only one of the two kinds of children matches a segment:
// a literal one goes first.
type place struct {
	literal map[string]*place
	param   *place
	methods map[string]*route
}

func newRouter() *router { return &router{root: &place{}} }

// add panics when two routes have one method and path: the table is a constant of the program.
func (t *router) add(rt *route) {
	at := t.root
	for s := range strings.SplitSeq(strings.TrimPrefix(rt.pattern, "/"), "/") {
		if strings.HasPrefix(s, "{") {
			if at.param == nil {
				at.param = &place{}
			}
			at = at.param
			rt.names = append(rt.names, strings.Trim(s, "{}"))
			continue
		}
		if at.literal == nil {
			at.literal = map[string]*place{}
		}
		next := at.literal[s]
		if next == nil {
			next = &place{}
			at.literal[s] = next
		}
		at = next
	}
	if at.methods == nil {
		at.methods = map[string]*route{}
	}
	if at.methods[rt.method] != nil {
		panic("api: two routes for " + rt.method + " " + rt.pattern)
	}
	at.methods[rt.method] = rt
}

// match splits the path as it was sent, so that an escaped slash stays inside its segment.
func (t *router) match(method string, u *url.URL) (*route, params) {
	var ps params
	n := 0
	rest, ok := strings.CutPrefix(u.EscapedPath(), "/")
	if !ok {
		return nil, ps
	}
	at := t.root
	for more := true; more; {
		var s string
		s, rest, more = strings.Cut(rest, "/")
		if next := at.literal[s]; next != nil {
			at = next
			continue
		}
		if at.param == nil || s == "" || n == maxParams {
			return nil, ps
		}
		v, err := url.PathUnescape(s)
		if err != nil {
			return nil, ps
		}
		ps[n] = v
		n++
		at = at.param
	}
	return at.methods[method], ps
}
