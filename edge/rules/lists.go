package rules

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/gaissmai/bart"

	"github.com/guardyn-edge/guardyn/zone"
)

// lists are a zone's lists as sets.
type lists struct {
	addresses map[string]*bart.Lite
	strings   map[string]map[string]struct{}
	hosts     map[string]*hostSet
	from      map[string]zone.List // what they were made of
}

// hostSet holds host names: exact ones, and wildcards less their "*.".
type hostSet struct{ exact, wild map[string]struct{} }

// compileLists makes sets of lists. What in has like old, which may be nil, is shared with it: telling so takes one
// comparison of the items. An address costs about 40 bytes in its set, a string or host name a map's entry of 24
// bytes; their text is that of the first snapshot which had the list.
func compileLists(in map[string]zone.List, old *lists) (lists, error) {
	l := lists{
		from:      in,
		addresses: make(map[string]*bart.Lite), hosts: make(map[string]*hostSet),
		strings: make(map[string]map[string]struct{}),
	}
	var problems []error
	for name, list := range in {
		if l.share(name, list, old) {
			continue
		}
		switch list.Kind {
		case zone.ListIP:
			t := new(bart.Lite)
			for _, item := range list.Items {
				p, err := zone.ParsePrefix(item)
				if err != nil {
					problems = append(problems, fmt.Errorf("list %s: %w", name, err))
					continue
				}
				t.Insert(p)
			}
			l.addresses[name] = t
		case zone.ListHostname:
			h := &hostSet{exact: make(map[string]struct{}, len(list.Items)), wild: make(map[string]struct{})}
			for _, item := range list.Items {
				if wild, ok := strings.CutPrefix(item, "*."); ok {
					h.wild[wild] = struct{}{}
				} else {
					h.exact[item] = struct{}{}
				}
			}
			l.hosts[name] = h
		case zone.ListString:
			set := make(map[string]struct{}, len(list.Items))
			for _, item := range list.Items {
				set[item] = struct{}{}
			}
			l.strings[name] = set
		default:
			problems = append(problems, fmt.Errorf("list %s: unknown kind %q", name, list.Kind))
		}
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return l, errors.Join(problems...)
}

// share takes a list from old, when it is the same there.
func (l *lists) share(name string, list zone.List, old *lists) bool {
	if old == nil {
		return false
	}
	if was, ok := old.from[name]; !ok || was.Kind != list.Kind || !slices.Equal(was.Items, list.Items) {
		return false
	}
	switch list.Kind {
	case zone.ListIP:
		l.addresses[name] = old.addresses[name]
	case zone.ListHostname:
		l.hosts[name] = old.hosts[name]
	case zone.ListString:
		l.strings[name] = old.strings[name]
	default:
		return false
	}
	return true
}

// ContainsAddr implements expr.Lists by longest prefix match.
func (l *lists) ContainsAddr(name string, a netip.Addr) (in, known bool) {
	t, ok := l.addresses[name]
	if !ok {
		return false, false
	}
	return t.Contains(a), true
}

// ContainsString implements expr.Lists. A list of host names folds s (case, trailing dot, U-labels), and its
// wildcards hold names of every depth below them.
func (l *lists) ContainsString(name, s string) (in, known bool) {
	if set, ok := l.strings[name]; ok {
		_, in := set[s]
		return in, true
	}
	h, ok := l.hosts[name]
	if !ok {
		return false, false
	}
	return h.contains(s), true
}

func (h *hostSet) contains(s string) bool {
	if _, in := h.exact[s]; in {
		return true
	}
	if !folded(s) {
		n, err := zone.ParseName(s)
		if err != nil {
			return false
		}
		s = n.String()
		if _, in := h.exact[s]; in {
			return true
		}
	}
	if len(h.wild) == 0 {
		return false
	}
	for {
		_, parent, below := strings.Cut(s, ".")
		if !below {
			return false
		}
		if _, in := h.wild[parent]; in {
			return true
		}
		s = parent
	}
}

// folded reports whether s can be told without zone.ParseName to be as it would return it, or no name at
// all that a list could hold.
func folded(s string) bool {
	for i := range len(s) {
		if c := s[i]; 'A' <= c && c <= 'Z' || c >= 0x80 {
			return false
		}
	}
	return !strings.HasSuffix(s, ".")
}
