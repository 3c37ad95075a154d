package api

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"github.com/guardyn-edge/guardyn/control"
)

// parameter is a query parameter or request header, described once for every route that takes it.
type parameter struct {
	description string
	schema      huma.Schema
}

// queryParameters describes every query parameter of the API.
func queryParameters() map[string]parameter {
	yes := huma.Schema{Type: huma.TypeBoolean}
	text := huma.Schema{Type: huma.TypeString}
	number := func(minimum, maximum float64) huma.Schema {
		return huma.Schema{Type: huma.TypeInteger, Format: "int64", Minimum: &minimum, Maximum: &maximum}
	}
	counter := huma.Schema{Type: huma.TypeInteger, Format: "int64"}
	return map[string]parameter{
		"limit":       {"The largest number of items to return; default 100.", number(1, control.MaxPage)},
		"cursor":      {"The next of an earlier page of the same listing.", text},
		"name":        {"Only records of this name, absolute or relative to the zone.", text},
		"type":        {"Only records of this type.", text},
		"replace":     {"Remove the records that the file does not have.", yes},
		"dry_run":     {"Only tell what would be done.", yes},
		"hold_broken": {"Keep zones that have problems at their published content.", yes},
		"all":         {"Of every workspace and the platform's own; operators only.", yes},
		"have":        {"The version that the node serves, 0 for none.", counter},
		"generation":  {"The generation that the node serves, 0 for none.", counter},
		"epoch":       {"The epoch of that generation.", counter},
		"nonce":       {"16 to 64 hex digits, for an answer that proves to be fresh.", text},
		"wait":        {"Seconds to wait for something newer.", number(0, 55)},
		"held":        {"The BLAKE3 of a payload that the node has verified, 64 hex digits: an offer of it comes without its bytes.", text},
		"trial":       {"The id of the rollout that the node is to try, or tries.", text},
		"digest":      {"What the rollout names its candidate.", text},
		"after":       {"The place in the log of purges up to which the node has done all of them: 0, or number and id with a colon between. Without it the answer names the log's end.", text},
		"seen":        {"The seen of an earlier answer; with another the answer comes at once.", text},
		"member":      {"The node's id.", text},
		"topic":       {"head: what is decided.", text},
	}
}

// badQuery is a 400 that lists everything that is wrong with the query.
func badQuery(problems []Problem) error {
	return &Error{
		Type: "about:blank", Status: http.StatusBadRequest, Code: "bad_query",
		Detail: "The query of the address is not one that this path takes.", Errors: problems,
	}
}

// readQuery takes the query apart, strictly: every parameter is one that the route takes, once.
func (c *call) readQuery() error {
	raw := c.r.URL.RawQuery
	if raw == "" {
		return nil
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return badQuery([]Problem{{Code: "bad_query", Message: err.Error()}})
	}
	var problems []Problem
	c.args = make(map[string]string, len(values))
	for name, vs := range values {
		object := "parameter " + clip(name)
		switch {
		case !slices.Contains(c.route.query, name):
			problems = append(problems, Problem{Object: object, Code: "unknown_parameter", Message: "this path takes no such parameter"})
		case len(vs) > 1:
			problems = append(problems, Problem{Object: object, Code: "repeated_parameter", Message: "the parameter is given more than once"})
		case !utf8.ValidString(vs[0]):
			problems = append(problems, Problem{Object: object, Code: "bad_parameter", Message: "the value is not UTF-8"})
		}
		c.args[name] = vs[0]
	}
	if len(problems) > 0 {
		slices.SortFunc(problems, func(a, b Problem) int {
			if a.Object < b.Object {
				return -1
			}
			return 1
		})
		return badQuery(problems)
	}
	return nil
}

// flag reads a parameter that is true or false; absent is false.
func (c *call) flag(name string) (bool, error) {
	switch v, ok := c.args[name]; {
	case !ok || v == "false":
		return false, nil
	case v == "true":
		return true, nil
	default:
		return false, badQuery([]Problem{{
			Object: "parameter " + name, Code: "bad_parameter", Message: fmt.Sprintf("%q is neither true nor false", clip(v)),
		}})
	}
}

// page reads limit and cursor.
func (c *call) page() (control.Page, error) {
	p := control.Page{Limit: control.DefaultPage}
	if v, ok := c.args["limit"]; ok {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 || n > control.MaxPage || strconv.Itoa(n) != v {
			return p, badQuery([]Problem{{
				Object: "parameter limit", Code: "bad_parameter",
				Message: fmt.Sprintf("%q is not a number from 1 to %d", clip(v), control.MaxPage),
			}})
		}
		p.Limit = n
	}
	if v, ok := c.args["cursor"]; ok {
		key, err := base64.RawURLEncoding.Strict().DecodeString(v)
		if err != nil || len(key) == 0 || len(key) > 512 || !utf8.Valid(key) {
			return p, badQuery([]Problem{{
				Object: "parameter cursor", Code: "bad_cursor", Message: "this is not the next of an earlier page",
			}})
		}
		p.After = string(key)
	}
	return p, nil
}

// cursor is the opaque form of a page key.
func cursor(key string) string {
	if key == "" {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString([]byte(key))
}

// pageOf is a page of rows as they travel.
func pageOf[Row, T any](l control.Listing[Row], convert func(Row) T) Page[T] {
	out := Page[T]{Items: make([]T, len(l.Items)), Next: cursor(l.Next)}
	for i, row := range l.Items {
		out.Items[i] = convert(row)
	}
	return out
}

// cut takes the page p out of all rows, which are in ascending order of key.
func cut[Row any](all []Row, key func(Row) string, p control.Page) control.Listing[Row] {
	start := 0
	if p.After != "" {
		start = len(all)
		for i, row := range all {
			if key(row) > p.After {
				start = i
				break
			}
		}
	}
	rest := all[start:]
	if len(rest) <= p.Limit {
		return control.Listing[Row]{Items: rest}
	}
	rest = rest[:p.Limit]
	return control.Listing[Row]{Items: rest, Next: key(rest[len(rest)-1])}
}
