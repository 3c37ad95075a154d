package cache

import (
	"net/http"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
	"golang.org/x/net/http/httpguts"
)

// seconds is a delta-seconds (RFC 9111 §1.2.2) that a directive may have.
type seconds struct {
	value time.Duration
	set   bool
}

// maxSeconds is what greater values, those that no integer holds too, are read as (RFC 9111 §1.2.2).
const maxSeconds = 1 << 31

// directives are those of an answer that a shared cache acts on (RFC 9111 §5.2.2, RFC 5861).
type directives struct {
	noStore, noCache, private, public bool
	mustRevalidate, proxyRevalidate   bool
	mustUnderstand                    bool
	malformed                         bool // not to be read to its end: nobody knows what else it forbids
	maxAge, sharedMaxAge              seconds
	staleWhileRevalidate              seconds
	staleIfError                      seconds
}

// responseDirectives reads the directives that hold for this cache: those of CDN-Cache-Control when there is a valid one (RFC 9213
// §2.2), else of Cache-Control. targeted reports which; Expires counts only without.
func responseDirectives(h http.Header) (d directives, targeted bool) {
	if v := h["Cdn-Cache-Control"]; len(v) > 0 {
		if d, ok := targetedDirectives(v); ok {
			return d, true
		}
	}
	return cacheControl(h["Cache-Control"]), false
}

// cacheControl reads Cache-Control (RFC 9111 §5.2). Names are compared without case, arguments may be tokens or quoted strings, and
// what is unknown is passed over. A private or no-cache that names fields counts as one that names none. An age that is no number, or
// is there twice with two values, makes the answer stale (RFC 9111 §4.2.1). A list that is none, as one with a quotation that has no end, is
// malformed: what may stand in it must not be read as more liberal than it was meant.
func cacheControl(values []string) (d directives) {
	for _, v := range values {
		for v != "" {
			var name, argument string
			var ok bool
			name, argument, v, ok = nextDirective(v)
			d.malformed = d.malformed || !ok
			d.set(name, argument)
		}
	}
	return d
}

// nextDirective takes the first directive of a list, an empty name being none. Commas within a quoted string part nothing. ok is false for
// one whose name is no token, or whose quoted string has no end or something other than a comma behind it.
func nextDirective(s string) (name, argument, rest string, ok bool) {
	s = strings.TrimLeft(s, " \t,")
	end := strings.IndexAny(s, "=,")
	if end < 0 {
		name = strings.TrimRight(s, " \t")
		return name, "", "", name == "" || httpguts.ValidHeaderFieldName(name)
	}
	name = strings.TrimRight(s[:end], " \t")
	ok = httpguts.ValidHeaderFieldName(name)
	if s[end] == ',' {
		return name, "", s[end+1:], ok
	}
	s = strings.TrimLeft(s[end+1:], " \t")
	if !strings.HasPrefix(s, `"`) {
		argument, rest, _ = strings.Cut(s, ",")
		return name, strings.TrimRight(argument, " \t"), rest, ok
	}
	i := 1
	for ; i < len(s) && s[i] != '"'; i++ {
		if s[i] == '\\' {
			i++
		}
	}
	if i >= len(s) {
		return name, s[1:], "", false
	}
	behind, rest, _ := strings.Cut(s[i+1:], ",")
	return name, s[1:i], rest, ok && strings.Trim(behind, " \t") == ""
}

func (d *directives) set(name, argument string) {
	if f := d.flag(name); f != nil {
		*f = true
		return
	}
	if s := d.age(name); s != nil {
		v := parseSeconds(argument)
		if s.set && s.value != v {
			v = 0
		}
		*s = seconds{v, true}
	}
}

func (d *directives) flag(name string) *bool {
	switch {
	case strings.EqualFold(name, "no-store"):
		return &d.noStore
	case strings.EqualFold(name, "no-cache"):
		return &d.noCache
	case strings.EqualFold(name, "private"):
		return &d.private
	case strings.EqualFold(name, "public"):
		return &d.public
	case strings.EqualFold(name, "must-revalidate"):
		return &d.mustRevalidate
	case strings.EqualFold(name, "proxy-revalidate"):
		return &d.proxyRevalidate
	case strings.EqualFold(name, "must-understand"):
		return &d.mustUnderstand
	}
	return nil
}

func (d *directives) age(name string) *seconds {
	switch {
	case strings.EqualFold(name, "max-age"):
		return &d.maxAge
	case strings.EqualFold(name, "s-maxage"):
		return &d.sharedMaxAge
	case strings.EqualFold(name, "stale-while-revalidate"):
		return &d.staleWhileRevalidate
	case strings.EqualFold(name, "stale-if-error"):
		return &d.staleIfError
	}
	return nil
}

// parseSeconds reads delta-seconds; what is none reads as 0, which is stale.
func parseSeconds(s string) time.Duration {
	if s == "" {
		return 0
	}
	n := int64(0)
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0
		}
		n = min(n*10+int64(s[i]-'0'), maxSeconds)
	}
	return time.Duration(n) * time.Second
}

// targetedDirectives reads a field of RFC 9213: a dictionary (RFC 9651 §3.2) whose members are the directives. ok is false for
// one that is malformed or empty, which is as if it were not there. A member of another type than its directive's is passed over.
func targetedDirectives(values []string) (d directives, ok bool) {
	members, err := httpsfv.UnmarshalDictionary(values)
	if err != nil || len(members.Names()) == 0 {
		return d, false
	}
	for _, name := range members.Names() {
		m, _ := members.Get(name)
		item, isItem := m.(httpsfv.Item)
		if !isItem {
			continue
		}
		switch v := item.Value.(type) {
		case bool:
			if f := d.flag(name); f != nil {
				*f = v
			}
		case string, httpsfv.Token:
			// private and no-cache may name fields (RFC 9111 §5.2.2.4, §5.2.2.7).
			if f := d.flag(name); f != nil && (f == &d.private || f == &d.noCache) {
				*f = true
			}
		case int64:
			if s := d.age(name); s != nil {
				*s = seconds{time.Duration(min(max(v, 0), maxSeconds)) * time.Second, true}
			}
		}
	}
	return d, true
}
