package admin

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/guardyn-edge/guardyn/bridge/host"
	"github.com/guardyn-edge/guardyn/bridge/source"
)

// conditions are what a PUT asks of the document that stands (RFC 9110 §13.1).
type conditions struct{ match, noneMatch *tags }

// tags are those of If-Match or If-None-Match.
type tags struct {
	any  bool     // "*": whatever stands
	list []string // as they were written, with their quotes; a weak one begins with W/
}

// conditionsOf reads them. The error is for people.
func conditionsOf(h http.Header) (c conditions, err error) {
	if c.match, err = readTags(h, "If-Match"); err != nil {
		return c, err
	}
	c.noneMatch, err = readTags(h, "If-None-Match")
	return c, err
}

func (c conditions) none() bool { return c.match == nil && c.noneMatch == nil }

// readTags reads a field, nil when it is not there. Its lines are one list, whose members may be empty (RFC 9110 §5.6.1.2).
func readTags(h http.Header, field string) (*tags, error) {
	lines := h.Values(field)
	if len(lines) == 0 {
		return nil, nil
	}
	bad := errors.New(field + `: write "*", or entity tags in quotes with commas between them, as GET gives them: "7"`)
	rest := strings.Join(lines, ",")
	if strings.Trim(rest, " \t") == "*" {
		return &tags{any: true}, nil
	}
	t := &tags{}
	for {
		if rest = strings.TrimLeft(rest, " \t"); rest == "" {
			break
		}
		if after, empty := strings.CutPrefix(rest, ","); empty {
			rest = after
			continue
		}
		opaque, weak := strings.CutPrefix(rest, "W/")
		if !strings.HasPrefix(opaque, `"`) {
			return nil, bad
		}
		inner, after, closed := strings.Cut(opaque[1:], `"`)
		// RFC 9110 §8.8.3: no spaces and no control characters.
		if !closed || strings.ContainsFunc(inner, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			return nil, bad
		}
		tag := `"` + inner + `"`
		if weak {
			tag = "W/" + tag
		}
		t.list = append(t.list, tag)
		after = strings.TrimLeft(after, " \t")
		if rest = strings.TrimPrefix(after, ","); after != "" && rest == after {
			return nil, bad
		}
	}
	if len(t.list) == 0 {
		return nil, bad
	}
	return t, nil
}

// fault says which condition does not hold of the document that stands, nil of none; nil when all hold. If-Match compares strongly, so that no
// weak tag is ever equal, and If-None-Match weakly (RFC 9110 §8.8.3.2).
func (c conditions) fault(standing *source.Stored) *Problem {
	p := &Problem{Status: http.StatusPreconditionFailed}
	var tag string
	if standing != nil {
		tag, p.Version = etag(standing.Version), &standing.Version
	}
	if m := c.match; m != nil {
		switch {
		case standing == nil:
			p.Code, p.Detail = "missing", "there is no document that could be replaced: send If-None-Match: * to create one"
			return p
		case !m.any && !slices.Contains(m.list, tag):
			p.Code, p.Detail = "version_changed", "the document that stands has the ETag "+tag+", and If-Match names "+strings.Join(m.list, ", ")+": read it again, and save over that"
			if slices.Contains(m.list, "W/"+tag) {
				p.Detail += " (a weak tag matches nothing here)"
			}
			return p
		}
	}
	if m := c.noneMatch; m != nil && standing != nil {
		switch {
		case m.any:
			p.Code, p.Detail = "exists", "there is a document already: to replace it, send If-Match with its ETag, "+tag
			return p
		case slices.Contains(m.list, tag), slices.Contains(m.list, "W/"+tag):
			p.Code, p.Detail = "version_changed", "the document that stands has the ETag "+tag+", which If-None-Match excludes"
			return p
		}
	}
	return nil
}

// over sets what the write is compared with: the version that the conditions were held against, or that there is none.
func over(o host.PutOptions, standing *source.Stored) host.PutOptions {
	if o.IfVersion, o.Create = nil, standing == nil; standing != nil {
		o.IfVersion = &standing.Version
	}
	return o
}

// overtaken tells whether a write was refused since the document had changed when it came to it: the conditions are asked anew.
func overtaken(err error) bool {
	return errors.Is(err, source.ErrVersion) || errors.Is(err, source.ErrExists) || errors.Is(err, source.ErrMissing)
}
