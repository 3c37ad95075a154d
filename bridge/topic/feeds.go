package topic

import (
	"slices"
	"strings"
)

// Reach is the topics that a template can make of what comes by one filter. The zero Reach meets what takes the empty topic.
type Reach struct {
	levels []string
	style  Style
}

// Reach is t's, of what comes by from, which its captures are of, at a broker whose topics are written in style to.
func (t Template) Reach(from Filter, to Style) Reach { return Reach{t.shape(from, to), to} }

// Meets tells whether one of the topics could be taken by a filter of the same style. It is told from the texts alone, so it may be true
// where no message ever would.
func (r Reach) Meets(f Filter) bool { return overlap(r.levels, f.levels, r.style) }

// Feeds tells whether what comes by from, and is sent on by t, could be taken by next.
func (t Template) Feeds(from, next Filter) bool { return t.Reach(from, next.style).Meets(next) }

// shape is t with wildcards where text comes from a message.
func (t Template) shape(from Filter, to Style) []string {
	var b strings.Builder
	for _, p := range t.parts {
		switch {
		case p.capture == 0:
			b.WriteString(p.literal)
		case p.capture == wholeTopic:
			b.WriteString(from.in(to))
		default:
			b.WriteString(from.wildcard(p.capture, to))
		}
	}
	levels := strings.Split(b.String(), to.Separator)
	for i, l := range levels {
		switch {
		case strings.Contains(l, to.Rest):
			return append(slices.Clone(levels[:i]), to.Rest)
		case strings.Contains(l, to.One):
			levels[i] = to.One // text around a capture could be anything that the level may be
		}
	}
	return levels
}

// in returns the filter's text in another style.
func (f Filter) in(to Style) string {
	levels := make([]string, len(f.levels))
	for i, l := range f.levels {
		switch l {
		case f.style.One:
			l = to.One
		case f.style.Rest:
			l = to.Rest
		}
		levels[i] = l
	}
	return strings.Join(levels, to.Separator)
}

// wildcard returns what the n-th one is in another style.
func (f Filter) wildcard(n int, to Style) string {
	for _, l := range f.levels {
		if l != f.style.One && l != f.style.Rest {
			continue
		}
		if n--; n == 0 && l == f.style.Rest {
			return to.Rest
		}
	}
	return to.One
}

// overlap tells whether a topic matches both. Rest is taken to stand for no level too, which errs to the side of yes.
func overlap(a, b []string, s Style) bool {
	if len(a) > 0 && len(b) > 0 && s.Hidden != "" {
		for _, pair := range [][2]string{{a[0], b[0]}, {b[0], a[0]}} {
			if strings.HasPrefix(pair[0], s.Hidden) && (pair[1] == s.One || pair[1] == s.Rest) {
				return false
			}
		}
	}
	for i := 0; ; i++ {
		switch {
		case i < len(a) && a[i] == s.Rest, i < len(b) && b[i] == s.Rest:
			return true
		case i == len(a) && i == len(b):
			return true
		case i == len(a), i == len(b):
			return i == len(a) && b[i] == s.Rest || i == len(b) && a[i] == s.Rest
		case a[i] != s.One && b[i] != s.One && a[i] != b[i]:
			return false
		}
	}
}
